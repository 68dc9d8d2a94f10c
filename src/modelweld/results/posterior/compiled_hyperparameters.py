"""Moves of a compiled chain that change hyperparameters: random walks on the collapsed evidence, exact draws else.

All walks are in logarithms; their steps are tuned in warm-up alone. What is believed: `compiled_beliefs`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.values import Array
from modelweld.results.posterior.compiled_beliefs import (
    NOISE_DEVIATION,
    PIECES,
    SHARE_DEVIATION,
    SHARE_MEAN,
    atoms_part,
    believed_noise,
    believed_spread,
    fill_rates,
    likelihood_of,
    log_prior,
    span,
)
from modelweld.results.posterior.compiled_state import (
    DELTA,
    JUNK,
    LOG_A,
    LOG_ATOMS,
    LOG_B,
    SHARE,
    P,
    S,
    accepts,
    normal,
    posterior_of_atom,
    refresh,
)

ACCEPTED = 0.44
"""Share of accepted steps that a walk in one dimension is tuned to (Gelman, Roberts, Gilks 1996)."""

PRIOR_STEP, ATOMS_STEP = 1.0, 0.5
"""Of log a and log b, and of log(number of atoms): about the posterior deviations with ten sites."""


class Steps(NamedTuple):
    """Logarithms of the walks' steps."""

    noise: Array  # (H,)
    spread: Array  # (H,)
    together: Array  # (1,): all noise


@exact
def tune(steps, at, accepted, rate):
    """Longer steps where many are accepted."""
    steps[at] += rate * (accepted - ACCEPTED)


@exact
def walk_noise(values, state, beliefs, steps, rate, at_p, at_s):
    """Noise in each dimension, then in all of them together with its mean; then that mean, exactly."""
    H, rest = len(state.noise), state.rest
    here = np.empty(H)
    for h in range(H):
        here[h] = likelihood_of(values, state, h, state.noise[h], at_p, at_s)
        new = state.noise[h] * np.exp(np.exp(steps.noise[h]) * normal(state.random))
        there = likelihood_of(values, state, h, new, at_p, at_s) if new >= beliefs.floor[h] else -np.inf
        rise = (there - here[h]) + believed_noise(state, beliefs, h, new, rest[SHARE])
        done = accepts(state.random, rise - believed_noise(state, beliefs, h, state.noise[h], rest[SHARE]))
        if done:
            state.noise[h], here[h] = new, there
        tune(steps.noise, h, done, rate)
    walk_all_noise(values, state, beliefs, steps, rate, at_p, at_s, here)
    weight, pull = 1 / SHARE_DEVIATION**2, SHARE_MEAN / SHARE_DEVIATION**2
    for h in range(H):
        weight += 1 / NOISE_DEVIATION**2
        pull += np.log(state.noise[h] / beliefs.total[h]) / NOISE_DEVIATION**2
    rest[SHARE] = pull / weight + normal(state.random) / np.sqrt(weight)


@exact
def walk_all_noise(values, state, beliefs, steps, rate, at_p, at_s, here):
    """All noise and its mean by one factor; `here` holds the log evidences."""
    H, rest = len(state.noise), state.rest
    by = np.exp(steps.together[0]) * normal(state.random)
    off, on = (rest[SHARE] - SHARE_MEAN) / SHARE_DEVIATION, (rest[SHARE] + by - SHARE_MEAN) / SHARE_DEVIATION
    rise = 0.5 * (off * off - on * on)
    for h in range(H):
        new = state.noise[h] * np.exp(by)
        if new < beliefs.floor[h]:
            rise = -np.inf
            break
        there = likelihood_of(values, state, h, new, at_p, at_s)
        rise += (there - here[h]) + believed_noise(state, beliefs, h, new, rest[SHARE] + by)
        rise -= believed_noise(state, beliefs, h, state.noise[h], rest[SHARE])
    done = accepts(state.random, rise)
    if done:
        for h in range(H):
            state.noise[h] *= np.exp(by)
        rest[SHARE] += by
    tune(steps.together, 0, done, rate)


@exact
def walk_spread(state, beliefs, steps, rate, at_p, at_s):
    """Spread by a step in each dimension, then the mean exactly."""
    for h in range(len(state.spread)):
        a, b = span(state, h)
        new = state.spread[h] * np.exp(np.exp(steps.spread[h]) * normal(state.random))
        rise = believed_spread(new / beliefs.total[h]) - believed_spread(state.spread[h] / beliefs.total[h])
        for d in range(a, b):
            for c in range(state.held[0]):
                k = state.slots[c]
                at_p[k], at_s[k] = state.sums[P, k, d], state.sums[S, k, d] - state.mean[d] * state.sums[P, k, d]
            part = atoms_part(state, at_p, at_s, new) - atoms_part(state, at_p, at_s, state.spread[h])
            rise += 0.5 * part
        done = accepts(state.random, rise)
        if done:
            state.spread[h] = new
        tune(steps.spread, h, done, rate)
        for d in range(a, b):
            weight, pull = 1 / beliefs.total[h], 0.0
            for c in range(state.held[0]):
                k = state.slots[c]
                wide = 1 + state.spread[h] * state.sums[P, k, d]
                weight += state.sums[P, k, d] / wide
                pull += state.sums[S, k, d] / wide
            state.mean[d] = pull / weight + normal(state.random) / np.sqrt(weight)


@exact
def move_values(values, state, beliefs, steps, rate, at_p, at_s):
    """Noise, spread and mean, and all that follows from them."""
    walk_noise(values, state, beliefs, steps, rate, at_p, at_s)
    refresh(values, state)
    walk_spread(state, beliefs, steps, rate, at_p, at_s)
    for k in range(len(state.labels)):
        posterior_of_atom(state.sums, state.spread, state.mean, k)


@exact
def move_prior(counts, rest, log_size, background_mean, R, random):
    """Walk log a, log b, both together, log(number of atoms), and background where there is any; `rest` and `R`
    follow.
    """
    here, old = log_prior(counts, rest, log_size, background_mean, R), rest.copy()
    for move in range(5 if rest[JUNK] > 0 else 4):
        by = normal(random)
        if move in (0, 2):
            rest[LOG_A] += PRIOR_STEP * by
        if move in (1, 2):
            rest[LOG_B] += PRIOR_STEP * by
        if move == 3:
            rest[LOG_ATOMS] += ATOMS_STEP * by
        if move == 4:
            rest[JUNK] *= np.exp(ATOMS_STEP * by)
        there = log_prior(counts, rest, log_size, background_mean, R)
        if accepts(random, there - here):
            old[:] = rest
            here = there
        else:
            rest[:] = old
    fill_rates(rest, R)


@exact
def move_delta(state):
    """The share of fragments: Beta given how many (group, atom) are held, by a walk in its log odds."""
    N, held = len(state.labels), 0
    for c in range(state.held[0]):
        held += state.counts[state.slots[c]]
    extra, once = N - held + PIECES[0], held + PIECES[1]
    delta = state.rest[DELTA]
    new = 1 / (1 + (1 - delta) / delta * np.exp(-2 * normal(state.random) / np.sqrt(extra)))
    if new > 0 and accepts(state.random, extra * np.log(new / delta) + once * np.log((1 - new) / (1 - delta))):
        state.rest[DELTA] = new
