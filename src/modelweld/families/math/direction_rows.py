"""What the evidence of directions needs of each value, and what adds up over those of an atom.

Draws of von Mises-Fisher directions: the cosine to the mean by rejection (Wood, 1994), the rest evenly across it.
"""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Array
from modelweld.families.math.bessel import tilt


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
