"""scikit-learn's KMeans and MiniBatchKMeans: a mixture whose components have one variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import diagonals, parameters
from modelweld.libraries.scaling import name_features

if TYPE_CHECKING:
    from sklearn.cluster import KMeans, MiniBatchKMeans


def read(
    model: KMeans | MiniBatchKMeans,
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


def write(local: LocalModel, like: str) -> Any:
    """A KMeans or MiniBatchKMeans with these centres."""
    from sklearn import cluster

    centres = np.ascontiguousarray(local.arrays["means"])
    model = getattr(cluster, like)(len(centres), n_init=1)
    model.cluster_centers_ = centres
    model._n_threads = 1
    model.n_iter_ = 0
    _, spreads, counts = parameters(local)
    model.inertia_ = float((counts * diagonals(spreads).sum(axis=1)).sum())
    return name_features(model, local, centres.shape[1])
