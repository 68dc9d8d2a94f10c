"""Networks: PyTorch's Sequential of Linear layers with one activation, scikit-learn's MLPClassifier and MLPRegressor.

Dropout is left out and batch normalisation folded into the layer beside it, both as in evaluation. Other networks of
PyTorch are read by `modelweld.libraries.traced_networks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.network import layers, moments, network
from modelweld.libraries.scaling import name_features

NAMES = {"ReLU": "relu", "Tanh": "tanh", "Sigmoid": "logistic"}
"""PyTorch's activations and ours."""

IGNORED = ("Dropout", "Identity", "Flatten")
"""Modules that change nothing in evaluation; Flatten only before the first layer."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Types of weights."""

Folded = tuple[list[Array], list[Array], str, str]

ENDS = ("Softmax", "LogSoftmax")
"""Modules after the last layer: outputs are logits up to a constant either way. They are written again."""


def read_layers(
    layers_of: Folded,
    dtype: str,
    *,
    classes: Sequence[object] | None = None,
    y: ArrayLike | None = None,
    class_counts: ArrayLike | None = None,
    n: int | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """A network of linear layers, folded; with class counts, how much its weights are worth for each class.

    Parameters
    ----------
    layers_of : weights, biases, activation and end
        As `fold_layers` has found them.
    dtype : str
        Type of the weights; empty for networks of scikit-learn.
    classes : sequence, optional
        Labels of the outputs; default 0, 1, ... where `y` or `class_counts` is given. Without any of them outputs are
        values, not logits.
    y : array of labels, optional
        To count them here.
    class_counts : array (outputs,), optional
        Training rows of each class, instead.
    n : int, optional
        Number of training rows, where outputs are values.
    X : array (rows, features), optional
        The site's data, of which the mean and standard deviation of each feature are sent.
    features : sequence of str, optional
        Names of the features.
    """
    W, b, activation, end = layers_of
    classes, counts = count_classes(len(b[-1]), classes, y, class_counts)
    return network(
        W,
        b,
        activation=activation,
        classes=classes,
        counts=n if counts is None else counts,
        inputs=None if X is None else moments(np.asarray(X, dtype=np.float64)),
        features=features,
        facts={"end": end, "dtype": dtype} if dtype else {},
    )


def count_classes(
    outputs: int, classes: Sequence[object] | None, y: ArrayLike | None, class_counts: ArrayLike | None
) -> tuple[list[object] | None, ArrayLike | None]:
    """Labels of the outputs, and how many rows of each a site has seen; None: outputs are values."""
    if classes is None and (y is not None or class_counts is not None):
        classes = range(outputs)
    counts = class_counts
    if y is not None and classes is not None:
        counts = np.array([np.sum(np.asarray(y) == c) for c in classes], dtype=np.float64)
    for what, given in (("classes", classes), ("class_counts", counts)):
        if given is not None and (shape := np.asarray(given).shape) != (outputs,):
            raise InputError(f"{what} must be one for each of {outputs} outputs; found shape {shape}.")
    return None if classes is None else np.asarray(classes).tolist(), counts


def _modules(model: Any) -> Iterator[Any]:
    """The modules of a Sequential, nested ones in their place, without those that change nothing."""
    for module in model:
        if type(module).__name__ == "Sequential":
            yield from _modules(module)
        elif type(module).__name__ not in IGNORED:
            yield module


def fold_layers(model: Any) -> Folded | None:
    """Weights (in, out), biases, activation and end of a Sequential, batch normalisation folded in.

    None if it is not of linear layers with one kind of activation (ReLU, Tanh, Sigmoid) between each two.
    """
    W: list[Array] = []
    b: list[Array] = []
    activations = set()
    scale: Array | float = 1.0  # what happens to values between the last activation and the next Linear
    shift: Array | float = 0.0
    end, open_layer = "", False  # whether values come straight out of a Linear
    for module in _modules(model):
        name = type(module).__name__
        if end or (name == "Linear" and open_layer) or (name in NAMES and not open_layer):
            return None
        if name == "Linear":
            w = double(module.weight).T
            bias = np.zeros(w.shape[1]) if module.bias is None else double(module.bias)
            W.append(np.broadcast_to(scale, len(w))[:, None] * w)
            b.append(bias + np.broadcast_to(shift, len(w)) @ w)
            scale, shift, open_layer = 1.0, 0.0, True
        elif name == "BatchNorm1d" and module.running_var is not None:
            times = 1 / np.sqrt(double(module.running_var) + module.eps)
            plus = -double(module.running_mean) * times
            if module.affine:
                times, plus = times * double(module.weight), plus * double(module.weight) + double(module.bias)
            if open_layer:
                W[-1], b[-1] = W[-1] * times, b[-1] * times + plus
            else:
                scale, shift = scale * times, shift * times + plus
        elif name in NAMES:
            activations.add(NAMES[name])
            open_layer = False
        elif name in ENDS and open_layer:
            end = name
        else:
            return None
    if not open_layer or len(activations) != 1:
        return None
    return W, b, activations.pop(), end


def double(tensor: Any) -> Array:
    """A tensor as an array of double precision."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def write_layers(local: LocalModel, like: str) -> Any:
    """A Sequential of Linear layers and activations, in evaluation mode; its outputs stand in the order of the classes.

    Which class an output is, a Sequential cannot say: ``local.coordinates["class"]`` does.
    """
    import torch

    W, b = layers(local)
    named = {ours: name for name, ours in NAMES.items()}
    dtype = getattr(torch, _one_of(FLOATS, local.facts.get("dtype"), "float32"))
    modules = []
    for i, (w, bias) in enumerate(zip(W, b, strict=True)):
        if i:
            modules.append(getattr(torch.nn, named.get(local.facts["activation"], "Identity"))())
        layer = torch.nn.Linear(*w.shape, dtype=dtype)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(w.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias.copy()))
        modules.append(layer)
    if local.facts.get("end"):
        modules.append(getattr(torch.nn, _one_of(ENDS, local.facts["end"], "Softmax"))(dim=1))
    return torch.nn.Sequential(*modules).eval()


def _one_of(known: tuple[str, ...], fact: object, default: str) -> str:
    """A fact that may come from a file, if it is one of the names known here: it chooses what is called."""
    return fact if isinstance(fact, str) and fact in known else default


def read_mlp(
    model: Any,
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
    counted: dict[str, Any] = {"y": y, "class_counts": n if class_counts is None else class_counts}
    if classes is None:
        if model.out_activation_ != "identity":
            raise InputError(f"an MLPRegressor with loss {model.loss!r} is not read: only with squared errors.")
        counted = {"n": n if y is None else len(np.asarray(y))}
    elif model.out_activation_ == "logistic":
        if model._label_binarizer.y_type_.startswith("multilabel"):
            raise InputError("an MLPClassifier with several labels per row is not read: give one network per label.")
        signs = np.array([-0.5, 0.5]) if len(classes) == 2 else np.array([-1.0])
        W[-1], b[-1] = W[-1] * signs, b[-1] * signs
    return read_layers((W, b, model.activation, ""), "", classes=classes, X=X, features=features, **counted)


def write_mlp(local: LocalModel, like: str) -> Any:
    """A fitted MLPClassifier, its classes sorted, or MLPRegressor."""
    W, b = layers(local)
    labels = [local.facts["labels"][name] for name in local.coordinates.get("class", ())]
    if (like == "MLPClassifier") != bool(labels):
        raise InputError(f"a network {'with' if labels else 'without'} classes cannot be written as {like}.")
    sizes = tuple(w.shape[1] for w in W[:-1])
    model = getattr(sklearn.neural_network, like)(hidden_layer_sizes=sizes, activation=local.facts["activation"])
    model.out_activation_ = "identity"
    if labels:
        order = np.argsort(labels)
        W[-1], b[-1] = W[-1][:, order], b[-1][order]
        model.classes_ = np.array(labels)[order]
        model._label_binarizer = sklearn.preprocessing.LabelBinarizer().fit(model.classes_)
        model.out_activation_ = "softmax" if len(labels) > 2 else "logistic"
        if len(labels) <= 2:
            signs = np.array([[-1.0], [1.0]])[: len(labels)]
            W[-1], b[-1] = W[-1] @ signs, b[-1] @ signs
    model.coefs_, model.intercepts_ = W, b
    model.n_layers_, model.n_outputs_ = len(W) + 1, len(b[-1])
    model.n_iter_, model.t_, model.loss_, model.loss_curve_ = 0, 0, np.nan, []
    return name_features(model, local, W[0].shape[0])
