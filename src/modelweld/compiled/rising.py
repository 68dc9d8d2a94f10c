"""Sums of logarithms of rising factorials at the speed of numpy's logarithm; `families.rising` says what they are.

Log Gamma is Stirling's series from SHIFT on; smaller arguments are shifted up, log Gamma(z) = log Gamma(z + 8) -
log(z (z + 1) ... (z + 7)). Compiled code prepares arguments and adds terms up; the logarithms between are numpy's,
which take several numbers at a time. Work goes block by block through the same memory.
"""

from __future__ import annotations

import math

import numpy as np

from modelweld.compiled.layout import exact
from modelweld.local import Array

SHIFT = 8.0  # from here on four terms of Stirling's series leave an error below 1e-11
BLOCK = 16384  # numbers worked on at a time: three blocks of them fit in a processor's second cache
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def log_rising(S: Array, a: Array) -> Array:
    """Sum over w of log Gamma(a_w + S_iw) - log Gamma(a_w), (M,)."""
    room = _room(S.shape[1])
    return _log_gammas(S, a, room) - _log_gammas(np.zeros((1, len(a))), a, room)


def log_rising_pairs(X: Array, C: Array) -> Array:
    """Sum over w of log Gamma(C_kw + X_lw) - log Gamma(C_kw), (L, K); entries of X that are zero cost nothing."""
    L, D = X.shape
    room = _room(D)
    before = _log_gammas(C.reshape(-1, 1), np.zeros(1), room).reshape(C.shape)
    result = np.empty((L, C.shape[0]))
    for i in range(L):
        own = np.flatnonzero(X[i])
        c, b = (C, before) if len(own) == D else (C[:, own], before[:, own])
        result[i] = _log_gammas(c, X[i, own], room) - b.sum(1)
    return result


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
def _add_up(z, logs, log_factors, result):
    """Stirling's series, minus the logarithms of the factors, summed along rows."""
    for k in range(z.shape[0]):
        total = 0.0
        for w in range(z.shape[1]):
            t = z[k, w]
            r = 1 / t
            q = r * r
            series = r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q / 1680)))
            total += (t - 0.5) * logs[k, w] - t + series - log_factors[k, w]
        result[k] = total + z.shape[1] * HALF_LOG_TAU
