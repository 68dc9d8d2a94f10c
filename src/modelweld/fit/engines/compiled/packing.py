"""What the compiled sweep works on: plain arrays in named tuples, and what follows from hyperparameters.

Canonical order without moving anything, moments added in it, and atoms rebuilt from labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.compilers import exact
from modelweld.core.algorithm1 import NEW
from modelweld.core.values import Array, Index

Floats = NDArray[np.float32]

LANES = 8
"""Numbers of float32 in a vector register: blocks of rows are padded to a multiple."""

BLOCK_ROWS = 256
"""Rows scored at a time: their scores stay in cache."""

VACANT = -1e30
"""Constant of a slot without values: it is never the best."""


class Atoms(NamedTuple):
    """Atoms in slots; the first `used` slots of a sweep may hold values."""

    sums: Array  # (slots, D): sums of y
    counts: Index  # (slots,): number of values, 0 = vacant
    weights: Floats  # (slots, P) float32
    constants: Floats  # (slots,) float32: c_k, or VACANT
    curvature: Floats  # (slots,) float32: noise / 2 v_k where one number serves all dimensions, else 0
    reach: Array  # (2,): the longest weights and the largest constant so far, for the rounding bound


class Tables(NamedTuple):
    """Hyperparameters and what follows from them for each count n; H is D, or 1 for scalar noise."""

    origin: Array  # (D,)
    mean: Array  # (D,): measured from the origin
    deviation: Array  # (H,): square root of the noise, the unit of features and distances
    unit: Array  # (D,): one over it
    ratio: Array  # (H,): noise / spread
    shrink: Array  # (J + 1, H): 1 / (n + ratio)
    inverse: Array  # (J + 1, H): noise / v
    constant: Array  # (J + 1,): increments[n] - 1/2 sum_d log v
    surcharge: Array  # (largest group,)
    most_atoms: int  # a group may open max(most_atoms - K, 1) atoms


class Workspace(NamedTuple):
    """Room for one block of products."""

    features: Floats
    products: Floats
    length: Floats
    first: Floats
    second: Floats
    at: NDArray[np.int32]


@exact
def workspace(P, padded, atoms):
    """Zeroed, so that the lanes beyond a block's rows are harmless."""
    return Workspace(
        np.zeros(P * padded, np.float32),
        np.empty(atoms * padded, np.float32),
        np.zeros(padded, np.float32),
        np.empty(padded, np.float32),
        np.empty(padded, np.float32),
        np.empty(padded, np.int32),
    )


def vacant_atoms(slots: int, D: int, P: int) -> Atoms:
    """So many slots of atoms with D sums and P weights; the system gives memory only for those that are touched."""
    return Atoms(
        sums=np.empty((slots, D)),
        counts=np.zeros(slots, dtype=np.int64),
        weights=np.empty((slots, P), dtype=np.float32),
        constants=np.empty(slots, dtype=np.float32),
        curvature=np.empty(slots, dtype=np.float32),
        reach=np.zeros(2),
    )


@exact
def tabulate(origin, mean, noise, spread, steps, surcharge, most_atoms, J):
    """Everything a sweep needs to know of hyperparameters and prior."""
    D, H = len(mean), len(noise)
    ratio = noise / spread
    shrink, inverse, constant = np.empty((J + 1, H)), np.empty((J + 1, H)), np.empty(J + 1)
    for n in range(J + 1):
        log_det = 0.0
        for h in range(H):
            shrink[n, h] = 1 / (n + ratio[h])
            v = 1 + shrink[n, h]  # in units of the noise
            inverse[n, h] = 1 / v
            log_det += np.log(v * noise[h])
        constant[n] = steps[min(n, J - 1)] - 0.5 * log_det * (D / H)
    unit = np.ones(D) / np.sqrt(noise)
    return Tables(origin, mean, np.sqrt(noise), unit, ratio, shrink, inverse, constant, surcharge, most_atoms)


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
    """Number the atoms without gaps and add their sums from scratch, in canonical order; how many there are."""
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
