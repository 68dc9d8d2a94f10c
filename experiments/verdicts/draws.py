"""Sites that share nothing, a quarter or half of their values; oddities; and honest sites of which one is shifted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.mixture import GaussianMixture

from modelweld import Counts, Directions
from modelweld.core.family import Family
from modelweld.core.values import Array

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


def apart(kind: str, J: int, D: int, share: float, rng: np.random.Generator) -> list[Array]:
    """Sites of normal values, each of them moved by an offset of its own; `kind` ends with how many spreads."""
    return [x + float(kind.split()[1]) * SPREAD * rng.standard_normal(D) for x in values("normal", J, D, share, rng)]


ODD_NOISE = 0.04
"""Of a copy about its atom, in deviations of atoms, where values are odd."""

ODD: dict[str, tuple[int, int]] = {
    "rank 3": (5, 12), "rank 2": (10, 6), "rounded to 1": (5, 2), "rounded to 1, three features": (5, 3),
    "rounded to .3": (5, 2), "rounded to .1": (10, 2), "60 % zeros": (5, 5), "30 % zeros": (5, 5),
    "30 % zeros, three features": (5, 3), "60 % zeros, both signs": (5, 5), "lognormal radii": (5, 4),
    "t3 radii": (5, 3), "one feature rounded to .1": (5, 3), "correlated": (5, 5),
}  # fmt: skip
"""Sites and features of values that are not drawn feature by feature from a smooth distribution."""

FOUR = ("rank 3", "rounded to 1", "60 % zeros", "lognormal radii")
"""Those to which an earlier scan said yes in .36 to 1.0 of the sets where nothing is shared."""


def odd(kind: str, J: int, D: int, share: float, rng: np.random.Generator) -> list[Array]:
    """Sites of `VALUES` values each, a share of which are noisy copies of the same atoms."""
    rank = {"rank 3": 3, "rank 2": 2, "correlated": D}.get(kind, 0)
    plane = rng.standard_normal((rank, D)) / np.sqrt(max(rank, 1))
    zeros = float(kind.split()[0]) / 100 if "zeros" in kind else 0.0
    step = float(kind.split()[2].strip(",")) if kind.startswith("rounded") else 0.0

    def draw(n: int) -> Array:
        if rank:
            return rng.standard_normal((n, rank)) @ plane
        if zeros:
            size = rng.standard_normal((n, D)) if "signs" in kind else np.exp(0.5 * rng.standard_normal((n, D)))
            return size * (rng.random((n, D)) >= zeros)
        x = rng.standard_normal((n, D))
        if kind == "lognormal radii":
            return x / np.linalg.norm(x, axis=1, keepdims=True) * np.exp(rng.standard_normal((n, 1)))
        if kind == "one feature rounded to .1":
            x[:, 0] = np.round(x[:, 0], 1)
        return x / np.sqrt(rng.chisquare(3, (n, 1)) / 3) if kind == "t3 radii" else x

    def copy(atoms: Array) -> Array:
        noise = rng.standard_normal((len(atoms), rank)) @ plane if rank else rng.standard_normal(atoms.shape)
        return np.where(atoms == 0, 0.0, atoms + ODD_NOISE * noise)

    def finish(x: Array) -> Array:
        if rank:
            return SPREAD * x + 0.05 * rng.standard_normal(x.shape)
        return step * np.round(3 * x / step) if step else SPREAD * x

    atoms = draw(round(share * VALUES))
    return [finish(np.concatenate([copy(atoms), draw(VALUES - len(atoms))])) for _ in range(J)]


CLEAN = [
    "4 to 25 values", "gamma, unlike units", "25 features", "one feature", "positive directions", "directions", "axes",
    "counts", "full mixtures", "own location", "own spread", "40 sites",
]  # fmt: skip
"""Sites that share nothing, of other kinds."""


def clean(kind: str, rng: np.random.Generator) -> tuple[list, Family | None]:
    """Sites and, where the bare call does not know it, their family."""

    def normal(*shape: int) -> Array:
        return SPREAD * rng.standard_normal(shape)

    if kind in ("positive directions", "directions", "axes"):
        rows = [normal(10, 20 if kind == "positive directions" else 12) for _ in range(5)]
        rows = [np.abs(x) if kind == "positive directions" else x for x in rows]
        return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in rows], Directions(axial=kind == "axes")
    if kind == "counts":
        return [rng.multinomial(400, rng.dirichlet(np.full(60, 0.3), 8)).astype(float) for _ in range(5)], Counts()
    if kind == "full mixtures":
        means = [normal(rng.integers(5, 10), 4) for _ in range(6)]
        points = [m[rng.integers(len(m), size=POINTS)] + 0.5 * rng.standard_normal((POINTS, 4)) for m in means]
        return [GaussianMixture(len(m), random_state=0).fit(X) for m, X in zip(means, points, strict=True)], None
    return {
        "4 to 25 values": lambda: [normal(n, 5) for n in rng.integers(4, 26, 6)],
        "gamma, unlike units": lambda: [rng.gamma(2, 1, (VALUES, 3)) * [0.1, 1, 100] for _ in range(4)],
        "25 features": lambda: [normal(10, 25) for _ in range(3)],
        "one feature": lambda: [normal(VALUES, 1) for _ in range(5)],
        "own location": lambda: [normal(VALUES, 3) + normal(3) for _ in range(5)],
        "own spread": lambda: [normal(VALUES, 3) * np.exp(0.5 * rng.standard_normal()) for _ in range(5)],
        "40 sites": lambda: [normal(6, 3) for _ in range(40)],
    }[kind](), None


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
