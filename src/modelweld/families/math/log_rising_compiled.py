"""Sums of logarithms of rising factorials (`families.counts`) at the speed of numpy's logarithm.

Log Gamma is Stirling's series from SHIFT on; smaller arguments are shifted up, log Gamma(z) = log Gamma(z + 8) -
log(z (z + 1) ... (z + 7)). Compiled code prepares arguments and adds terms up; the logarithms between are numpy's,
which take several numbers at a time. Work goes block by block through the same memory.
"""

from __future__ import annotations

import math

import numpy as np

from modelweld.compilers import exact
from modelweld.core.values import Array

SHIFT = 8.0  # from here on four terms of Stirling's series leave an error below 1e-11
BLOCK = 16384  # numbers worked on at a time: three blocks of them fit in a processor's second cache
FOLD = (
    8  # factors multiplied before a logarithm is taken: each is between 5e-3 (pseudo-counts are 1e-6 at least) and 6e8
)
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def log_rising(S: Array, a: Array) -> Array:
    """Sum over w of log Gamma(a_w + S_iw) - log Gamma(a_w), (M,)."""
    room = _room(S.shape[1])
    return _log_gammas(S, a, room) - _log_gammas(np.zeros((1, len(a))), a, room)


def log_rising_pairs(X: Array, C: Array) -> Array:
    """Sum over w of log Gamma(C_kw + X_lw) - log Gamma(C_kw), (L, K); entries of X that are zero cost nothing."""
    (L, D), K = X.shape, len(C)
    z, factors, logs = _room(D)
    before = _each_log_gamma(C.ravel(), (z, factors, logs)).reshape(C.shape)
    there = X != 0
    first = np.concatenate([[0], np.cumsum(there.sum(1))])
    words, x = np.nonzero(there)[1], X[there]
    after = np.zeros(L * K)
    begin, end = 0, 0
    while end < L * K:
        end, size, number = _fill(begin, first, words, x, C, z, factors)
        np.log(z[:size], out=logs[:size])
        np.log(factors[:number], out=factors[:number])
        _add_pairs(begin, end, first, z, logs, factors, K, after)
        begin = end
    return np.asarray(after.reshape(L, K) - there.astype(np.float64) @ before.T)


def _room(D: int) -> tuple[Array, ...]:
    return tuple(np.empty(max(BLOCK, D)) for _ in range(3))


def _log_gammas(C: Array, x: Array, room: tuple[Array, ...]) -> Array:
    """Sum over w of log Gamma(C_kw + x_w), (K,)."""
    K, D = C.shape
    result = np.zeros(K)
    step = max(1, BLOCK // max(D, 1))
    for k in range(0, K, step):
        part = C[k : k + step]
        z, factors, logs = (r[: part.size].reshape(part.shape) for r in room)
        _shift(part, x, z, factors)
        np.log(z, out=logs)
        np.log(factors, out=factors)
        _add_up(z, logs, factors, result[k : k + step])
    return result


def _each_log_gamma(c: Array, room: tuple[Array, ...]) -> Array:
    """Log Gamma(c), number by number."""
    result = np.empty(len(c))
    zeros = np.zeros(BLOCK)
    for start in range(0, len(c), BLOCK):
        part = c[start : start + BLOCK]
        z, factors, logs = (r[: len(part)] for r in room)
        _shift(part[None], zeros, z[None], factors[None])
        np.log(z, out=logs)
        np.log(factors, out=factors)
        _put(z, logs, factors, result[start : start + BLOCK])
    return result


@exact
def _shift(C, x, z, factors):
    """Arguments z of at least SHIFT, and the factors by which their Gamma is too large."""
    for k in range(C.shape[0]):
        for w in range(C.shape[1]):
            t = C[k, w] + x[w]
            low = t < SHIFT
            m = min(t, SHIFT)
            u = m * (m + 7)  # the pairs m (m + 7), (m + 1) (m + 6), ... differ from it by 6, 10 and 12
            factors[k, w] = u * (u + 6) * (u + 10) * (u + 12) if low else 1.0
            z[k, w] = t + SHIFT if low else t


@exact
def _series(t, log):
    """Stirling's series of log Gamma(t), without the constant."""
    r = 1 / t
    q = r * r
    return (t - 0.5) * log - t + r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q / 1680)))


@exact
def _stirling(z, logs):
    """The sum of such series."""
    total = 0.0
    for w in range(len(z)):
        total += _series(z[w], logs[w])
    return total


@exact
def _put(z, logs, log_factors, result):
    """Log Gamma, number by number."""
    for w in range(len(z)):
        result[w] = HALF_LOG_TAU + _series(z[w], logs[w]) - log_factors[w]


@exact
def _add_up(z, logs, log_factors, result):
    """Stirling's series, minus the logarithms of the factors, summed along rows."""
    for k in range(z.shape[0]):
        result[k] = z.shape[1] * HALF_LOG_TAU + _stirling(z[k], logs[k])
        for w in range(z.shape[1]):
            result[k] -= log_factors[k, w]


@exact
def _fill(pair, first, words, x, C, z, factors):
    """As `_shift` for as many pairs (row, atom) as there is room for, numbered row by row, from `pair` on.

    Factors are multiplied, FOLD of them at a time, so that there are fewer logarithms to take. Returns where to go on
    and how much room was used.
    """
    K, D = C.shape
    size, number = 0, 0
    while pair < (len(first) - 1) * K:
        row, k = pair // K, pair % K
        low, m = first[row], first[row + 1] - first[row]
        if size + m > len(z):
            break
        c, own, here = C[k], x[low : low + m], z[size : size + m]
        if m == D:
            for w in range(m):
                here[w] = c[w] + own[w]
        else:
            at = words[low : low + m]
            for w in range(m):
                here[w] = c[at[w]] + own[w]
        fold = -(-m // FOLD)
        product = factors[number : number + fold]
        for f in range(fold):
            product[f] = 1.0
        for part in range(0, m, fold):
            some = here[part : min(part + fold, m)]
            for w in range(len(some)):
                t = some[w]
                low_t = t < SHIFT
                s = min(t, SHIFT)
                u = s * (s + 7)
                product[w] *= u * (u + 6) * (u + 10) * (u + 12) if low_t else 1.0
                some[w] = t + SHIFT if low_t else t
        size += m
        number += fold
        pair += 1
    return pair, size, number


@exact
def _add_pairs(begin, end, first, z, logs, log_factors, K, result):
    """Stirling's series, minus the logarithms of the factors, summed for each pair."""
    size, number = 0, 0
    for pair in range(begin, end):
        row = pair // K
        m = first[row + 1] - first[row]
        fold = -(-m // FOLD)
        result[pair] = m * HALF_LOG_TAU
        result[pair] += _stirling(z[size : size + m], logs[size : size + m])
        for f in range(number, number + fold):
            result[pair] -= log_factors[f]
        size += m
        number += fold
