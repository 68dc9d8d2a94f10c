"""A compiled sweep over a matching of values of any family whose evidence is compiled, hyperparameters fixed.

- `redraw_value`: one value from its exact conditional given all else.
- `swap`: two values of a group trade their atoms, or do not, by the exact odds. One at a time they could not.
- `split_or_merge`: of the atoms of two values i and j, drawn by a law that looks at the values alone: one atom is split
  round them, value after value (the sequential proposal of Dahl 2005), two are made one. Atoms that a group holds in
  fragments, or that one group holds both, stay: that is so before and after.

Each leaves P(matching | values, hyperparameters) invariant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.compilers import exact
from modelweld.core.values import Array, Index
from modelweld.results.posterior.compiled_evidences import Evidence, log_evidences
from modelweld.results.posterior.draws import MERGE, SPLIT, VALUE

PER_PAIR = 4
"""One split or merge is tried per so many values in a sweep: about as much time as the values take."""


class Given(NamedTuple):
    """What does not move."""

    evidence: Evidence
    rows: Array  # (N, k)
    group: Index  # (N,)
    offsets: Index  # (J + 1,)
    near: Index  # (N, M): values that are near, to split and merge atoms by
    R: Array  # (J + 2,): log prior of an atom by its count
    delta: float  # share of fragments; zero where there are none


class Moving(NamedTuple):
    """A matching, its sums and their evidences; slots of atoms are as many as values."""

    labels: Index  # (N,)
    counts: Index  # (N,)
    sizes: Index  # (N,)
    sums: Array  # (N, k)
    evidence: Array  # (N,): of each atom, its logarithm
    random: NDArray[np.uint64]  # (1,)
    room: Array  # (N + 3, k): sums of atoms as they would be
    then: Array  # (N + 3,): and their log evidences
    mine: Index  # (N,): values of a group at each atom, zero between moves


def at_start(given: Given, labels: Index, seed: int) -> Moving:
    """A chain at this matching, of any numbers below N."""
    N, k = given.rows.shape
    state = Moving(
        labels=labels.copy(),
        counts=np.zeros(N, dtype=np.int64),
        sizes=np.zeros(N, dtype=np.int64),
        sums=np.zeros((N, k)),
        evidence=np.zeros(N),
        random=np.array([seed], dtype=np.uint64),
        room=np.zeros((N + 3, k)),
        then=np.zeros(N + 3),
        mine=np.zeros(N, dtype=np.int64),
    )
    refresh(given, state)
    return state


@exact
def uniform(random):
    """A number between 0 and 1: splitmix64 (Steele, Lea, Flood 2014)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@exact
def below(random, n):
    """A whole number below n."""
    return min(int(uniform(random) * n), n - 1)


@exact
def draw_log(random, scores):
    """An index, with probability in proportion to the exponential of its score."""
    top, n = scores[0], len(scores)
    for score in scores:
        top = max(top, score)
    total = 0.0
    for c in range(n):
        scores[c] = np.exp(scores[c] - top)
        total += scores[c]
    left = uniform(random) * total
    for c in range(n):
        left -= scores[c]
        if left < 0:
            return c
    return n - 1


@exact
def copy(into, row):
    """One row into another: a loop compiles seconds faster than an assignment of slices."""
    for c in range(len(row)):
        into[c] = row[c]


@exact
def refresh(given, state):
    """Counts, sums and evidences again."""
    state.counts[:] = 0
    state.sizes[:] = 0
    state.sums[:] = 0.0
    for i in range(len(state.labels)):
        k = state.labels[i]
        state.counts[k] += fragments_before(given, state, i, k, i) == 0
        state.sizes[k] += 1
        for c in range(given.rows.shape[1]):
            state.sums[k, c] += given.rows[i, c]
    log_evidences(given.evidence, state.sums, state.evidence)
    for k in range(len(state.sizes)):
        state.evidence[k] *= state.sizes[k] > 0


@exact
def fragments_before(given, state, i, k, end):
    """Other values of i's group, before this one, that are at atom k."""
    n = 0
    for other in range(given.offsets[given.group[i]], end):
        n += other != i and state.labels[other] == k
    return n


@exact
def redraw_value(given, state, i, scores, atoms):
    """Value i from its conditional given all else; whether it moved."""
    old, mine, j, room, columns = state.labels[i], state.mine, given.group[i], state.room, given.rows.shape[1]
    for other in range(given.offsets[j], given.offsets[j + 1]):
        mine[state.labels[other]] += other != i
    state.sizes[old] -= 1
    state.counts[old] -= mine[old] == 0
    for c in range(columns):
        state.sums[old, c] = 0.0 if state.sizes[old] == 0 else state.sums[old, c] - given.rows[i, c]
        room[0, c] = state.sums[old, c]
    n, vacant = 1, -1
    for k in range(len(state.sizes)):
        if state.sizes[k] == 0:
            if vacant >= 0:
                continue
            vacant = k
        if mine[k] == 0:
            scores[n] = given.R[state.counts[k] + 1] - given.R[state.counts[k]]
            scores[n] += np.log1p(-given.delta) if given.delta > 0 else 0.0
        elif given.delta > 0:
            scores[n] = np.log(given.delta) + np.log(mine[k] + 1.0)
        else:
            continue
        for c in range(columns):
            room[n, c] = state.sums[k, c] + given.rows[i, c]
        atoms[n] = k
        n += 1
    log_evidences(given.evidence, room, state.then[:n])
    state.evidence[old] = 0.0 if state.sizes[old] == 0 else state.then[0]
    for c in range(1, n):
        scores[c] += state.then[c] - state.evidence[atoms[c]]
    scores[0] = -np.inf
    pick = draw_log(state.random, scores[:n])
    k = atoms[pick]
    state.labels[i], state.evidence[k] = k, state.then[pick]
    copy(state.sums[k], room[pick])
    state.sizes[k] += 1
    state.counts[k] += mine[k] == 0
    for other in range(given.offsets[j], given.offsets[j + 1]):
        mine[state.labels[other]] = 0
    return k != old and not (k == vacant and state.sizes[old] == 0)


