"""What a compiled chain moves: a matching of Gaussian values and all hyperparameters, and the sums that follow.

Value i is known in dimension d with precision p = seen / (noise / weight + variance). An atom with precisions P
and sums S = sum p y has the posterior N(M, U), U = 1 / (1 / spread + P), M = U (mean / spread + S), and a value scores

    log N(y; M, 1/p + U) = const(i) - 1/2 log(1 + U p) - 1/2 (y - M)^2 p / (1 + U p)

there, the same constant at all atoms; a vacant slot has U = spread and M = mean, which is the score of a new atom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.compilers import exact
from modelweld.core.values import Array, Index

BLOCK = 16
"""Dimensions whose factors 1 + U p are multiplied before a logarithm is taken: each is at most 1 + 1e9 (the least noise
is a billionth of the variance), so that products stay below 1e150."""

PER_PAIR = 4
"""One split or merge is tried per so many values in a sweep: about as much time as the values take."""

P, S, U, M = range(4)
"""Where an atom's sums stand."""

SHARE, LOG_A, LOG_B, LOG_ATOMS, JUNK, DELTA = range(SINGLE := 6)
"""Where single numbers stand: mean of log(noise / total), the prior's log a, log b, log of the number of atoms
it expects and rate of background, and the share of fragments."""


class Values(NamedTuple):
    """What is given."""

    y: Array  # (N, D): measured from the origin
    seen: Array  # (N, D): one or zero
    inverse: Array  # (N, D): one over the weight
    variance: Array  # (N, D): squared standard errors, times the family's `inflation`
    group: Index  # (N,)
    offsets: Index  # (J + 1,)
    near: Index  # (N, M): values of other groups that are near, to split and merge atoms by
    duplicates: Index  # (N, M'): values of its own group that are near, to swap with; itself where there are none


class State(NamedTuple):
    """What moves; slots of atoms are as many as values."""

    labels: Index  # (N,)
    counts: Index  # (N,): groups at each atom
    sizes: Index  # (N,): values at each atom
    first: Index  # (N,): a value at each atom, -1 where it is vacant
    after: Index  # (N,): the next value at the same atom, -1 at the end
    before: Index  # (N,): and the one before
    slots: Index  # (N,): atoms that are held, then vacant slots
    position: Index  # (N,): where each slot stands among them
    held: Index  # (1,): how many are held
    precision: Array  # (N, D): p
    sums: Array  # (4, N, D): P, S, U, M of every slot
    noise: Array  # (H,)
    spread: Array  # (H,)
    mean: Array  # (D,)
    rest: Array  # (6,): single numbers
    R: Array  # (J + 2,): log prior of an atom by its count; steps are differences
    random: NDArray[np.uint64]  # (1,): state of the generator


def vacant(values: Values, noise: Array, spread: Array, mean: Array, rest: Array, seed: int) -> State:
    """Nothing is anywhere yet."""
    N, D = values.y.shape
    zeros, ends = np.zeros(N, dtype=np.int64), np.full(N, -1, dtype=np.int64)
    return State(
        labels=zeros,
        counts=zeros.copy(),
        sizes=zeros.copy(),
        first=ends,
        after=ends.copy(),
        before=ends.copy(),
        slots=np.arange(N),
        position=np.arange(N),
        held=np.zeros(1, dtype=np.int64),
        precision=np.zeros((N, D)),
        sums=np.zeros((4, N, D)),
        noise=np.array(noise, dtype=np.float64),
        spread=np.array(spread, dtype=np.float64),
        mean=np.array(mean, dtype=np.float64),
        rest=rest,
        R=np.zeros(len(values.offsets) + 1),
        random=np.array([seed], dtype=np.uint64),
    )


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
def normal(random):
    """A standard normal number (Box and Muller)."""
    return np.sqrt(-2 * np.log(1.0 - uniform(random))) * np.cos(2 * np.pi * uniform(random))


@exact
def accepts(random, log_ratio):
    """The rule of Metropolis and Hastings."""
    return log_ratio >= 0 or np.log(1.0 - uniform(random)) < log_ratio


