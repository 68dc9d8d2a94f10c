"""What the compiled sweep works on: plain arrays in named tuples, and what follows from hyperparameters.

Canonical order without moving anything, moments added in it, and atoms rebuilt from labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.compilers import exact
from modelweld.core.algorithm1 import NEW
from modelweld.core.moments import Hyperparameters
from modelweld.core.values import Array, Index, group_of_values

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
    unit: Array  # (D,): one over the noise's deviation, the unit of features and distances
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


def tabulate(
    origin: Array, hyperparameters: Hyperparameters, steps: Array, surcharge: Array, most_atoms: int, J: int
) -> Tables:
    """Everything a sweep needs to know of hyperparameters and prior."""
    mean, noise, spread = hyperparameters
    ratio, n = noise / spread, np.arange(J + 1)
    shrink = 1 / (n[:, None] + ratio)
    log_det = np.log((1 + shrink) * noise).sum(1) * (len(mean) / len(noise))
    constant, unit = steps[np.minimum(n, J - 1)] - 0.5 * log_det, np.ones(len(mean)) / np.sqrt(noise)
    return Tables(origin, mean, unit, ratio, shrink, 1 / (1 + shrink), constant, surcharge, most_atoms)


def sort_rows(X: Array, offsets: Index) -> Index:
    """Rows sorted by content within their group: the permutation (nothing is moved)."""
    own, order = group_of_values(offsets), np.argsort(X[:, 0])
    rows = order[np.argsort(own[order], kind="stable")]
    first = X[rows, 0]
    tied = (first[1:] == first[:-1]) & (own[1:] == own[:-1])
    for j in np.unique(own[1:][tied]):
        a, b = offsets[j], offsets[j + 1]
        rows[a:b] = a + np.lexsort(X[a:b].T[::-1])
    return rows


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
