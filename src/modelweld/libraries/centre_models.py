"""scikit-learn's KMeans, MiniBatchKMeans and GaussianNB: one centre per cluster or class.

K-means is a mixture whose components have one variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.class_table import class_table
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import diagonals, parameters
from modelweld.libraries.scaling import name_features


def read_kmeans(
    model: Any, *, counts: ArrayLike | None = None, X: ArrayLike | None = None, features: Sequence[str] | None = None
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