@exact
def posterior_of_atom(sums, spread, mean, k):
    """U and M of atom k from its P and S; `sums` (4, K, D) holds all four."""
    for d in range(sums.shape[2]):
        s = spread[d if len(spread) > 1 else 0]
        sums[U, k, d] = s / (1 + s * sums[P, k, d])
        sums[M, k, d] = sums[U, k, d] * (mean[d] / s + sums[S, k, d])


@exact
def shift(y, precision, i, sums, spread, mean, k, sign):
    """Add value i to the sums of atom k, or take it away."""
    for d in range(sums.shape[2]):
        sums[P, k, d] += sign * precision[i, d]
        sums[S, k, d] += sign * precision[i, d] * y[i, d]
    posterior_of_atom(sums, spread, mean, k)


@exact
def score(y, precision, i, sums, k):
    """Log predictive density of value i at atom k, up to a constant of i."""
    D = sums.shape[2]
    total, square = 0.0, 0.0
    for begin in range(0, D, BLOCK):
        product = 1.0
        for d in range(begin, min(begin + BLOCK, D)):
            p, off = precision[i, d], y[i, d] - sums[M, k, d]
            wide = 1 + sums[U, k, d] * p
            product *= wide
            square += off * off * p / wide
        total += np.log(product)
    return -0.5 * (total + square)


@exact
def log_evidence(spread, mean, P, S):
    """What sums P and S (D,) add to the log evidence, beyond what each value has at the prior mean by itself."""
    total = 0.0
    for d in range(len(P)):
        s = spread[d if len(spread) > 1 else 0]
        wide = 1 + s * P[d]
        off = S[d] - mean[d] * P[d]
        total += s * off * off / wide - np.log(wide)
    return 0.5 * total


@exact
def unlink(state, i):
    """Take value i off its atom's list."""
    k = state.labels[i]
    b, a = state.before[i], state.after[i]
    if b >= 0:
        state.after[b] = a
    else:
        state.first[k] = a
    if a >= 0:
        state.before[a] = b
    state.sizes[k] -= 1


@exact
def link(state, i, k):
    """Put value i on the list of atom k."""
    f = state.first[k]
    state.labels[i], state.before[i], state.after[i] = k, -1, f
    if f >= 0:
        state.before[f] = i
    state.first[k] = i
    state.sizes[k] += 1


@exact
def exchange_slots(state, k, place):
    """Slot k stands at `place` now, what stood there where k was."""
    other, was = state.slots[place], state.position[k]
    state.slots[place], state.slots[was] = k, other
    state.position[k], state.position[other] = place, was


@exact
def opened(state):
    """A vacant slot, held from now on."""
    k = state.slots[state.held[0]]
    state.held[0] += 1
    return k


@exact
def close_if_empty(state, k):
    """Make a slot without values vacant, without even rounding left in it."""
    if state.sizes[k] == 0:
        state.held[0] -= 1
        exchange_slots(state, k, state.held[0])
        state.counts[k] = 0
        state.sums[:2, k] = 0.0
        posterior_of_atom(state.sums, state.spread, state.mean, k)


@exact
def refresh(values, state):
    """All precisions and sums again, after hyperparameters moved; rids sums of rounding."""
    N, D = values.y.shape
    scalar = len(state.noise) == 1
    state.sums[:2] = 0.0
    for i in range(N):
        k = state.labels[i]
        for d in range(D):
            noise = state.noise[0 if scalar else d]
            p = values.seen[i, d] / (noise * values.inverse[i, d] + values.variance[i, d])
            state.precision[i, d] = p
            state.sums[P, k, d] += p
            state.sums[S, k, d] += p * values.y[i, d]
    for k in range(N):
        posterior_of_atom(state.sums, state.spread, state.mean, k)


@exact
def place(values, state, labels):
    """Put every value where these labels, of any numbers below N, say."""
    N = len(labels)
    state.counts[:] = 0
    state.sizes[:] = 0
    state.first[:] = -1
    for i in range(N):
        link(state, i, labels[i])
    state.held[0] = 0
    for k in range(N):
        state.slots[k], state.position[k] = k, k
    for k in range(N):
        if state.sizes[k] > 0:
            exchange_slots(state, k, state.held[0])
            state.held[0] += 1
    for i in range(N):
        j = values.group[i]
        first = True
        for other in range(values.offsets[j], i):
            first = first and state.labels[other] != labels[i]
        state.counts[labels[i]] += first
    refresh(values, state)
