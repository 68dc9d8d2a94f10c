"""Moves of a compiled chain that change the matching; each leaves exp(objective) invariant.

- `redraw_value`: one value from its exact conditional given all else.
- `swap`: two values of a group trade their atoms, or do not, by the exact odds. One at a time they could not.
- `split_or_merge`: of the atoms of two values i and j, drawn by a law that looks at the values alone: one atom is split
  round them, value after value (the sequential proposal of Dahl 2005), two are made one. Atoms that a group holds in
  fragments, or that one group holds both, stay: that is so before and after.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact
from modelweld.results.posterior.compiled_state import (
    DELTA,
    P,
    S,
    accepts,
    below,
    close_if_empty,
    link,
    log_evidence,
    opened,
    posterior_of_atom,
    score,
    shift,
    uniform,
    unlink,
)


@exact
def draw_log(random, scores, n):
    """An index below n, with probability in proportion to the exponential of its score."""
    top = scores[0]
    for c in range(1, n):
        top = max(top, scores[c])
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
def redraw_value(values, state, i, room, mine):
    """Give value i an atom or a new one; `mine` (N,) is all zeros before and after. Whether it moved."""
    y, precision, sums, spread, mean = values.y, state.precision, state.sums, state.spread, state.mean
    j, old, delta = values.group[i], state.labels[i], state.rest[DELTA]
    unlink(state, i)
    shift(y, precision, i, sums, spread, mean, old, -1.0)
    for other in range(values.offsets[j], values.offsets[j + 1]):
        if other != i:
            mine[state.labels[other]] += 1
    if mine[old] == 0:
        state.counts[old] -= 1
    close_if_empty(state, old)
    n = state.held[0]
    for c in range(n + 1):  # the last is a vacant slot
        k = state.slots[c]
        if mine[k] == 0:
            m = state.counts[k]
            room[c] = state.R[m + 1] - state.R[m] + (np.log1p(-delta) if delta > 0 else 0.0)
        elif delta > 0:
            room[c] = np.log(delta) + np.log(mine[k] + 1.0)
        else:
            room[c] = -np.inf
            continue
        room[c] += score(y, precision, i, sums, k)
    c = draw_log(state.random, room, n + 1)
    k = opened(state) if c == n else state.slots[c]
    if mine[k] == 0:
        state.counts[k] += 1
    for other in range(values.offsets[j], values.offsets[j + 1]):
        if other != i:
            mine[state.labels[other]] = 0
    link(state, i, k)
    shift(y, precision, i, sums, spread, mean, k, 1.0)
    return k != old


@exact
def swap(values, state, i):
    """Trade the atoms of value i and one of its group, or not."""
    y, precision, sums, spread, mean = values.y, state.precision, state.sums, state.spread, state.mean
    other = values.duplicates[i, below(state.random, values.duplicates.shape[1])]
    a, b = state.labels[i], state.labels[other]
    if a == b:
        return False
    shift(y, precision, i, sums, spread, mean, a, -1.0)
    shift(y, precision, other, sums, spread, mean, b, -1.0)
    stay = score(y, precision, i, sums, a) + score(y, precision, other, sums, b)
    trade = score(y, precision, i, sums, b) + score(y, precision, other, sums, a)
    traded = uniform(state.random) * (1 + np.exp(min((stay - trade), 700.0))) < 1
    if traded:
        unlink(state, i)
        unlink(state, other)
        link(state, i, b)
        link(state, other, a)
        a, b = b, a
    shift(y, precision, i, sums, spread, mean, a, 1.0)
    shift(y, precision, other, sums, spread, mean, b, 1.0)
    return traded


@exact
def gather(values, state, i, j, members, mine):
    """The values at the atoms of i and j other than these, in random order; -1 if a group would be there twice."""
    n, alone = 0, True
    mine[values.group[i]] += 1
    mine[values.group[j]] += 1
    for turn in range(1 if state.labels[i] == state.labels[j] else 2):
        v = state.first[state.labels[i if turn == 0 else j]]
        while v >= 0:
            if v not in (i, j):
                members[n] = v
                n += 1
                alone = alone and mine[values.group[v]] == 0
                mine[values.group[v]] += 1
            v = state.after[v]
    alone = alone and mine[values.group[i]] == 1 and mine[values.group[j]] == 1
    mine[values.group[i]] = 0
    mine[values.group[j]] = 0
    for c in range(n):
        mine[values.group[members[c]]] = 0
    for c in range(n - 1, 0, -1):
        other = below(state.random, c + 1)
        members[c], members[other] = members[other], members[c]
    return n if alone else -1


@exact
def split_or_merge(values, state, i, members, mine, two, sides):
    """Propose one atom for value i and one near it if they are at two, else two: (whether it was a split, done)."""
    j = values.near[i, below(state.random, values.near.shape[1])]
    if i == j:
        return False, False
    one, other = state.labels[i], state.labels[j]
    split = one == other
    n = gather(values, state, i, j, members, mine)
    if n < 0:
        return split, False
    log_proposal = deal(values, state, i, j, members, n, split, two, sides)
    counts = sides[n]
    R, spread, mean = state.R, state.spread, state.mean
    rise = log_evidence(spread, mean, two[P, 0], two[S, 0]) + log_evidence(spread, mean, two[P, 1], two[S, 1])
    rise -= log_evidence(spread, mean, two[P, 0] + two[P, 1], two[S, 0] + two[S, 1])
    log_ratio = R[n + 2 - counts] + R[counts] - R[n + 2] + rise - log_proposal
    if not accepts(state.random, log_ratio if split else -log_ratio):
        return split, False
    to = opened(state) if split else one
    for c in range(n):
        if sides[c] == 1:
            unlink(state, members[c])
            link(state, members[c], to)
    unlink(state, j)
    link(state, j, to)
    recount(values, state, one)
    recount(values, state, to if split else other)
    return split, True


@exact
def deal(values, state, i, j, members, n, split, two, sides):
    """Give the members to i's side (0) or j's (1), at random or as they are now; the log probability of that.

    `two` holds P, S, U, M of both sides, `sides` the side of each member and, after them, how many are with j.
    """
    y, precision, spread, mean = values.y, state.precision, state.spread, state.mean
    two[:2] = 0.0
    for side in range(2):
        v = i if side == 0 else j
        shift(y, precision, v, two, spread, mean, side, 1.0)
    with_i, with_j, log_proposal = 1, 1, 0.0
    for c in range(n):
        v = members[c]
        first = state.R[with_i + 1] - state.R[with_i] + score(y, precision, v, two, 0)
        second = state.R[with_j + 1] - state.R[with_j] + score(y, precision, v, two, 1)
        odds = second - first
        log_first = -np.log1p(np.exp(odds)) if odds < 0 else -odds - np.log1p(np.exp(-odds))
        side = (
            int(np.log(1.0 - uniform(state.random)) >= log_first) if split else int(state.labels[v] == state.labels[j])
        )
        log_proposal += log_first if side == 0 else log_first + odds
        shift(y, precision, v, two, spread, mean, side, 1.0)
        sides[c] = side
        with_i += 1 - side
        with_j += side
    sides[n] = with_j
    return log_proposal


@exact
def recount(values, state, k):
    """Sums and count of an atom without fragments, again."""
    state.sums[:2, k] = 0.0
    v, n = state.first[k], 0
    while v >= 0:
        for d in range(state.sums.shape[2]):
            state.sums[P, k, d] += state.precision[v, d]
            state.sums[S, k, d] += state.precision[v, d] * values.y[v, d]
        n += 1
        v = state.after[v]
    state.counts[k] = n
    posterior_of_atom(state.sums, state.spread, state.mean, k)
    if n == 0:
        close_if_empty(state, k)
