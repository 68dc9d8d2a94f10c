"""Sites that share nothing, a quarter or half of their values; and honest sites of which one is shifted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

Array = NDArray[np.float64]

VALUES, NOISE, SPREAD = 12, 0.3, 2.5
"""Values per site, so that a quarter is a whole number; deviations of a value about its atom and of atoms."""

COMPONENTS, POINTS, CENTRES = 6, 300, 4.0
"""Of an estimated mixture: how many, points of a site, deviation of centres; components have deviation one."""

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: np.exp(rng.standard_normal(shape)),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
}


def values(kind: str, J: int, D: int, share: float, rng: np.random.Generator) -> list[Array]:
    """Sites of `VALUES` values each, a share of which are noisy copies of the same atoms."""
    draw, common = DISTRIBUTIONS[kind], round(share * VALUES)
    atoms = SPREAD * draw(rng, (common, D))

    def site() -> Array:
        copies = atoms + NOISE * rng.standard_normal(atoms.shape)
        return np.concatenate([copies, SPREAD * draw(rng, (VALUES - common, D))])

    return [site() for _ in range(J)]


OFFSETS = {"offset 0": 0.0, "offset 1": 1.0, "offset 3": 3.0}
"""Spreads by which sites differ in place."""


def apart(kind: str, J: int, D: int, share: float, rng: np.random.Generator) -> list[Array]:
    """Sites of normal values, each of them moved by an offset of its own."""
    return [x + OFFSETS[kind] * SPREAD * rng.standard_normal(D) for x in values("normal", J, D, share, rng)]


def mixtures(J: int, D: int, share: float, rng: np.random.Generator) -> list[GaussianMixture]:
    """Fitted mixtures, a share of whose components are the same."""
    common = round(share * COMPONENTS)
    atoms = CENTRES * rng.standard_normal((common, D))
    models = []
    for _ in range(J):
        means = np.concatenate([atoms, CENTRES * rng.standard_normal((COMPONENTS - common, D))])
        X = means[rng.integers(COMPONENTS, size=POINTS)] + rng.standard_normal((POINTS, D))
        models.append(GaussianMixture(COMPONENTS, covariance_type="diag", random_state=0).fit(X))
    return models


def shifted(J: int, D: int, deviations: float, rng: np.random.Generator) -> list[Array]:
    """Sites that hold about half of 15 atoms; the first is off by so many noise deviations in every feature."""
    atoms = SPREAD * rng.standard_normal((15, D))
    sites = []
    for j in range(J):
        held = rng.permutation(len(atoms))[: max(1, rng.binomial(len(atoms), 0.5))]
        noise = NOISE * rng.standard_normal((len(held), D))
        sites.append(atoms[held] + noise + (deviations * NOISE if j == 0 else 0.0))
    return sites
