"""scikit-learn's SparsePCA and MiniBatchSparsePCA: components of few features, not at right angles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components, vectors_of
from modelweld.libraries.component_estimators import fitted, mean_of, rows_of, settings_of

if TYPE_CHECKING:
    from sklearn.decomposition import SparsePCA

SETTINGS = ("alpha", "ridge_alpha", "method")
"""Those that decide what `transform` gives, and by which it can be fitted again."""


def read(
    model: SparsePCA,
    *,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Components without signs, and the mean.

    Parameters
    ----------
    model : fitted SparsePCA or MiniBatchSparsePCA
        Components that the penalty left nothing of are left out.
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
        rows=rows_of(n, X),
        features=features,
        settings=settings_of(model, SETTINGS),
    )


def write(local: LocalModel, like: str) -> Any:
    """A SparsePCA or MiniBatchSparsePCA with these components."""
    vectors = vectors_of(local)
    return fitted(
        local,
        like,
        len(vectors),
        components_=vectors,
        n_components_=len(vectors),
        mean_=mean_of(local),
        error_=np.nan,
        n_iter_=0,
    )
