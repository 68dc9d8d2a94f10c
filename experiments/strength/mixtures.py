"""Gaussian mixtures as local models and as what is fused of them: union, moments by label, log likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Mixture:
    """Components with the number of points behind them: `counts` (K,), `means` (K, D), `covariances` (K, D, D)."""

    counts: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


def union(models: list[Mixture]) -> Mixture:
    """All components of all models, none merged."""
    return Mixture(*(np.concatenate([getattr(m, name) for m in models]) for name in Mixture.__dataclass_fields__))


def merged(parts: Mixture, labels: np.ndarray) -> Mixture:
    """One component per label, with the count, mean and covariance of all points behind its parts.

    Examples
    --------
    >>> two = Mixture(np.array([1.0, 3.0]), np.array([[0.0], [4.0]]), np.ones((2, 1, 1)))
    >>> one = merged(two, np.zeros(2, int))
    >>> one.counts, one.means.ravel(), one.covariances.ravel()
    (array([4.]), array([3.]), array([4.]))
    """
    _, labels = np.unique(labels, return_inverse=True)
    share = np.zeros((labels.max() + 1, len(labels)))
    share[labels, np.arange(len(labels))] = parts.counts
    counts = share.sum(axis=1)
    share /= counts[:, None]
    means = share @ parts.means
    off = parts.means - means[labels]
    squares = parts.covariances + off[:, :, None] * off[:, None, :]
    return Mixture(counts, means, np.einsum("kl,lij->kij", share, squares))


def log_likelihood(mixture: Mixture, points: np.ndarray) -> np.ndarray:
    """Log density of every point.

    Examples
    --------
    >>> one = Mixture(np.array([7.0]), np.zeros((1, 2)), np.eye(2)[None])
    >>> log_likelihood(one, np.zeros((1, 2))).round(3)  # -log 2 pi
    array([-1.838])
    """
    whiten = np.linalg.inv(np.linalg.cholesky(mixture.covariances))
    heights = np.log(mixture.counts / mixture.counts.sum()) + np.linalg.slogdet(whiten)[1]
    logs = np.empty((len(heights), len(points)))
    for k, (height, mean, W) in enumerate(zip(heights, mixture.means, whiten, strict=True)):
        standard = W @ points.T - (W @ mean)[:, None]
        logs[k] = height - 0.5 * np.einsum("dn,dn->n", standard, standard)
    top = logs.max(axis=0)
    total = np.exp(np.subtract(logs, top, out=logs), out=logs).sum(axis=0)
    return np.asarray(top + np.log(total) - 0.5 * points.shape[1] * np.log(2 * np.pi))
