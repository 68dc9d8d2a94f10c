"""A site more or a site less, without fusing everything again.

At fixed hyperparameters both are exact: the new site gets its best assignment given all others, and a site that leaves
takes its values out of the atoms' sums (of sufficient statistics). Then hyperparameters are learned again and sweeps go
on from there until nothing changes, which takes an idle sweep or two instead of a fit. No value that a site sent is
left in the Fusion that it left: labels, atoms, hyperparameters, objective and history are computed from the sites that
stay. But the sweeps start from labels that it helped to find; `from_scratch` starts from nothing, as `fuse` does.

How a fusion was made, so that the same can be done again with other sites.

The model of a day: what sites near that time sent of atoms that live then, moved along with their atoms.

Places are those of the day. What is auxiliary (counts, covariances, transitions) is of the sites nearest in time, as
many of them as it takes to have seen every atom that lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.algorithm1 import NEW
from modelweld.core.match import through
from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.plan import Plan
from modelweld.core.values import Array, Index, SetValues, offsets_of
from modelweld.errors import InputError, announce
from modelweld.families import Family
from modelweld.families.capabilities import follow, has_places
from modelweld.families.fading import Moving
from modelweld.fit.screening.screens import screens_of
from modelweld.fit.screening.unit_fit import name_other_units
from modelweld.fit.screening.units import totals_of_stack
from modelweld.fit.static_matcher import refit, values_of
from modelweld.inputs.alignment import local_models
from modelweld.inputs.clock import number_of
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import as_model, is_plain, stack_arrays, times_of
from modelweld.inputs.sets import columns_of, stack_of
from modelweld.kinds import kind_of, name_doubts
from modelweld.libraries import read
from modelweld.time.matcher import refit_in_time
from modelweld.time.paths import living_at
from modelweld.time.timeline import places_of_values, smooth

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.time.timeline import Timeline


def with_site(
    fusion: Fusion, model: Any, *, site: str = "", time: Any = None, refit: bool = True, seed: int = 0
) -> Fusion:
    """The fusion with one more site: as those before, or a fitted model where those are models."""
    if isinstance(fusion.given[0], LocalModel) and not isinstance(model, LocalModel):
        model = as_model(model) if is_plain(model) else read(model)
    model = _with_time(fusion, model, time)
    given = [*fusion.given, model]
    unused = next(str(i) for i in range(len(fusion.sites), -1, -1) if str(i) not in fusion.sites)
    name = site or (model.site if isinstance(model, LocalModel) else "") or unused
    if name in fusion.sites:
        raise InputError(f"there is a site {name!r} already: remove it first, or give the new one another name.")
    larger = _revise(fusion, given, [*fusion.sites, name], list(range(len(fusion.sites))), refit, seed)
    larger = _compare_units(larger)
    larger.before = name, _copy(fusion)
    if fusion.recipe is not None:
        larger.recipe = fusion.recipe._replace(given=[*fusion.recipe.given, model])
    return larger


def _with_time(fusion: Fusion, model: Any, time: Any) -> Any:
    """The model with its time, where sites have one; refused where only some would."""
    if fusion.times is None:
        if time is not None or (isinstance(model, LocalModel) and model.time is not None):
            raise InputError("the sites before have no times, and this one does: leave it out, or fuse all with times.")
        return model
    time = model.time if time is None else time
    if time is None:
        raise InputError("the sites before have times: say when this one was trained, fusion.add(model, time=...).")
    return model.with_(time=time)


def _compare_units(fusion: Fusion) -> Fusion:
    """The fusion, whose last site is new, with a reason and a warning where that has other units than the others."""
    new = len(fusion.sites) - 1
    if any(isinstance(model, LocalModel) for model in fusion.given):
        kind = kind_of(fusion.models)
        units = name_other_units([kind.totals(model) for model in fusion.models], fusion.models, fusion.sites, new)
    elif all(m.screened and all(has_places(f) for f in m.families.values()) for m in fusion.matchings.values()):
        units = name_other_units(totals_of_stack(stack_arrays(fusion.given)), None, fusion.sites, new)
    else:
        return fusion
    if not units:
        return fusion
    announce(units)
    matchings = {name: replace(m, reasons=(*units, *m.reasons)) for name, m in fusion.matchings.items()}
    return fusion.with_(matchings=matchings)


def without_site(
    fusion: Fusion, site: str | int, *, from_scratch: bool = False, refit: bool = True, seed: int = 0
) -> Fusion:
    """The fusion with one site less."""
    gone = fusion.number_of(site)
    stay = [j for j in range(len(fusion.sites)) if j != gone]
    if not stay:
        raise InputError("the last site cannot be removed: nothing would be left.")
    sites = [fusion.sites[j] for j in stay]
    recipe = fusion.recipe and fusion.recipe._replace(given=[fusion.recipe.given[j] for j in stay])
    if from_scratch:
        return _fuse_anew(recipe, sites)
    less = _revise(fusion, [fusion.given[j] for j in stay], sites, stay, refit, seed)
    less.recipe = recipe
    last, before = fusion.before or ("", fusion)
    return _better(less, before) if refit and last == fusion.sites[gone] else less


def _fuse_anew(recipe: Recipe | None, sites: list[str]) -> Fusion:
    """What `fuse` makes of the sites that stay."""
    if recipe is None:
        raise InputError(
            "what the sites sent at first and what fuse was asked for are not known here: the fusion was loaded from a "
            "file, reduced or made by another method. Fuse the other sites again."
        )
    return recipe.fuse(recipe.given, sites)


def _better(less: Fusion, before: Fusion) -> Fusion:
    """What is left when the last site goes, or what there was before it came, if that is no worse."""
    restored = before.objective >= less.objective
    better = _copy(before) if restored else less
    better.settings = {**less.settings, "restored": restored} if less.settings else {}
    return better


def _copy(fusion: Fusion) -> Fusion:
    """The fusion without what was before it."""
    copy = fusion.with_()
    copy.recipe = fusion.recipe
    return copy


def _revise(fusion: Fusion, given: Sequence[Any], sites: list[str], stay: list[int], refit: bool, seed: int) -> Fusion:
    """A fusion of `given`, whose first sites are those of `fusion` that stay; a last one that is new is matched."""
    plain = not any(isinstance(model, LocalModel) for model in given)
    models = [] if plain else _as_before(local_models(given))
    rng = np.random.default_rng(seed)
    times = None if plain else times_of(models, sites)
    matchings: dict[str, Matching] = {}
    for set_name, old in fusion.matchings.items():
        if old.prior is None or not old.families:
            raise InputError(f"a fusion by {old.engine!r} has no model to revise; use fuse.")
        columns = None
        if plain:
            stacks = [stack_arrays(given)]
        else:
            stacks = [stack_of(models, name, set_name, matchings) for name in old.families]
            columns = [columns_of(models[0], key, set_name, matchings, in_words=True) for key in old.families]
        for stack, (key, atoms) in zip(stacks, old.values.items(), strict=True):
            if stack.values.shape[1] != atoms.shape[1]:
                raise InputError(
                    f"the site names something that no earlier one has (words, classes, features): array {key!r} now "
                    f"has {stack.values.shape[1]} columns instead of {atoms.shape[1]}. Fuse all sites again."
                )
        kept = [old.labels[j] for j in stay]
        new = [np.full(size, NEW) for size in stacks[0].sizes[len(stay) :]]
        labels = np.concatenate([*kept, *new])
        parts = {key: (stack, family) for (key, family), stack in zip(old.families.items(), stacks, strict=True)}
        values = replace(values_of(parts, sites, columns), times=times)
        matchings[set_name] = _rematch(old, values, labels, rng, refit)
    announce(reason for matching in matchings.values() for reason in matching.reasons)
    known = {name: value for name, value in fusion.settings.items() if name != "restored"}
    settings = {**known, "revised": known.get("revised", 0) + 1} if known else {}
    return fusion.with_(given=given if plain else models, sites=sites, matchings=matchings, settings=settings)


def _as_before(models: list[LocalModel]) -> list[LocalModel]:
    """All models arranged as `fuse` has them; with standard errors, if those that were fused have some."""
    kind, weighed = kind_of(models), any(model.variance for model in models)
    alike = kind.arrange(models)
    name_doubts(kind, models, alike)
    return kind.weigh(alike) if weighed else alike


def aligned(given: Sequence[Any]) -> list[LocalModel]:
    """Models as `fuse` has them, the last of which came as any site sends its own."""
    *before, model = given
    if not isinstance(model, LocalModel):
        model = as_model(model) if is_plain(model) else read(model)
    return _as_before(local_models([*before, model.with_(time=before[0].time)]))


def _rematch(old: Matching, values: SetValues, labels: Index, rng: np.random.Generator, learn: bool) -> Matching:
    """Place what has no label yet; with `learn`, learn and sweep until nothing changes. Screened as at first."""
    go_on = partial(refit if values.times is None else refit_in_time, rng=rng)

    def fit(values: SetValues) -> Matching:
        return go_on(old, values, labels[values.rows], learn=learn)

    plan = Plan("auto", outliers=old.screened, duplicates=old.duplicates is not None)
    return through(screens_of(plan, go_on), fit)(values)


class Recipe(NamedTuple):
    """What was received, as it was, and how it was fused: `fuse` takes sites and their names."""

    given: Sequence[Any]
    fuse: Callable[[Sequence[Any], Sequence[str]], Fusion]


def at_time(fusion: Fusion, time: float) -> Fusion:
    """A fusion of sites without times, all of which speak of that one."""
    name, old = fusion.named_set()
    if len(fusion.matchings) > 1:
        raise InputError(f"at: the model of a day is made of one set; these sites have {list(fusion.matchings)}.")
    board, _ = fusion.timeline(name)
    living = living_at(board, time)
    if not living.any():
        raise InputError("at: no atom is likely to live at that time; fusion.lives() says when they do.")
    seen = np.array([number_of(moment) for moment in fusion.times or ()])
    near = nearest_sites(old, seen, time, living)
    [key] = old.families
    order = fusion.timeline_order(name)
    here, there = places_of_values(board, order), places_of_values(board, order, time)
    models = []
    for j in near:
        own = slice(old.offsets[j], old.offsets[j + 1])
        move = _Move(old.families[key], here[own], there[own])
        models.append(_of_day(fusion.models[j], key, name, move, living[old.stacked_labels[own]]))
    matching = _matching_of_day(old, board, near, living, time)
    return fusion.with_(given=models, sites=[fusion.sites[j] for j in near], matchings={name: matching})


def nearest_sites(matching: Matching, seen: Array, time: float, living: NDArray[np.bool_]) -> list[int]:
    """The sites nearest to a time, in their own order, up to where each atom that lives was seen once."""
    distance = np.abs(seen - time)
    held = matching.presence[:, living]
    reach = np.where(held, distance[:, None], np.inf).min(0).max()
    return np.flatnonzero((distance <= reach) & held.any(1)).tolist()


class _Move(NamedTuple):
    """How a site's values (L, D) move with their atoms."""

    family: Family
    here: Array
    there: Array


