"""scikit-learn's FastICA: matched are the columns of the mixing matrix, what a source looks like in the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components, vectors_of
from modelweld.libraries.component_estimators import fitted, mean_of, rows_of, settings_of

if TYPE_CHECKING:
    from sklearn.decomposition import FastICA

SETTINGS = ("algorithm", "whiten", "fun", "tol", "max_iter", "whiten_solver")
"""Those by which it can be fitted again."""


def read(
    model: FastICA,
    *,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """The columns of `mixing_`, without signs, and the mean.

    Parameters
    ----------
    model : fitted FastICA
        Rows of `components_`, by which sources are computed, depend on all sources at once and are not compared.
    n : int, optional
        Rows it was fitted to.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    return components(
        np.asarray(model.mixing_).T,
        mean=getattr(model, "mean_", None),
        rows=rows_of(n, X),
        features=features,
        settings=settings_of(model, SETTINGS),
    )


def write(local: LocalModel, like: str) -> Any:
    """A FastICA with these components; sources are computed by least squares (the pseudo-inverse)."""
    vectors = vectors_of(local)
    unmixing = np.linalg.pinv(vectors.T)
    return fitted(
        local,
        like,
        len(vectors),
        mixing_=vectors.T.copy(),
        components_=unmixing,
        _unmixing=unmixing,
        mean_=mean_of(local),
        n_iter_=0,
    )
