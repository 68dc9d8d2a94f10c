"""What the compiled sweep works on: plain arrays in named tuples, and what follows from hyperparameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from modelweld.compilers import exact

LANES = 16  # float32 numbers in a vector register: blocks of rows are padded to a multiple
BLOCK_ROWS = 256  # rows scored at a time: their scores stay in cache
VACANT = -1e30  # constant of a slot without values: it is never the best


class Atoms(NamedTuple):
    """Atoms in slots; the first `used` slots of a sweep may hold values."""

    sums: Any  # (slots, D): sums of y
    counts: Any  # (slots,): number of values, 0 = vacant
    weights: Any  # (slots, P) float32
    constants: Any  # (slots,) float32: c_k, or VACANT
    curvature: Any  # (slots,) float32: noise / 2 v_k where one number serves all dimensions, else 0
    reach: Any  # (2,): the longest weights and the largest constant so far, for the rounding bound


class Tables(NamedTuple):
    """Hyperparameters and what follows from them for each count n; H is D, or 1 for scalar noise."""

    origin: Any  # (D,)
    mean: Any  # (D,): measured from the origin
    deviation: Any  # (H,): square root of the noise, the unit of features and distances
    unit: Any  # (D,): one over it
    ratio: Any  # (H,): noise / spread
    shrink: Any  # (J + 1, H): 1 / (n + ratio)
    inverse: Any  # (J + 1, H): noise / v
    constant: Any  # (J + 1,): steps[n] - 1/2 sum_d log v
    surcharge: Any  # (largest group,)
    most_atoms: int  # a group may open max(most_atoms - K, 1) atoms


class Workspace(NamedTuple):
    """Room for one block of products."""

    features: Any
    products: Any
    length: Any
    first: Any
    second: Any
    at: Any


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
