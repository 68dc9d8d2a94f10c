"""A compiled chain over matchings of Gaussian values and hyperparameters: what a sweep is, and what is kept of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.values import Array, Index
from modelweld.results.posterior.compiled_beliefs import (
    believed_noise,
    believed_spread,
    likelihood_of,
    log_prior,
)
from modelweld.results.posterior.compiled_hyperparameters import move_delta, move_prior, move_values
from modelweld.results.posterior.compiled_matching import redraw_value, split_or_merge, swap
from modelweld.results.posterior.compiled_state import DELTA, PER_PAIR, SHARE, SINGLE, below, refresh
from modelweld.results.posterior.draws import MERGE, SPLIT, VALUE


class Kept(NamedTuple):
    """Draws, one after the other."""

    labels: Index  # (n, N)
    noise: Array  # (n, H)
    spread: Array  # (n, H)
    mean: Array  # (n, D)
    rest: Array  # (n, 6)
    objective: Array  # (n,)


def room_for(n: int, N: int, D: int, H: int) -> Kept:
    """To be filled."""
    return Kept(
        labels=np.empty((n, N), dtype=np.int64),
        noise=np.empty((n, H)),
        spread=np.empty((n, H)),
        mean=np.empty((n, D)),
        rest=np.empty((n, SINGLE)),
        objective=np.empty(n),
    )


@exact
def objective(values, state, beliefs, at_p, at_s):
    """Log density of matching and values; of hyperparameters as well, up to a constant, where they are drawn."""
    total = 0.0
    for h in range(len(state.noise)):
        total += likelihood_of(values, state, h, state.noise[h], at_p, at_s)
    if beliefs.draws_values:
        for h in range(len(state.noise)):
            total += believed_noise(state, beliefs, h, state.noise[h], state.rest[SHARE])
            total += believed_spread(state.spread[h] / beliefs.total[h])
    if beliefs.draws_prior:
        return total + log_prior(state.counts, state.rest, beliefs.log_size, beliefs.background_mean, state.R)
    for c in range(state.held[0]):
        total += state.R[state.counts[state.slots[c]]]
    return total


@exact
def run(values, state, beliefs, steps, rate, sweeps, every, kept, tried, done):
    """So many sweeps, every so-and-so-many-th kept; `rate` above zero tunes the walks: for warm-up."""
    N, D = values.y.shape
    room, at_p, at_s = np.empty(N + 1), np.empty(N), np.empty(N)
    members, sides, two = np.empty(N, np.int64), np.empty(N + 1, np.int64), np.empty((4, 2, D))
    mine = np.zeros(max(N, len(values.offsets)), np.int64)
    for sweep in range(sweeps):
        for i in range(N):
            done[VALUE] += redraw_value(values, state, i, room, mine)
        tried[VALUE] += N
        for i in range(N):
            swap(values, state, i)
        for _ in range(max(1, N // PER_PAIR)):
            split, accepted = split_or_merge(values, state, below(state.random, N), members, mine, two, sides)
            tried[SPLIT if split else MERGE] += 1
            done[SPLIT if split else MERGE] += accepted
        if state.rest[DELTA] > 0 and (beliefs.draws_prior or beliefs.draws_values):
            move_delta(state)
        if beliefs.draws_prior:
            move_prior(state.counts, state.rest, beliefs.log_size, beliefs.background_mean, state.R, state.random)
        if beliefs.draws_values:
            move_values(values, state, beliefs, steps, rate, at_p, at_s)
        else:
            refresh(values, state)
        n = sweep // every
        if (sweep + 1) % every == 0 and n < len(kept.objective):
            kept.labels[n, :] = state.labels
            kept.noise[n, :], kept.spread[n, :], kept.mean[n, :] = state.noise, state.spread, state.mean
            kept.rest[n, :] = state.rest
            kept.objective[n] = objective(values, state, beliefs, at_p, at_s)
