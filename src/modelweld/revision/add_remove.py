"""A site more or a site less, without fusing everything again.

At fixed hyperparameters both are exact: the new site gets its best assignment given all others, and a site that leaves
takes its values out of the atoms' sums (of sufficient statistics). Then hyperparameters are learned again and sweeps go
on from there until nothing changes, which takes an idle sweep or two instead of a fit. No value that a site sent is
left in the Fusion that it left: labels, atoms, hyperparameters, objective and history are computed from the sites that
stay. But the sweeps start from labels that it helped to find; `from_scratch` starts from nothing, as `fuse` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from modelweld.core.algorithm1 import NEW
from modelweld.core.family import has_places
from modelweld.core.match import Plan, through
from modelweld.core.matching import Matching
from modelweld.core.values import Index, SetValues
from modelweld.errors import InputError, announce
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.effects.words import describe_effects
from modelweld.fit.refit import board_at, refit
from modelweld.fit.screening.swapped_columns import name_swapped
from modelweld.fit.screening.totals import total_stack
from modelweld.fit.static_matcher import screens_of, values_of
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import times_of
from modelweld.inputs.sets import columns_of, stack_of
from modelweld.inputs.stacks import stack_arrays
from modelweld.kinds import align_again, kind_of
from modelweld.kinds.site_effects import correct_sites, estimate_effects
from modelweld.libraries.reading import read_site
from modelweld.results.fit_result import FitResult
from modelweld.time.matcher import timeline_at


def with_site(
    fit: FitResult, model: Any, *, site: str = "", time: Any = None, refit: bool = True, seed: int = 0
) -> FitResult:
    """The fit with one more site: as those before, or a fitted model where those are models."""
    model = _with_time(fit, read_site(model) if isinstance(fit.given[0], LocalModel) else model, time)
    unused = next(str(i) for i in range(len(fit.sites), -1, -1) if str(i) not in fit.sites)
    name = site or (model.site if isinstance(model, LocalModel) else "") or unused
    if name in fit.sites:
        raise InputError(f"there is a site {name!r} already: remove it first, or give the new one another name.")
    recipe = fit.recipe and fit.recipe._replace(given=[*fit.recipe.given, model])
    larger = _revise(fit, [*fit.given, model], [*fit.sites, name], list(range(len(fit.sites))), refit, seed)
    larger = larger.with_(matchings=_compare_columns(larger), recipe=recipe)
    larger.before = name, fit.with_(recipe=fit.recipe)
    return larger


def _with_time(fit: FitResult, model: Any, time: Any) -> Any:
    """The model with its time, where sites have one; refused where only some would."""
    if fit.times is None:
        if time is not None or (isinstance(model, LocalModel) and model.time is not None):
            raise InputError("the sites before have no times, and this one does: leave it out, or fuse all with times.")
        return model
    time = model.time if time is None else time
    if time is None:
        raise InputError("the sites before have times: say when this one was trained, fusion.add(model, time=...).")
    return model.with_(time=time)


def _compare_columns(fit: FitResult) -> dict[str, Matching]:
    """The matchings, with a reason and a warning where the last site, which is new, has columns in another order."""
    new, found = len(fit.sites) - 1, tuple[str, ...]()
    if fit.has_models:
        kind, names = kind_of(fit.models), fit.first_model.coordinates.get("feature")
        found = name_swapped([kind.totals(model) for model in fit.models], names, fit.sites, new)
    elif all(m.screened and all(has_places(f) for f in m.families.values()) for m in fit.matchings.values()):
        found = name_swapped(total_stack(stack_arrays(fit.given)), None, fit.sites, new)
    announce(found)
    return {name: replace(m, reasons=(*found, *m.reasons)) for name, m in fit.matchings.items()}


def without_site(
    fit: FitResult, site: str | int, *, from_scratch: bool = False, refit: bool = True, seed: int = 0
) -> FitResult:
    """The fit with one site less."""
    gone = fit.site_number(site)
    stay = [j for j in range(len(fit.sites)) if j != gone]
    if not stay:
        raise InputError("the last site cannot be removed: nothing would be left.")
    sites = [fit.sites[j] for j in stay]
    recipe = fit.recipe and fit.recipe._replace(given=[fit.recipe.given[j] for j in stay])
    if from_scratch:
        if recipe is None:
            raise InputError("what the sites sent at first is not known here. Fuse the other sites again.")
        return recipe.fuse(recipe.given, sites)
    less = _revise(fit, [fit.given[j] for j in stay], sites, stay, refit, seed)
    less.recipe = recipe
    last, before = fit.before or ("", fit)
    return _better(less, before) if refit and last == fit.sites[gone] else less


def _better(less: FitResult, before: FitResult) -> FitResult:
    """What is left when the last site goes, or what there was before it came, if that is no worse."""
    restored = before.objective >= less.objective
    better = before.with_(recipe=before.recipe) if restored else less
    better.settings = {**less.settings, "restored": restored} if less.settings else {}
    return better


def _revise(
    fit: FitResult, given: Sequence[Any], sites: list[str], stay: list[int], refit: bool, seed: int
) -> FitResult:
    """A fit of `given`, whose first sites are those of `fit` that stay; a last one that is new is matched.

    Effects of sites are estimated again where one is new, and corrected beside those that were.
    """
    plain = not any(isinstance(model, LocalModel) for model in given)
    given = given if plain else align_again(given)
    matchings = _match_again(fit, given, sites, stay, refit, seed)
    before = {name: _extend(old.effects, stay, len(sites)) for name, old in fit.matchings.items()}
    found = _estimate_effects(fit, given, matchings) if len(sites) > len(stay) else None
    if found is not None:
        kind = None if plain else kind_of(given)
        if kind is None:
            stack = found.correct(stack_arrays(given))
            given = np.split(stack.values, stack.offsets[1:-1])
        else:
            given = correct_sites(given, found, kind)
        [(name, matching)] = _match_again(fit, given, sites, stay, refit, seed).items()
        [key] = matching.families
        matchings = {name: matching.say(*describe_effects(found, sites, _features(given[0], key, name)))}
        old = before[name]
        before[name] = found if old is None else found.after(old)
    matchings = {name: replace(m, effects=before[name]) for name, m in matchings.items()}
    announce(reason for matching in matchings.values() for reason in matching.reasons)
    known = {name: value for name, value in fit.settings.items() if name != "restored"}
    settings = {**known, "revised": known.get("revised", 0) + 1} if known else {}
    return fit.with_(given=given, sites=sites, matchings=matchings, settings=settings)


def _features(model: Any, key: Any, set_name: str) -> list[str]:
    """Names of features in sentences."""
    if isinstance(model, LocalModel):
        return columns_of(model, key, set_name, {}, in_words=True)
    return [f"dimension {d}" for d in range(np.shape(model)[1])]


def _extend(effects: SiteEffects | None, stay: list[int], J: int) -> SiteEffects | None:
    """Effects of sites that stay, and none of a new one."""
    if effects is None:
        return None
    return SiteEffects(
        *(np.concatenate([x, np.zeros((J - len(stay), x.shape[1]))]) for x in effects.of(np.array(stay)))
    )


def _estimate_effects(fit: FitResult, given: Sequence[Any], matchings: Mapping[str, Matching]) -> SiteEffects | None:
    """What sites differ by, one of which is new, unless that was not asked for."""
    plan = Plan("auto", site_effects=fit.settings.get("site_effects", "auto"))
    matching, *others = matchings.values()
    if others or len(matching.families) != 1 or not matching.screened:
        return None
    [family] = matching.families.values()
    if isinstance(given[0], LocalModel):
        times = times_of(given, fit.sites + [""] * (len(given) - len(fit.sites)))
        return estimate_effects(given, kind_of(given), matchings, plan, lambda models: family, times)
    return find_site_effects(stack_arrays(given), matching, plan, lambda units: family)


def _match_again(
    fit: FitResult, given: Sequence[Any], sites: list[str], stay: list[int], refit: bool, seed: int
) -> dict[str, Matching]:
    """The matchings of sites, from the labels of those that stay."""
    plain, rng = not isinstance(given[0], LocalModel), np.random.default_rng(seed)
    times = None if plain else times_of(given, sites)
    matchings: dict[str, Matching] = {}
    for set_name, old in fit.matchings.items():
        if old.prior is None or not old.families:
            raise InputError(f"a fusion by {old.engine!r} has no model to revise; use fuse.")
        columns = None
        if plain:
            stacks = [stack_arrays(given)]
        else:
            stacks = [stack_of(given, name, set_name, matchings) for name in old.families]
            columns = [columns_of(given[0], key, set_name, matchings, in_words=True) for key in old.families]
        for stack, (key, atoms) in zip(stacks, old.values.items(), strict=True):
            if stack.values.shape[1] != atoms.shape[1]:
                found = f"array {key!r} has {stack.values.shape[1]} columns instead of {atoms.shape[1]}"
                raise InputError(f"the site has names that no earlier one has: {found}. Fuse all sites again.")
        kept = [old.labels[j] for j in stay]
        new = [np.full(size, NEW) for size in stacks[0].sizes[len(stay) :]]
        labels = np.concatenate([*kept, *new])
        parts = {key: (stack, family) for (key, family), stack in zip(old.families.items(), stacks, strict=True)}
        values = replace(values_of(parts, sites, columns), times=times)
        matchings[set_name] = _rematch(old, values, labels, rng, refit)
    return matchings


def _rematch(old: Matching, values: SetValues, labels: Index, rng: np.random.Generator, learn: bool) -> Matching:
    """Place what has no label yet; with `learn`, learn and sweep until nothing changes. Screened as at first."""
    at = board_at if values.times is None else timeline_at

    def fit(values: SetValues) -> Matching:
        return refit(old, values, labels[values.rows], at, rng, learn)

    plan = Plan("auto", outliers=old.screened, duplicates=old.duplicates is not None)
    return through(screens_of(plan), fit)(values)