def _of_day(model: LocalModel, key: Any, set_name: str, move: _Move, stay: NDArray[np.bool_]) -> LocalModel:
    """A site's model with members that `stay`, their places moved."""
    if isinstance(key, str):
        position = model.axes[key].index(set_name)
        members = np.moveaxis(np.asarray(model.arrays[key]), position, 0)
        moved = follow(move.family, members.reshape(move.here.shape), move.here, move.there)
        model = kind_of([model]).move(model, {key: np.moveaxis(moved.reshape(members.shape), 0, position)})

    def cut(values: ArrayLike, name: str) -> Array:
        x = np.asarray(values)
        for position, axis in enumerate(model.axes[name]):
            if axis == set_name:
                x = np.compress(stay, x, axis=position)
        return x

    return model.with_(
        arrays={name: cut(x, name) for name, x in model.arrays.items()},
        variance={name: cut(x, name) for name, x in model.variance.items()},
        weight={name: cut(x, name) for name, x in model.weight.items()},
        time=None,
    )


def _matching_of_day(
    old: Matching, board: Timeline, near: list[int], living: NDArray[np.bool_], time: float
) -> Matching:
    """Atoms that live, where they are then, numbered by how many of the near sites hold them."""
    atoms = np.flatnonzero(living)
    places = smooth(board, atoms, np.full(len(atoms), time)).mean
    counts = old.presence[near][:, atoms].sum(0)
    number = by_count(counts, places)
    rank = np.full(len(living), -1)
    rank[atoms] = ranks(number)
    labels = [rank[old.labels[j]][living[old.labels[j]]] for j in near]
    [(key, family)] = old.families.items()
    assert isinstance(family, Moving)
    return Matching(
        stacked_labels=np.concatenate(labels),
        offsets=offsets_of([len(own) for own in labels]),
        counts=counts[number],
        families={key: family.still()},
        values={key: places[number]},
        prior=old.prior,
        objective=old.objective,
        history=old.history,
        changes=old.changes,
        converged=old.converged,
        engine="numpy",
    )
