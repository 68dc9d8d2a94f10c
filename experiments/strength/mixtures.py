"""Gaussian mixtures as local models and as what is fused of them: union, moments by label, log likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.kinds import mixture_completion


class Mixture(NamedTuple):
    """Components with the number of points behind them: `means` (K, D), `covariances` (K, D, D), `counts` (K,)."""

    means: np.ndarray
    covariances: np.ndarray
    counts: np.ndarray


def union(models: list[Mixture]) -> Mixture:
    """All components of all models, none merged."""
    return Mixture(*(np.concatenate(parts) for parts in zip(*models, strict=True)))


def merged(parts: Mixture, labels: np.ndarray) -> Mixture:
    """One component per label, with the count, mean and covariance of all points behind its parts."""
    return Mixture(*mixture_completion.merge_components(*parts, np.unique(labels, return_inverse=True)[1]))


def log_likelihood(mixture: Mixture, points: np.ndarray) -> np.ndarray:
    """Log density of every point.

    Examples
    --------
    >>> one = Mixture(np.zeros((1, 2)), np.eye(2)[None], np.array([7.0]))
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
