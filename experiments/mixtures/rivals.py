"""Other ways to make K components of all sites' mixtures. All take (means, covariances, counts) and give the same."""

from __future__ import annotations

import warnings

import numpy as np

from modelweld.kinds.mixture_completion import merge_components

Mixture = tuple[np.ndarray, np.ndarray, np.ndarray]

DRAWS = 20_000  # fewer make sampling and refitting look worse than it is
ITERATIONS = 100  # of expectation-maximisation


def kmeans(parts: Mixture, K: int, seed: int) -> Mixture:
    """Means clustered, each worth its count; moments of what falls together."""
    from sklearn.cluster import KMeans

    labels = KMeans(K, n_init=10, random_state=seed).fit(parts[0], sample_weight=parts[2]).labels_
    return merge_components(*parts, np.unique(labels, return_inverse=True)[1])


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

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = GaussianMixture(K, reg_covar=RIDGE, max_iter=ITERATIONS, random_state=seed).fit(rows)
    return model.means_, model.covariances_, len(rows) * model.weights_
