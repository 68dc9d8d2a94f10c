"""Worlds of families other than Gaussian: five sites hold about half of twelve groups that overlap.

What is believed of hyperparameters was chosen on seeds 0 to 11 and 200 to 223.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from modelweld import Family, LocalModel
from modelweld.core.values import Array, Index
from modelweld.families import Counts, Directions, Gaussian, Moments, NormalGamma, Proportions, Rates, Scatter

SITES, GROUPS, HELD = 5, 12, 0.5


def unit(x: Array) -> Array:
    """Rows of length one."""
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def covariance(x: Array, n: int, rng: np.random.Generator) -> Array:
    """Covariances (L, 4) of n points each drawn with those given."""
    roots = np.linalg.cholesky(x.reshape(-1, 2, 2))
    points = roots @ rng.normal(size=(len(x), 2, n))
    return np.asarray(points @ points.swapaxes(1, 2) / n).reshape(len(x), 4)


def moments(x: Array, n: int, rng: np.random.Generator) -> LocalModel:
    """Means and covariances of n points of deviation one about each."""
    points = x[:, None, :] + rng.normal(size=(len(x), n, x.shape[1]))
    mean = points.mean(1)
    off = points - mean[:, None, :]
    arrays = {"means": mean, "covariances": off.swapaxes(1, 2) @ off / n}
    axes = {"means": ("atom", None), "covariances": ("atom", None, None)}
    return LocalModel(arrays, axes, weight=dict.fromkeys(arrays, n))


def two_arrays(x: Array, rng: np.random.Generator) -> LocalModel:
    """A place and two scales of each."""
    arrays = {"places": x[:, :1] + rng.normal(0, 0.4, (len(x), 1)), "scales": rng.gamma(12, x[:, 1:] / 12)}
    return LocalModel(arrays, axes={"places": ("atom", None), "scales": ("atom", None)})


Draw = Callable[[np.random.Generator], Array]
Scattered = Callable[[Array, np.random.Generator], Array]

CASES: dict[str, tuple[Family, Draw, Scattered]] = {
    "Proportions": (
        Proportions(),
        lambda rng: rng.beta(1, 1, (GROUPS, 4)),
        lambda x, rng: rng.beta(12 * x + 1e-3, 12 * (1 - x) + 1e-3),
    ),
    "Rates": (Rates(kind="gamma"), lambda rng: rng.gamma(3, 3, (GROUPS, 3)), lambda x, rng: rng.gamma(12, x / 12)),
    "NormalGamma": (
        NormalGamma(),
        lambda rng: rng.normal(0, 2.0, (GROUPS, 3)),
        lambda x, rng: x + rng.normal(0, 0.55, x.shape),
    ),
    "Directions": (
        Directions(),
        lambda rng: unit(rng.normal(size=(GROUPS, 4))),
        lambda x, rng: unit(x + rng.normal(0, 0.3, x.shape)),
    ),
    "Scatter": (
        Scatter(),
        lambda rng: covariance(np.tile(0.5 * np.eye(2).ravel(), (GROUPS, 1)), 4, rng),
        lambda x, rng: covariance(x, 20, rng),
    ),
    "Counts": (
        Counts(),
        lambda rng: rng.dirichlet(np.ones(5), GROUPS),
        lambda x, rng: np.array([rng.multinomial(25, p) for p in x], dtype=np.float64),
    ),
    "Moments": (
        {("means", "covariances"): Moments()},
        lambda rng: rng.normal(0, 2.0, (GROUPS, 2)),
        lambda x, rng: moments(x, 12, rng),
    ),
    "Gaussian and Rates": (
        {"places": Gaussian(), "scales": Rates(kind="gamma")},
        lambda rng: np.hstack([rng.normal(0, 2.0, (GROUPS, 1)), rng.gamma(3, 3, (GROUPS, 2))]),
        lambda x, rng: two_arrays(x, rng),
    ),
}
"""Family, true groups, and what a site sends of them."""


def family_sites(rng: np.random.Generator, _: str, *, name: str) -> tuple[list[Any], list[Index]]:
    """What sites send, and the true groups of their values."""
    _, draw, scatter = CASES[name]
    groups = draw(rng)
    members = [np.flatnonzero(rng.random(GROUPS) < HELD) for _ in range(SITES)]
    members = [own for own in members if len(own)]
    return [scatter(groups[own], rng) for own in members], members
