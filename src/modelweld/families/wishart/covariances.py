"""Covariances as values of a family: which are seen, and which are refused.

Means with covariances, possibly singular ones, as moments of points: see `modelweld.families.wishart.scatter`.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from modelweld.core.values import Array, Stack
from modelweld.families.capabilities import first_row
from modelweld.families.math.start import usable_variance
from modelweld.families.wishart.evidence import SPARE

ASYMMETRY = 1e-8
"""Largest difference of S from its transpose, in units of the deviations: above it, it is no rounding."""

SMALLEST_RATIO = 1e-8
"""Of eigenvalues, below which a logarithm says nothing but rounding."""


def dimensions(width: int) -> int:
    """D of D + D D columns, a mean and its covariance side by side."""
    return (isqrt(1 + 4 * width) - 1) // 2


def counts(weight: Array | None, values: Array) -> Array:
    """Numbers of points (L,): infinite where they are not known, zero where any entry was not seen."""
    return np.full(len(values), np.inf) if weight is None else np.asarray(weight.min(1))


def believed(weight: Array | None, values: Array, D: int) -> Array:
    """1 where a covariance of size D has enough points to count (L,)."""
    return (counts(weight, values) >= D + SPARE).astype(np.float64)


def log_covariances(flat: Array) -> Array:
    """Upper triangles (L, D (D + 1) / 2) of the matrices' logarithms; small eigenvalues count as SMALLEST_RATIO."""
    D = isqrt(flat.shape[1])
    values, vectors = np.linalg.eigh(flat.reshape(-1, D, D))
    least = np.maximum(SMALLEST_RATIO * values[:, -1:], np.finfo(float).tiny)
    logs = (vectors * np.log(np.maximum(values, least))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return np.asarray(logs[(slice(None), *np.triu_indices(D))])


def misfit_beside(stack: Stack) -> tuple[int, str] | None:
    """Rows whose entries are known unequally well."""
    if stack.variance is not None:
        return 0, "come without variance; send `weight`, the number of points"
    if stack.weight is None:
        return None
    low, high = stack.weight.min(1), stack.weight.max(1)
    row = first_row((low != high) & (high > 0))
    if row is None:
        return None
    return (
        row,
        f"have the same weight in all entries of a row, the number of points; found {low[row]:g} to {high[row]:g}",
    )


def misfit_covariances(flat: Array, known: Array) -> tuple[int, str] | None:
    """The first of the covariances (L, D D) that count which is not symmetric, or not positive definite."""
    D = isqrt(flat.shape[1])
    counting = np.flatnonzero(known)
    matrices = flat[counting].reshape(-1, D, D)
    variances = np.einsum("lii->li", matrices)
    bad = first_row((variances <= 0).any(1))
    if bad is not None:
        return int(counting[bad]), f"have a positive diagonal; found {variances[bad].min():g}"
    deviations = np.sqrt(variances)
    scaled = matrices / deviations[:, :, None] / deviations[:, None, :]
    skew = np.abs(scaled - np.swapaxes(scaled, 1, 2)).max((1, 2), initial=0.0)
    bad = first_row(skew > ASYMMETRY)
    if bad is not None:
        i, j = np.unravel_index(np.abs(scaled[bad] - scaled[bad].T).argmax(), (D, D))
        pair = f"{matrices[bad, i, j]:g} at ({i}, {j}) and {matrices[bad, j, i]:g} at ({j}, {i})"
        return int(counting[bad]), f"are symmetric matrices; found {pair}"
    smallest = np.linalg.eigvalsh(scaled)[:, 0]
    bad = first_row(smallest <= D * np.finfo(float).eps)
    if bad is not None:
        lowest = float(np.linalg.eigvalsh(matrices[bad])[0])
        return int(counting[bad]), f"are positive definite matrices; found a smallest eigenvalue of {lowest:g}"
    return None


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
