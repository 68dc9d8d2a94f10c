"""A group's values left out of their atoms, so that it is matched given the others, and put back if it stays.

Weights are what nearly all groups need; sums are touched only where something changes or is scored in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.values import Array
from modelweld.fit.engines.compiled.packing import Floats
from modelweld.fit.engines.compiled.scores import weigh_without


class Kept(NamedTuple):
    """What the atoms of a group were before its values were left out."""

    sums: Array
    weights: Floats
    constants: Floats
    curvature: Floats


@exact
def room_for(largest, D, P):
    """For groups of up to so many values."""
    return Kept(
        np.empty((largest, D)),
        np.empty((largest, P), np.float32),
        np.empty(largest, np.float32),
        np.empty(largest, np.float32),
    )


@exact
def leave_out(Y, labels, atoms, tables, kept):
    """Counts and weights of the group's atoms without its values; sums as they were."""
    _, counts, weights, constants, curvature, _ = atoms
    _, kept_weights, kept_constants, kept_curvature = kept
    for i in range(len(Y)):
        k = labels[i]
        counts[k] -= 1
        kept_constants[i], kept_curvature[i] = constants[k], curvature[k]
        for p in range(weights.shape[1]):
            kept_weights[i, p] = weights[k, p]
    weigh_without(labels, Y, atoms, tables)


@exact
def put_back(labels, atoms, kept):
    """Counts and weights as they were."""
    _, counts, weights, constants, curvature, _ = atoms
    _, kept_weights, kept_constants, kept_curvature = kept
    for i in range(len(labels)):
        k = labels[i]
        counts[k] += 1
        constants[k], curvature[k] = kept_constants[i], kept_curvature[i]
        for p in range(weights.shape[1]):
            weights[k, p] = kept_weights[i, p]


@exact
def leave_out_sums(Y, labels, sums, kept_sums):
    """Sums of the group's atoms without its values."""
    for i in range(len(Y)):
        k = labels[i]
        for d in range(Y.shape[1]):
            kept_sums[i, d] = sums[k, d]
            sums[k, d] -= Y[i, d]


@exact
def put_back_sums(labels, sums, kept_sums):
    """Sums as they were, to the last bit."""
    for i in range(len(labels)):
        k = labels[i]
        for d in range(sums.shape[1]):
            sums[k, d] = kept_sums[i, d]
