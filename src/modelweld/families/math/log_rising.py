"""Logarithms of rising factorials, log Gamma(c + x) - log Gamma(c), added up over coordinates."""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Array, block_size

COMPILED_FROM = 200_000
"""Terms from which on the compiled sums are used: below, scipy takes a few hundredths of a second, and nobody should
wait for a compiler."""


def log_rising(S: Array, a: Array) -> Array:
    """Sum over w of log Gamma(a_w + S_w) - log Gamma(a_w): (...) from S (..., D) and a (D,).

    Examples
    --------
    >>> np.exp(log_rising(np.array([[2.0, 1.0]]), np.array([3.0, 5.0]))).round(6)          # 3 * 4 * 5
    array([60.])
    """
    if S.size >= COMPILED_FROM:
        from modelweld.families.math import log_rising_compiled as rising

        return rising.log_rising(S.reshape(-1, S.shape[-1]), a).reshape(S.shape[:-1])
    from scipy.special import gammaln

    return np.asarray((gammaln(a + S) - gammaln(a)).sum(-1))


def log_rising_pairs(X: Array, C: Array) -> Array:
    """The same for every row of X (L, D) on top of every row of C (K, D): (L, K)."""
    if X.shape[0] * C.size >= COMPILED_FROM:
        from modelweld.families.math import log_rising_compiled as rising

        return rising.log_rising_pairs(X, C)
    from scipy.special import gammaln

    before = gammaln(C).sum(-1)
    result = np.empty((len(X), len(C)))
    block = block_size(C.size)
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        result[part] = gammaln(C + X[part, None, :]).sum(-1) - before
    return result
