"""How good predictions are, at the sites and across the country: error in F, and whether the spread is honest."""

from __future__ import annotations

from collections.abc import Sequence
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


def scores(models: Any, split: Split, noises: Sequence[float] | None = None) -> dict[str, Any]:
    """Of one model for all, or of one per site.

    Own: means over states of each state's figure. Across: of one model, or the mean of those of all sites' models.
    `noises`: of the sites, which know their own; a model for all is then judged with these at the sites.
    """
    each = models if isinstance(models, list) else [models] * len(split.states)
    found: dict[str, Any] = {
        "own": float(np.mean([rmse(errors(m, rows)) for m, rows in zip(each, split.own, strict=True)])),
        "across": float(np.mean([rmse(errors(m, split.across)) for m in (models if models is each else [models])])),
    }
    if not hasattr(each[0], "noise"):
        return found
    known = noises if noises is not None else [m.noise for m in each]
    own = [honesty(m, rows, noise) for m, rows, noise in zip(each, split.own, known, strict=True)]
    found["held"] = np.mean([held for held, _ in own], axis=0).round(4).tolist()
    found["held_spread"] = float(np.std([held[LEVELS.index(0.9)] for held, _ in own]))
    found["surprise"] = float(np.mean([surprise for _, surprise in own]))
    across = [honesty(m, split.across, m.noise) for m in (models if models is each else [models])]
    found["held_across"] = np.mean([held for held, _ in across], axis=0).round(4).tolist()
    return found


def honesty(model: Any, rows: Rows, noise: float) -> tuple[Array, float]:
    """Shares of temperatures within the intervals of `LEVELS`, and minus the mean log density of temperatures in F."""
    mean, std = model.predict(rows.X, return_std=True)
    std = DEVIATION * np.sqrt(np.maximum(std**2 - model.noise + noise, 0))
    z = (DEVIATION * mean + MEAN - rows.y) / std
    held = np.array([(np.abs(z) < norm.ppf(0.5 + level / 2)).mean() for level in LEVELS])
    return held, float(np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi)))
