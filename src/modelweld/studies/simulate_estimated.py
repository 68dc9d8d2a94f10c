"""Sites that estimate their local models from points: k-means, Gaussian mixtures, hidden Markov models.

An estimated component has no true atom by construction; it is given that of most of its points. It may be two
atoms glued together or one of two pieces of an atom, which is what makes these sites hard to fuse.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LocalFit", "estimated_sites", "fit_hmm", "fit_kmeans", "fit_mixture", "independent", "sticky"]

KMEANS_STARTS = 10  # the default of scikit-learn when the paper was written
STARTS, ITERATIONS = 3, 100  # of mixtures and hidden Markov models
RIDGE = 0.01  # keeps a component's variances off zero

COMPONENTS, D, SPREAD, SITE_SHIFT = 20, 6, 4.0, 0.5
FEWEST_POINTS, MOST_POINTS = 300, 2000
STEPS, STAY = 400, 0.95


@dataclass(frozen=True, eq=False)
class LocalFit:
    """A local model, and the points it was estimated from.

    Attributes
    ----------
    means : (L_j, D) array
        Centres of the components.
    counts : (L_j,) array
        (Expected) number of points behind each component.
    truth : (L_j,) array
        The true component that most of a component's points come from.
    points : (n_j, D) array
        What the site saw.
    origin : (n_j,) array
        The true component of each point.
    assigned : (n_j,) array
        The component that the local model gives each point to.
    covariances : (L_j, D, D) array, optional
        Covariance of each component.

    Examples
    --------
    >>> fit = fit_kmeans(np.array([[0.0], [0.2], [9.0]]), np.array([4, 4, 6]), 2)
    >>> fit.truth[fit.assigned]
    array([4, 4, 6])
    """

    means: NDArray[np.float64]
    counts: NDArray[np.float64]
    truth: NDArray[np.int64]
    points: NDArray[np.float64]
    origin: NDArray[np.int64]
    assigned: NDArray[np.int64]
    covariances: NDArray[np.float64] | None = None


def fit_kmeans(points: NDArray[np.float64], origin: NDArray[np.int64], L: int, *, seed: int = 0) -> LocalFit:
    """Centres of k-means, told their number.

    Parameters
    ----------
    points : (n, D) array
        What the site saw.
    origin : (n,) array
        The true component of each point.
    L : int
        Number of centres.
    seed : int
        Decides the starts.

    Returns
    -------
    LocalFit

    Examples
    --------
    >>> fit = fit_kmeans(np.array([[0.0], [0.2], [9.0]]), np.array([4, 4, 6]), 2)
    >>> sorted(zip(fit.truth.tolist(), fit.counts.tolist()))
    [(4, 2.0), (6, 1.0)]
    """
    from sklearn.cluster import KMeans

    with _quiet():
        model = KMeans(L, n_init=KMEANS_STARTS, random_state=seed).fit(points)
    belongs, assigned = np.eye(L)[model.labels_], model.labels_.astype(np.int64)
    return LocalFit(model.cluster_centers_, belongs.sum(axis=0), _majority(belongs, origin), points, origin, assigned)


def fit_mixture(points: NDArray[np.float64], origin: NDArray[np.int64], L: int, *, seed: int = 0) -> LocalFit:
    """Gaussian mixture with full covariances, told its number of components.

    Parameters
    ----------
    points, origin, L, seed
        As for `fit_kmeans`.

    Returns
    -------
    LocalFit

    Examples
    --------
    >>> points = np.random.default_rng(0).normal([[0.0]] * 50 + [[9.0]] * 50)
    >>> fit = fit_mixture(points, np.repeat([2, 7], 50), 2)
    >>> sorted(zip(fit.truth.tolist(), np.round(fit.counts).tolist()))
    [(2, 50.0), (7, 50.0)]
    """
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(L, n_init=STARTS, reg_covar=RIDGE, max_iter=ITERATIONS, random_state=seed)
    with _quiet():
        belongs = model.fit(points).predict_proba(points)
    counts, assigned = belongs.sum(axis=0), belongs.argmax(axis=1)
    return LocalFit(model.means_, counts, _majority(belongs, origin), points, origin, assigned, model.covariances_)


def fit_hmm(points: NDArray[np.float64], origin: NDArray[np.int64], L: int, *, seed: int = 0) -> LocalFit:
    """Gaussian hidden Markov model of one sequence, full covariances, told its number of states.

    Transitions have a Dirichlet prior of 1, plus 5 for staying; of three starts the most likely wins. Points
    are assigned by the most likely path.
    hmmlearn applies its least variance to the start only, so a state of few points can end singular.

    Parameters
    ----------
    points, origin, L, seed
        As for `fit_kmeans`; the points in their order in time.

    Returns
    -------
    LocalFit

    Examples
    --------
    >>> points = np.random.default_rng(0).normal([[0.0]] * 50 + [[9.0]] * 50)
    >>> sorted(fit_hmm(points, np.repeat([2, 7], 50), 2).truth.tolist())
    [2, 7]
    """
    try:
        from hmmlearn.hmm import GaussianHMM
    except ImportError as error:
        raise ImportError(
            'sites that send hidden Markov models need hmmlearn, which is not installed; pip install "modelweld[hmm]"'
        ) from error

    prior = 1 + 5 * np.eye(L)
    models = [
        GaussianHMM(L, "full", min_covar=RIDGE, transmat_prior=prior, n_iter=ITERATIONS, random_state=start)
        for start in range(seed, seed + STARTS)
    ]
    with _quiet():
        model = max(models, key=lambda start: _fitted_likelihood(start, points))
        belongs = model.predict_proba(points)
        path = model.predict(points)
    counts = belongs.sum(axis=0)
    return LocalFit(model.means_, counts, _majority(belongs, origin), points, origin, path, model.covars_)


def _fitted_likelihood(model: Any, points: NDArray[np.float64]) -> float:
    """Log likelihood after fitting; none when a state lost its points on the way, about one start in 300."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(model.fit(points).score(points))
    except ValueError:  # hmmlearn's word for a covariance that is singular or not a number
        return -np.inf


