"""scikit-learn's MLPClassifier and MLPRegressor, of any depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.network import moments, network
from modelweld.kinds.network_refit import layers
from modelweld.libraries.scaling import name_features

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier, MLPRegressor


def read(
    model: MLPClassifier | MLPRegressor,
    *,
    y: ArrayLike | None = None,
    class_counts: ArrayLike | None = None,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Weights and biases; with class counts, how much they are worth for each class.

    Parameters
    ----------
    model : fitted MLPClassifier or MLPRegressor
        With one label per row. A classifier of two classes has one output, which becomes two, of opposite signs.
    y : array, optional
        The site's labels or targets, to count them here.
    class_counts : array (classes,), optional
        Training rows of each class, in the order of ``model.classes_``, instead.
    n : int, optional
        Number of training rows, of a regressor.
    X : array, optional
        The site's data, of which the mean and standard deviation of each feature are sent.
    features : sequence of str, optional
        Names of the features.
    """
    W, b = [np.asarray(w, dtype=np.float64) for w in model.coefs_], [np.asarray(v) for v in model.intercepts_]
    classes = getattr(model, "classes_", None)
    counts = None if class_counts is None and n is None else np.asarray(n if class_counts is None else class_counts)
    if classes is None:
        if model.out_activation_ != "identity":
            raise InputError(f"an MLPRegressor with loss {model.loss!r} is not read: only with squared errors.")
        counts = counts if y is None else np.asarray(len(np.asarray(y)))
    else:
        if model.out_activation_ == "logistic" and model._label_binarizer.y_type_.startswith("multilabel"):
            raise InputError("an MLPClassifier with several labels per row is not read: give one network per label.")
        if model.out_activation_ == "logistic":
            signs = np.array([-0.5, 0.5]) if len(classes) == 2 else np.array([-1.0])
            W[-1], b[-1] = W[-1] * signs, b[-1] * signs
        if y is not None:
            counts = np.array([np.sum(np.asarray(y) == c) for c in classes], dtype=np.float64)
        elif counts is not None and counts.shape != (len(classes),):
            raise InputError(
                f"class_counts must be one number for each of {len(classes)} classes; found shape {counts.shape}. Or "
                "give the labels: y=..."
            )
    return network(
        W,
        b,
        activation=model.activation,
        classes=None if classes is None else np.asarray(classes).tolist(),
        counts=counts,
        inputs=None if X is None else moments(np.asarray(X, dtype=np.float64)),
        features=features,
    )


def write(local: LocalModel, like: str) -> Any:
    """A fitted MLPClassifier, its classes sorted, or MLPRegressor."""
    from sklearn import neural_network
    from sklearn.preprocessing import LabelBinarizer

    W, b = layers(local)
    labels = [local.facts["labels"][name] for name in local.coordinates.get("class", ())]
    if (like == "MLPClassifier") != bool(labels):
        raise InputError(f"a network {'with' if labels else 'without'} classes cannot be written as {like}.")
    sizes = tuple(w.shape[1] for w in W[:-1])
    model = getattr(neural_network, like)(hidden_layer_sizes=sizes, activation=local.facts["activation"])
    model.out_activation_ = "identity"
    if labels:
        order = np.argsort(labels)
        W[-1], b[-1] = W[-1][:, order], b[-1][order]
        model.classes_ = np.array(labels)[order]
        model._label_binarizer = LabelBinarizer().fit(model.classes_)
        model.out_activation_ = "softmax" if len(labels) > 2 else "logistic"
        if len(labels) <= 2:
            signs = np.array([[-1.0], [1.0]])[: len(labels)]
            W[-1], b[-1] = W[-1] @ signs, b[-1] @ signs
    model.coefs_, model.intercepts_ = W, b
    model.n_layers_, model.n_outputs_ = len(W) + 1, len(b[-1])
    model.n_iter_, model.t_, model.loss_, model.loss_curve_ = 0, 0, np.nan, []
    return name_features(model, local, W[0].shape[0])
