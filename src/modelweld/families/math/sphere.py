"""Unit vectors: which values are none, what the others weigh, how they scatter, and how they turn.

What the evidence of directions needs of each value, and what adds up over those of an atom.

Draws of von Mises-Fisher directions: the cosine to the mean by rejection (Wood, 1994), the rest evenly across it.

Directions about a mean, of one concentration: evidence (equations: `modelweld.families.Directions`), and starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Stack, total_variance
from modelweld.errors import InputError
from modelweld.families.capabilities import first_row
from modelweld.families.math.bessel import tilt

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


def measure_scatter(stack: Stack, axial: bool) -> Scatter:
    """How values lie about their mean; axial ones are as likely to be turned round."""
    centre, variance = total_variance(stack, pooled=True)
    variance = np.full(1, 1 / len(centre)) if axial else variance
    return Scatter(centre, variance, min(len(centre) * float(variance[0]), 1.0))


def rotate(values: Array, before: Array, after: Array) -> Array:
    """Values (L, D), each by the rotation in the plane of its two unit vectors that takes one to the other.

    Examples
    --------
    >>> rotate(np.array([[0.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])).tolist()
    [[-1.0, 0.0, 0.0]]
    """
    along = (before * after).sum(1, keepdims=True)
    middle = before + after
    half = (values * middle).sum(1, keepdims=True) / (1 + np.maximum(along, OPPOSITE - 1))
    return np.asarray(values - half * middle + 2 * (values * before).sum(1, keepdims=True) * after)


def direction_rows(values: Array, weight: Array | None, kappas: Array) -> Array:
    """[seen, c, w v] of unit vectors (L, D): c = tilt(kappa) - tilt(kappa w) of each concentration; 1 - w of several.

    Examples
    --------
    >>> direction_rows(np.array([[0.6, 0.8], [0.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([5.0])).tolist()
    [[1.0, 0.0, 0.6, 0.8], [0.0, 0.0, 0.0, 0.0]]
    """
    (L, D), G = values.shape, len(kappas) + (len(kappas) > 1)
    lengths = np.sqrt(np.einsum("ld,ld->l", values, values))
    rows = np.empty((L, 1 + G + D))
    rows[:, 0], rows[:, 1 : 1 + G] = 1.0, 0.0
    if weight is None:
        np.divide(values, lengths[:, None], out=rows[:, 1 + G :])
        return rows
    w, seen = weight[:, 0], weight[:, 0] > 0
    np.multiply(values, (w / np.where(seen, lengths, 1.0))[:, None], out=rows[:, 1 + G :])
    rows[:, G] = 1 - w
    for g, kappa in enumerate(kappas, start=1):
        rows[:, g] = tilt(D, np.asarray(kappa**2)) - tilt(D, (kappa * w) ** 2)
    rows[~seen] = 0.0
    return rows


def draw_directions(mean: Array, concentration: Array, rng: np.random.Generator) -> Array:
    """One direction (K, D) about each mean (K, D), of these concentrations (K,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_directions(np.tile([0.0, 1.0, 0.0], (2, 1)), np.array([20.0, 1e8]), rng)[:, 1].round(2)
    array([0.97, 1.  ])
    """
    K, D = mean.shape
    if D == 1:
        return np.where(rng.random((K, 1)) < 1 / (1 + np.exp(-2 * concentration[:, None])), mean, -mean)
    cosine = _cosines(D, concentration, rng)
    across = rng.standard_normal((K, D))
    across -= (across * mean).sum(1, keepdims=True) * mean
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.asarray(cosine[:, None] * mean + np.sqrt(np.maximum(1 - cosine**2, 0.0))[:, None] * across)


def _cosines(D: int, kappa: Array, rng: np.random.Generator) -> Array:
    b = (D - 1) / (2 * kappa + np.sqrt(4 * kappa**2 + (D - 1) ** 2))
    x = (1 - b) / (1 + b)
    c = kappa * x + (D - 1) * (np.log1p(-x) + np.log1p(x))
    found, left = np.empty(len(kappa)), np.arange(len(kappa))
    while len(left):
        z = rng.beta((D - 1) / 2, (D - 1) / 2, len(left))
        w = (1 - (1 + b[left]) * z) / (1 - (1 - b[left]) * z)
        kept = kappa[left] * w + (D - 1) * np.log1p(-x[left] * w) - c[left] >= np.log(rng.random(len(left)))
        found[left[kept]] = w[kept]
        left = left[~kept]
    return found


CONCENTRATIONS = (1e-3, 1e6)
"""Bounds of a learned concentration of values of typical weight: below the first, a value is uniform for all purposes;
the second, times the dimension, is an angle of a thousandth about the atom. Lengths of sums are exact to 1e-16 of
themselves, so that at least nine digits of an evidence are left there."""


def directions_of(pull: Array, otherwise: Array) -> Array:
    """Of length one, each; `otherwise` where there is no pull (and nothing of that either: the first axis)."""
    length = np.linalg.norm(pull, axis=-1, keepdims=True)
    none = otherwise if otherwise.any() else np.eye(1, pull.shape[-1])[0]
    return np.asarray(np.where(length > 0, pull / np.where(length > 0, length, 1.0), none))


def direction_of(vector: Array, otherwise: Array) -> Array:
    """Of length one."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else otherwise


def concentration_at(D: int, scatter: float) -> float:
    """Concentration at which the mean cosine r has about 1 - r^2 = scatter (within a tenth or so: for starts).

    r (D - r^2) / (1 - r^2), the approximation of Banerjee, Dhillon, Ghosh and Sra (2005), exact at zero and one.
    """
    return float(np.sqrt(1 - scatter) * (D - 1 + scatter) / scatter)


def first_concentrations(D: int, scatter: float, share: float, weight: float) -> tuple[float, float]:
    """Of values of weight one and of atoms, if this share of the scatter of values of typical weight is noise.

    With A the mean cosine of values to their atom and A_0 that of atoms to their mean, two copies have mean cosine A^2
    = 1 - noise, and the mean of all values has squared length A_0^2 A^2 = 1 - scatter.
    """
    noise = share * scatter
    return concentration_at(D, noise) / weight, concentration_at(D, min((scatter - noise) / (1 - noise), 1.0))
