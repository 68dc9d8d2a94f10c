"""A compiled sweep over a matching of values of any family whose evidence is compiled, hyperparameters fixed.

The moves are those of `compiled_matching`, for sums of any kind instead of Gaussian ones: values one at a time, two of
a group that trade atoms, atoms that are split or merged. Each leaves P(matching | values, hyperparameters) invariant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.compilers import exact
from modelweld.core.values import Array, Index
from modelweld.results.posterior.compiled_evidences import Evidence, log_evidence
from modelweld.results.posterior.compiled_matching import draw_log
from modelweld.results.posterior.compiled_state import PER_PAIR, accepts, below, uniform
from modelweld.results.posterior.draws import MERGE, SPLIT, VALUE


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
    """A matching, its sums and their evidences; slots of atoms are one more than values."""

    labels: Index  # (N,)
    counts: Index  # (N + 1,)
    sizes: Index  # (N + 1,)
    sums: Array  # (N + 1, k)
    worth: Array  # (N + 1,): log evidence of each atom
    random: NDArray[np.uint64]  # (1,)
    room: Array  # (4, k)


def at_start(given: Given, labels: Index, seed: int) -> Moving:
    """A chain at this matching, of any numbers below N."""
    N, k = given.rows.shape
    state = Moving(
        labels=labels.copy(),
        counts=np.zeros(N + 1, dtype=np.int64),
        sizes=np.zeros(N + 1, dtype=np.int64),
        sums=np.zeros((N + 1, k)),
        worth=np.zeros(N + 1),
        random=np.array([seed], dtype=np.uint64),
        room=np.zeros((4, k)),
    )
    refresh(given, state)
    return state


@exact
def refresh(given, state):
    """Counts, sums and evidences again."""
    state.counts[:] = 0
    state.sizes[:] = 0
    state.sums[:] = 0.0
    state.worth[:] = 0.0
    for i in range(len(state.labels)):
        k = state.labels[i]
        state.counts[k] += not held_by_group(given, state, i, k)
        state.sizes[k] += 1
        for c in range(given.rows.shape[1]):
            state.sums[k, c] += given.rows[i, c]
    for k in range(len(state.sizes)):
        if state.sizes[k] > 0:
            state.worth[k] = log_evidence(given.evidence, state.sums[k])


@exact
def held_by_group(given, state, i, k):
    """Whether a value before i, of its group, is at atom k."""
    found = False
    for other in range(given.offsets[given.group[i]], i):
        found = found or state.labels[other] == k
    return found


@exact
def fragments_at(given, state, i, k):
    """Other values of i's group that are at atom k."""
    n = 0
    for other in range(given.offsets[given.group[i]], given.offsets[given.group[i] + 1]):
        n += other != i and state.labels[other] == k
    return n


@exact
def take(given, state, i):
    """Value i out of its atom; its label stays."""
    k = state.labels[i]
    state.sizes[k] -= 1
    state.counts[k] -= fragments_at(given, state, i, k) == 0
    empty = state.sizes[k] == 0
    for c in range(given.rows.shape[1]):
        state.sums[k, c] = 0.0 if empty else state.sums[k, c] - given.rows[i, c]
    state.worth[k] = 0.0 if empty else log_evidence(given.evidence, state.sums[k])


@exact
def put(given, state, i, k):
    """Value i, which is in no atom, into atom k."""
    state.labels[i] = k
    state.sizes[k] += 1
    state.counts[k] += fragments_at(given, state, i, k) == 0
    for c in range(given.rows.shape[1]):
        state.sums[k, c] += given.rows[i, c]
    state.worth[k] = log_evidence(given.evidence, state.sums[k])


@exact
def gain(given, state, i, k):
    """What value i would add to atom k."""
    with_it = state.room[0]
    for c in range(given.rows.shape[1]):
        with_it[c] = state.sums[k, c] + given.rows[i, c]
    return log_evidence(given.evidence, with_it) - state.worth[k]


