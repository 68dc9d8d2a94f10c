"""Sums and distances of many small groups, all columns at once, for large jobs of plain values: one pass each."""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact


@exact
def sums_by_site(X, offsets):
    """Sum of each column over each site (J, D)."""
    J, D = len(offsets) - 1, X.shape[1]
    sums = np.zeros((J, D))
    for j in range(J):
        for i in range(offsets[j], offsets[j + 1]):
            for d in range(D):
                sums[j, d] += X[i, d]
    return sums


@exact
def squares_by_site(X, offsets, centre):
    """Sum of squared differences from the centre (D,) of each column over each site (J, D)."""
    J, D = len(offsets) - 1, X.shape[1]
    sums = np.zeros((J, D))
    for j in range(J):
        for i in range(offsets[j], offsets[j + 1]):
            for d in range(D):
                off = X[i, d] - centre[d]
                sums[j, d] += off * off
    return sums


@exact
def sum_squares(X, centre, unit):
    """Sum over columns of squared differences from the centre (D,), each in a unit of its own (D,), of each value."""
    N, D = X.shape
    squares = np.zeros(N)
    for i in range(N):
        total = 0.0
        for d in range(D):
            off = (X[i, d] - centre[d]) / unit[d]
            total += off * off
        squares[i] = total
    return squares
