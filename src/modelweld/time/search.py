"""From values and times to the best matching found: starts, sweeps along time, learning; the best objective wins."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from modelweld.families.base import with_fields
from modelweld.families.drift import Drift
from modelweld.families.fading import Moving
from modelweld.families.math.start import (
    FEW_DIMENSIONS,
    NOISE_SHARES,
    UNKNOWN_SHARE,
    Look,
    chosen,
    paired_distances,
    total_variance,
    typical_weight,
)
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, canonical_groups, canonical_values, offsets_of
from modelweld.matching.algorithm1 import SMALLEST_RISE, Run, alternate, is_same_partition
from modelweld.priors.lives import Lives
from modelweld.progress import tell
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
    prior: Lives


def starts(family: Moving, stack: Stack, times: Array) -> list[Start]:
    """Where to start."""
    if isinstance(family, Drift):
        return drift_starts(family, stack, times)
    span = float(np.ptp(times)) if len(times) else 0.0
    free = np.isinf(family.memory) and span > 0
    memories = [part * span for part in FIRST_MEMORIES] if free else [family.memory]
    return [
        Start(with_fields(one, memory=float(memory)), first_lives(stack, times, STARTS[0][2]))
        for one in family.starts(stack)
        for memory in memories
    ]


def drift_starts(family: Drift, stack: Stack, times: Array) -> list[Start]:
    """Where to start: what was not given is read off values of groups that follow each other."""
    origin, total = total_variance(stack, family.scalar)
    filled = np.flatnonzero(stack.sizes > 0)
    at = np.unique(np.linspace(0, max(len(filled) - 2, 0), PAIRS_COMPARED).astype(np.int64))
    pairs = [(int(filled[i]), int(filled[i + 1])) for i in at if i + 1 < len(filled)]
    ranked = np.sort(paired_distances(stack, total, pairs)) / 2
    gaps = [times[b] - times[a] for a, b in pairs]
    gap = float(np.median([g for g in gaps if g > 0] or [1.0]))
    shares = {quantile: _share(ranked, quantile, stack.values.shape[1]) for quantile, _, _ in STARTS}
    look = Look(origin, total, typical_weight(stack), [shares[STARTS[0][0]]])
    scaled = family.scaled(origin, total).believing_look(look)
    return [
        Start(_start(family, scaled, shares[quantile], moved, gap, look), first_lives(stack, times, lives))
        for quantile, moved, lives in STARTS
    ]


def _share(ranked: Array, quantile: float, D: int) -> float:
    """Of the total variance, half of what copies in consecutive groups differ by; few dimensions hide how much."""
    from scipy.special import gammaincinv

    if len(ranked) == 0:
        return UNKNOWN_SHARE
    share = float(ranked[int(quantile * (len(ranked) - 1))])
    return float(
        np.clip(share if D >= FEW_DIMENSIONS else share * D / (2 * gammaincinv(D / 2, quantile)), *NOISE_SHARES)
    )


def _start(family: Drift, scaled: Drift, share: float, moved: float, gap: float, look: Look) -> Drift:
    """Of what values of consecutive groups differ by, `share` of the total, so much `moved` and the rest is noise."""
    still = share * (1 - moved)
    memory = np.inf if moved == 0 else -gap / np.log(1 - share * moved / (1 - still))
    return replace(
        scaled,
        mean=chosen(family.mean, look.origin),
        noise=np.maximum(chosen(family.noise, still * look.total * look.typical), scaled.floor),
        spread=chosen(family.spread, (1 - still) * look.total),
        memory=float(memory) if np.isinf(family.memory) else family.memory,
    )


def first_lives(stack: Stack, times: Array, lives: float) -> Lives:
    """Rates to start from, with so many lives in the whole span."""
    span = float(np.ptp(times)) if len(times) else 0.0
    size = float(stack.sizes[stack.sizes > 0].mean()) if (stack.sizes > 0).any() else 1.0
    return Lives(size / FIRST_HELD, FIRST_HELD, lives / span if span > 0 else 0.0)


def run(
    stack: Stack, times: Array, family: Moving, prior: Lives | None, rng: np.random.Generator, max_sweeps: int
) -> tuple[Timeline, Run]:
    """The best matching of groups that stand in the order of time."""
    tell("finding where to start", 0)
    if stack.values.size >= LARGE:
        boards = [_taught_by_part(stack, times, family, prior, rng, max_sweeps)]
    else:
        boards = [Timeline(stack, times, one.family, prior or one.prior) for one in starts(family, stack, times)]
    best = boards[0], alternate(boards[0], len(times), rng, max_sweeps)
    for board in boards[1:]:
        to_beat, found = best[1].history[-1], best[0].labels

        def is_home(board: Timeline = board, found: Index = found) -> bool:
            return is_same_partition(board.labels, found)

        progress = alternate(board, len(times), rng, max_sweeps, is_home, to_beat)
        if not progress.came_home and progress.history[-1] > to_beat + SMALLEST_RISE:
            best = board, progress
    return best


def _taught_by_part(
    stack: Stack, times: Array, family: Moving, prior: Lives | None, rng: np.random.Generator, max_sweeps: int
) -> Timeline:
    """A board without any matching, its hyperparameters learned on the first groups, two at least."""
    number = max(int(np.searchsorted(stack.offsets, PART // stack.values.shape[1])), 2)
    part = stack.take(slice(0, int(stack.offsets[number])), stack.offsets[: number + 1])
    taught, _ = run(part, times[:number], family, prior, rng, max_sweeps)
    return Timeline(stack, times, taught.family, taught.prior)
