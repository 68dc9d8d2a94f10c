"""Sites that estimate mixtures and hidden Markov models from points of their own.

A component that was estimated has no true atom by construction; it is given that of most of its points. One of
background points or of none is not judged.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from draws import Array, Draw, Index, with_effect
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from modelweld import read

if TYPE_CHECKING:
    from hmmlearn.hmm import GaussianHMM

NARROWEST, WIDEST = 0.4, 3.0
"""Least and largest variance of a component along its own axes, which point anywhere."""

STAY = 0.95
"""Probability to stay in a state."""

RIDGE = 1e-3
"""Added to variances by local fits of simulated points, whose own are .4 and more."""

MOST_CANDIDATES = 12
"""Components among which the BIC may choose."""

BAYESIAN = 15
"""Components of a Bayesian mixture, most of which it should leave empty."""

NOT_JUDGED = -1
"""In the place of a true atom: background points, and components without points."""

HMM_STAYS = 5
"""Prior number of stays beyond one of each move: without it, rows of rare states are not defined."""


class Site(NamedTuple):
    """One site: its model, means, true atoms, and points."""

    model: Any
    means: Array
    truth: Index
    points: Array


@dataclass(frozen=True)
class Population:
    """Global components, and how sites see and estimate them.

    Attributes
    ----------
    K, D
        Global components and their dimension.
    held
        Components of a site, from and to.
    spread
        Deviation of the means, each dimension.
    shift
        Deviation of a site's means about the global ones.
    points
        Of a site, from and to, log-uniform.
    concentration
        Of the Dirichlet weights of a site's components.
    split
        Whether all sites have the same weights, as they have where rows of one population are dealt at random.
    shape
        "full"; "spherical" components of variance 1; "elongated": deviation 3 along one axis and .5 along others;
        "widths": pairs of one mean and deviations .5 and 3.
    covariances
        Of local mixtures.
    apart
        Least distance of means, which then lie as close as that lets them; 0 for normal ones.
    nodes
        Centres, three times as far apart, about which means lie; 0 for none.
    tails
        Distribution of points about their mean, a key of `TAILS`.
    frame
        Columns "as they are"; on "scales" of .001 to 1,000; or "correlated" by .5.
    background, rare
        Share of a site's points that are background, and of those of its first component; 0 for none.
    fit
        A key of `FITS`.
    surplus
        Components that local models are given beyond the true number.
    restarts
        Of local fits.
    effect
        How sites differ, and by how many spreads: see `with_effect`.
    sizes
        Numbers of sites.
    """

    K: int = 20
    D: int = 6
    held: tuple[int, int] = (8, 8)
    spread: float = 4.0
    shift: float = 0.5
    points: tuple[int, int] = (300, 2000)
    concentration: float = 1.0
    split: bool = False
    shape: str = "full"
    covariances: str = "full"
    apart: float = 0.0
    nodes: int = 0
    tails: str = "normal"
    frame: str = "as they are"
    background: float = 0.0
    rare: float = 0.0
    fit: str = "given"
    surplus: int = 0
    restarts: int = 3
    effect: tuple[str, float] = ("", 0.0)
    sizes: tuple[int, ...] = (5, 10)

    def atoms(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Means, and roots of covariances."""
        means = spaced(rng, self.K, self.D, self.apart) if self.apart else rng.normal(0, self.spread, (self.K, self.D))
        if self.nodes:
            means += rng.normal(0, 3 * self.spread, (self.nodes, self.D))[np.arange(self.K) % self.nodes]
        if self.shape == "spherical" or self.apart:
            return means, np.tile(np.eye(self.D), (self.K, 1, 1))
        if self.shape == "widths":
            widths = np.array([0.5, 3.0])[np.arange(self.K) % 2]
            return means[np.arange(self.K) // 2], widths[:, None, None] * np.eye(self.D)
        axes = np.linalg.qr(rng.standard_normal((self.K, self.D, self.D)))[0]
        if self.shape == "elongated":
            return means, axes * np.where(np.arange(self.D), 0.5, 3.0)
        widths = np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST), (self.K, 1, self.D)) / 2)
        return means, axes * widths

    def columns(self) -> Array:
        """The matrix that takes points to the columns sites have."""
        if self.frame == "scales":
            return np.diag(np.geomspace(1e-3, 1e3, self.D))
        return np.linalg.cholesky(np.where(np.eye(self.D), 1.0, 0.5 if self.frame == "correlated" else 0.0)).T

    def sites(self, J: int, rng: np.random.Generator) -> list[Site]:
        """Draw J sites; the first of more are the same."""
        means, roots = self.atoms(rng)
        shares = rng.dirichlet(np.full(self.K, self.concentration)) if self.split else None
        streams = rng.spawn(J)
        drawn = [self.rows(means, roots, shares, stream) for stream in streams]
        points = with_effect([x @ self.columns() for x, *_ in drawn], *self.effect, self.spread, rng)
        return [
            fitted(self, x, origin, L, int(stream.integers(2**31)))
            for x, (_, origin, L), stream in zip(points, drawn, streams, strict=True)
        ]

    def rows(
        self, means: Array, roots: Array, shares: Array | None, rng: np.random.Generator
    ) -> tuple[Array, Index, int]:
        """Draw one site's points, the atom of each, and how many atoms it holds."""
        L = int(rng.integers(self.held[0], self.held[1] + 1))
        held = rng.choice(self.K, L, replace=False)
        own = means[held] + self.shift * rng.standard_normal((L, self.D))
        weights = rng.dirichlet(np.full(L, self.concentration)) if shares is None else shares[held] / shares[held].sum()
        if self.rare:
            weights = np.append(self.rare, np.full(L - 1, (1 - self.rare) / (L - 1)))
        n = between(rng, *self.points)
        index = sticky(rng, L, n) if self.fit == "hmm" else rng.choice(L, n, p=weights)
        noise = TAILS[self.tails](rng, (n, self.D, 1))
        points, origin = own[index] + (roots[held[index]] @ noise)[:, :, 0], held[index]
        background = np.arange(n) < self.background * n
        points[background] = rng.normal(0, 2 * self.spread, (int(background.sum()), self.D))
        return points, np.where(background, NOT_JUDGED, origin), L


