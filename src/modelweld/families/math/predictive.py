"""Log predictive densities of normal values given atoms whose places are known with a variance."""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Array, blocks

LOG_TWO_PI = float(np.log(2 * np.pi))


COMPILED_PREDICTIVE_FROM = 25_000
"""Values x atoms x dimensions of a call from which it is compiled: 25 values, 40 atoms, 25 dimensions. Below, a job is
over before the compiler is loaded. By the input alone, so that the same call gives the same bits."""


def normal_log_predictive(seen: Array, w: Array, wy: Array, noise: Array, mu: Array, extra: Array) -> Array:
    """Of values y (L, D) of weight w, where `seen`, given atoms at mu, known with variance `extra` (K, D): (L, K).

    One matrix product where all values are equally well known.
    """
    if (seen == 1).all() and (w == 1).all():
        v = noise + extra
        inverse = 1.0 / v
        weights = mu * inverse
        result, squares = wy @ weights.T, (wy * wy) @ inverse.T
        squares += np.log(v, out=v).sum(-1) + np.einsum("kd,kd->k", mu, weights) + v.shape[1] * LOG_TWO_PI
        squares *= 0.5
        result -= squares
        return np.asarray(result)
    y = wy / np.where(w > 0, w, 1.0)
    own_variance = noise / np.where(w > 0, w, 1.0)
    if y.size * len(mu) >= COMPILED_PREDICTIVE_FROM:
        from modelweld.families.math import unequal_compiled

        return np.asarray(unequal_compiled.log_predictive(y, seen, own_variance, mu, extra))
    result = np.empty((len(wy), len(mu)))
    for part in blocks(len(wy), mu.shape[0] * y.shape[1]):
        v = own_variance[part, None, :] + extra
        off = y[part, None, :] - mu
        terms = np.log(2 * np.pi * v) + off * off / v
        result[part] = -0.5 * (seen[part, None, :] * terms).sum(-1)
    return result
