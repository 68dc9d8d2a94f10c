"""All layers of a refitted network moved on, until they give what the sites' networks give on the drawn inputs.

A refit keeps the fused first layer. Where sites have few units or saw few classes, it is too small to carry what all of
them compute, and least squares on top of it cannot help; moving it can. Nothing but the fused matching decides where
this starts and how many units there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.kinds.network_outputs import activate

STEPS = 100
"""Steps of L-BFGS. Each costs about two passes forward and back over the drawn inputs; with a hundred, squared errors
on digits fell to a fifth of a refit's where inputs are drawn about zero, and to between .05 and .9 of it where sites
say how theirs lie."""


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
    from scipy.optimize import minimize

    shapes = [np.shape(part) for part in (*W, *b)]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    scale = len(X) * max(float(target.var(axis=0).sum()), np.finfo(float).tiny)

    def parts(flat: Array) -> tuple[list[Array], list[Array]]:
        pieces = [x.reshape(s) for x, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]
        return pieces[: len(W)], pieces[len(W) :]

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
    return parts(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x)


def _slope(given: Array, activation: str) -> Array:
    """Derivative of an activation, from what it gives."""
    if activation == "relu":
        return (given > 0).astype(np.float64)
    if activation == "identity":
        return np.ones_like(given)
    return np.asarray(1 - given * given if activation == "tanh" else given * (1 - given))
