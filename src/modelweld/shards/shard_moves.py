"""Unions of atoms across shards, each kept only if the objective rises.

Two atoms may be joined if no site holds both, or else as fragments. The centre scores all unions by sums, as if none
did, and asks shards only about those that would raise the objective: how many of their sites hold both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.algorithm1 import SMALLEST_RISE
from modelweld.core.plan import MOST_SWEEPS
from modelweld.core.values import Array, Index, group_of_values
from modelweld.shards.centre import Centre, unions
from modelweld.shards.engine import Engine
from modelweld.shards.shard import Shard, relabel

MOST_ASKED = 1000
"""Atoms, those that most sites hold, of which all unions are scored (a second of the centre), and unions that shards
evaluate at a time, the best first."""


class Together(NamedTuple):
    """Of pairs of atoms: how many sites hold both, and in how many more ways fragments of both could stand (log)."""

    sites: Index
    ways: Array


def join(engine: Engine, centre: Centre) -> int:
    """Join pairs of atoms, the best first, as long as the objective rises; returns how many were joined."""
    joined = 0
    for _ in range(MOST_SWEEPS):
        a, b, evidence = _candidates(centre)
        chosen = _best_apart(a, b, _rises(centre, a, b, evidence, _together(engine, centre, a, b)))
        if not len(chosen):
            break
        becomes = np.arange(len(centre.counts))
        becomes[b[chosen]] = a[chosen]
        for s in range(engine.shards):
            _rename(engine, centre, s, becomes[centre.places[s]])
        centre.gather()
        joined += len(chosen)
    return joined


def _candidates(centre: Centre) -> tuple[Index, Index, Array]:
    """Pairs of atoms whose union would raise the objective if the prior were at its kindest, and their evidence's gain.

    The prior is kindest where no site holds both, or where all that hold the one hold the other.
    """
    atoms = np.sort(np.argsort(-centre.counts, kind="stable")[:MOST_ASKED])
    sums, counts = centre.sums[0][atoms], centre.counts[atoms]
    gain = unions(centre.family, sums, sums) - centre.family.log_evidence(sums)[:, None]
    apart = np.minimum(counts[:, None] + counts, len(centre.sizes))
    most = np.maximum(centre.log_rate[apart], centre.log_rate[np.maximum(counts[:, None], counts)])
    rises = gain + most - centre.log_rate[counts][:, None] - centre.log_rate[counts]
    a, b = np.nonzero(np.triu(rises > SMALLEST_RISE, 1))
    best = np.argsort(-rises[a, b], kind="stable")[:MOST_ASKED]
    a, b = a[best], b[best]
    return atoms[a], atoms[b], gain[a, b]


def _together(engine: Engine, centre: Centre, a: Index, b: Index) -> Together:
    """Counts over all shards of pairs of the centre's atoms; shards that hold at most one of a pair are left out."""
    found = Together(np.zeros(len(a), dtype=np.int64), np.zeros(len(a)))
    pairs: list[tuple[int, Index]] = []
    arguments: list[tuple[Index, Index]] = []
    for s in map(int, centre.turn):
        own = np.full(len(centre.counts), -1)
        own[centre.places[s]] = np.arange(len(centre.places[s]))
        both = np.flatnonzero((own[a] >= 0) & (own[b] >= 0))
        if len(both):
            pairs.append((s, both))
            arguments.append((own[a[both]], own[b[both]]))
    for (_, both), answer in zip(pairs, engine.ask(together, [s for s, _ in pairs], arguments), strict=True):
        found.sites[both] += answer.sites
        found.ways[both] += answer.ways
    return found


def together(shard: Shard, labels: Index, a: Index, b: Index) -> Together:
    """Of pairs of a shard's own atoms."""
    stack, own = shard.select_fitted(labels)
    J = len(stack.sizes)
    held, fragments = np.unique(own * J + group_of_values(stack.offsets), return_counts=True)
    first = np.searchsorted(held, J * np.arange(int(own.max(initial=-1)) + 2))
    found = Together(np.zeros(len(a), dtype=np.int64), np.zeros(len(a)))
    for i, pair in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        spans = [slice(first[k], first[k + 1]) for k in pair]
        _, one, other = np.intersect1d(held[spans[0]] % J, held[spans[1]] % J, True, return_indices=True)
        r, s = fragments[spans[0]][one], fragments[spans[1]][other]
        ways = [scipy.special.gammaln(n + 1.0) for n in (r + s, r, s)]
        found.sites[i], found.ways[i] = len(r), (ways[0] - ways[1] - ways[2]).sum()
    return found


def _rises(centre: Centre, a: Index, b: Index, evidence: Array, both: Together) -> Array:
    """By how much each union raises the objective; minus infinity where it may not be."""
    m, n = centre.counts[a], centre.counts[b]
    gain = evidence + centre.log_rate[m + n - both.sites] - centre.log_rate[m] - centre.log_rate[n]
    if centre.fragments is None:
        return np.where(both.sites > 0, -np.inf, gain)
    delta = centre.fragments.delta
    return np.asarray(gain + both.ways + both.sites * np.log(delta / (1 - delta)))


def _best_apart(a: Index, b: Index, rises: Array) -> Index:
    """The best pairs that have no atom in common: what one of them adds does not depend on the others."""
    taken: set[int] = set()
    chosen = []
    for i in np.argsort(-rises, kind="stable"):
        pair = {int(a[i]), int(b[i])}
        if rises[i] > SMALLEST_RISE and not pair & taken:
            chosen.append(int(i))
            taken |= pair
    return np.array(chosen, dtype=np.int64)


def _rename(engine: Engine, centre: Centre, s: int, place: Index) -> None:
    """Put a shard's atoms at these places; where several are at one, the shard makes one of them."""
    if len(np.unique(place)) == len(place):
        centre.places[s] = place
        return
    [summary] = engine.change(relabel, [s], [(place, centre.family)])
    engine.keep(s)
    centre.adopt(s, summary, summary.place)
