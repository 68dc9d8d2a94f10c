"""What happens to sites on their way to a Fusion: stages, each of which gets a job and hands it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from modelweld.core.family import has_places
from modelweld.core.match import Plan
from modelweld.core.matching import Matching
from modelweld.core.values import arrays_of
from modelweld.families import Family
from modelweld.fit.effects.words import describe_effects
from modelweld.fit.screening.bounds import weigh_again
from modelweld.fit.screening.clipping import clip_spreads, clip_weights
from modelweld.fit.screening.distances import lie_unevenly
from modelweld.fit.screening.shared_rows import name_shared_rows
from modelweld.fit.screening.swapped_columns import name_swapped
from modelweld.fit.screening.totals import find_misfits, name_standardised
from modelweld.fit.static_matcher import match
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import times_of
from modelweld.inputs.sets import Families, check_units, columns_of, families_by_set, local_models, stack_of
from modelweld.kinds import kind_of, name_doubts
from modelweld.kinds.kind import Kind
from modelweld.kinds.site_effects import correct_sites, estimate_effects
from modelweld.time.matcher import match_in_time


@dataclass(frozen=True, eq=False)
class Job:
    """What is being fused, between two stages.

    `sites` are what is fitted, `sent` what was aligned, not yet weighed; `reasons` sentences about sites, for users.
    """

    sites: Sequence[Any]
    names: list[str]
    families: Families
    plan: Plan
    rng: np.random.Generator
    kind: Kind = field(default_factory=Kind)
    sent: Sequence[LocalModel] = ()
    matchings: dict[str, Matching] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def say(self, *reasons: str) -> Job:
        """The job with further sentences for users."""
        return replace(self, reasons=(*self.reasons, *reasons)) if reasons else self


def align(job: Job) -> Job:
    """The same units, variants of a kind in one form, the same arrays, names in one order."""
    models = local_models(job.sites)
    check_units(models)
    kind = kind_of(models)
    sites = kind.arrange(models)
    bounded = clip_weights(sites, job.names)
    job = replace(job, kind=kind, sites=bounded.sites, sent=bounded.sites)
    return job.say(*name_doubts(kind, models, bounded.sites), *bounded.reasons)


def choose(job: Job) -> Job:
    """Families and plan that suit the kind, unless others were asked for."""
    kind, plan = job.kind, job.plan
    if job.families is None:
        sites = kind.weigh(job.sites)
        if plan.splits == "auto":
            splits = (kind.splits and not _has_times(job)) or plan.splits
            plan = replace(plan, splits=False if kind.holds_atoms_once(sites) else splits)
        job = replace(job, sites=sites, families=kind.families(sites))
    if plan.outliers == "auto":
        plan = replace(plan, outliers=kind.has_outliers)
    sets = len(families_by_set(job.sites, job.families))
    return replace(job, plan=replace(plan, by_evidence=not kind.name and sets == 1))


def compare_columns(job: Job) -> Job:
    """Sites that have columns in another order are named; and it is said if all standardised their rows."""
    if _has_times(job):  # a group that comes later is no other order
        return job
    names, totals = job.sites[0].coordinates.get("feature"), [job.kind.totals(model) for model in job.sites]
    job = job.say(*name_standardised(totals)) if job.plan.looks_for_effects else job
    misfit, _ = find_misfits([t for t in totals if t is not None])
    return without_effects(job, name_swapped(totals, names, job.names)) if misfit else job


def without_effects(job: Job, swapped: Sequence[str]) -> Job:
    """The job with what is said of columns in another order; their order comes first, what sites differ by later."""
    return replace(job, plan=replace(job.plan, site_effects=False)).say(*swapped) if swapped else job


def match_models(job: Job) -> Job:
    """Sets matched with the families that suit the kind; again where sites differ by offsets or scales, corrected.

    Plain arrays come as models, and bring their matching.
    """
    kind, chosen = job.kind, choose(job)
    matched = weigh_models(chosen if job.matchings else match_sets(chosen), sites=False)

    def family_of(sites: Sequence[LocalModel]) -> Family:
        chosen = choose(replace(job, sites=sites))
        return next(iter(next(iter(families_by_set(chosen.sites, chosen.families).values())).values()))

    times = times_of(job.sites, job.names) if _has_times(job) else None
    effects = estimate_effects(matched.sites, kind, matched.matchings, matched.plan, family_of, times)
    if effects is None:
        return weigh_models(matched)
    sites = correct_sites(job.sites, effects, kind)
    matched = match_sets(choose(replace(job, sites=sites, sent=sites)))
    [(set_name, matching)] = matched.matchings.items()
    features = columns_of(job.sites[0], next(iter(matching.families)), set_name, {}, in_words=True)
    matched = replace(matched, matchings={set_name: replace(matching, effects=effects)})
    return weigh_models(matched.say(*describe_effects(effects, job.names, features)))


def weigh_models(job: Job, *, sites: bool = True) -> Job:
    """Sites matched again where distances from atoms refute their weights, with the weights that these show."""
    found = [(name, matching, key) for name, matching in job.matchings.items() for key in matching.families]
    if len(found) != 1 or _has_times(job) or not job.plan.outliers:
        return job
    [(set_name, matching, key)] = found
    stack, single = stack_of(job.sites, key, set_name, {}), job.sites[0].axes.get(str(key)) == (set_name, None)
    return weigh_again(job, stack, match_sets, sites=sites) if single and lie_unevenly(stack, matching) else job


def match_sets(job: Job) -> Job:
    """One set after the other, each in the global order of those before."""
    times, matchings = times_of(job.sites, job.names) if _has_times(job) else None, dict[str, Matching]()
    for set_name, chosen in families_by_set(job.sites, job.families).items():
        parts = {key: (stack_of(job.sites, key, set_name, matchings), family) for key, family in chosen.items()}
        columns = [columns_of(job.sites[0], key, set_name, matchings, in_words=True) for key in chosen]
        matcher = match if times is None else partial(match_in_time, times=times)
        matching = matcher(parts, job.names, job.plan, job.rng, columns)
        errors = set.intersection(*(set(model.variance) for model in job.sent or job.sites))
        measured = [parts[key][0] for key, f in chosen.items() if has_places(f) and errors.issuperset(arrays_of(key))]
        if measured and times is None and job.plan.duplicates and job.plan.search != "plain":
            matching = matching.say(*name_shared_rows(measured, matching, job.names))
        matchings[set_name] = matching
    return replace(job, matchings=matchings)


def clip_widths(job: Job) -> Job:
    """No site's components are a hundred times as wide as a typical site's."""
    bounded = clip_spreads(job.sites, job.names)
    return replace(job, sites=bounded.sites).say(*bounded.reasons)


def _has_times(job: Job) -> bool:
    return any(model.time is not None for model in job.sites)


MODEL_STAGES: tuple[Callable[[Job], Job], ...] = (align, compare_columns, match_models, clip_widths)
