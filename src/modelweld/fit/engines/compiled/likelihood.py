"""Compiled duplicate of `families.math.random_effects`: the same likelihood, the same search, without temporaries.

Atoms of equal count share a line, as there; lines are kept per dimension, (D, C), because sums run over atoms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact, loose
from modelweld.core.values import Array
from modelweld.families.math.random_effects import CLOSE_ENOUGH, LOG_RATIO_GRID, MOST_HALVINGS, SMALLEST_RATIO


class Lines(NamedTuple):
    """What the likelihood needs to know of a matching of plain values."""

    counts: Array  # (C,): distinct counts
    atoms: Array  # (C,): how many atoms have them
    averages: Array  # (D, C): sums over those atoms of their averages
    squares: Array  # (D, C): and of the squares of these
    within: Array  # (D,): sums of squares of values about their atoms' averages
    values: int  # number of values


class Weights(NamedTuple):
    """What a ratio rho of spread to noise says of lines: u = n / (1 + rho n), v = u^2, and their sums over atoms."""

    rho: float
    u: Array  # (C,)
    v: Array  # (C,)
    atoms_u: float
    atoms_v: float
    log_one: float  # sum over atoms of log(1 + rho n), where it is known


@exact
def lines_of(counts, sums, total_squares):
    """Lines of atoms with `counts` values, their `sums` (K, D) and all values' squares (D,)."""
    K, D = sums.shape
    number = np.zeros(counts.max() + 1, np.int64)
    for k in range(K):
        number[counts[k]] += 1
    line, C = np.empty(len(number), np.int64), 0
    for n in range(len(number)):
        if number[n] > 0:
            line[n] = C
            C += 1
    count, atoms = np.empty(C), np.empty(C)
    for n in range(len(number)):
        if number[n] > 0:
            count[line[n]], atoms[line[n]] = n, number[n]
    averages, squares, within = np.zeros((D, C)), np.zeros((D, C)), total_squares.copy()
    values = 0
    for k in range(K):
        n, c = counts[k], line[counts[k]]
        values += n
        for d in range(D):
            y = sums[k, d] / n
            averages[d, c] += y
            squares[d, c] += y * y
            within[d] -= n * y * y
    return Lines(count, atoms, averages, squares, np.maximum(within, 0.0), values)


@exact
def log_likelihood(lines, mean, noise, spread):
    """Log evidence of all values, one number per dimension."""
    counts, atoms, averages, squares, within, values = lines
    D, H, C = len(mean), len(noise), len(counts)
    result, u = np.empty(D), np.empty(C)
    constant = 0.0
    for d in range(D):
        h = d if H > 1 else 0
        if d == 0 or H > 1:
            constant = values * np.log(2 * np.pi * noise[h])
            for c in range(C):
                total = noise[h] + spread[h] * counts[c]
                u[c] = counts[c] / total
                constant += atoms[c] * np.log(total / noise[h])
        off = 0.0
        for c in range(C):
            m = mean[d]
            off += u[c] * (squares[d, c] - 2 * m * averages[d, c] + m * m * atoms[c])
        result[d] = -0.5 * (constant + within[d] / noise[h] + off)
    return result


@exact
def maximise(lines, mean, noise, spread, floor, squares, near, degrees):
    """The most probable mean, noise and spread; never less probable than those given. As in random_effects.

    `squares`, `near` and `degrees` are what is believed of noise and spread (`families.math.start`).
    """
    D, H = len(mean), len(noise)
    new_mean, new_noise, new_spread = np.empty(D), np.empty(H), np.empty(H)
    learnable = lines.values > lines.atoms.sum()
    grid = _grid(lines)
    for h in range(H):
        a, b = (0, D) if H == 1 else (h, h + 1)
        log_ratio = (
            _best_log_ratio(lines, a, b, squares[h], near, degrees, 0.0, grid)
            if learnable
            else np.log(spread[h] / noise[h])
        )
        rho = np.exp(log_ratio)
        total = _means(lines, a, b, rho, new_mean) + squares[h] * (b - a)
        variance = max(total, np.finfo(np.float64).tiny) / ((lines.values + degrees) * (b - a))
        if variance < floor[h]:
            variance = floor[h]
            rho = np.exp(_best_log_ratio(lines, a, b, squares[h], near, degrees, floor[h], grid))
            _means(lines, a, b, rho, new_mean)
        new_noise[h] = variance
        new_spread[h] = max(rho * variance, SMALLEST_RATIO * floor[h])
    old = log_likelihood(lines, mean, noise, spread)
    new = log_likelihood(lines, new_mean, new_noise, new_spread)
    for h in range(H):
        a, b = (0, D) if H == 1 else (h, h + 1)
        before = old[a:b].sum() + _log_prior(noise[h], spread[h], squares[h], near, degrees, b - a)
        if new[a:b].sum() + _log_prior(new_noise[h], new_spread[h], squares[h], near, degrees, b - a) < before:
            new_mean[a:b], new_noise[h], new_spread[h] = mean[a:b], noise[h], spread[h]
            new[a:b] = old[a:b]
    return new_mean, new_noise, new_spread, new.sum()


