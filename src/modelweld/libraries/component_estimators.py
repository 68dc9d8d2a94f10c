"""What scikit-learn's decompositions share: how many rows there were, settings that decide `transform`, and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel


def rows_of(n: int | None, X: ArrayLike | None, known: Any = 0) -> int:
    """Rows that a model was fitted to: as told, counted, or as the model knows; 0 if nobody does."""
    if n is not None:
        return int(n)
    return int(known or 0) if X is None else int(np.shape(X)[0])


def settings_of(model: Any, names: Sequence[str]) -> dict[str, Any]:
    """The estimator's parameters of these names that are numbers or words."""
    given = model.get_params(deep=False)
    plain = (int, float, str, bool, type(None))
    return {name: given[name] for name in names if name in given and isinstance(given[name], plain)}


def fitted(local: LocalModel, like: str, K: int, **learned: Any) -> Any:
    """An estimator of the class called `like` with the model's settings, K components and what it learned."""
    from sklearn import decomposition

    cls = getattr(decomposition, like)
    settings = {name: value for name, value in local.facts["settings"].items() if name in cls().get_params(deep=False)}
    model = cls(n_components=K, **settings)
    for name, value in learned.items():
        setattr(model, name, value)
    model.n_features_in_ = np.shape(local.arrays["directions"])[1]
    if "feature" in local.coordinates:
        model.feature_names_in_ = np.array(local.coordinates["feature"], dtype=object)
    return model


def mean_of(local: LocalModel) -> Any:
    """The mean of all rows, zero where there is none."""
    return np.asarray(local.arrays.get("mean", np.zeros(np.shape(local.arrays["directions"])[1])))
