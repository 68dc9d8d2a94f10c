"""scikit-learn's FactorAnalysis: loadings of factors of variance one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components, vectors_of
from modelweld.libraries.component_estimators import fitted, mean_of, rows_of, settings_of

if TYPE_CHECKING:
    from sklearn.decomposition import FactorAnalysis

SETTINGS = ("tol", "max_iter", "svd_method", "rotation")
"""Those by which it can be fitted again."""


def read(
    model: FactorAnalysis,
    *,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Loadings without signs, the mean, and the variance of each feature that factors leave.

    Parameters
    ----------
    model : fitted FactorAnalysis
        Without a `rotation`, factors of about the same strength are turned into each other by chance, and match no
        other site's: fit it with ``rotation="varimax"``.
    n : int, optional
        Rows it was fitted to.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    return components(
        model.components_,
        mean=model.mean_,
        noise=model.noise_variance_,
        rows=rows_of(n, X),
        features=features,
        settings=settings_of(model, SETTINGS),
    )


def write(local: LocalModel, like: str) -> Any:
    """A FactorAnalysis with these loadings."""
    vectors, D = vectors_of(local), np.shape(local.arrays["directions"])[1]
    noise = np.asarray(local.arrays.get("noise", np.ones(D)))
    return fitted(
        local,
        like,
        len(vectors),
        components_=vectors,
        mean_=mean_of(local),
        noise_variance_=noise,
        loglike_=[],
        n_iter_=0,
    )
