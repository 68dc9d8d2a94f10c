"""Tables of the populations whose sites estimate models: cases a to c, and f to h."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from draws import Group
from estimated import Population, nested

SITES = (2, 3, 5, 10, 25, 50)
"""Numbers of sites of case a."""

GENERATORS: dict[str, dict[str, Any]] = {
    "full, shift 0": {"shift": 0.0},
    "full, shift .5": {},
    "full, shift 1": {"shift": 1.0},
    "spherical": {"shape": "spherical", "covariances": "spherical"},
    "sizes 60-20,000": {"held": (3, 12), "points": (60, 20_000)},
    "hmm": {"fit": "hmm", "points": (400, 401)},
}
"""Case a: what differs from `Population()`."""

ONE: dict[str, Any] = {"K": 12, "held": (12, 12), "shift": 0.0, "points": (400, 401), "split": True, "sizes": (10, 25)}
"""Case b: all sites hold all of it, 400 points each."""

FEW: dict[str, Any] = {
    "K": 8, "held": (8, 8), "shift": 0.3, "points": (500, 2000), "concentration": 5.0, "restarts": 2, "apart": 3.0
}  # fmt: skip
"""Case c: eight components three deviations apart, all held by all sites."""

LOW: dict[str, dict[str, Any]] = {
    "given": {},
    "shift 0": {"shift": 0.0},
    "BIC": {"fit": "bic"},
    "2 too many": {"surplus": 2},
    "2 too few": {"surplus": -2},
    "weights Dir(.3)": {"concentration": 0.3},
    "KMeans": {"fit": "kmeans"},
    "share half": {"held": (4, 4), "sizes": (3, 5)},
}
"""Case c: what differs from `FEW`."""

NEW: dict[str, dict[str, Any]] = {
    "t4": {"tails": "t4"},
    "gamma": {"tails": "gamma"},
    "log-normal": {"tails": "log-normal", "D": 4},
    "elongated": {"shape": "elongated"},
    "hierarchical": {"nodes": 4},
    "weights Dir(.3), D=2": {**FEW, "D": 2, "apart": 6.0, "concentration": 0.3},
    "weights Dir(.3), D=4": {"D": 4, "concentration": 0.3},
    "two of 20 each": {"held": (2, 2), "sizes": (25, 200)},
    "D=1, 12": {**FEW, "D": 1, "K": 12, "held": (12, 12), "apart": 6.0},
    "D=30": {"D": 30, "points": (1000, 4000), "covariances": "diag"},
    "D=100": {"D": 100, "points": (1000, 4000), "covariances": "diag"},
    "BIC": {"fit": "bic", "held": (4, 8)},
    "diagonal": {"covariances": "diag"},
    "tied": {"shape": "spherical", "covariances": "tied"},
    "sizes 50-50,000": {"points": (50, 50_000)},
    "scales .001-1,000": {"frame": "scales"},
    "correlated features": {"frame": "correlated"},
    "hmm, 100-1,000 frames": {"fit": "hmm", "points": (100, 1000)},
    "background 5 %": {"background": 0.05, "surplus": 1},
    "rare 1 %": {"rare": 0.01, "points": (1000, 4000)},
    "one population, J=60": {**ONE, "sizes": (60,)},
    "BayesianGaussianMixture(15)": {"fit": "bayesian"},
    "2 too few": {"surplus": -2},
    "2 too many": {"surplus": 2},
    "3 too many": {"surplus": 3},
    "KMeans": {"fit": "kmeans", "shape": "spherical"},
    "spherical fitted to correlated": {"frame": "correlated", "covariances": "spherical"},
    "one mean, two widths": {"shape": "widths"},
}
"""Case f: generators on which nothing was chosen; what differs from `Population()`."""

SPLIT: dict[str, Any] = {**FEW, "D": 2, "fit": "kmeans", "surplus": 3, "sizes": (3, 5, 10)}

OVERSPLIT: dict[str, dict[str, Any]] = {
    "KMeans k+3, D=2": {**SPLIT, "apart": 6.0, "concentration": 1.0},
    "MiniBatchKMeans k+3": {"fit": "minibatch", "surplus": 3},
    "one population, k+2": {**ONE, "surplus": 2},
    "one population, KMeans k+2": {**ONE, "fit": "kmeans", "surplus": 2},
    "KMeans k+3 of 4, D=2": {**SPLIT, "K": 4, "held": (4, 4), "apart": 8.0},
    "KMeans k+3 of 4-6, D=2": {**SPLIT, "K": 6, "held": (4, 6), "apart": 6.0, "shift": 0.4},
}
"""Case g."""

SHIFTED: dict[str, Any] = {
    "K": 12, "D": 4, "held": (6, 6), "spread": 6.0, "shift": 0.2, "points": (300, 1500), "concentration": 2.0,
    "sizes": (3, 5, 10, 25),
}  # fmt: skip
"""Case h: 12 components of which a site holds six; all effects meet the same sites."""

AFFINE: dict[str, dict[str, Any]] = {
    **{f"mixtures, offset {x:g}": {**SHIFTED, "effect": ("offset", x)} for x in (0, 0.5, 1, 3)},
    "mixtures, one site": {**SHIFTED, "effect": ("one site", 1.0), "sizes": (10,)},
    "mixtures, two batches": {**SHIFTED, "effect": ("two batches", 1.0), "sizes": (10,)},
    "mixtures, scale 30 %": {**SHIFTED, "effect": ("scale", 0.3), "sizes": (10,)},
    "mixtures, scale 30 %, positive": {**SHIFTED, "effect": ("scale, positive", 0.3), "sizes": (10,)},
    "mixtures, rows standardised": {"effect": ("standardised", 0.0), "sizes": (8, 25)},
    **{
        f"mixtures, one column x {x:g}": {**SHIFTED, "effect": ("unit", x), "sizes": (8,)}
        for x in (1, 2.54, 0.4536, 1000)
    },
}
"""Case h: sites that differ by an offset or a scale; its arrays and tables are in `affine.py`."""

POPULATIONS: dict[str, tuple[int, dict[str, dict[str, Any]]]] = {
    "generators": (100, {name: {"sizes": SITES, **of} for name, of in GENERATORS.items()}),
    "split": (200, {"one population": {**ONE, "sizes": (10, 25, 50)}}),
    "low": (
        310,
        {f"D={D} {name}": {**FEW, "D": D, "sizes": (2, 3, 5, 10), **of} for D in (1, 2) for name, of in LOW.items()},
    ),
    "new": (600, NEW),
    "oversplit": (700, OVERSPLIT),
    "affine": (800, AFFINE),
}
"""Code of a case's random streams, and its populations."""


def groups(most: int) -> Iterator[Group]:
    """Cases whose sites estimate models, up to `most` sites."""
    for case, (code, populations) in POPULATIONS.items():
        for i, (name, of) in enumerate(populations.items()):
            population = Population(**of)
            sizes = [J for J in population.sizes if most >= J]
            if sizes and (population.fit != "hmm" or find_spec("hmmlearn")):
                yield Group(case, name, partial(nested, population, sizes, code + i * (case != "affine")))
