"""Other ways to make K components of all sites' mixtures. All take (means, covariances, counts) and give the same."""

from __future__ import annotations

import warnings

import numpy as np

from modelweld.kinds.mixture_completion import merge_components

Mixture = tuple[np.ndarray, np.ndarray, np.ndarray]

DRAWS = 20_000  # fewer make sampling and refitting look worse than it is
ITERATIONS = 100  # of expectation-maximisation
CTD_STARTS = 5


def kmeans(parts: Mixture, K: int, seed: int) -> Mixture:
    """Means clustered, each worth its count; moments of what falls together."""
    return merge_components(*parts, _kmeans_labels(parts, K, seed))


def _kmeans_labels(parts: Mixture, K: int, seed: int, starts: int = 10) -> np.ndarray:
    from sklearn.cluster import KMeans

    labels = KMeans(K, n_init=starts, random_state=seed).fit(parts[0], sample_weight=parts[2]).labels_
    return np.unique(labels, return_inverse=True)[1]


def transport(parts: Mixture, K: int, seed: int) -> Mixture:
    """Composite transportation divergence with KL cost (Zhang and Chen 2020), by majorisation-minimisation.

    Every component goes to the nearest of K by Kullback-Leibler divergence, and these become the moments of what
    they were given, until nothing moves. Starts from k-means, the smallest divergence wins.
    """
    best, lowest = None, np.inf
    for start in range(CTD_STARTS):
        labels = _kmeans_labels(parts, K, seed + start, starts=1)
        while True:
            found = merge_components(*parts, labels)
            cost = divergences(parts, found)
            new = np.unique(cost.argmin(axis=1), return_inverse=True)[1]
            if np.array_equal(new, labels):
                break
            labels = new
        total = float(parts[2] @ cost.min(axis=1))
        if total < lowest:
            best, lowest = found, total
    return best


def divergences(of: Mixture, to: Mixture) -> np.ndarray:
    """Kullback-Leibler divergences (N, K) of Gaussians from others.

    Examples
    --------
    >>> one = np.zeros((1, 1)), np.ones((1, 1, 1)), np.ones(1)
    >>> divergences(one, (np.full((1, 1), 2.0), np.ones((1, 1, 1)), np.ones(1))).tolist()
    [[2.0]]
    """
    precision = np.linalg.inv(to[1])
    off = of[0][:, None] - to[0]
    far = np.einsum("nki,kij,nkj->nk", off, precision, off) + np.einsum("kij,nji->nk", precision, of[1])
    return (far - of[0].shape[1] + np.linalg.slogdet(to[1])[1] - np.linalg.slogdet(of[1])[1][:, None]) / 2


def refitted(parts: Mixture, K: int, seed: int) -> Mixture:
    """Rows drawn from the union, and a mixture fitted to them (as FedGenGMM does)."""
    means, covariances, counts = parts
    rng = np.random.default_rng(seed)
    at = rng.choice(len(counts), DRAWS, p=counts / counts.sum())
    noise = np.linalg.cholesky(covariances)[at] @ rng.standard_normal((DRAWS, means.shape[1], 1))
    return em(means[at] + noise[:, :, 0], K, seed)


def em(rows: np.ndarray, K: int, seed: int) -> Mixture:
    """A mixture of rows by expectation-maximisation: of all sites' rows, if they may be seen."""
    from sets import RIDGE
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture(K, reg_covar=RIDGE, max_iter=ITERATIONS, random_state=seed).fit(rows)
    return model.means_, model.covariances_, len(rows) * model.weights_