TAILS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "t4": lambda rng, shape: rng.standard_t(4, shape) / np.sqrt(2),
    "gamma": lambda rng, shape: (rng.gamma(2, 1, shape) - 2) / np.sqrt(2),
    "log-normal": lambda rng, shape: (np.exp(rng.normal(0, 0.5, shape)) - np.exp(0.125)) / 0.604,
}
"""Of mean 0 and deviation 1."""


def between(rng: np.random.Generator, least: int, most: int) -> int:
    """A number of points, log-uniform."""
    return int(np.exp(rng.uniform(np.log(least), np.log(most))))


def sticky(rng: np.random.Generator, L: int, frames: int) -> Index:
    """A path through L states that stays where it is or moves to any other."""
    moves = np.where(rng.random(frames) < STAY, 0, rng.integers(1, L, frames))
    return np.cumsum([rng.integers(L), *moves[1:]]) % L


def spaced(rng: np.random.Generator, K: int, D: int, apart: float) -> Array:
    """Means no closer than `apart`: on a line with exponential gaps, else thrown into a box just large enough."""
    if D == 1:
        return np.cumsum(apart + rng.exponential(apart / 3, K))[:, None]
    side, means = 1.1 * apart * K ** (1 / D), np.empty((0, D))
    while len(means) < K:
        means = np.empty((0, D))
        for point in rng.uniform(0, side, (200, D)):
            if len(means) < K and (np.linalg.norm(means - point, axis=1) >= apart).all():
                means = np.vstack([means, point])
    return means


