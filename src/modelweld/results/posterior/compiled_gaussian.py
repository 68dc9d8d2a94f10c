"""Metropolis moves of the hyperparameters of one array of Gaussian values, compiled; dimensions are independent.

With total the variance of all values in a dimension, the hyperprior is

    log(noise / total) ~ N(log .05, 1.1^2),   log(spread / total) ~ N(0, .7^2),   mean ~ N(origin, total)

and, as a factor, the family's own prior of noise (`families.math.start.NoisePrior`). Values have heavy tails: the
variance of each about its atom, noise and squared standard error alike, has a factor that is one or, with probability
`wide` ~ Beta(1, 19), any of `SCALES` above. Fits that merged or swapped components are such values, which no standard
error covers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.board import Board
from modelweld.core.values import Array, total_variance
from modelweld.families.real_values import Gaussian
from modelweld.results.posterior.compiled_evidences import log_evidences
from modelweld.results.posterior.compiled_prior import accepts, move_prior, normal
from modelweld.results.posterior.compiled_sweep import draw_log, refresh, sweeps

LOCATION, DEVIATION = (float(np.log(0.05)), 0.0), (1.1, 0.7)
"""Of log(noise / total) and log(spread / total). Noise is a twentieth of the variance, give or take a factor of three:
three sites in two features say little of it; with a factor of five their matches were right in .73 where .65 was
stated. Most of the variance is that of the atoms."""

SCALES = np.array([1.0, 4.0, 16.0, 64.0])
"""Factors of the variance of a value: up to eight deviations."""

WIDE = (1.0, 19.0)
"""Beta law of the share of values with another factor than one: a twentieth is expected. Without any, 90 % intervals of
K held in .71 where noise has the t law of four degrees, as against 1.0; with half as many in .88 (24 sets)."""

ACCEPTED = 0.44
"""Share of accepted steps that steps in one dimension are tuned to (Gelman, Roberts, Gilks 1996)."""

NOISE, SPREAD = range(2)
"""Where they stand among hyperparameters (2, H)."""


class Values(NamedTuple):
    """What is given, what moves, and room to work in."""

    y: Array  # (N, D): measured from the origin
    seen: Array  # (N, D): one or zero
    inverse: Array  # (N, D): one over the weight
    variance: Array  # (N, D): squared standard errors, times the family's `inflation`
    total: Array  # (H,)
    floor: Array  # (H,): noise is at least so much
    squares: Array  # (H,): of the family's own prior of noise
    degrees: float
    is_drawn: bool  # whether anything moves at all
    at: Array  # (2, H): noise and spread
    mean: Array  # (D,)
    log_steps: Array  # (2, H)
    room: Array  # (2, N): precisions and weighted sums of atoms
    scale: Array  # (N,): one of `SCALES`
    log_shares: Array  # (SCALES,): of values of each factor


def values_of(board: Board) -> Values:
    """As chains take them, at the family's hyperparameters."""
    family, stack = board.families[0], board.stacks[0].blind()
    assert isinstance(family, Gaussian)
    _, total = total_variance(stack, family.scalar)
    at, y, none = family.hyperparameters, stack.values - np.asarray(family.origin), np.zeros(len(total))
    weight = np.ones_like(y) if stack.weight is None else stack.weight
    return Values(
        y=np.ascontiguousarray(y),
        seen=(weight > 0).astype(np.float64),
        inverse=1.0 / np.where(weight > 0, weight, 1.0),
        variance=np.zeros_like(y) if stack.variance is None else family.inflation * stack.variance,
        total=total,
        floor=none + np.asarray(family.floor),
        squares=none + np.asarray(family.squares),
        degrees=float(family.degrees),
        is_drawn=family.learning != "nothing",
        at=np.array([none + at.noise, none + at.spread]),
        mean=at.mean + np.zeros(y.shape[1]),
        log_steps=np.full((2, len(total)), np.log(0.4)),
        room=np.zeros((2, len(y))),
        scale=np.ones(len(y)),
        log_shares=log_shares_at(WIDE[0] / sum(WIDE)),
    )


def log_shares_at(wide: float) -> Array:
    """Log shares of the factors where `wide` of them are not one."""
    return np.asarray(np.log(np.append(1.0 - wide, np.full(len(SCALES) - 1, wide / (len(SCALES) - 1)))))


def draw_wide(values: Values, rng: np.random.Generator) -> None:
    """The share of factors that are not one from its conditional, a Beta law."""
    n = np.count_nonzero(values.scale > 1)
    values.log_shares[:] = log_shares_at(rng.beta(WIDE[0] + n, WIDE[1] + len(values.scale) - n))


@exact
def span(values, h):
    """The dimensions that noise h is of."""
    return (h, h + 1) if len(values.total) > 1 else (0, len(values.mean))


