"""A fused network whose later layers are fitted to the sites' own networks, on inputs that are drawn, not data.

Averaging outgoing weights gives every atom the same say, however many sites hold it. The sites' networks themselves say
what is wanted: the output should be the sum of theirs, weighted by class counts, and a unit of a second hidden layer
should receive what its members receive on average. Both are least-squares problems on the fused layer before.

Members of an atom count by what they have to say: the size of their outgoing weights, times the site's share of each
class. (If units V_m f(a_m x) are to be replaced by one, V f(a x), an error in a_m costs |V_m| times as much.)

Polishing (`how="polish"`) then moves all layers on, until they give what the sites' networks give on the drawn inputs.
A refit keeps the fused first layer; where sites have few units or saw few classes, it is too small to carry what all of
them compute, and least squares on top of it cannot help; moving it can.

What a network gives: its layers, what passes through them, and a fused network by averages alone (`how="mean"`).

In the fused one a unit receives on average what its members receive, and gives on what they give on together. Weights
are plain averages of the members', not the atoms' estimates: those are drawn towards zero, the mean of all weights,
which is good for recognising a unit and bad for computing with it. Nor may a unit that few sites have pass on as much
as if all had it: an output is the sum of the sites', each by its share of the class, and a site without the unit adds
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy

from modelweld.core.values import Array, Index
from modelweld.inputs.local_model import LocalModel

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult


DEVIATION = 0.5
"""Standard deviation, about zero, of the inputs a refit draws where nothing is known of the features. It suits features
between zero and one, and scaled ones; for others sites send `inputs`."""

DRAWS = 4000
"""Inputs drawn: some tens for every unit of a layer of about a hundred."""

RIDGE = 1e-3
"""Penalty on squared weights, as a share of the mean variance of what a unit gives on. Between 1e-5 and 1e-2 accuracies
on digits and MNIST were the same within .002."""


STEPS = 100
"""Steps of L-BFGS. Each costs about two passes forward and back over the drawn inputs; with a hundred, squared errors
on digits fell to a fifth of a refit's where inputs are drawn about zero, and to between .05 and .9 of it where sites
say how theirs lie."""


def refit(
    fusion: FitResult,
    pi: Array,
    *,
    draws: int = DRAWS,
    ridge: float = RIDGE,
    seed: int = 0,
    steps: int = 0,
) -> tuple[list[Array], list[Array]]:
    """The layers of the fused network.

    Parameters
    ----------
    fusion : Fusion
        Of networks.
    pi : array (J, outputs)
        Share of every site in every output.
    draws, ridge, seed : int, float, int
        How many inputs, how strong a penalty, and the source of the draws.
    steps : int
        Then all layers, the first too, move so many steps towards the same outputs: `modelweld.kinds.network_refit`.
    """
    # in an order that depends on content alone: polishing would make much of sums that differ by rounding
    order = sorted(range(len(fusion.models)), key=lambda j: np.asarray(fusion.models[j].arrays["W0"]).tobytes())
    models, pi = [fusion.models[j] for j in order], pi[order]
    X = draw_inputs(models, draws, seed)
    local = [pre_activations(model, X) for model in models]
    fused = []
    for i, matching in enumerate(fusion.matchings.values()):
        labels = [matching.labels[j] for j in order]
        said = [voices(model, p, i) for model, p in zip(models, pi, strict=True)]
        # the first layer's weights and biases; later, what units receive
        parts = [site[i] for site in local] if i else [np.vstack([m.arrays["W0"], m.arrays["b0"]]) for m in models]
        fused.append(average(parts, labels, said, len(matching.counts)))
    first, *targets = fused
    targets.append(np.sum([p * site[-1] for p, site in zip(pi, local, strict=True)], axis=0))
    activation = models[0].facts["activation"]
    W, b = [first[:-1]], [first[-1]]
    now = X @ W[0] + b[0]
    for target in targets:
        before = activate(now, activation)
        weights, bias = regress(before, target, ridge)
        W.append(weights)
        b.append(bias)
        now = before @ weights + bias
    return polish(W, b, activation, X, targets[-1], steps) if steps else (W, b)


def voices(model: LocalModel, share: Array, i: int) -> Array:
    """What each unit of hidden layer i has to say: the size of its outgoing weights, to outputs by share."""
    W = layers(model)[0]
    out = W[i + 1] * (share if i + 2 == len(W) else 1.0)
    size = np.sqrt((out * out).sum(axis=1))
    return np.asarray(np.maximum(size, np.finfo(float).eps * max(1.0, float(size.max()))))


def average(parts: Sequence[Array], labels: Sequence[Index], voices: Sequence[Array], K: int) -> Array:
    """Columns of all sites averaged by label, each by its voice: (rows, K).

    Examples
    --------
    >>> average([np.array([[1.0, 5.0]]), np.array([[4.0]])], [np.array([0, 1]), np.array([0])], [np.ones(2), [2.0]], 2)
    array([[3., 5.]])
    """
    total, weight = np.zeros((K, len(parts[0]))), np.zeros(K)
    for part, label, voice in zip(parts, labels, voices, strict=True):
        np.add.at(total, label, (part * voice).T)
        np.add.at(weight, label, voice)
    return np.asarray((total / weight[:, None]).T)


def draw_inputs(models: Sequence[LocalModel], draws: int, seed: int) -> Array:
    """Inputs (draws, features): with the means and deviations of all sites if they sent them, else about zero."""
    D = len(layers(models[0])[0][0])
    Z = np.random.default_rng(seed).standard_normal((draws, D))
    if "inputs" not in models[0].arrays:
        return DEVIATION * Z
    means, deviations = np.moveaxis(np.array([m.arrays["inputs"] for m in models]), 1, 0)
    return np.asarray(means.mean(axis=0) + Z * np.sqrt((deviations**2).mean(axis=0) + means.var(axis=0)))


def regress(X: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """Weights and bias of the ridge regression of Y on X.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> weights, bias = regress(X, 3 * X + 1, 1e-12)
    >>> weights.round(6).tolist(), bias.round(6).tolist()
    ([[3.0]], [1.0])
    """
    x, y = X.mean(axis=0), Y.mean(axis=0)
    A = (X - x).T @ (X - x)
    A[np.diag_indices_from(A)] += max(ridge * np.trace(A) / len(A), np.finfo(float).tiny)
    weights = np.linalg.solve(A, (X - x).T @ (Y - y))
    return weights, y - x @ weights


def polish(
    W: Sequence[Array], b: Sequence[Array], activation: str, X: Array, target: Array, steps: int
) -> tuple[list[Array], list[Array]]:
    """The network nearest in mean squared output to `target` (rows, outputs) at X, from the one given.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> W, b = polish([np.ones((1, 1))] * 2, [np.zeros(1)] * 2, "tanh", X, 2 * np.tanh(X - 0.5), 100)
    >>> np.round([*W, b[0][None]], 3).ravel().tolist()
    [1.0, 2.0, -0.5]
    """
    shapes = [np.shape(part) for part in (*W, *b)]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    scale = len(X) * max(float(target.var(axis=0).sum()), np.finfo(float).tiny)

    def parts(flat: Array) -> tuple[list[Array], list[Array]]:
        fragments = [x.reshape(s) for x, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]
        return fragments[: len(W)], fragments[len(W) :]

    def loss(flat: Array) -> tuple[float, Array]:
        weights, biases = parts(flat)
        given = [X]
        for w, bias in zip(weights[:-1], biases[:-1], strict=True):
            given.append(activate(given[-1] @ w + bias, activation))
        off = (given[-1] @ weights[-1] + biases[-1] - target) / scale
        value = float((off * off).sum()) * scale
        slopes = []
        for w, before in zip(weights[::-1], given[::-1], strict=True):
            slopes.append((before.T @ off, off.sum(axis=0)))
            off = (off @ w.T) * _slope(before, activation)
        by_weight, by_bias = zip(*slopes[::-1], strict=True)
        return value, 2 * np.concatenate([np.ravel(x) for x in (*by_weight, *by_bias)])

    start = np.concatenate([np.ravel(part) for part in (*W, *b)])
    return parts(scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x)


def _slope(given: Array, activation: str) -> Array:
    """Derivative of an activation, from what it gives."""
    if activation == "relu":
        return (given > 0).astype(np.float64)
    if activation == "identity":
        return np.ones_like(given)
    return np.asarray(1 - given * given if activation == "tanh" else given * (1 - given))


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


def pre_activations(model: LocalModel, X: Array) -> list[Array]:
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
    return pre_activations(model, X)[-1]


def means(fusion: FitResult, pi: Array) -> tuple[list[Array], list[Array]]:
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
