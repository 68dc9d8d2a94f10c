"""Components of Gaussian mixtures as three arrays: read off models, and merged by their moments."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index

Components = tuple[Array, Array, Array]
"""Means (K, D), covariances (K, D, D) or variances (K, D), and counts (K,)."""

FEWEST_POINTS = 1.0
"""A component is worth a point at least when its standard error is computed: counts are expected numbers."""


def parameters(model: LocalModel) -> Components:
    """Means, covariances or variances, and counts of a mixture."""
    name = "covariances" if "covariances" in model.arrays else "variances"
    means, spreads, counts = (np.asarray(model.arrays[n]) for n in ("means", name, "counts"))
    return means, spreads, counts


def diagonals(spreads: Array) -> Array:
    """Variances of covariances or variances."""
    return spreads if spreads.ndim == 2 else np.diagonal(spreads, axis1=1, axis2=2)


def squared_errors(spreads: Array, points: Array) -> Array:
    """Squared standard errors (K, D) of the means of components that so many points (K,) stand behind."""
    return np.asarray(diagonals(spreads) / np.maximum(points, FEWEST_POINTS)[:, None])


def merge_components(means: Array, spreads: Array, counts: Array, labels: Index) -> Components:
    """Components merged by label, each into one of the same mass, mean and covariance (within plus between).

    Examples
    --------
    >>> ones = np.ones((2, 1))
    >>> [x.tolist() for x in merge_components(np.array([[0.0], [4.0]]), ones, np.array([3.0, 1.0]), np.array([0, 0]))]
    [[[1.0]], [[4.0]], [4.0]]
    """
    K = int(np.max(labels)) + 1
    mass: Array = np.bincount(labels, counts, K).astype(np.float64)
    # an atom all of whose components are empty is the plain average of these
    share = counts + (mass[labels] == 0)
    share = share / np.bincount(labels, share, K)[labels]
    centres = np.zeros((K, means.shape[1]))
    np.add.at(centres, labels, share[:, None] * means)
    total = np.zeros((K, *spreads.shape[1:]))
    parts = spreads + squares(means - centres[labels], spreads.ndim)
    np.add.at(total, labels, share.reshape(-1, *[1] * (spreads.ndim - 1)) * parts)
    return centres, total, mass


def squares(off: Array, ndim: int) -> Array:
    """Outer products of offsets, or their diagonals."""
    return off * off if ndim == 2 else off[:, :, None] * off[:, None, :]


def weight_pairs(weight: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Weights of a model whose variances become covariances: a pair of features was seen if both were.

    Examples
    --------
    >>> np.asarray(weight_pairs({"variances": [[1.0, 0.0]]})["covariances"]).tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    found = {name: values for name, values in weight.items() if name != "variances"}
    if "variances" in weight:
        own = np.asarray(weight["variances"])
        found["covariances"] = own[:, :, None] * own[:, None, :]
    return found
