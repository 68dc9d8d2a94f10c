"""One set of groups in time, from values and times to a matching: starts, sweeps, learning; the best objective wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.algorithm1 import NEW, SMALLEST_RISE, Run, alternate, is_same_partition
from modelweld.core.family import find_starts, with_fields
from modelweld.core.match import Parts, Plan, through
from modelweld.core.matching import Matching, make_matching
from modelweld.core.values import (
    Array,
    Index,
    Key,
    SetValues,
    Stack,
    canonical_groups,
    canonical_values,
    offsets_of,
    total_variance,
)
from modelweld.errors import InputError
from modelweld.families import Drift, Family
from modelweld.families.fading import Moving, moving
from modelweld.families.math import start
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.fit.static_matcher import check, limits_met, screens_of
from modelweld.progress import report_progress
from modelweld.time.timeline import Timeline

PAIRS_COMPARED = 32
"""Pairs of groups that follow each other whose values are matched for a first look, evenly over time."""

STARTS = ((0.25, 0.0, 0.1), (0.25, 0.9, 0.1), (0.75, 0.9, 0.1), (0.25, 0.5, 3.0))
"""What one atom's values in consecutive groups differ by, as a quantile of what matched values do; how much of that is
drift and not noise; and lives in the whole span: one start each."""

FIRST_MEMORIES = (2.0, 0.3, np.inf)
"""Memories to start from where sums fade, in units of the whole span."""

FIRST_HELD = 0.8
"""Probability of being held, before anything is learned."""

LARGE, PART = 500_000, 100_000
"""Values x dimensions from which hyperparameters to start from are learned on the first groups, up to so many."""


def arrange_in_time(stack: Stack, times: Array) -> tuple[Stack, Array, Index]:
    """The stack with groups in the order of time, then of content; their times; and where each value came from."""
    within = canonical_values([stack])
    groups = canonical_groups([stack.take(within, stack.offsets)])
    groups = groups[np.argsort(times[groups], kind="stable")]
    order = np.concatenate([within[stack.offsets[j] : stack.offsets[j + 1]] for j in groups])
    return stack.take(order, offsets_of(stack.sizes[groups])), times[groups], order


class Start(NamedTuple):
    """Hyperparameters to start from."""

    family: Moving
    prior: BirthDeath


def starts(family: Moving, stack: Stack, times: Array) -> list[Start]:
    """Where to start."""
    if isinstance(family, Drift):
        return drift_starts(family, stack, times)
    span = float(np.ptp(times)) if len(times) else 0.0
    free = np.isinf(family.memory) and span > 0
    memories = [part * span for part in FIRST_MEMORIES] if free else [family.memory]
    return [
        Start(with_fields(one, memory=float(memory)), first_lives(stack, times, STARTS[0][2]))
        for one in find_starts(family, stack)
        for memory in memories
    ]


def drift_starts(family: Drift, stack: Stack, times: Array) -> list[Start]:
    """Where to start: what was not given is read off values of groups that follow each other."""
    origin, total = total_variance(stack, family.scalar)
    filled = np.flatnonzero(stack.sizes > 0)
    at = np.unique(np.linspace(0, max(len(filled) - 2, 0), PAIRS_COMPARED).astype(np.int64))
    pairs = [(int(filled[i]), int(filled[i + 1])) for i in at if i + 1 < len(filled)]
    ranked = np.sort(start.pair_distances(stack, total, pairs)) / 2
    gaps = [times[b] - times[a] for a, b in pairs]
    gap = float(np.median([g for g in gaps if g > 0] or [1.0]))
    shares = {quantile: _share(ranked, quantile, stack.values.shape[1]) for quantile, _, _ in STARTS}
    look = start.Look(origin, total, start.typical_weight(stack), [shares[STARTS[0][0]]])
    scaled = family.with_scale(origin, total).with_prior_of(look)
    return [
        Start(_start(family, scaled, shares[quantile], moved, gap, look), first_lives(stack, times, lives))
        for quantile, moved, lives in STARTS
    ]


def _share(ranked: Array, quantile: float, D: int) -> float:
    """Of the total variance, half of what copies in consecutive groups differ by; few dimensions hide how much."""
    if len(ranked) == 0:
        return start.UNKNOWN_SHARE
    share = float(ranked[int(quantile * (len(ranked) - 1))])
    if D < start.FEW_DIMENSIONS:
        share = share * D / (2 * scipy.special.gammaincinv(D / 2, quantile))
    return float(np.clip(share, *start.NOISE_SHARES))


def _start(family: Drift, scaled: Drift, share: float, moved: float, gap: float, look: start.Look) -> Drift:
    """Of what values of consecutive groups differ by, `share` of the total, so much `moved` and the rest is noise."""
    still = share * (1 - moved)
    memory = np.inf if moved == 0 else -gap / np.log(1 - share * moved / (1 - still))
    return replace(
        scaled,
        mean=start.prefer_given(family.mean, look.origin),
        noise=np.maximum(start.prefer_given(family.noise, still * look.total * look.typical), scaled.floor),
        spread=start.prefer_given(family.spread, (1 - still) * look.total),
        memory=float(memory) if np.isinf(family.memory) else family.memory,
    )


def first_lives(stack: Stack, times: Array, lives: float) -> BirthDeath:
    """Rates to start from, with so many lives in the whole span."""
    span = float(np.ptp(times)) if len(times) else 0.0
    size = float(stack.sizes[stack.sizes > 0].mean()) if (stack.sizes > 0).any() else 1.0
    return BirthDeath(size / FIRST_HELD, FIRST_HELD, lives / span if span > 0 else 0.0)


def run(
    stack: Stack, times: Array, family: Moving, prior: BirthDeath | None, rng: np.random.Generator, max_sweeps: int
) -> tuple[Timeline, Run]:
    """The best matching of groups that stand in the order of time."""
    report_progress("finding where to start", 0)
    if stack.values.size >= LARGE:
        boards = [_taught_by_part(stack, times, family, prior, rng, max_sweeps)]
    else:
        boards = [Timeline(stack, times, one.family, prior or one.prior) for one in starts(family, stack, times)]
    best = boards[0], alternate(boards[0], len(times), rng, max_sweeps)
    for board in boards[1:]:
        to_beat, found = best[1].history[-1], best[0].labels

        def is_back(board: Timeline = board, found: Index = found) -> bool:
            return is_same_partition(board.labels, found)

        progress = alternate(board, len(times), rng, max_sweeps, is_back, to_beat)
        if not progress.returned and progress.history[-1] > to_beat + SMALLEST_RISE:
            best = board, progress
    return best


def _taught_by_part(
    stack: Stack, times: Array, family: Moving, prior: BirthDeath | None, rng: np.random.Generator, max_sweeps: int
) -> Timeline:
    """A board without any matching, its hyperparameters learned on the first groups, two at least."""
    number = max(int(np.searchsorted(stack.offsets, PART // stack.values.shape[1])), 2)
    part = stack.take(slice(0, int(stack.offsets[number])), stack.offsets[: number + 1])
    taught, _ = run(part, times[:number], family, prior, rng, max_sweeps)
    return Timeline(stack, times, taught.family, taught.prior)


def match_in_time(
    parts: Parts,
    sites: Sequence[str],
    plan: Plan,
    rng: np.random.Generator,
    columns: Sequence[Sequence[str]] | None = None,
    *,
    times: Array,
) -> Matching:
    """Which values of one set belong to the same moving atom: as `fit.static_matcher.match`, of sites that have times.

    A site that sends the same at another time has not changed, and is no duplicate; one that is off by a constant from
    all others of its own time has not drifted.
    """
    prior = check_plan(plan)
    key, stack, family = deciding(parts)
    check({key: (stack, family)}, sites)
    named = None if columns is None else [columns[list(parts).index(key)]]
    values = SetValues([stack], [family], [key], list(sites), named, np.arange(len(stack.values)), times=times)

    def fit(values: SetValues) -> Matching:
        return fit_in_time(values, plan, prior, rng)

    return through(screens_of(plan), fit)(values)


def fit_in_time(values: SetValues, plan: Plan, prior: BirthDeath | None, rng: np.random.Generator) -> Matching:
    """The matching of values that are taken for honest and independent."""
    [stack], [family], times = values.stacks, values.families, values.times
    assert times is not None
    assert isinstance(family, Moving)
    arranged, ordered, order = arrange_in_time(stack, times)
    board, progress = run(arranged, ordered, family, prior, rng, plan.max_sweeps)
    matching = make_matching(board, progress, values.names, order, values.offsets)
    return matching.say(*limits_met(progress, plan)) if plan.warn else matching


def check_plan(plan: Plan) -> BirthDeath | None:
    """The prior that was asked for, if any; what cannot be asked of groups in time is refused."""
    if plan.prior != "auto" and not isinstance(plan.prior, BirthDeath):
        found = type(plan.prior).__name__
        raise InputError(f"sites with times take the prior BirthDeath and no preset; found {found}.")
    if plan.splits is True or plan.engine == "compiled":
        what = "search=Search(splits=True)" if plan.splits is True else "engine='compiled'"
        raise InputError(f"{what} is not for sites with times: leave it out, or leave the times out.")
    return plan.prior if isinstance(plan.prior, BirthDeath) else None


def deciding(parts: Mapping[Key, tuple[Stack, Family]]) -> tuple[Key, Stack, Moving]:
    """The one array whose atoms move, and how; of several the one of real values. Others (covariances) have no say."""
    forms = [(key, stack, moving(family)) for key, (stack, family) in parts.items()]
    able = [(key, stack, family) for key, stack, family in forms if isinstance(family, Moving)]
    able = [one for one in able if isinstance(one[2], Drift)] or able
    if len(able) != 1:
        found = ", ".join(f"{key!r} ({type(family).__name__})" for key, (_, family) in parts.items())
        one = "sites with times are matched by one array of real values, compositions (Counts) or Directions"
        raise InputError(
            f"{one}; found {found}. Name one, families={{name: modelweld.Drift()}}, or leave the times out."
        )
    return able[0]


def timeline_of(matching: Matching, stack: Stack, times: Array, labels: Index | None = None) -> tuple[Timeline, Index]:
    """The board at the end of a fit, or at other labels, and where its values stood in the order given."""
    arranged, moments, order = arrange_in_time(stack, times)
    [family], prior = matching.families.values(), matching.prior
    assert isinstance(family, Moving)
    assert isinstance(prior, BirthDeath)
    own = (matching.stacked_labels if labels is None else labels)[order]
    return Timeline(arranged, moments, family, prior, own.copy()), order


def timeline_at(old: Matching, values: SetValues, labels: Index, from_scratch: bool) -> tuple[Timeline, Index]:
    """The board of a matching in time at these labels (NEW: none yet), and where its values stood."""
    assert values.times is not None
    known = labels != NEW
    labels = labels.copy()
    labels[known] = np.unique(labels[known], return_inverse=True)[1]
    return timeline_of(old, values.stacks[0], values.times, labels)
