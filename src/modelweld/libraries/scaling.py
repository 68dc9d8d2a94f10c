"""What models of scikit-learn share: scalers before them, which are undone at the site, and names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import kind_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline


def unscale(
    pipeline: Pipeline, read: Callable[..., LocalModel], features: Sequence[str] | None, facts: dict[str, object]
) -> LocalModel:
    """The model at the end of a Pipeline, in the units of the data that went in."""
    *steps, (_, last) = pipeline.steps
    scale: Array | float = 1.0
    offset: Array | float = 0.0
    undone = []
    X = facts.get("X")
    for name, step in steps:
        if step in (None, "passthrough"):
            continue
        if type(step).__name__ == "CountVectorizer":  # no scaling: it says what the features are
            features = step.get_feature_names_out() if features is None else features
            X = None if X is None else step.transform(X)
            continue
        a, b = _affine(step, name)
        scale, offset = scale * a, scale * b + offset  # raw = scale * (a y + b) + offset
        undone.append(type(step).__name__)
        X = None if X is None else step.transform(X)
    names = features if features is not None else getattr(pipeline, "feature_names_in_", None)
    scaled = read(last, features=names, **({**facts, "X": X} if X is not None else facts))
    if not undone:
        return scaled
    D = int(getattr(last, "n_features_in_", np.size(scale)))
    raw = (np.broadcast_to(scale, D).astype(float), np.broadcast_to(offset, D).astype(float))
    local = kind_of([scaled]).rescale(scaled, *raw)
    return local.with_(facts={**local.facts, "undone": undone})


def name_features(model: Any, local: LocalModel, D: int) -> Any:
    """The model, written from parameters, with the number of its columns and, where they have some, their names."""
    model.n_features_in_ = D
    if "feature" in local.coordinates:
        model.feature_names_in_ = np.array(local.coordinates["feature"], dtype=object)
    return model


def _affine(step: BaseEstimator, name: str) -> tuple[Array | float, Array | float]:
    """Scale and offset of raw values, given scaled ones, feature by feature."""
    known = type(step).__name__
    if known == "StandardScaler":
        return (1.0 if step.scale_ is None else step.scale_), (
            0.0 if step.mean_ is None or not step.with_mean else step.mean_
        )
    if known == "RobustScaler":
        return (1.0 if step.scale_ is None else step.scale_), (0.0 if step.center_ is None else step.center_)
    if known == "MaxAbsScaler":
        return step.scale_, 0.0
    if known == "MinMaxScaler":
        return 1 / step.scale_, -step.min_ / step.scale_
    raise InputError(
        f"step {name!r} of the pipeline, a {known}, is no feature-wise scaling and cannot be undone: fit the model on "
        "features that all sites share, or give its parameters as a LocalModel."
    )
