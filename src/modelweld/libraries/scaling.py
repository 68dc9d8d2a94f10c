"""What models of scikit-learn share: scalers before them, which are undone at the site, and names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import kind_of
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import parameters

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline


PROJECTIONS = ("PCA", "IncrementalPCA")
"""Steps with orthogonal axes, which know how far rows lie from them on average."""


def unscale(
    pipeline: Pipeline, read: Callable[..., LocalModel], features: Sequence[str] | None, facts: dict[str, object]
) -> LocalModel:
    """The model at the end of a Pipeline, in the units of the data that went in."""
    *steps, (_, last) = pipeline.steps
    undone, X = [], facts.get("X")
    for name, step in steps:
        if step in (None, "passthrough"):
            continue
        if type(step).__name__ == "CountVectorizer":  # no scaling: it says what the features are
            features = step.get_feature_names_out() if features is None else features
        else:
            undone.append((step, None if type(step).__name__ in PROJECTIONS else _affine(step, name)))
        X = None if X is None else step.transform(X)
    names = features if features is not None else getattr(pipeline, "feature_names_in_", None)
    projected = any(raw is None for _, raw in undone)
    local = read(last, features=None if projected else names, **({**facts, "X": X} if X is not None else facts))
    for step, raw in reversed(undone):
        if raw is None:
            local = _unproject(local, step, names)
        else:
            D = int(step.n_features_in_)
            local = kind_of([local]).rescale(local, *(np.broadcast_to(x, D).astype(float) for x in raw))
    done = [type(step).__name__ for step, _ in undone]
    return local.with_(facts={**local.facts, "undone": done}) if done else local


def _unproject(local: LocalModel, step: Any, features: Sequence[str] | None) -> LocalModel:
    """A mixture of principal components as one of the features: what a projection has lost, it does not know.

    Across its axes rows have the mean variance that it left, and so have means beside their standard errors.
    """
    if local.kind != "mixture":
        raise InputError(f"a {type(step).__name__} before a {local.kind} cannot be undone: fit it without.")
    means, spreads, counts = parameters(local)
    axes, left = np.asarray(step.components_, dtype=np.float64), float(step.noise_variance_)
    long = axes * np.sqrt(step.explained_variance_)[:, None] if step.whiten else axes
    across = np.eye(axes.shape[1]) - axes.T @ axes
    full = spreads if spreads.ndim == 3 else spreads[:, None, :] * np.eye(spreads.shape[1])
    wide, counted = long.T @ full @ long + left * across, bool(local.facts["counted"])
    found = mixture(means @ long + step.mean_, wide, counts, counted=counted, features=features)
    errors = {name: np.asarray(v) + left * np.maximum(np.diag(across), 0) for name, v in found.variance.items()}
    return found.with_(variance=errors, facts=local.facts, site=local.site)


def name_features(model: Any, local: LocalModel, D: int) -> Any:
    """The model, written from parameters, with the number of its columns and, where they have some, their names."""
    model.n_features_in_ = D
    if "feature" in local.coordinates:
        model.feature_names_in_ = np.array(local.coordinates["feature"], dtype=object)
    return model


def _affine(step: BaseEstimator, name: str) -> tuple[Array | float, Array | float]:
    """Scale and offset of raw values, given scaled ones, feature by feature."""
    known = type(step).__name__
    if known == "MinMaxScaler":
        return 1 / step.scale_, -step.min_ / step.scale_
    if known in ("StandardScaler", "RobustScaler", "MaxAbsScaler"):
        centre = step.mean_ if known == "StandardScaler" and step.with_mean else getattr(step, "center_", None)
        return (1.0 if step.scale_ is None else step.scale_), (0.0 if centre is None else centre)
    raise InputError(
        f"step {name!r} of the pipeline, a {known}, is no feature-wise scaling and cannot be undone. Fit one {known} "
        "for all sites and read the model behind it alone, or send groups: read(X=X, labels=pipeline.predict(X))."
    )