@exact
def redraw_value(given, state, i, scores, atoms):
    """Value i from its conditional given all else; whether it moved."""
    old = state.labels[i]
    take(given, state, i)
    n, vacant = 0, -1
    for k in range(len(state.sizes)):
        if state.sizes[k] == 0 and vacant >= 0:
            continue
        if state.sizes[k] == 0:
            vacant = k
        mine = 0 if state.sizes[k] == 0 else fragments_at(given, state, i, k)
        if mine == 0:
            m = state.counts[k]
            prior = given.R[m + 1] - given.R[m] + (np.log1p(-given.delta) if given.delta > 0 else 0.0)
        elif given.delta > 0:
            prior = np.log(given.delta) + np.log(mine + 1.0)
        else:
            continue
        atoms[n], scores[n] = k, prior + gain(given, state, i, k)
        n += 1
    k = atoms[draw_log(state.random, scores, n)]
    put(given, state, i, k)
    return k != old and not (k == vacant and state.sizes[old] == 0)


@exact
def swap(given, state, i):
    """Trade the atoms of value i and another of its group, or not, by the exact odds."""
    begin, end = given.offsets[given.group[i]], given.offsets[given.group[i] + 1]
    other = begin + below(state.random, end - begin)
    a, b = state.labels[i], state.labels[other]
    if a == b or fragments_at(given, state, i, a) > 0 or fragments_at(given, state, other, b) > 0:
        return
    stay = state.worth[a] + state.worth[b]
    one, two = state.room[1], state.room[2]
    for c in range(given.rows.shape[1]):
        by = given.rows[other, c] - given.rows[i, c]
        one[c], two[c] = state.sums[a, c] + by, state.sums[b, c] - by
    for_a, for_b = log_evidence(given.evidence, one), log_evidence(given.evidence, two)
    if uniform(state.random) * (1 + np.exp(min(stay - for_a - for_b, 700.0))) < 1:
        state.labels[i], state.labels[other] = b, a
        state.sums[a], state.sums[b] = one, two
        state.worth[a], state.worth[b] = for_a, for_b


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
    one, two, whole, trial = state.room[1], state.room[2], state.room[3], state.room[0]
    one[:], two[:] = given.rows[i], given.rows[j]
    with_i, with_j, log_proposal = 1, 1, 0.0
    at_one, at_two = log_evidence(given.evidence, one), log_evidence(given.evidence, two)
    for c in range(n):
        v = members[c]
        trial[:] = one + given.rows[v]
        then_one = log_evidence(given.evidence, trial)
        trial[:] = two + given.rows[v]
        then_two = log_evidence(given.evidence, trial)
        odds = given.R[with_j + 1] - given.R[with_j] + then_two - at_two
        odds -= given.R[with_i + 1] - given.R[with_i] + then_one - at_one
        log_first = -np.log1p(np.exp(odds)) if odds < 0 else -odds - np.log1p(np.exp(-odds))
        if split:
            sides[c] = np.log(1.0 - uniform(state.random)) >= log_first
        else:
            sides[c] = state.labels[v] == state.labels[j]
        if sides[c]:
            log_proposal += log_first + odds
            two += given.rows[v]
            at_two, with_j = then_two, with_j + 1
        else:
            log_proposal += log_first
            one += given.rows[v]
            at_one, with_i = then_one, with_i + 1
    whole[:] = one + two
    together = log_evidence(given.evidence, whole)
    log_ratio = given.R[with_i] + given.R[with_j] - given.R[n + 2] + at_one + at_two - together - log_proposal
    if not accepts(state.random, log_ratio if split else -log_ratio):
        return split, False
    a, b = state.labels[i], state.labels[j]
    if split:
        b = 0
        while state.sizes[b] > 0:
            b += 1
        state.labels[j] = b
        for c in range(n):
            if sides[c]:
                state.labels[members[c]] = b
        state.sums[a], state.sums[b] = one, two
        state.worth[a], state.worth[b] = at_one, at_two
        state.counts[a], state.counts[b] = with_i, with_j
    else:
        state.labels[j] = a
        for c in range(n):
            state.labels[members[c]] = a
        state.sums[a], state.sums[b] = whole, 0.0
        state.worth[a], state.worth[b] = together, 0.0
        state.counts[a], state.counts[b] = n + 2, 0
    state.sizes[a], state.sizes[b] = state.counts[a], state.counts[b]
    return split, True


@exact
def sweeps(given, state, number, tried, done):
    """So many sweeps; `tried` and `done` (3,) count moves."""
    N = len(state.labels)
    scores, atoms = np.empty(N + 1), np.empty(N + 1, np.int64)
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
