"""scikit-learn's GaussianMixture, and BayesianGaussianMixture by its posterior means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import FEWEST_POINTS, diagonals, parameters
from modelweld.libraries.own_rows import doubt_fit
from modelweld.libraries.scaling import name_features


def read_gaussian(
    model: Any,
    *,
    n: int | None = None,
    counts: ArrayLike | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Weights, means and covariances; with the number of points also standard errors.

    Parameters
    ----------
    model : fitted GaussianMixture or BayesianGaussianMixture
        Components that a variational fit has emptied are left out.
    n : int, optional
        Number of points it was fitted on: a GaussianMixture forgot.
    counts : array (K,), optional
        Points behind each component, instead.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    weights = np.asarray(model.weights_, dtype=np.float64)
    remembers = hasattr(model, "mean_precision_")  # a variational fit adds its points to the precision of its means
    points = np.asarray(model.mean_precision_ - model.mean_precision_prior_) if remembers else None
    means = np.asarray(model.means_, dtype=np.float64)
    spreads = _spreads(np.asarray(model.covariances_, dtype=np.float64), model.covariance_type, means.shape)
    doubts = list[str]()
    if X is not None:
        shares = np.asarray(model.predict_proba(X))
        numbers = shares.sum(axis=0)
        if points is None and model.converged_:
            doubts += doubt_fit(np.asarray(X), shares, weights, means, diagonals(spreads))
    elif counts is not None:
        numbers = np.asarray(counts, dtype=np.float64)
    elif n is None and points is not None:
        numbers = points
    else:
        numbers = weights * (1 if n is None else n)
    if numbers.shape != weights.shape:
        raise InputError(f"counts must be one number per component, {len(weights)}; found shape {numbers.shape}.")
    used = np.ones(len(weights), dtype=bool) if points is None else points >= min(FEWEST_POINTS, points.max())
    return mixture(
        means[used],
        spreads[used],
        numbers[used],
        counted=points is not None or not (n is None and counts is None and X is None),
        features=features,
        facts={"doubts": doubts} if doubts else {},
    )


def _spreads(covariances: Array, kind: str, shape: tuple[int, ...]) -> Array:
    """Covariances (K, D, D) or variances (K, D) of any of scikit-learn's types."""
    if kind == "tied":
        return np.tile(covariances, (shape[0], 1, 1))
    return np.tile(covariances[:, None], (1, shape[1])) if kind == "spherical" else covariances


def write_gaussian(local: LocalModel, like: str) -> Any:
    """A GaussianMixture with diagonal covariances if all sites' are, else with full ones.

    Components of an atom that are spherical, or share one covariance, give one that is not and does not.
    """
    means, spreads, counts = parameters(local)
    kind = "full" if spreads.ndim == 3 else "diag"
    model = sklearn.mixture.GaussianMixture(len(means), covariance_type=kind)
    model.weights_ = counts / counts.sum()
    model.means_, model.covariances_ = means.copy(), spreads.copy()
    if kind == "full":
        factors = np.swapaxes(np.linalg.inv(np.linalg.cholesky(spreads)), -1, -2)
        model.precisions_cholesky_, model.precisions_ = factors, factors @ np.swapaxes(factors, -1, -2)
    else:
        model.precisions_cholesky_, model.precisions_ = 1 / np.sqrt(spreads), 1 / spreads
    model.converged_, model.n_iter_, model.lower_bound_ = True, 0, -np.inf
    return name_features(model, local, means.shape[1])
