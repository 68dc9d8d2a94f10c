"""Sums of logarithms of rising factorials (`families.counts`) at the speed of numpy's logarithm.

Log Gamma is Stirling's series from SHIFT on; smaller arguments are shifted up, log Gamma(z) = log Gamma(z + 8) -
log(z (z + 1) ... (z + 7)). Compiled code prepares arguments and adds terms up; the logarithms between are numpy's,
which take several numbers at a time. Work goes block by block through the same memory.
"""

from __future__ import annotations

import numpy as np
import scipy

from modelweld.compilers import exact
from modelweld.core.gaussian import LOG_TWO_PI
from modelweld.core.values import Array

SHIFT = 8.0  # from here on four terms of Stirling's series leave an error below 1e-11
BLOCK = 16384  # numbers worked on at a time: three blocks of them fit in a processor's second cache
FOLD = 8  # factors multiplied before a logarithm: each is between 5e-3 (pseudo-counts are 1e-6 at least) and 6e8


def log_rising_pairs(X: Array, C: Array) -> Array:
    """Sum over w of log Gamma(C_kw + X_lw) - log Gamma(C_kw), (L, K); entries of X that are zero cost nothing."""
    (L, D), K = X.shape, len(C)
    z, factors, logs = (np.empty(max(BLOCK, D)) for _ in range(3))
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
    return np.asarray(after.reshape(L, K) - there.astype(np.float64) @ scipy.special.gammaln(C).T)


@exact
def _stirling(z, logs):
    """The sum of Stirling's series of log Gamma(z), without the constants."""
    total = 0.0
    for w in range(len(z)):
        r = 1 / z[w]
        q = r * r
        total += (z[w] - 0.5) * logs[w] - z[w] + r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q / 1680)))
    return total


@exact
def _fill(pair, first, words, x, C, z, factors):
    """Arguments z of at least SHIFT, and the factors by which their Gamma is too large, from `pair` on.

    Of as many pairs (row, atom) as there is room for, numbered row by row. Factors are multiplied, FOLD of them at a
    time, so that there are fewer logarithms to take. Returns where to go on and how much room was used.
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
        result[pair] = m * 0.5 * LOG_TWO_PI
        result[pair] += _stirling(z[size : size + m], logs[size : size + m])
        for f in range(number, number + fold):
            result[pair] -= log_factors[f]
        size += m
        number += fold
