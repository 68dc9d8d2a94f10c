"""What a network gives: its layers, and what passes through them."""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array, LocalModel

ACTIVATIONS = ("relu", "tanh", "logistic", "identity")
"""Of hidden layers: all that adapters read, and that a refit can follow."""


def layers(model: LocalModel) -> tuple[list[Array], list[Array]]:
    """Weights and biases, first to last."""
    depth = sum(name[0] == "W" for name in model.arrays)
    W, b = ([np.asarray(model.arrays[f"{letter}{i}"]) for i in range(depth)] for letter in "Wb")
    return W, b


def activate(values: Array, activation: str) -> Array:
    """What a hidden layer gives on."""
    if activation == "relu":
        return np.maximum(values, 0.0)
    if activation == "tanh":
        return np.tanh(values)
    return values if activation == "identity" else np.asarray(0.5 + 0.5 * np.tanh(values / 2))


def received(model: LocalModel, X: Array) -> list[Array]:
    """What every layer receives before its activation, (rows, units) each; the last are the outputs."""
    result: list[Array] = []
    for W, b in zip(*layers(model), strict=True):
        before = activate(result[-1], model.facts["activation"]) if result else X
        result.append(before @ W + b)
    return result


def outputs(model: LocalModel, X: Array) -> Array:
    """Logits (or values) of a network: (rows, outputs).

    Examples
    --------
    >>> from modelweld.kinds.network import network
    >>> model = network([np.eye(2), np.ones((2, 1))], [np.zeros(2), [0.5]], activation="relu")
    >>> outputs(model, np.array([[1.0, -3.0]]))
    array([[1.5]])
    """
    return received(model, X)[-1]
