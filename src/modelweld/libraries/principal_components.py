"""scikit-learn's PCA, IncrementalPCA and TruncatedSVD: principal axes, whose lengths are deviations along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.kinds.components import components
from modelweld.libraries.component_estimators import fitted, mean_of, rows_of, settings_of

if TYPE_CHECKING:
    from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD

SETTINGS = ("whiten",)
"""Those that decide what `transform` gives."""


def read(
    model: PCA | IncrementalPCA | TruncatedSVD,
    *,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Axes, the deviations along them, the mean, and the variance across them.

    Parameters
    ----------
    model : fitted PCA, IncrementalPCA or TruncatedSVD
        Of the last, which centres nothing, lengths are singular values, divided by the root of the number of rows where
        that is known.
    n : int, optional
        Rows it was fitted to; PCA and IncrementalPCA know it.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    rows = rows_of(n, X, getattr(model, "n_samples_", getattr(model, "n_samples_seen_", 0)))
    axes = np.asarray(model.components_, dtype=np.float64)
    centred = hasattr(model, "mean_")
    lengths = np.sqrt(model.explained_variance_) if centred else model.singular_values_ / np.sqrt(max(rows, 1))
    return components(
        axes * np.asarray(lengths)[:, None],
        orthogonal=True,
        mean=model.mean_ if centred else None,
        noise=np.full(axes.shape[1], float(model.noise_variance_)) if centred else None,
        rows=rows,
        features=features,
        settings=settings_of(model, SETTINGS),
    )


def write(local: LocalModel, like: str) -> Any:
    """A PCA, IncrementalPCA or TruncatedSVD with these axes; atoms that are not quite orthogonal are made so.

    What a TruncatedSVD explains of the variance does not follow from its axes (NaN).
    """
    directions, lengths = (np.asarray(local.arrays[name]) for name in ("directions", "lengths"))
    order = np.argsort(-lengths, kind="stable")
    axes, variances, rows = _orthonormal(directions)[order], lengths[order] ** 2, int(local.facts["rows"])
    K, D = axes.shape
    noise = float(np.asarray(local.arrays["noise"]).mean()) if "noise" in local.arrays else 0.0
    if like == "TruncatedSVD":
        unknown = np.full(K, np.nan)
        learned = {"explained_variance_": unknown, "explained_variance_ratio_": unknown}
        return fitted(local, like, K, components_=axes, singular_values_=np.sqrt(variances * max(rows, 1)), **learned)
    return fitted(
        local,
        like,
        K,
        components_=axes,
        n_components_=K,
        mean_=mean_of(local),
        explained_variance_=variances,
        explained_variance_ratio_=variances / (variances.sum() + (D - K) * noise),
        singular_values_=np.sqrt(variances * max(rows - 1, 0)),
        noise_variance_=noise,
        n_samples_=rows,
        n_samples_seen_=rows,
    )


def _orthonormal(directions: Array) -> Array:
    """The nearest orthonormal rows."""
    K, D = directions.shape
    if K > D:
        raise InputError(f"{K} axes do not fit into {D} dimensions at right angles: fusion.model(how='covariances').")
    if np.allclose(directions @ directions.T, np.eye(K), rtol=0, atol=1e-12):
        return directions
    left, _, right = np.linalg.svd(directions, full_matrices=False)
    return np.asarray(left @ right)
