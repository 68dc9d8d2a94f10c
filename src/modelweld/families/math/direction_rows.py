"""What the evidence of directions needs of each value, and what adds up over those of an atom."""

from __future__ import annotations

import numpy as np

from modelweld.families.math.bessel import tilt
from modelweld.inputs.local_model import Array


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
