"""Runnalls' greedy merging (2007) of a mixture: always the pair whose merging costs least.

    B(i, j) = [(w_i + w_j) log|P_ij| - w_i log|P_i| - w_j log|P_j|] / 2

bounds what the merged mixture loses in Kullback-Leibler divergence; P_ij is the covariance of the pair's points.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from mixtures import Mixture


def runnalls(parts: Mixture, sizes: Iterable[int]) -> dict[int, np.ndarray]:
    """Labels of the components, merged down to each of the sizes on one way down.

    Examples
    --------
    >>> four = Mixture(np.ones(4), np.array([[0.0], [9.0], [1.0], [5.0]]), np.ones((4, 1, 1)))
    >>> {K: labels.tolist() for K, labels in runnalls(four, [3, 2]).items()}
    {3: [0, 1, 0, 3], 2: [0, 1, 0, 1]}
    """
    weights, means, covariances = parts.counts.copy(), parts.means.copy(), parts.covariances.copy()
    labels, alive = np.arange(len(weights)), np.ones(len(weights), bool)
    logdets = np.linalg.slogdet(covariances)[1]
    cost = np.full((len(weights), len(weights)), np.inf)
    for i in range(len(weights) - 1):
        cost[i, i + 1 :] = _cost(weights, means, covariances, logdets, i, np.arange(i + 1, len(weights)))
    wanted, found = set(sizes), {}
    for size in range(len(weights), 0, -1):
        if size in wanted:
            found[size] = labels.copy()
        if size == 1 or size <= min(wanted):
            break
        i, j = np.unravel_index(cost.argmin(), cost.shape)
        w = weights[[i, j]] / weights[[i, j]].sum()
        covariances[i] = _pair(w[0], w[1], means[i], means[j], covariances[i], covariances[j])
        weights[i], means[i] = weights[i] + weights[j], w @ means[[i, j]]
        logdets[i] = np.linalg.slogdet(covariances[i])[1]
        labels[labels == j], alive[j] = i, False
        cost[j], cost[:, j] = np.inf, np.inf
        others = np.flatnonzero(alive & (np.arange(len(alive)) != i))
        fresh = _cost(weights, means, covariances, logdets, i, others)
        cost[np.minimum(i, others), np.maximum(i, others)] = fresh
    return found


def _cost(
    weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, logdets: np.ndarray, i: int, others: np.ndarray
) -> np.ndarray:
    """B(i, j) for all j of `others`."""
    both = weights[i] + weights[others]
    own, theirs = weights[i] / both, weights[others] / both
    pairs = _pair(
        own[:, None, None], theirs[:, None, None], means[i], means[others], covariances[i], covariances[others]
    )
    alone = weights[i] * logdets[i] + weights[others] * logdets[others]
    return np.asarray(0.5 * (both * np.linalg.slogdet(pairs)[1] - alone))


def _pair(
    own: np.ndarray, theirs: np.ndarray, mean: np.ndarray, means: np.ndarray, P: np.ndarray, Ps: np.ndarray
) -> np.ndarray:
    """Covariance of the points behind a pair, whose shares of the points are `own` and `theirs`."""
    off = means - mean
    return np.asarray(own * P + theirs * Ps + own * theirs * off[..., :, None] * off[..., None, :])
