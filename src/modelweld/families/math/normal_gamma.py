"""Values per dimension whose atoms have a precision each: evidence, its slopes, and hyperparameters of most likelihood.

Equations: `modelweld.families.NormalGamma`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.families.math.maximise import LARGEST_LOG_STEP, log_bounds
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import blocks

STRENGTHS = (1e-8, 1e8)
"""Bounds of strength: the decades in which spread / noise of real values is searched."""

MOST_UPDATE_STEPS = 60
"""Steps of one update. It starts from the last one's result, so what is left undone is done after the next sweep."""


SHAPES = (0.1, 1e4)
"""Bounds of the shape: from noise that differs by orders of magnitude to noise that is the same within a percent."""


class Statistics(NamedTuple):
    """Of atoms, per dimension (..., D): number, weight, weighted sum and squares, sum of log weights."""

    n: Array
    W: Array
    S: Array
    Q: Array
    G: Array


class Belief(NamedTuple):
    """Hyperparameters per dimension (D,), the mean measured from the origin."""

    mean: Array
    strength: Array
    shape: Array
    rate: Array


def statistics_of(rows: Array) -> Statistics:
    """The five statistics that stand side by side in rows (..., 5 D)."""
    D = rows.shape[-1] // 5
    return Statistics(*(rows[..., i * D : (i + 1) * D] for i in range(5)))


def squares(of: Statistics, at: Belief) -> Array:
    """R of the class's notes; not below zero by rounding."""
    off = of.S - at.mean * of.W
    found = of.Q - at.mean * (2 * of.S - at.mean * of.W) - off * off / (at.strength + of.W)
    return np.maximum(found, 0.0)


def log_evidence(of: Statistics, at: Belief) -> Array:
    """Per dimension, (..., D)."""
    from scipy.special import gammaln

    shape = at.shape + of.n / 2
    return np.asarray(
        of.G / 2
        - of.n / 2 * np.log(2 * np.pi * at.rate)
        + 0.5 * np.log(at.strength / (at.strength + of.W))
        + gammaln(shape)
        - gammaln(at.shape)
        - shape * np.log1p(squares(of, at) / (2 * at.rate))
    )


def predictive(own: Statistics, of: Statistics, at: Belief) -> Array:
    """Log densities of single values at atoms (L, K): Student's t."""
    from scipy.special import gammaln

    strength, shape = at.strength + of.W, at.shape + of.n / 2
    centre, rate = (at.strength * at.mean + of.S) / strength, at.rate + squares(of, at) / 2
    constant = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(2 * np.pi * rate)
    y = own.S / np.where(own.W > 0, own.W, 1.0)
    result = np.empty((len(y), len(of.n)))
    for part in blocks(len(y), of.n.size):
        w = own.W[part, None, :]
        share = strength / (strength + w)
        off = y[part, None, :] - centre
        terms = constant + 0.5 * np.log(share) - (shape + 0.5) * np.log1p(share * w * off * off / (2 * rate))
        result[part] = (own.n[part, None, :] * terms).sum(-1)
    return np.asarray(result + 0.5 * own.G.sum(-1)[:, None])


def slopes(of: Statistics, at: Belief) -> Belief:
    """Of the atoms' total log evidence in the hyperparameters, (D,) each."""
    from scipy.special import digamma

    strength, shape = at.strength + of.W, at.shape + of.n / 2
    rate = at.rate + squares(of, at) / 2
    shift = (of.S - at.mean * of.W) / strength
    return Belief(
        mean=(shape / rate * at.strength * shift).sum(0),
        strength=0.5 * (1 / at.strength - 1 / strength - shape / rate * shift * shift).sum(0),
        shape=(digamma(shape) - digamma(at.shape) - np.log(rate / at.rate)).sum(0),
        rate=(at.shape / at.rate - shape / rate).sum(0),
    )


def maximise(of: Statistics, old: Belief, floor: Array) -> Belief:
    """The most likely hyperparameters of atoms; no dimension less likely than with the old ones.

    The search is over the mean in units of the atoms' spread and the logarithms of strength, shape and typical noise,
    rate / shape. In a dimension where no atom has two values nothing tells noise from spread: strength and shape stay.
    """
    from scipy.optimize import minimize

    D = of.n.shape[1]
    old = Belief(*(np.broadcast_to(x, D).astype(np.float64) for x in old))
    noise = old.rate / old.shape
    unit = np.sqrt(noise * (1 + 1 / old.strength))
    start_value = log_evidence(of, old).sum(0)
    K = max(1, len(of.n))

    def at(x: Array) -> Belief:
        shift, log_strength, log_shape, log_noise = x.reshape(4, D)
        shape = old.shape * np.exp(log_shape)
        return Belief(
            old.mean + unit * shift, old.strength * np.exp(log_strength), shape, shape * noise * np.exp(log_noise)
        )

    def cost(x: Array) -> tuple[float, Array]:
        here = at(x)
        by = slopes(of, here)
        rise = log_evidence(of, here).sum() - start_value.sum()
        gradient = [
            by.mean * unit,
            by.strength * here.strength,
            by.shape * here.shape + by.rate * here.rate,
            by.rate * here.rate,
        ]
        return -float(rise) / K, -np.concatenate(gradient) / K

    told, low = np.asarray(of.n).max(0, initial=0.0) > 1, np.maximum(np.broadcast_to(floor, D), np.finfo(float).tiny)
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * D
    bounds += [log_bounds(bool(told[d]), old.strength[d], *STRENGTHS) for d in range(D)]
    bounds += [log_bounds(bool(told[d]), old.shape[d], *SHAPES) for d in range(D)]
    bounds += [log_bounds(True, noise[d], low[d], noise[d] * np.exp(LARGEST_LOG_STEP)) for d in range(D)]
    found = minimize(
        cost, np.zeros(4 * D), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_UPDATE_STEPS}
    )
    new = at(found.x)
    better = log_evidence(of, new).sum(0) > start_value
    return Belief(*(np.where(better, a, b) for a, b in zip(new, old, strict=True)))
