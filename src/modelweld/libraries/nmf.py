"""scikit-learn's NMF and MiniBatchNMF: factors without negative entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components, vectors_of
from modelweld.libraries.component_estimators import fitted, rows_of, settings_of

if TYPE_CHECKING:
    from sklearn.decomposition import NMF, MiniBatchNMF

SETTINGS = ("solver", "beta_loss", "tol", "max_iter", "alpha_W", "alpha_H", "l1_ratio", "transform_max_iter")
"""Those that decide what `transform` gives."""


def read(
    model: NMF | MiniBatchNMF,
    *,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """The factors `components_`; those that were given up, all zeros, are left out.

    Parameters
    ----------
    model : fitted NMF or MiniBatchNMF
        Its factors are directions that have signs.
    n : int, optional
        Rows it was fitted to.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    return components(
        model.components_,
        signed=True,
        rows=rows_of(n, X),
        features=features,
        settings=settings_of(model, SETTINGS),
    )


def write(local: LocalModel, like: str) -> Any:
    """An NMF or MiniBatchNMF with these factors."""
    vectors = np.maximum(vectors_of(local), 0.0)
    model = fitted(
        local,
        like,
        len(vectors),
        components_=vectors,
        n_components_=len(vectors),
        n_iter_=0,
        reconstruction_err_=np.nan,
    )
    model._check_params(vectors)  # sets what `transform` of MiniBatchNMF reads
    model._n_components = len(vectors)
    return model
