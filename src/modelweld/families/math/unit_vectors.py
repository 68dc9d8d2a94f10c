"""Unit vectors: which values are none, what the others weigh, how they scatter, and how they turn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import first_row
from modelweld.families.math.start import total_variance

UNIT_TOLERANCE = 1e-6
"""How far a length may be from one: float32 vectors of any dimension are within 1e-6. Rows are divided by theirs."""

OPPOSITE = 1e-9
"""One plus the cosine below which two directions are opposite, and no plane is that of both."""


class Scatter(NamedTuple):
    """Mean (D,) of unit vectors, their variance (1,) in each dimension, and `scatter`, one less the mean's square."""

    centre: Array
    variance: Array
    scatter: float


def unit_vector(given: ArrayLike) -> Array:
    """A mean direction, its length exactly one; refuse what is none."""
    mean = np.asarray(given, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    if mean.ndim != 1 or not abs(length - 1) <= UNIT_TOLERANCE:
        raise InputError(
            f"Directions: mean is one vector of length one; found shape {mean.shape}, length {length:g}. Divide it by "
            "its length."
        )
    return np.asarray(mean / length)


def misfit_directions(stack: Stack) -> tuple[int, str] | None:
    """Rows whose length is not one, of which parts have different weights, or that come with a variance."""
    seen = np.ones(len(stack.values), dtype=bool)
    if stack.weight is not None:
        seen = stack.weight[:, 0] > 0
        uneven = first_row(np.any(stack.weight != stack.weight[:, :1], axis=1))
        if uneven is not None:
            low, high = stack.weight[uneven].min(), stack.weight[uneven].max()
            return uneven, (
                f"have one weight per row, because a direction is seen whole or not at all; found weights from"
                f" {low:g} to {high:g} in one row: give each row one weight, or use Gaussian()"
            )
    if stack.variance is not None:
        unsure = first_row(seen & np.any(stack.variance > 0, axis=1))
        if unsure is not None:
            return unsure, (
                "come without variance; found one: give a weight, which multiplies the concentration, or use Gaussian()"
            )
    lengths = np.sqrt(np.einsum("nd,nd->n", stack.values, stack.values))
    off = first_row(seen & (np.abs(lengths - 1) > UNIT_TOLERANCE))
    if off is None:
        return None
    if lengths[off] == 0:
        return off, "have length one; found a row of zeros, which has no direction: mark it as not seen by weight 0"
    return off, f"have length one; found {lengths[off]:.7g}: divide each row by its length, or use Gaussian()"


def typical_weight(stack: Stack) -> float:
    """Mean weight of the rows that were seen."""
    if stack.weight is None or not stack.weight.any():
        return 1.0
    weight = stack.weight[:, 0]
    return float(weight[weight > 0].mean())


def even_weights(stack: Stack) -> bool:
    """Whether every row is seen with weight one or not at all."""
    return stack.weight is None or bool(np.isin(stack.weight[:, 0], (0.0, 1.0)).all())


def scattered(stack: Stack, axial: bool) -> Scatter:
    """How values lie about their mean; axial ones are as likely to be turned round."""
    centre, variance = total_variance(stack, pooled=True)
    variance = np.full(1, 1 / len(centre)) if axial else variance
    return Scatter(centre, variance, min(len(centre) * float(variance[0]), 1.0))


def rotated(values: Array, before: Array, after: Array) -> Array:
    """Values (L, D), each by the rotation in the plane of its two unit vectors that takes one to the other.

    Examples
    --------
    >>> rotated(np.array([[0.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])).tolist()
    [[-1.0, 0.0, 0.0]]
    """
    along = (before * after).sum(1, keepdims=True)
    middle = before + after
    half = (values * middle).sum(1, keepdims=True) / (1 + np.maximum(along, OPPOSITE - 1))
    return np.asarray(values - half * middle + 2 * (values * before).sum(1, keepdims=True) * after)
