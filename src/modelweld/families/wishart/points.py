"""Means with covariances, possibly singular ones, as moments of points: see `modelweld.families.wishart.moments`."""

from __future__ import annotations

import numpy as np

from modelweld.families.base import first_row
from modelweld.families.math.start import usable_variance
from modelweld.families.wishart.covariances import counts, dimensions
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Stack

SYMMETRY_ROUNDING = 1e-6
"""Of the deviations of all points: a covariance less symmetric, or more negative, than this has not been rounded (to
single precision, at worst) but is wrong."""


def parts(values: Array) -> tuple[Array, Array]:
    """Means (L, D) and covariances (L, D, D), these made symmetric."""
    D = dimensions(values.shape[1])
    matrices = values[:, D:].reshape(-1, D, D)
    return values[:, :D], (matrices + np.swapaxes(matrices, 1, 2)) / 2


def number_of_points(values: Array, weight: Array | None) -> Array:
    """Numbers of points (L,): one where none are given."""
    return np.ones(len(values)) if weight is None else counts(weight, values)


def all_points(stack: Stack) -> tuple[Array, Array]:
    """Mean (D,) and variances (D,) of all points of all values; positive even when they coincide."""
    n = number_of_points(stack.values, stack.weight)
    share = n / max(n.sum(), np.finfo(float).tiny)
    means, covariances = parts(stack.values)
    origin = share @ means
    within = np.maximum(np.einsum("lii->li", covariances), 0.0)
    return origin, usable_variance(origin, share @ (within + np.square(means - origin)), means, pooled=False)


def not_negative(matrices: Array) -> Array:
    """The same symmetric matrices (L, D, D) with zero for eigenvalues that rounding has made negative.

    Those of the correlations: channels in small units must not be lost beside those in large ones.
    """
    variances = np.einsum("lii->li", matrices)
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
    unit = deviations[:, :, None] * deviations[:, None, :]
    values, vectors = np.linalg.eigh(matrices / unit)
    mended = unit * ((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2))
    return np.where((values[:, 0] < 0)[:, None, None], mended, matrices)


def misfit_singular(stack: Stack) -> tuple[int, str] | None:
    """The first covariance that counts and is not symmetric, or negative in some direction."""
    D = dimensions(stack.values.shape[1])
    seen = number_of_points(stack.values, stack.weight) > 0
    given, (_, matrices) = stack.values[:, D:].reshape(-1, D, D), parts(stack.values)
    deviations = np.sqrt(all_points(stack)[1])
    unit = np.outer(deviations, deviations)
    skew = np.abs(given - np.swapaxes(given, 1, 2)) / unit
    row = first_row(seen & (skew.max((1, 2)) > SYMMETRY_ROUNDING))
    if row is not None:
        i, j = sorted(map(int, np.unravel_index(skew[row].argmax(), (D, D))))
        pair = f"{given[row, i, j]:g} at ({i}, {j}) and {given[row, j, i]:g} at ({j}, {i})"
        return row, f"have a symmetric covariance beside the mean; found {pair}"
    row = first_row(seen & (np.linalg.eigvalsh(matrices / unit)[:, 0] < -SYMMETRY_ROUNDING))
    if row is not None:
        lowest = float(np.linalg.eigvalsh(matrices[row])[0])
        return row, f"have a covariance without negative eigenvalues beside the mean; found {lowest:g}"
    return None