@exact
def swap(given, state, i):
    """Trade the atoms of value i and another of its group, or not, by the exact odds."""
    begin, end = given.offsets[given.group[i]], given.offsets[given.group[i] + 1]
    other = begin + below(state.random, end - begin)
    a, b = state.labels[i], state.labels[other]
    if a == b or fragments_before(given, state, i, a, end) > 0 or fragments_before(given, state, other, b, end) > 0:
        return
    room, then = state.room, state.then
    for c in range(given.rows.shape[1]):
        by = given.rows[other, c] - given.rows[i, c]
        room[0, c], room[1, c] = state.sums[a, c] + by, state.sums[b, c] - by
    log_evidences(given.evidence, room, then[:2])
    stay = state.evidence[a] + state.evidence[b]
    if uniform(state.random) * (1 + np.exp(min(stay - then[0] - then[1], 700.0))) < 1:
        state.labels[i], state.labels[other] = b, a
        state.evidence[a], state.evidence[b] = then[0], then[1]
        copy(state.sums[a], room[0])
        copy(state.sums[b], room[1])


@exact
def gather(given, state, i, j, members, seen):
    """The values at the atoms of i and j other than these, in random order; -1 if a group would be there twice."""
    n, alone, a, b = 0, True, state.labels[i], state.labels[j]
    for v in range(len(state.labels)):
        if state.labels[v] in (a, b):
            alone = alone and not seen[given.group[v]]
            seen[given.group[v]] = True
            if v not in (i, j):
                members[n] = v
                n += 1
    seen[:] = False
    for c in range(n - 1, 0, -1):
        other = below(state.random, c + 1)
        members[c], members[other] = members[other], members[c]
    return n if alone else -1


@exact
def split_or_merge(given, state, i, members, seen, sides):
    """Propose one atom for value i and one near it if they are at two, else two: (whether it was a split, done)."""
    j = given.near[i, below(state.random, given.near.shape[1])]
    split = state.labels[i] == state.labels[j]
    if i == j:
        return split, False
    n = gather(given, state, i, j, members, seen)
    if n < 0:
        return split, False
    room, then, rows, R = state.room, state.then, given.rows, given.R
    copy(room[0], rows[i])
    copy(room[1], rows[j])
    log_evidences(given.evidence, room, then[:2])
    at_one, at_two = then[0], then[1]
    with_i, with_j, log_proposal = 1, 1, 0.0
    for m in range(n):
        v = members[m]
        for c in range(rows.shape[1]):
            room[2, c], room[3, c] = room[0, c] + rows[v, c], room[1, c] + rows[v, c]
        log_evidences(given.evidence, room[2:], then[:2])
        odds = R[with_j + 1] - R[with_j] + then[1] - at_two - (R[with_i + 1] - R[with_i] + then[0] - at_one)
        log_first = -np.log1p(np.exp(odds)) if odds < 0 else -odds - np.log1p(np.exp(-odds))
        if split:
            sides[m] = np.log(1.0 - uniform(state.random)) >= log_first
        else:
            sides[m] = state.labels[v] == state.labels[j]
        if sides[m]:
            log_proposal += log_first + odds
            copy(room[1], room[3])
            at_two, with_j = then[1], with_j + 1
        else:
            log_proposal += log_first
            copy(room[0], room[2])
            at_one, with_i = then[0], with_i + 1
    for c in range(rows.shape[1]):
        room[2, c] = room[0, c] + room[1, c]
    log_evidences(given.evidence, room[2:], then[:1])
    log_ratio = R[with_i] + R[with_j] - R[n + 2] + at_one + at_two - then[0] - log_proposal
    if np.log(1.0 - uniform(state.random)) >= (log_ratio if split else -log_ratio):
        return split, False
    to = state.labels[i]
    if split:
        to = 0
        while state.sizes[to] > 0:
            to += 1
    state.labels[j] = to
    for m in range(n):
        if sides[m]:
            state.labels[members[m]] = to
    refresh(given, state)
    return split, True


@exact
def sweeps(given, state, number, tried, done):
    """So many sweeps; `tried` and `done` (3,) count moves."""
    N = len(state.labels)
    scores, atoms = np.empty(N + 2), np.empty(N + 2, np.int64)
    members, sides = np.empty(N, np.int64), np.empty(N, np.bool_)
    seen = np.zeros(len(given.offsets), np.bool_)
    for _ in range(number):
        for i in range(N):
            done[VALUE] += redraw_value(given, state, i, scores, atoms)
            swap(given, state, i)
        tried[VALUE] += N
        for _ in range(max(1, N // PER_PAIR)):
            split, accepted = split_or_merge(given, state, below(state.random, N), members, seen, sides)
            tried[SPLIT if split else MERGE] += 1
            done[SPLIT if split else MERGE] += accepted
        refresh(given, state)
