"""Local models that simulated sites estimate from points: k-means, Gaussian mixtures, hidden Markov models.

An estimated component has no true atom by construction; it is given that of most of its points. It may be two atoms
glued together or one of two pieces of an atom, which is what makes these sites hard to fuse.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array, Index

if TYPE_CHECKING:
    from hmmlearn.hmm import GaussianHMM

KMEANS_STARTS = 10
"""The default of scikit-learn when the paper was written."""

STARTS, ITERATIONS = 3, 100
"""Of mixtures and hidden Markov models: enough that a poor start is rare, and models are not perfect."""

RIDGE = 0.01
"""Keeps a component's variances off zero."""


@dataclass(frozen=True, eq=False)
class LocalFit:
    """A local model, and the points it was estimated from.

    Attributes
    ----------
    means : array (L_j, D)
        Centres of the components.
    counts : array (L_j,)
        (Expected) number of points behind each component.
    truth : array (L_j,)
        The true component that most of a component's points come from.
    points : array (n_j, D)
        What the site saw.
    origin : array (n_j,)
        The true component of each point.
    assigned : array (n_j,)
        The component that the local model gives each point to.
    covariances : array (L_j, D, D), optional
        Covariance of each component.

    Examples
    --------
    >>> fit = fit_kmeans(np.array([[0.0], [0.2], [9.0]]), np.array([4, 4, 6]), 2)
    >>> fit.truth[fit.assigned]
    array([4, 4, 6])
    """

    means: Array
    counts: Array
    truth: Index
    points: Array
    origin: Index
    assigned: Index
    covariances: Array | None = None


def fit_kmeans(points: Array, origin: Index, L: int, *, seed: int = 0) -> LocalFit:
    """Centres of k-means, told their number.

    Parameters
    ----------
    points : array (n, D)
        What the site saw.
    origin : array (n,)
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


def fit_mixture(points: Array, origin: Index, L: int, *, seed: int = 0) -> LocalFit:
    """Gaussian mixture with full covariances, told its number of components; arguments as for `fit_kmeans`.

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


def fit_hmm(points: Array, origin: Index, L: int, *, seed: int = 0) -> LocalFit:
    """Gaussian hidden Markov model of one sequence, full covariances, told its number of states.

    Transitions have a Dirichlet prior of 1, plus 5 for staying; of three starts the most likely wins. Points
    are assigned by the most likely path.
    hmmlearn applies its least variance to the start only, so a state of few points can end singular.
    Arguments are those of `fit_kmeans`; the points in their order in time.

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


def _fitted_likelihood(model: GaussianHMM, points: Array) -> float:
    """Log likelihood after fitting; none when a state lost its points on the way, about one start in 300."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(model.fit(points).score(points))
    except ValueError:  # hmmlearn's word for a covariance that is singular or not a number
        return -np.inf


def _majority(belongs: Array, origin: Index) -> Index:
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
