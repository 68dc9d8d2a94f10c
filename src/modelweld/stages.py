"""What happens to sites on their way to a Fusion: stages, each of which gets a job and hands it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from modelweld.core.match import Matcher
from modelweld.core.matching import Matching
from modelweld.core.plan import Plan
from modelweld.core.values import arrays_of
from modelweld.errors import InputError, OutOfRangeError, announce
from modelweld.families import Family, Gaussian
from modelweld.families.capabilities import has_places
from modelweld.fit.screening.clipping import clip_spreads, clip_weights
from modelweld.fit.screening.shared_rows import name_shared_rows
from modelweld.fit.screening.unit_fit import name_other_units
from modelweld.fit.screening.units import may_differ, totals_of_stack
from modelweld.fit.static_matcher import match
from modelweld.inputs.local_model import LocalModel, check_finite
from modelweld.inputs.plain_tables import stack_arrays, times_of
from modelweld.inputs.sets import Families, check_units, columns_of, families_by_set, local_models, stack_of
from modelweld.kinds import kind_of, name_doubts
from modelweld.kinds.kind import Kind
from modelweld.time.matcher import match_in_time


@dataclass(frozen=True, eq=False)
class Job:
    """What is being fused, between two stages.

    `sites` are what is fitted, `sent` what was aligned and not yet weighed; `reasons` is what users are told of sites.
    """

    sites: Sequence[Any]
    names: list[str]
    families: Families
    plan: Plan
    rng: np.random.Generator
    kind: Kind | None = None
    sent: Sequence[LocalModel] = ()
    matchings: dict[str, Matching] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def say(self, *reasons: str) -> Job:
        """The job with something more that users are told."""
        return replace(self, reasons=(*self.reasons, *reasons)) if reasons else self

    def matchings_with_reasons(self) -> dict[str, Matching]:
        """What was found, set by set, with what is said of sites before what is said of values; all is announced."""
        found = {name: replace(m, reasons=(*self.reasons, *m.reasons)) for name, m in self.matchings.items()}
        reasons = [*self.reasons, *(reason for m in self.matchings.values() for reason in m.reasons)]
        if reasons:
            announce(reasons)
        return found


Stage = Callable[[Job], Job]


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
    """Families and plan that suit the kind, where nobody asked for others."""
    kind, plan = _kind(job), job.plan
    if job.families is None:
        sites = kind.weigh(job.sites)
        once = plan.splits == "auto" and kind.holds_atoms_once(sites)
        plan = replace(plan, splits=False if once else plan.splits)
        job = replace(job, sites=sites, families=kind.families(sites))
    if plan.outliers == "auto":
        plan = replace(plan, outliers=kind.has_outliers)
    sets = len(families_by_set(job.sites, job.families))
    return replace(job, plan=replace(plan, by_evidence=not kind.name and sets == 1))


def compare_units(job: Job) -> Job:
    """Sites that measure a feature in another unit, or have columns in another order, are named."""
    kind, by_set = _kind(job), families_by_set(job.sites, job.families)
    in_units = kind.name or all(has_places(family) for chosen in by_set.values() for family in chosen.values())
    if not in_units or _has_times(job):  # a group that comes later is no other unit
        return job
    totals = [kind.totals(model) for model in job.sent]
    if not may_differ(totals, plain=not kind.name):
        return job
    return job.say(*name_other_units(totals, job.sent, job.names))


def match_sets(job: Job) -> Job:
    """One set after the other, each in the global order of those before."""
    times, matchings = times_of(job.sites, job.names) if _has_times(job) else None, dict[str, Matching]()
    for set_name, chosen in families_by_set(job.sites, job.families).items():
        parts = {key: (stack_of(job.sites, key, set_name, matchings), family) for key, family in chosen.items()}
        columns = [columns_of(job.sites[0], key, set_name, matchings, in_words=True) for key in chosen]
        matcher: Matcher = match if times is None else partial(match_in_time, times=times)
        matching = matcher(parts, job.names, job.plan, job.rng, columns)
        errors = set.intersection(*(set(model.variance) for model in job.sent))
        measured = [parts[key][0] for key, f in chosen.items() if has_places(f) and errors.issuperset(arrays_of(key))]
        if measured and times is None and job.plan.duplicates and job.plan.search != "plain":
            matching = matching.say(*name_shared_rows(measured, matching, job.names))
        matchings[set_name] = matching
    return replace(job, matchings=matchings)


def clip_widths(job: Job) -> Job:
    """No site's components are a hundred times as wide as a typical site's."""
    bounded = clip_spreads(job.sites, job.names)
    return replace(job, sites=bounded.sites).say(*bounded.reasons)


def match_arrays(job: Job) -> Job:
    """Plain arrays: one set, one array."""
    family = Gaussian() if job.families is None else job.families
    if not isinstance(family, Family):
        raise InputError("plain arrays take one Family, not a mapping.")
    stack = stack_arrays(job.sites)
    units: tuple[str, ...] = ()
    if job.plan.outliers and has_places(family):
        totals = totals_of_stack(stack)
        units = name_other_units(totals, None, job.names) if may_differ(totals, plain=True) else ()
    try:
        matching = match({"values": (stack, family)}, job.names, job.plan, job.rng)
    except OutOfRangeError:
        for j, array in enumerate(job.sites):  # the fast look at all values said no; say where
            check_finite(np.asarray(array, dtype=np.float64), f"site {j}")
        raise
    return replace(job, matchings={"atom": matching}).say(*units)


def _has_times(job: Job) -> bool:
    return any(model.time is not None for model in job.sites)


def _kind(job: Job) -> Kind:
    assert job.kind is not None
    return job.kind


MODEL_STAGES: tuple[Stage, ...] = (align, choose, compare_units, match_sets, clip_widths)
ARRAY_STAGES: tuple[Stage, ...] = (match_arrays,)