def independent(rng: np.random.Generator, K: int) -> NDArray[np.int64]:
    """Components of independent points: Dirichlet(1) weights, 300 to 2,000 points (log-uniform).

    Parameters
    ----------
    rng : Generator
        Source of the draw.
    K : int
        Number of components.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> 300 <= len(independent(np.random.default_rng(0), 8)) <= 2000
    True
    """
    size = int(np.exp(rng.uniform(np.log(FEWEST_POINTS), np.log(MOST_POINTS))))
    return rng.choice(K, size, p=rng.dirichlet(np.ones(K)))


def sticky(rng: np.random.Generator, K: int) -> NDArray[np.int64]:
    """States of a sequence of 400 steps: uniform start; stays with probability .95, else moves uniformly.

    Parameters
    ----------
    rng : Generator
        Source of the draw.
    K : int
        Number of states, at least 2.

    Returns
    -------
    (400,) array

    Examples
    --------
    >>> sticky(np.random.default_rng(0), 8)[:5]
    array([4, 4, 4, 4, 4])
    """
    jumps = np.where(rng.random(STEPS) < STAY, 0, rng.integers(1, K, STEPS))
    jumps[0] = rng.integers(K)
    return np.cumsum(jumps) % K


def estimated_sites(
    J: int,
    K_local: int,
    rng: np.random.Generator,
    sequence: Callable[[np.random.Generator, int], NDArray[np.int64]],
    fit: Callable[..., LocalFit],
) -> tuple[NDArray[np.float64], list[LocalFit], list[NDArray[np.float64]]]:
    """Sites that each see some of twenty Gaussian components, and what they make of them.

    The components lie in 6 dimensions: means N(0, 4²), covariances A A' + .5 I with entries of A N(0, .5²). A
    site has `K_local` of them, means shifted by N(0, .5²), and fits a model told `K_local`. Beside it go fresh
    points which it was not shown, one of the same component for each of its own. Sites draw from streams of
    their own: the first sites of a larger J are those of a smaller one.

    Parameters
    ----------
    J : int
        Number of sites.
    K_local : int
        Components per site, at most 20.
    rng : Generator
        Source of the draw.
    sequence : function
        `independent` or `sticky`: which component each point comes from.
    fit : function
        `fit_mixture` or `fit_hmm`.

    Returns
    -------
    means : (20, 6) array
        True global means.
    fits : list of LocalFit
        One per site.
    fresh : list of (n_j, D) arrays
        Points like those of each site.

    Examples
    --------
    >>> means, fits, fresh = estimated_sites(1, 3, np.random.default_rng(0), sticky, fit_kmeans)
    >>> means.shape, fits[0].means.shape, fits[0].points.shape, fresh[0].shape
    ((20, 6), (3, 6), (400, 6), (400, 6))
    """
    global_means = SPREAD * rng.standard_normal((COMPONENTS, D))
    A = 0.5 * rng.standard_normal((COMPONENTS, D, D))
    roots = np.asarray(np.linalg.cholesky(A @ A.transpose(0, 2, 1) + 0.5 * np.eye(D)), np.float64)
    fits, fresh = [], []
    for site in rng.spawn(J):
        held = site.choice(COMPONENTS, K_local, replace=False)
        means = global_means[held] + SITE_SHIFT * site.standard_normal((K_local, D))
        origin = sequence(site, K_local)
        points = _points(site, means[origin], roots[held[origin]])
        fits.append(fit(points, held[origin], K_local, seed=int(site.integers(2**31))))
        fresh.append(_points(site, means[origin], roots[held[origin]]))
    return global_means, fits, fresh


def _points(rng: np.random.Generator, means: NDArray[np.float64], roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """One point per mean, with covariance root root'."""
    return np.asarray(means + (roots @ rng.standard_normal((*means.shape, 1)))[:, :, 0])


def _majority(belongs: NDArray[np.float64], origin: NDArray[np.int64]) -> NDArray[np.int64]:
    """The true component of most points of each estimated one.

    A point belongs to its most probable component. A component can be the first choice of no point, or of as
    many points of one origin as of another: then, and only then, the probabilities decide.
    """
    names, column = np.unique(origin, return_inverse=True)
    true = np.eye(len(names))[column]
    chosen = np.eye(belongs.shape[1])[belongs.argmax(axis=1)]
    votes = chosen.T @ true + belongs.T @ true / (1 + len(origin))
    return np.asarray(names[votes.argmax(axis=1)], np.int64)


@contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing of fits that did not converge: sites send such models, and the sets must hold them."""
    from sklearn.exceptions import ConvergenceWarning

    logger = logging.getLogger("hmmlearn")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            yield
    finally:
        logger.setLevel(level)
