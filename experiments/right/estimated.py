"""Sites that estimate mixtures and hidden Markov models from points of their own: cases a, b and c.

A component that was estimated has no true atom by construction; it is given that of most of its points.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from draws import Array, Draw, Group, Index
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from modelweld import read

if TYPE_CHECKING:
    from hmmlearn.hmm import GaussianHMM

NARROWEST, WIDEST = 0.4, 3.0
"""Least and largest variance of a component along its own axes, which point anywhere."""

SPREAD_SD = 4.0
"""Deviation of components' means, each dimension."""

STAY, FRAMES = 0.95, 400
"""Probability to stay in a state, and length of a site's sequence."""

RIDGE = 1e-3
"""Added to variances by local fits of simulated points, whose own are .4 and more."""

SITES, LOW_SITES = (5, 10, 25, 50), (2, 3, 5, 10)
"""Numbers of sites of cases a and b, and of case c."""

MOST_CANDIDATES = 12
"""Components among which the BIC may choose."""

HMM_STAYS = 5
"""Prior number of stays beyond one of each move: without it, rows of rare states are not defined."""


class Fitted(Protocol):
    """What a site has: a model of scikit-learn or hmmlearn."""

    def fit(self, X: Array) -> Fitted:
        """Learn from points."""


class Site(NamedTuple):
    """One site: its model, means, true atoms, and points."""

    model: Fitted
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
    shift
        Deviation of a site's means about the global ones.
    points
        Of a site, from and to, log-uniform.
    concentration
        Of the Dirichlet weights of a site's components.
    split
        Whether all sites have the same weights, as they have where rows of one population are dealt at random.
    shape
        "full", or "spherical" components of variance 1, which are fitted as such.
    apart
        Least distance of means, which then lie as close as that lets them; 0 for normal ones.
    fit
        "told", "bic", "kmeans" or "hmm".
    surplus
        Components that local models are told beyond the true number.
    restarts
        Of local fits.
    """

    K: int = 20
    D: int = 6
    held: tuple[int, int] = (8, 8)
    shift: float = 0.5
    points: tuple[int, int] = (300, 2000)
    concentration: float = 1.0
    split: bool = False
    shape: str = "full"
    apart: float = 0.0
    fit: str = "told"
    surplus: int = 0
    restarts: int = 3

    def atoms(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Means, and roots of covariances."""
        means = spaced(rng, self.K, self.D, self.apart) if self.apart else rng.normal(0, SPREAD_SD, (self.K, self.D))
        if self.shape == "spherical" or self.apart:
            return means, np.tile(np.eye(self.D), (self.K, 1, 1))
        axes = np.linalg.qr(rng.standard_normal((self.K, self.D, self.D)))[0]
        widths = np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST), (self.K, 1, self.D)) / 2)
        return means, axes * widths

    def sites(self, J: int, rng: np.random.Generator) -> list[Site]:
        """Draw J sites; the first of more are the same."""
        means, roots = self.atoms(rng)
        shares = rng.dirichlet(np.full(self.K, self.concentration)) if self.split else None
        return [self.site(means, roots, shares, stream) for stream in rng.spawn(J)]

    def site(self, means: Array, roots: Array, shares: Array | None, rng: np.random.Generator) -> Site:
        """Draw one site's points and fit its model."""
        L = int(rng.integers(self.held[0], self.held[1] + 1))
        held = rng.choice(self.K, L, replace=False)
        own = means[held] + self.shift * rng.standard_normal((L, self.D))
        weights = rng.dirichlet(np.full(L, self.concentration)) if shares is None else shares[held] / shares[held].sum()
        origin = sticky(rng, L) if self.fit == "hmm" else rng.choice(L, between(rng, *self.points), p=weights)
        points = own[origin] + (roots[held[origin]] @ rng.standard_normal((len(origin), self.D, 1)))[:, :, 0]
        return fitted(self, points, held[origin], L, int(rng.integers(2**31)))


def between(rng: np.random.Generator, least: int, most: int) -> int:
    """A number of points, log-uniform."""
    return int(np.exp(rng.uniform(np.log(least), np.log(most))))


def sticky(rng: np.random.Generator, L: int) -> Index:
    """A path through L states that stays where it is or moves to any other."""
    moves = np.where(rng.random(FRAMES) < STAY, 0, rng.integers(1, L, FRAMES))
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
    shape = "spherical" if population.shape == "spherical" else "full"
    told = max(L + population.surplus, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: local models are as they are
        if population.fit == "kmeans":
            kmeans = KMeans(told, n_init=population.restarts, random_state=seed).fit(points)
            return Site(kmeans, kmeans.cluster_centers_, majority(np.eye(told)[kmeans.labels_], origin), points)
        if population.fit == "hmm":
            chain = best_hmm(points, told, population.restarts, seed)
            return Site(chain, chain.means_, majority(chain.predict_proba(points), origin), points)
        tried = range(1, MOST_CANDIDATES + 1) if population.fit == "bic" else [told]
        models = [mixture(points, n, shape, population.restarts, seed) for n in tried]
        model = min(models, key=lambda m: float(m.bic(points))) if len(models) > 1 else models[0]
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


def majority(belongs: Array, origin: Index) -> Index:
    """The true atom of most points of each component."""
    names, index = np.unique(origin, return_inverse=True)
    return names[(belongs.T @ np.eye(len(names))[index]).argmax(axis=1)]


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
    )


GENERATORS = {
    "full, shift 0": Population(shift=0.0),
    "full, shift .5": Population(),
    "full, shift 1": Population(shift=1.0),
    "spherical": Population(shape="spherical"),
    "sizes 60-20,000": Population(held=(3, 12), points=(60, 20_000)),
    "hmm": Population(fit="hmm"),
}
"""Case a."""

ONE = Population(K=12, held=(12, 12), shift=0.0, points=(400, 401), split=True)
"""Case b: all sites hold all of it, 400 points each."""

LOW = {
    "told": {},
    "shift 0": {"shift": 0.0},
    "BIC": {"fit": "bic"},
    "2 too many": {"surplus": 2},
    "2 too few": {"surplus": -2},
    "weights Dir(.3)": {"concentration": 0.3},
    "KMeans": {"fit": "kmeans"},
    "share half": {"held": (4, 4)},
}
"""Case c: what differs from eight components three deviations apart, all held by all sites, told, two restarts."""


def low(D: int, what: str) -> Population:
    """A population of case c."""
    usual = {"held": (8, 8), "shift": 0.3, "points": (500, 2000), "concentration": 5.0, "restarts": 2}
    return Population(**{"K": 8, "D": D, "apart": 3.0, **usual, **LOW[what]})


def groups(most: int) -> Iterator[Group]:
    """Cases a, b and c up to `most` sites; case b goes to the next number of them."""
    sizes = [J for J in SITES if most >= J]
    for i, (name, population) in enumerate(GENERATORS.items()):
        if population.fit != "hmm" or find_spec("hmmlearn"):
            yield Group("generators", name, partial(nested, population, sizes, 100 + i))
    yield Group("split", "one population", partial(nested, ONE, SITES[1 : len(sizes) + 1], 200))
    for D in (1, 2):
        for i, what in enumerate(LOW):
            few = [J for J in ((3, 5) if what == "share half" else LOW_SITES) if most >= J]
            yield Group("low", f"D={D} {what}", partial(nested, low(D, what), few, 300 + 10 * D + i))