def fitted(population: Population, points: Array, origin: Index, L: int, seed: int) -> Site:
    """A site's model of its points."""
    n = max(L + population.surplus, 1)
    with warnings.catch_warnings(action="ignore"):  # of convergence: local models are as they are
        model = FITS[population.fit](population, points, n, seed)
        if hasattr(model, "cluster_centers_"):
            return Site(model, model.cluster_centers_, majority(np.eye(n)[model.labels_], origin), points)
        return Site(model, model.means_, majority(model.predict_proba(points), origin), points)


def mixture(points: Array, n: int, shape: str, restarts: int, seed: int, ridge: float = RIDGE) -> GaussianMixture:
    """A fitted mixture."""
    return GaussianMixture(n, covariance_type=shape, n_init=restarts, reg_covar=ridge, random_state=seed).fit(points)


def best_hmm(points: Array, n: int, restarts: int, seed: int) -> GaussianHMM:
    """The most likely of several fits of hmmlearn."""
    from hmmlearn.hmm import GaussianHMM

    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    best, likelihood = None, -np.inf
    for start in range(seed, seed + 10 * restarts):
        prior = 1 + HMM_STAYS * np.eye(n)
        model = GaussianHMM(n, "full", min_covar=RIDGE, transmat_prior=prior, n_iter=100, random_state=start)
        try:
            found = float(model.fit(points).score(points))
        except ValueError:  # hmmlearn's word for a state that lost its points
            continue
        if found > likelihood:
            best, likelihood = model, found
        if best is not None and start >= seed + restarts - 1:
            break
    if best is None:
        raise RuntimeError(f"hmmlearn fitted none of {10 * restarts} starts.")
    return best


def bic(population: Population, points: Array, seed: int) -> GaussianMixture:
    """The mixture of the best BIC."""
    tried = [given(population, points, n, seed) for n in range(1, MOST_CANDIDATES + 1)]
    return min(tried, key=lambda model: float(model.bic(points)))


def given(population: Population, points: Array, n: int, seed: int) -> GaussianMixture:
    """The mixture of n components; its ridge is that of the smallest column's scale."""
    ridge = RIDGE * float(np.diag(population.columns()).min()) ** 2
    return mixture(points, n, population.covariances, population.restarts, seed, ridge)


FITS: dict[str, Callable[[Population, Array, int, int], Any]] = {
    "given": given,
    "bic": lambda p, X, _, seed: bic(p, X, seed),
    "bayesian": lambda p, X, _, seed: BayesianGaussianMixture(
        n_components=BAYESIAN, n_init=p.restarts, reg_covar=RIDGE, random_state=seed
    ).fit(X),
    "kmeans": lambda p, X, n, seed: KMeans(n, n_init=p.restarts, random_state=seed).fit(X),
    "minibatch": lambda p, X, n, seed: MiniBatchKMeans(n, n_init=p.restarts, random_state=seed).fit(X),
    "hmm": lambda p, X, n, seed: best_hmm(X, n, p.restarts, seed),
}
"""How a site estimates n components from its points."""


def majority(belongs: Array, origin: Index) -> Index:
    """The true atom of most points of each component."""
    names, index = np.unique(origin, return_inverse=True)
    points = belongs.T @ np.eye(len(names))[index]
    return np.where(points.sum(axis=1) < 0.5, NOT_JUDGED, names[points.argmax(axis=1)])


def nested(population: Population, sizes: Sequence[int], code: int, seed: int) -> Iterator[tuple[str, Draw]]:
    """Cells of several numbers of sites: fewer are the first of more, fitted once."""
    sites = population.sites(max(sizes), np.random.default_rng([code, seed]))
    for J in sizes:
        yield f"J={J}", drawn(sites[:J])


def drawn(sites: Sequence[Site]) -> Draw:
    """What these sites send, bare and read with their points."""
    return Draw(
        sent=[s.model for s in sites],
        values=[s.means for s in sites],
        truth=[s.truth for s in sites],
        counted=[read(s.model, X=s.points) for s in sites],
        honest=[s.truth != NOT_JUDGED for s in sites],
    )
