"""Canonical order without moving anything, moments added in it, and atoms rebuilt from labels."""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact
from modelweld.matching.algorithm1 import NEW


@exact
def sort_rows(X, offsets):
    """Rows sorted by content within their group: the permutation (nothing is moved)."""
    rows = np.empty(len(X), np.int64)
    for j in range(len(offsets) - 1):
        a, b = offsets[j], offsets[j + 1]
        rows[a:b] = a + np.argsort(X[a:b, 0])
        # only ties in the first coordinate are left to insert in their place
        for i in range(a, b):
            here, t = rows[i], i
            while t > a and _before(X, here, rows[t - 1]):
                rows[t] = rows[t - 1]
                t -= 1
            rows[t] = here
    return rows


@exact
def _before(X, i, j):
    """Whether row i comes before row j."""
    for d in range(X.shape[1]):
        if X[i, d] != X[j, d]:
            return X[i, d] < X[j, d]
    return False


@exact
def mean_and_squares(X, offsets, rows, order):
    """Mean (D,) and sums of squares about it (D,), added in canonical order."""
    N, D = X.shape
    anchor = X[0].copy()
    for j in order:
        if offsets[j + 1] > offsets[j]:
            anchor = X[rows[offsets[j]]].copy()
            break
    total, squares = np.zeros(D), np.zeros(D)
    for j in order:
        for i in range(offsets[j], offsets[j + 1]):
            row = rows[i]
            for d in range(D):
                y = X[row, d] - anchor[d]
                total[d] += y
                squares[d] += y * y
    total /= N
    for d in range(D):
        squares[d] = max(squares[d] - N * total[d] * total[d], 0.0)
    return anchor + total, squares


@exact
def rebuild(X, rows, offsets, order, labels, atoms, origin):
    """Number the atoms without gaps and add their sums afresh, in canonical order; how many there are."""
    number = np.full(labels.max() + 1, NEW)
    for i in range(len(labels)):
        if labels[i] != NEW:
            number[labels[i]] = 0
    K = 0
    for k in range(len(number)):
        if number[k] != NEW:
            number[k] = K
            K += 1
    sums, counts = atoms.sums, atoms.counts
    counts[:] = 0
    sums[:K] = 0.0
    for j in order:
        for i in range(offsets[j], offsets[j + 1]):
            if labels[i] == NEW:
                continue
            k, row = number[labels[i]], rows[i]
            labels[i] = k
            counts[k] += 1
            for d in range(X.shape[1]):
                sums[k, d] += X[row, d] - origin[d]
    return K
