"""Sites that estimate their local models from points of their own: Gaussian mixtures and hidden Markov models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.demo.simulate import Seed, Simulated
from shared.local_fits import LocalFit, fit_hmm, fit_mixture

COMPONENTS, D, SPREAD_SD, SITE_SHIFT_SD = 20, 6, 4.0, 0.5
"""Global components, their dimension, the deviation of their means, and that of a site's means about them."""

FEWEST_POINTS, MOST_POINTS = 300, 2000
"""Points of a site that draws them independently."""

STEPS, STAY = 400, 0.95
"""Length of a site's sequence, and the probability to stay in a state: twenty steps on average."""


class Fit(Protocol):
    """How a site estimates its model: `fit_mixture`, `fit_hmm` or `fit_kmeans`."""

    def __call__(self, points: Array, origin: Index, L: int, *, seed: int) -> LocalFit:
        """A local model of L components."""


def estimated_mixtures(J: int = 10, K_local: int = 8, *, seed: Seed = 0) -> Simulated:
    """Draw sites that estimate Gaussian mixtures from 300 to 2,000 points; see `estimated_sites`.

    Parameters
    ----------
    J : int
        Number of sites.
    K_local : int
        Components of each site, at most 20; its model is told their number.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> estimated_mixtures(1, 3).covariances[0].shape
    (3, 6, 6)
    """
    return sent_by(*estimated_sites(J, K_local, np.random.default_rng(seed), independent, fit_mixture))


def estimated_hmms(J: int = 10, K_local: int = 8, *, seed: Seed = 0) -> Simulated:
    """Draw sites that estimate hidden Markov models of 2 to 20 states from one sequence of 400 steps, likewise.

    Needs hmmlearn: ``pip install "modelweld[hmm]"``.

    Examples
    --------
    >>> estimated_hmms(1, 3).covariances[0].shape
    (3, 6, 6)
    """
    return sent_by(*estimated_sites(J, K_local, np.random.default_rng(seed), sticky, fit_hmm))


def independent(rng: np.random.Generator, K: int) -> Index:
    """Components of independent points: Dirichlet(1) weights, 300 to 2,000 points (log-uniform).

    Examples
    --------
    >>> 300 <= len(independent(np.random.default_rng(0), 8)) <= 2000
    True
    """
    size = int(np.exp(rng.uniform(np.log(FEWEST_POINTS), np.log(MOST_POINTS))))
    return rng.choice(K, size, p=rng.dirichlet(np.ones(K)))


def sticky(rng: np.random.Generator, K: int) -> Index:
    """States (K of them, at least 2) of 400 steps: uniform start; stays with probability .95, else moves uniformly.

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
    sequence: Callable[[np.random.Generator, int], Index],
    fit: Fit,
) -> tuple[Array, list[LocalFit], list[Array]]:
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
    means : array (20, 6)
        True global means.
    fits : list of LocalFit
        One per site.
    fresh : list of arrays (n_j, D)
        Points like those of each site.

    Examples
    --------
    >>> means, fits, fresh = estimated_sites(1, 3, np.random.default_rng(0), sticky, fit_mixture)
    >>> means.shape, fits[0].means.shape, fits[0].points.shape, fresh[0].shape
    ((20, 6), (3, 6), (400, 6), (400, 6))
    """
    global_means = SPREAD_SD * rng.standard_normal((COMPONENTS, D))
    A = 0.5 * rng.standard_normal((COMPONENTS, D, D))
    roots = np.asarray(np.linalg.cholesky(A @ A.transpose(0, 2, 1) + 0.5 * np.eye(D)), np.float64)
    fits, fresh = [], []
    for site in rng.spawn(J):
        held = site.choice(COMPONENTS, K_local, replace=False)
        means = global_means[held] + SITE_SHIFT_SD * site.standard_normal((K_local, D))
        origin = sequence(site, K_local)
        points = _points(site, means[origin], roots[held[origin]])
        fits.append(fit(points, held[origin], K_local, seed=int(site.integers(2**31))))
        fresh.append(_points(site, means[origin], roots[held[origin]]))
    return global_means, fits, fresh


def _points(rng: np.random.Generator, means: Array, roots: Array) -> Array:
    """One point per mean, with covariance root root'."""
    return np.asarray(means + (roots @ rng.standard_normal((*means.shape, 1)))[:, :, 0])


def sent_by(atoms: Array, fits: list[LocalFit], fresh: list[Array] | None = None) -> Simulated:
    """What sites with these local models send."""
    return Simulated(
        values=[fit.means for fit in fits],
        truth=[fit.truth for fit in fits],
        atoms=atoms,
        counts=[fit.counts for fit in fits],
        covariances=[fit.covariances for fit in fits if fit.covariances is not None] or None,
        points=[fit.points for fit in fits],
        origin=[fit.origin for fit in fits],
        assigned=[fit.assigned for fit in fits],
        fresh=fresh,
    )
