"""Medians, sums and distances of many small groups, all columns at once, for large jobs of plain values.

Medians are by a sorting network of rows, which needs no decisions: large jobs have thousands of groups of a few dozen
values, and sorting them one by one took longer than fusing them. Sums and distances take one pass each.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact


@exact
def medians_and_deviations(X, offsets):
    """Median of each column in each group (J, D), and of absolute differences from it; of an empty group zero."""
    J, D = len(offsets) - 1, X.shape[1]
    middle, spread = np.zeros((J, D)), np.zeros((J, D))
    largest = 0
    for j in range(J):
        largest = max(largest, offsets[j + 1] - offsets[j])
    rows = np.empty((largest, D))
    for j in range(J):
        a, n = offsets[j], offsets[j + 1] - offsets[j]
        if n == 0:
            continue
        for i in range(n):
            for d in range(D):
                rows[i, d] = X[a + i, d]
        _sort_columns(rows, n)
        for d in range(D):
            middle[j, d] = (rows[(n - 1) // 2, d] + rows[n // 2, d]) / 2
        spread[j] = (_kth_nearest(rows, n, (n + 1) // 2, middle[j]) + _kth_nearest(rows, n, n // 2 + 1, middle[j])) / 2
    return middle, spread


@exact
def _kth_nearest(rows, n, k, middle):
    """How far the k-th nearest of the first n rows, which are sorted, is from the middle of its column.

    The k nearest stand side by side: of all k that do, they are those whose farther end is nearest.
    """
    D = rows.shape[1]
    found = np.full(D, np.inf)
    for i in range(n - k + 1):
        for d in range(D):
            below, above = middle[d] - rows[i, d], rows[i + k - 1, d] - middle[d]
            end = below if below > above else above
            found[d] = end if end < found[d] else found[d]
    return found


@exact
def _sort_columns(rows, n):
    """Sort each column of the first n rows: Batcher's merge exchange (Knuth, volume 3, 5.2.2, algorithm M)."""
    D = rows.shape[1]
    top = 1
    while 2 * top < n:
        top *= 2
    p = top
    while p > 0:
        q, r, apart = top, 0, p
        while True:
            for i in range(n - apart):
                if i & p == r:
                    for d in range(D):
                        low, high = rows[i, d], rows[i + apart, d]
                        rows[i, d] = low if low < high else high
                        rows[i + apart, d] = high if low < high else low
            if q == p:
                break
            apart, q, r = q - p, q // 2, p
        p //= 2


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
def squared_distances(X, centre, unit):
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
