"""Who is compared on the paper's simulated sites, and what each is told.

Every contender gets the draw and gives a Fusion of it. Those in `FROM_TRUE` see the true local atoms, those in
`FROM_KMEANS` the centres that k-means found at each site.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from modelweld import Fusion, LocalModel, fuse
from modelweld.demo.simulate import Simulated, paper_figure
from shared.baselines import KMEANS_STARTS, kmeans_matching, pooled_kmeans

Contender = Callable[[Simulated], Fusion]

AUTHORS, PAPER = "SPAHM, authors' form", "SPAHM, as printed"
OURS, ERRORS = "ours", "ours, standard errors"
KMEANS, POOLED = "k-means matching, told L", "pooled k-means, told L"

FIGURE_POINTS, FIGURE_POINT_SD = 5000, 0.1
"""What k-means sites of the paper's figure see: points about local parameters, and how near."""

MOST_POOLED = 20_000
"""Points that pooled k-means sees, about: four hundred per atom, with noise of a hundredth of the atoms' spread."""


def paper_figure_kmeans(J: int = 20, sd: float = 1.0, *, seed: int = 0) -> Simulated:
    """Draw `paper_figure`, of which sites send k-means centres, told their number, instead of true local parameters.

    They see 5,000 points of a mixture about these, Dirichlet(1) weights and deviation 0.1; ten starts, as was usual.
    """
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    drawn = paper_figure(J, sd, seed=rng)
    seen, origins, fits = [], [], []
    for values, truth in zip(drawn.values, drawn.truth, strict=True):
        origin = rng.choice(len(truth), FIGURE_POINTS, p=rng.dirichlet(np.ones(len(truth))))
        seen.append(values[origin] + FIGURE_POINT_SD * rng.standard_normal((FIGURE_POINTS, drawn.atoms.shape[1])))
        origins.append(truth[origin])
        fit = KMeans(len(truth), n_init=KMEANS_STARTS, random_state=int(rng.integers(2**31)))
        fits.append(fit.fit(seen[-1]))
    assigned = [fit.labels_.astype(np.int64) for fit in fits]
    most = [
        np.array([np.bincount(o[a == k]).argmax() for k in range(fit.n_clusters)])
        for o, a, fit in zip(origins, assigned, fits, strict=True)
    ]
    return Simulated(
        values=[fit.cluster_centers_ for fit in fits],
        truth=most,
        atoms=drawn.atoms,
        counts=[np.bincount(a).astype(float) for a in assigned],
        points=seen,
        origin=origins,
        assigned=assigned,
    )


def with_standard_errors(drawn: Simulated) -> list[LocalModel]:
    """Centres, each with the squared standard error that its site knows: variance of its points over their number."""
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
