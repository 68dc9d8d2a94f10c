"""What a network gives: its layers, what passes through them, and a fused network by averages alone (`how="mean"`).

In the fused one a unit receives on average what its members receive, and gives on what they give on together. Weights
are plain averages of the members', not the atoms' estimates: those are drawn towards zero, the mean of all weights,
which is good for recognising a unit and bad for computing with it. Nor may a unit that few sites have pass on as much
as if all had it: an output is the sum of the sites', each by its share of the class, and a site without the unit adds
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import Array, LocalModel

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

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


def means(fusion: Fusion, pi: Array) -> tuple[list[Array], list[Array]]:
    """The layers of the fused network; `pi` (J, outputs) are the sites' shares of every output.

    With M_l units of all sites behind atom l, u and v units of site j,

        W_i[k, l] = sum_j sum_{u in k, v in l} W_j[u, v] / M_l    (of the first layer, u and k are features)
        W_last[k, c] = sum_j sum_{u in k} pi_jc W_j[u, c]

    and biases likewise. Where units that are matched are copies, this is the ensemble: the sites' networks, weighted.

    Examples
    --------
    >>> from modelweld import fuse
    >>> from modelweld.kinds.network import network, shares
    >>> sites = [network([[[3.0, a]], [[1.0], [2.0]]], [[0.0, a], [0.0]], activation="relu") for a in (-9.0, 9.0)]
    >>> fusion = fuse(sites)
    >>> W, b = means(fusion, shares(sites))
    >>> sorted(zip(W[0][0].tolist(), W[1][:, 0].tolist(), strict=True))
    [(-9.0, 1.0), (3.0, 1.0), (9.0, 1.0)]
    """
    networks, hidden = [layers(model) for model in fusion.models], fusion.matchings.values()
    inputs, outputs = len(networks[0][0][0]), pi.shape[1]
    sizes = [inputs, *(len(m.counts) for m in hidden), outputs]
    places = [[np.arange(inputs)] * len(pi), *(m.labels for m in hidden), [np.arange(outputs)] * len(pi)]
    shares = [*(np.tile(1 / np.bincount(m.stacked_labels), (len(pi), 1)) for m in hidden), pi]
    fused = []
    for i, share in enumerate(shares):
        weights, bias = np.zeros((sizes[i], sizes[i + 1])), np.zeros(sizes[i + 1])
        for said, (W, b), before, after in zip(share, networks, places[i], places[i + 1], strict=True):
            np.add.at(weights, np.ix_(before, after), said[after] * W[i])
            np.add.at(bias, after, said[after] * b[i])
        fused.append((weights, bias))
    return [weights for weights, _ in fused], [bias for _, bias in fused]