@exact
def _means(lines, a, b, rho, mean):
    """Best means of dimensions a .. b-1 given the ratio, put into `mean`; returns the sum of squares about them."""
    counts, atoms, averages, squares, within, _ = lines
    u = counts / (1 + rho * counts)
    total = 0.0
    for d in range(a, b):
        pull, weight, off = 0.0, 0.0, 0.0
        for c in range(len(u)):
            pull += u[c] * averages[d, c]
            weight += u[c] * atoms[c]
            off += u[c] * squares[d, c]
        mean[d] = pull / weight
        total += within[d] + off - pull * mean[d]
    return total


@exact
def _log_prior(noise, spread, squares, near, degrees, each):
    """Log density of noise (that of `each` dimension) and spread, up to a constant."""
    return -0.5 * each * (squares / noise + degrees * np.log(noise)) - 0.5 * np.log1p(near * noise / spread)


@loose
def _best_log_ratio(lines, a, b, squares, near, degrees, noise, grid):
    """The maximum of the profile over dimensions a .. b-1, at this noise (0: the best), as in random_effects."""
    top, best = -np.inf, 0
    slopes = np.empty(len(LOG_RATIO_GRID))
    for g in range(len(LOG_RATIO_GRID)):
        value, slopes[g] = _profile(lines, a, b, squares, near, degrees, noise, grid[g])
        value -= 0.5 * grid[g].log_one * (b - a) + 0.5 * np.log1p(near / grid[g].rho)
        if value > top:
            top, best = value, g
    below, above = max(best - 1, 0), min(best + 1, len(LOG_RATIO_GRID) - 1)
    low, high, rise, fall = LOG_RATIO_GRID[below], LOG_RATIO_GRID[above], slopes[below], slopes[above]
    if rise <= 0 or fall > 0:  # no zero between: an end is best
        return low if rise <= 0 else high
    guess = low - 1
    for _ in range(MOST_HALVINGS):
        middle, last = (low + high) / 2, guess
        _, at = _profile(lines, a, b, squares, near, degrees, noise, _weights(lines, middle))
        guess = middle + (middle - low) * at / np.sqrt(max(at * at - rise * fall, 1e-300))
        guess = min(max(guess, low), high)
        if abs(guess - last) < CLOSE_ENOUGH or high - low < CLOSE_ENOUGH:
            break
        _, there = _profile(lines, a, b, squares, near, degrees, noise, _weights(lines, guess))
        if at > 0:
            low, rise = middle, at
        else:
            high, fall = middle, at
        if low <= guess <= high:
            if there > 0:
                low, rise = guess, there
            else:
                high, fall = guess, there
    return guess


@loose
def _profile(lines, a, b, squares, near, degrees, noise, at):
    """Profile over dimensions a .. b-1, less what the ratio alone decides, and a number with the sign of its slope."""
    _, _, averages, square, within, values = lines
    rho, u, v, atoms_u, atoms_v, _ = at
    total, steep = 0.0, 0.0
    for d in range(a, b):
        s_u, s_v, q_u, q_v = 0.0, 0.0, 0.0, 0.0
        for c in range(len(u)):
            s_u += u[c] * averages[d, c]
            s_v += v[c] * averages[d, c]
            q_u += u[c] * square[d, c]
            q_v += v[c] * square[d, c]
        mean = s_u / atoms_u
        total += within[d] + q_u - mean * s_u
        steep += q_v - 2 * mean * s_v + mean * mean * atoms_v
    total += squares * (b - a)
    slope = -atoms_u * (b - a) + near / (rho * (near + rho))
    if noise > 0:
        return -0.5 * total / noise, slope + steep / noise
    total = max(total, 1e-300)
    number = (values + degrees) * (b - a)
    return -0.5 * number * np.log(total), slope + number * steep / total


@loose
def _weights(lines, log_ratio):
    """What a ratio says of lines, whatever the dimension."""
    counts, atoms, rho = lines.counts, lines.atoms, np.exp(log_ratio)
    u, v = np.empty(len(counts)), np.empty(len(counts))
    atoms_u, atoms_v = 0.0, 0.0
    for c in range(len(counts)):
        u[c] = counts[c] / (1 + rho * counts[c])
        v[c] = u[c] * u[c]
        atoms_u += u[c] * atoms[c]
        atoms_v += v[c] * atoms[c]
    return Weights(rho, u, v, atoms_u, atoms_v, 0.0)


@loose
def _grid(lines):
    """Weights at every decade, with the logarithms that values need."""
    counts, atoms, found = lines.counts, lines.atoms, []
    for log_ratio in LOG_RATIO_GRID:
        rho, u, v, atoms_u, atoms_v, log_one = _weights(lines, log_ratio)
        for c in range(len(u)):
            log_one += atoms[c] * np.log1p(rho * counts[c])
        found.append(Weights(rho, u, v, atoms_u, atoms_v, log_one))
    return found
