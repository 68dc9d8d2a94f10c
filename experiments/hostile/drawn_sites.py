"""Sites drawn at random: every family, kinds of models, weights, cells not seen, standard errors, copies, junk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import modelweld
from modelweld import Counts, Directions, Gaussian, LocalModel, NormalGamma, Proportions, Rates, Scatter
from modelweld.core.values import Array
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.topics import topics

AXES = {"v": ("atom", None)}
PLAIN = ("gaussian", "scalar", "full", "normal-gamma", "rates", "proportions", "counts", "directions")
BESIDE = ("variance", "weight", "unseen", "both")
KINDS = ("mixture", "hmm", "topics", "scatter")
WITH_PLACES = ("gaussian", "scalar", "full", *BESIDE, "mixture")
"""Whose values lie somewhere, so that they may be shifted."""


@dataclass(frozen=True)
class Drawn:
    """Sites, as arrays or models, and how they are fused."""

    name: str
    sites: list[Any]
    families: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def fuse(self, sites: list[Any] | None = None, **options: Any) -> modelweld.Fusion:
        """These sites, or others in the same way."""
        return modelweld.fuse(self.sites if sites is None else sites, self.families, **{**self.options, **options})

    def moved(self, factor: float = 1.0, shift: float = 0.0) -> list[Any]:
        """The sites with all values in other units, or measured from elsewhere."""
        return [_moved(site, factor, shift) for site in self.sites]

    def nudged(self, seed: int) -> list[Any]:
        """The sites with all values off by next to nothing, at random: equally good matches are so no longer."""
        rng = np.random.default_rng(seed)
        return [_nudged(site, rng) for site in self.sites]

    @property
    def has_places(self) -> bool:
        """Whether values may be moved."""
        return self.name in WITH_PLACES

    def __str__(self) -> str:
        return f"{self.name} of {len(self.sites)} sites"


def draw(seed: int) -> Drawn:
    """Sites of this seed."""
    rng = np.random.default_rng([2_026, seed])
    name = str(rng.choice([*PLAIN, *BESIDE, *BESIDE, *KINDS]))
    J, K, D = int(rng.integers(2, 7)), int(rng.integers(1, 6)), int(rng.integers(1, 5))
    if name in ("full", "counts", "directions", "topics", "proportions", "scatter"):
        D = max(D, 2)
    spread = 10.0 ** rng.uniform(0, 1.5)
    atoms = rng.normal(0, spread, (K, D))
    held = [rng.permutation(K)[: rng.binomial(K, 0.7)] for _ in range(J)]
    held = [np.repeat(h, 1 + (rng.random(len(h)) < 0.05)) for h in held]  # some in two pieces
    values = [atoms[h] + rng.normal(0, 1, (len(h), D)) for h in held]
    if rng.random() < 0.2:  # junk, gross or not
        at = int(rng.integers(J))
        values[at] = np.vstack([values[at], rng.normal(0, spread * 10.0 ** rng.integers(0, 3), (1, D))])
    if rng.random() < 0.1:
        values[0] = values[-1].copy()
    if rng.random() < 0.1:
        values = [np.unique(np.round(v), axis=0) for v in values]  # of two alike, which is which is anybody's guess
    options = {"search": "thorough"} if rng.random() < 0.1 else {}
    make = _plain if name in PLAIN else _beside if name in BESIDE else _kind
    return make(name, values, rng, options)


def _plain(name: str, values: list[Array], rng: np.random.Generator, options: dict[str, Any]) -> Drawn:
    """Arrays of one family."""
    change, family = {
        "gaussian": (None, None),
        "scalar": (None, Gaussian(shape="scalar")),
        "full": (None, Gaussian(shape="full")),
        "normal-gamma": (None, NormalGamma()),
        "rates": (lambda v: np.exp(v / 10), Rates()),
        "proportions": (lambda v: 1 / (1 + np.exp(-v / 10)), Proportions()),
        "counts": (lambda v: np.unique(rng.poisson(20 * _shares(v)).astype(float), axis=0), Counts()),
        "directions": (_directions, Directions()),
    }[name]
    return Drawn(name, [change(v) for v in values] if change else values, family, options)


def _beside(name: str, values: list[Array], rng: np.random.Generator, options: dict[str, Any]) -> Drawn:
    """Models with standard errors, weights or cells that were not seen."""
    models = []
    for v in values:
        variance, weight = {"v": rng.uniform(0.05, 1.0, v.shape)} if name in ("variance", "both") else {}, {}
        if name == "weight":
            weight = {"v": rng.uniform(1, 50, v.shape)}
        elif name != "variance":
            weight = {"v": _told_apart(v, (rng.random(v.shape) < 0.85).astype(float))}
        models.append(LocalModel({"v": v}, AXES, variance=variance, weight=weight))
    return Drawn(name, models, None, options)


def _told_apart(values: Array, seen: Array) -> Array:
    """What is seen; all of a value that is like another of its site there: which of the two is which nobody knows."""
    shown = np.where(seen > 0, values, np.inf)
    first = np.unique(shown, axis=0, return_index=True)[1]
    return np.where(np.isin(np.arange(len(values)), first)[:, None], seen, 1.0)


def _kind(name: str, values: list[Array], rng: np.random.Generator, options: dict[str, Any]) -> Drawn:
    """Models of a kind."""
    models = []
    for j, v in enumerate(values):
        L, D = v.shape
        counts = rng.integers(20, 400, L).astype(float)
        if name == "mixture":
            models.append(mixture(v, rng.uniform(1, 9, (L, D)), counts, counted=bool(L), site=f"s{j}"))
        elif name == "hmm":
            moves = rng.integers(1, 50, (L, L)).astype(float)
            own = {"means": v, "variances": rng.uniform(1, 9, (L, D))}
            models.append(hmm(moves, counts, moves.sum(1), own, counted=True).with_(site=f"s{j}"))
        elif name == "topics":
            words = [f"w{i}" for i in range(D)]
            models.append(topics(np.unique(rng.poisson(30 * _shares(v)).astype(float), axis=0), words, site=f"s{j}"))
        else:
            roots = rng.normal(0, 1, (L, D, D)) + np.eye(D) * np.exp(v / 20)[:, None, :]
            squares = roots @ roots.transpose(0, 2, 1)
            models.append(LocalModel({"v": squares}, {"v": ("atom", None, None)}, weight={"v": np.full(L, 30.0)}))
    return Drawn(name, models, Scatter() if name == "scatter" else None, options)


def _directions(values: Array) -> Array:
    """Of each value; of whole numbers several may have one, and which is which is anybody's guess."""
    units = values / np.linalg.norm(values, axis=1, keepdims=True)
    return units[np.sort(np.unique(np.round(units, 9), axis=0, return_index=True)[1])]


def _shares(values: Array) -> Array:
    raised = np.exp(values / (1 + np.abs(values).max(initial=0.0) / 3))
    return np.asarray(raised / raised.sum(1, keepdims=True) * values.shape[1])


NUDGE = 1e-12
"""Of the largest value of a site: a thousand times what a double rounds."""


def _nudged(site: Any, rng: np.random.Generator) -> Any:
    if not isinstance(site, LocalModel):
        return site + NUDGE * np.abs(site).max(initial=0.0) * rng.standard_normal(site.shape)
    moved = {name: _nudged(site.arrays[name], rng) for name in ("v", "means") if name in site.arrays}
    return site.with_(arrays={**site.arrays, **moved})


def _moved(site: Any, factor: float, shift: float) -> Any:
    if not isinstance(site, LocalModel):
        return site * factor + shift
    arrays, squared = dict(site.arrays), factor * factor
    for name in arrays.keys() & {"v", "means"}:
        arrays[name] = arrays[name] * factor + shift
    for name in arrays.keys() & {"covariances", "variances"}:
        arrays[name] = arrays[name] * squared
    return site.with_(arrays=arrays, variance={name: v * squared for name, v in site.variance.items()})
