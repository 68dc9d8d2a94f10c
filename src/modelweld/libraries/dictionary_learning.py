"""scikit-learn's DictionaryLearning and MiniBatchDictionaryLearning; also what plain components are written as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components, vectors_of
from modelweld.libraries.component_estimators import fitted, rows_of, settings_of

if TYPE_CHECKING:
    from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning

SETTINGS = (
    "alpha",
    "fit_algorithm",
    "transform_algorithm",
    "transform_n_nonzero_coefs",
    "transform_alpha",
    "transform_max_iter",
    "split_sign",
    "positive_code",
    "positive_dict",
)
"""Those that decide what `transform` gives, and by which it can be fitted again."""


def read(
    model: DictionaryLearning | MiniBatchDictionaryLearning,
    *,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """The dictionary, `components_`: without signs, unless codes or entries must be positive.

    Parameters
    ----------
    model : fitted DictionaryLearning or MiniBatchDictionaryLearning
        Words of the dictionary that are all zeros are left out.
    n : int, optional
        Rows it was fitted to.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    return components(
        model.components_,
        signed=bool(model.positive_code or model.positive_dict),
        rows=rows_of(n, X),
        features=features,
        settings=settings_of(model, SETTINGS),
    )


def write(local: LocalModel, like: str) -> Any:
    """A DictionaryLearning or MiniBatchDictionaryLearning with these words."""
    vectors = vectors_of(local)
    return fitted(local, like, len(vectors), components_=vectors, error_=np.nan, n_iter_=0, n_steps_=0)