@exact
def add_up(values, labels, d, noise):
    """Precisions of atoms and weighted sums measured from the mean, of a dimension; what values add to the density."""
    for k in range(len(labels)):
        values.room[0, k] = values.room[1, k] = 0.0
    total, product = 0.0, 1.0
    for i in range(len(labels)):
        if values.seen[i, d] > 0:
            wide = values.scale[i] * (noise * values.inverse[i, d] + values.variance[i, d])
            off = values.y[i, d] - values.mean[d]
            values.room[0, labels[i]] += 1 / wide
            values.room[1, labels[i]] += off / wide
            total -= off * off / wide
            product *= wide
            if product > 1e200 or product < 1e-200:
                total -= np.log(product)
                product = 1.0
    return total - np.log(product)


@exact
def log_density(values, labels, h):
    """Of the values in all dimensions of noise h, and of noise and spread, up to a constant."""
    noise, spread, (first, last) = values.at[NOISE, h], values.at[SPREAD, h], span(values, h)
    if noise < values.floor[h]:
        return -np.inf
    total = -(last - first) * (values.squares[h] / noise + values.degrees * np.log(noise))
    for which in range(2):
        off = (np.log(values.at[which, h] / values.total[h]) - LOCATION[which]) / DEVIATION[which]
        total -= off * off
    for d in range(first, last):
        total += add_up(values, labels, d, noise)
        product = 1.0
        for k in range(len(labels)):
            if values.room[0, k] > 0:
                wide = 1 + spread * values.room[0, k]
                total += spread * values.room[1, k] ** 2 / wide
                product *= wide
                if product > 1e200:
                    total -= np.log(product)
                    product = 1.0
        total -= np.log(product)
    return 0.5 * total


@exact
def move_values(values, labels, rate, random):
    """Noise and spread by Metropolis steps, whose lengths are tuned at this rate; the mean from its conditional."""
    for h in range(len(values.total)):
        here = log_density(values, labels, h)
        for which in range(2):
            old = values.at[which, h]
            values.at[which, h] *= np.exp(np.exp(values.log_steps[which, h]) * normal(random))
            there = log_density(values, labels, h)
            done = accepts(random, there - here)
            if done:
                here = there
            else:
                values.at[which, h] = old
            values.log_steps[which, h] += rate * (done - ACCEPTED)
        first, last = span(values, h)
        for d in range(first, last):
            add_up(values, labels, d, values.at[NOISE, h])
            precision, pull = 1 / values.total[h], -values.mean[d] / values.total[h]
            for k in range(len(labels)):
                wide = 1 + values.at[SPREAD, h] * values.room[0, k]
                precision += values.room[0, k] / wide
                pull += values.room[1, k] / wide
            values.mean[d] += pull / precision + normal(random) / np.sqrt(precision)


@exact
def fill(values, rows, theta):
    """Rows (N, 5 D) and compiled hyperparameters as the family has them (`compiled_evidences`)."""
    N, D = values.y.shape
    for d in range(D):
        noise, spread = values.at[:, d if len(values.total) > 1 else 0]
        theta[d], theta[D + d], theta[2 * D + d], theta[3 * D + d] = (
            values.mean[d],
            1 / noise,
            spread / noise,
            np.log(2 * np.pi * noise),
        )
        for i in range(N):
            inverse = values.scale[i] * (values.inverse[i, d] + values.variance[i, d] / noise)
            y = values.y[i, d]
            w = values.seen[i, d] / inverse
            rows[i, D + d], rows[i, 2 * D + d], rows[i, 3 * D + d] = w, w * y, w * y * y
            rows[i, d], rows[i, 4 * D + d] = values.seen[i, d], -values.seen[i, d] * np.log(inverse)


@exact
def move_scales(given, state, values):
    """The factor of every value's variance from its conditional given all else."""
    D, rows, sums, room, then = values.y.shape[1], given.rows, state.sums, state.room, state.then
    scores = np.empty(len(SCALES))
    for i in range(len(state.labels)):
        k = state.labels[i]
        for g in range(len(SCALES)):
            by = values.scale[i] / SCALES[g]
            for d in range(D):
                room[g, d], room[g, 4 * D + d] = sums[k, d], sums[k, 4 * D + d] + rows[i, d] * np.log(by)
                for c in range(D + d, 4 * D, D):
                    room[g, c] = sums[k, c] + (by - 1) * rows[i, c]
        log_evidences(given.evidence, room, len(SCALES), then)
        for g in range(len(SCALES)):
            scores[g] = then[g] + values.log_shares[g]
        pick = draw_log(state.random, scores, len(SCALES))
        if SCALES[pick] != values.scale[i]:
            values.scale[i], state.evidence[k] = SCALES[pick], then[pick]
            for c in range(5 * D):
                rows[i, c] += room[pick, c] - sums[k, c]
                sums[k, c] = room[pick, c]


@exact
def run(given, state, values, parameters, rate, number, tried, done):
    """So many sweeps of matching, prior, factors and hyperparameters."""
    for _ in range(number):
        sweeps(given, state, 1, tried, done)
        if parameters.are_drawn:
            move_prior(state.counts, parameters, given.R, state.random)
        if values.is_drawn:
            move_scales(given, state, values)
            move_values(values, state.labels, rate, state.random)
            fill(values, given.rows, given.evidence.theta)
            refresh(given, state)
