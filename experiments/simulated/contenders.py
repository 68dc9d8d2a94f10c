"""Who is compared on the paper's simulated sites, and what each is told.

Every contender gets the draw and gives a Fusion of it. Those in `FROM_TRUE` see the true local atoms, those in
`FROM_KMEANS` the centres that k-means found at each site.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from modelweld import Fusion, LocalModel, fuse
from modelweld.demo.simulate import Simulated
from shared.baselines import kmeans_matching, pooled_kmeans

Contender = Callable[[Simulated], Fusion]

AUTHORS, PAPER = "SPAHM, authors' form", "SPAHM, as printed"
OURS, ERRORS = "ours", "ours, standard errors"
KMEANS, POOLED = "k-means matching, told L", "pooled k-means, told L"

MOST_POOLED = 20_000
"""Points that pooled k-means sees, about: four hundred per atom, with noise of a hundredth of the atoms' spread."""


def with_standard_errors(drawn: Simulated) -> list[LocalModel]:
    """Centres, each with the squared standard error that its site knows: variance of its points over their number."""
    assert drawn.points is not None
    assert drawn.assigned is not None
    sites = []
    for centres, points, assigned in zip(drawn.values, drawn.points, drawn.assigned, strict=True):
        squares = [points[assigned == k].var(axis=0) / (assigned == k).sum() for k in range(len(centres))]
        axes = {"centres": ("cluster", None)}
        sites.append(LocalModel({"centres": centres}, axes, variance={"centres": np.stack(squares)}))
    return sites


def occurring(drawn: Simulated) -> np.ndarray:
    """Which true atoms some site holds: those that can be found, as in the authors' own count."""
    return np.unique(np.concatenate(drawn.truth if drawn.origin is None else drawn.origin))


def pooled(drawn: Simulated) -> Fusion:
    """k-means of the data of all sites, which nobody would have; of every so many points where they are many."""
    assert drawn.points is not None
    every = max(1, round(sum(map(len, drawn.points)) / MOST_POOLED))
    return pooled_kmeans([points[::every] for points in drawn.points], len(occurring(drawn)))


SPAHM: Mapping[str, Contender] = {
    AUTHORS: lambda drawn: fuse(drawn.values, preset="authors"),
    PAPER: lambda drawn: fuse(drawn.values, preset="paper"),
    OURS: lambda drawn: fuse(drawn.values),
}
MATCHING: Mapping[str, Contender] = {KMEANS: lambda drawn: kmeans_matching(drawn.values, len(occurring(drawn)))}

FROM_TRUE: Mapping[str, Contender] = {**SPAHM, **MATCHING}
FROM_KMEANS: Mapping[str, Contender] = {
    **SPAHM,
    ERRORS: lambda drawn: fuse(with_standard_errors(drawn)),
    **MATCHING,
    POOLED: pooled,
}
