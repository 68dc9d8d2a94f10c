"""scikit-learn's GaussianMixture, BayesianGaussianMixture (posterior means), KMeans, MiniBatchKMeans and GaussianNB.

K-means is a mixture whose components have one variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.class_table import class_table
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import diagonals, parameters
from modelweld.libraries.scaling import name_features

UNUSED = 1e-3
"""Share of a component (of a point, where points are counted) below which a variational fit has emptied it."""


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
    if X is not None:
        numbers = np.asarray(model.predict_proba(X)).sum(axis=0)
    elif counts is not None:
        numbers = np.asarray(counts, dtype=np.float64)
    elif n is None and _remembers(model):
        numbers = np.asarray(model.mean_precision_ - model.mean_precision_prior_, dtype=np.float64)
    else:
        numbers = weights * (1 if n is None else n)
    if numbers.shape != weights.shape:
        raise InputError(f"counts must be one number per component, {len(weights)}; found shape {numbers.shape}.")
    means = np.asarray(model.means_, dtype=np.float64)
    spreads = _spreads(np.asarray(model.covariances_, dtype=np.float64), model.covariance_type, means.shape)
    used = weights > UNUSED if _remembers(model) else np.ones(len(weights), dtype=bool)
    return mixture(
        means[used],
        spreads[used],
        numbers[used],
        counted=_remembers(model) or not (n is None and counts is None and X is None),
        features=features,
    )


def _remembers(model: Any) -> bool:
    """Whether the model knows its points: a variational fit adds them to the precision of its means."""
    return hasattr(model, "mean_precision_")


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


def read_kmeans(
    model: Any,
    *,
    counts: ArrayLike | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Centres, points behind each, and one variance from the inertia.

    Parameters
    ----------
    model : fitted KMeans or MiniBatchKMeans
        Its own labels give the counts.
    counts : array (K,), optional
        Points behind each centre, if the model was not fitted on all of them.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    K, D = centres.shape
    labels = model.labels_ if X is None else model.predict(X)
    numbers = np.bincount(labels, minlength=K).astype(np.float64) if counts is None else np.asarray(counts, dtype=float)
    within = float(model.inertia_) / (max(len(labels) - K, 1) * D)
    return mixture(centres, np.full((K, D), within), numbers, counted=True, features=features)


def write_kmeans(local: LocalModel, like: str) -> Any:
    """A KMeans or MiniBatchKMeans with these centres."""
    centres = np.ascontiguousarray(local.arrays["means"])
    model = getattr(sklearn.cluster, like)(len(centres), n_init=1)
    model.cluster_centers_ = centres
    model._n_threads = 1
    model.n_iter_ = 0
    _, spreads, counts = parameters(local)
    model.inertia_ = float((counts * diagonals(spreads).sum(axis=1)).sum())
    return name_features(model, local, centres.shape[1])


def read_bayes(model: Any, *, features: Sequence[str] | None = None) -> LocalModel:
    """Means, variances and numbers of rows of each class.

    Parameters
    ----------
    model : fitted GaussianNB
        It remembers its counts. Classes are aligned by their names.
    features : sequence of str, optional
        Names of the features.
    """
    labels = np.asarray(model.classes_).tolist()
    names = [str(label) for label in labels]
    means, variances, counts = (np.asarray(x, dtype=np.float64) for x in (model.theta_, model.var_, model.class_count_))
    facts = {"labels": dict(zip(names, labels, strict=True))}
    return class_table(means, variances, counts, names, features=features, facts=facts)


def write_bayes(local: LocalModel, like: str) -> Any:
    """A GaussianNB over all classes that any site knows."""
    model = sklearn.naive_bayes.GaussianNB()
    model.theta_, model.var_, model.class_count_ = (
        np.array(local.arrays[name]) for name in ("means", "variances", "counts")
    )
    model.class_prior_ = model.class_count_ / model.class_count_.sum()
    model.classes_ = np.array([local.facts["labels"][name] for name in local.coordinates["class"]])
    model.epsilon_ = 0.0
    return name_features(model, local, model.theta_.shape[1])
