"""How good predictions are, at the sites and across the country: error in F, and whether the spread is honest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from data import DEVIATION, MEAN, Array, Rows, Split

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Shares of temperatures that the intervals should hold."""


def rmse(errors: Array) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def in_units(y: Array) -> Array:
    """Temperatures in F as processes learn them."""
    return (y - MEAN) / DEVIATION


def errors(model: Any, rows: Rows) -> Array:
    """Predicted minus true, in F."""
    return DEVIATION * (model.predict(rows.X) - in_units(rows.y))


def scores(models: Any, split: Split) -> dict[str, Any]:
    """Of one model for all, or of one per site.

    Own: means over states of each state's figure. Across: of one model, or the mean of those of all sites' models.
    """
    each = models if isinstance(models, list) else [models] * len(split.states)
    alone = each if models is each else [models]
    found: dict[str, Any] = {
        "own": float(np.mean([rmse(errors(m, rows)) for m, rows in zip(each, split.own, strict=True)])),
        "across": float(np.mean([rmse(errors(m, split.across)) for m in alone])),
    }
    if hasattr(each[0], "noise"):
        own = [honesty(m, rows) for m, rows in zip(each, split.own, strict=True)]
        found["held"] = np.mean(own, axis=0).round(4).tolist()
        found["held_across"] = np.mean([honesty(m, split.across) for m in alone], axis=0).round(4).tolist()
    return found


def honesty(model: Any, rows: Rows) -> Array:
    """Shares of temperatures within the intervals of `LEVELS`."""
    mean, std = model.predict(rows.X, return_std=True)
    z = (mean - in_units(rows.y)) / std
    return np.array([(np.abs(z) < norm.ppf(0.5 + level / 2)).mean() for level in LEVELS])
