"""Covariances as values of a family: which of them count, which are refused, and what they add to atoms."""

from __future__ import annotations

from copy import copy
from math import isqrt
from typing import Any, TypeVar

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import Family, first_row
from modelweld.families.wishart.evidence import SPARE, Belief, Points, log_det
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Stack

Some = TypeVar("Some", bound=Family)

LEARNING = ("likelihood", "nothing")

LARGEST_BLOCK = 2_000_000
"""Elements of the largest temporary (values x atoms x matrix entries) that `gain_in_blocks` makes."""

ASYMMETRY = 1e-8
"""Largest difference of S from its transpose, in units of the deviations: above it, it is no rounding."""


def counts(weight: Array | None, values: Array) -> Array:
    """Numbers of points (L,): infinite where they are not known, zero where any entry was not seen."""
    return np.full(len(values), np.inf) if weight is None else np.asarray(weight.min(1))


def believed(weight: Array | None, values: Array, D: int) -> Array:
    """1 where a covariance of size D has enough points to count (L,)."""
    return (counts(weight, values) >= D + SPARE).astype(np.float64)


def covariance_points(mean: Array, flat: Array, known: Array, count: Array, located: bool) -> Points:
    """Means (L, D) and flattened covariances, of which those count that are `known`."""
    D = mean.shape[1]
    matrices = flat.reshape(-1, D, D)
    matrices = np.where(known[:, None, None] > 0, (matrices + np.swapaxes(matrices, 1, 2)) / 2, np.eye(D))
    return Points(mean, matrices, log_det(matrices), known, count, located)


def gain_in_blocks(family: Family, own: Array, sums: Array) -> Array:
    """What each value adds to each atom, the values taken so many at a time that temporaries stay small."""
    result = np.empty((len(own), len(sums)))
    block = max(1, LARGEST_BLOCK // max(1, sums.size))
    before = family.log_evidence(sums)
    for a in range(0, len(own), block):
        part = slice(a, a + block)
        result[part] = family.log_evidence(own[part, None, :] + sums) - before
    return result


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


def check_covariance_prior(name: str, family: Any) -> None:
    """Refuse hyperparameters that are none; freeze those that are."""
    if family.learning not in LEARNING:
        raise InputError(f"{name}: learning is one of {LEARNING}; found {family.learning!r}.")
    if family.between is not None and not 0 < family.between < np.inf:
        raise InputError(f"{name}: between is a positive number of points; found {family.between!r}.")
    if family.scale is not None:
        scale = np.array(family.scale, dtype=np.float64)
        if scale.ndim != 2 or scale.shape[0] != scale.shape[1] or not np.isfinite(scale).all():
            raise InputError(f"{name}: scale is a finite matrix (D, D); found shape {scale.shape}.")
        found = misfit_covariances(scale.reshape(1, -1), np.ones(1))
        if found is not None:
            raise InputError(f"{name}: the scale must be a covariance; covariances {found[1]}.")
        object.__setattr__(family, "scale", scale)
    if family.freedom is not None and not np.isfinite(family.freedom):
        raise InputError(f"{name}: freedom is a finite number; found {family.freedom!r}.")
    if family.freedom is not None and family.scale is not None:
        check_freedom(name, family.freedom, len(family.scale))


def check_mean_prior(name: str, family: Any) -> None:
    """The same for what a prior of means has besides."""
    if family.strength is not None and not 0 < family.strength < np.inf:
        raise InputError(f"{name}: strength is a positive number; found {family.strength!r}.")
    for field in ("mean", "origin", "floor"):
        given = getattr(family, field)
        if given is not None:
            value = np.atleast_1d(np.array(given, dtype=np.float64))
            if value.ndim > 1 or not np.isfinite(value).all():
                raise InputError(f"{name}: {field} is a finite number per dimension; found {given!r}.")
            object.__setattr__(family, field, value)


def belief_of(family: Any) -> Belief:
    """The hyperparameters of a prior of means and covariances, the mean measured from the origin."""
    scale = np.asarray(family.scale, dtype=np.float64)
    assert family.strength is not None
    assert family.freedom is not None
    mean = np.zeros(len(scale)) + np.asarray(family.mean) - np.asarray(family.origin)
    return Belief(mean, family.strength, family.freedom, scale)


def check_freedom(name: str, freedom: float | None, D: int) -> None:
    """Refuse an inverse Wishart that is no distribution."""
    if freedom is not None and not freedom > D - 1:
        raise InputError(f"{name}: freedom must exceed D - 1 = {D - 1} for matrices of size {D}; found {freedom!r}.")


def with_learned(family: Some, **learned: Any) -> Some:
    """The same family with these hyperparameters, which need not be checked again."""
    result = copy(family)
    for name, value in learned.items():
        object.__setattr__(result, name, value)
    return result
