"""Maximum likelihood of (mean, noise, spread) when values bring their own variance: by gradient.

With v_i ~ N(theta_k, var_i), var_i = noise / weight_i + c variance_i, and per atom and dimension the posterior mean
M_k and precision P_k = 1 / spread + sum_i 1 / var_i, Fisher's identity gives the gradient of the marginal likelihood:

    d / d var_i  = (r_i / var_i - 1) / (2 var_i),             r_i = (v_i - M_k)^2 + 1 / P_k
    d / d spread = sum_k [((M_k - mean)^2 + 1 / P_k) / spread - 1] / (2 spread)
    d / d mean   = sum_k (M_k - mean) / spread

The factor c, `inflation` in code, inflates the sites' own variances (1: they are right). It is not learned.
"""

from __future__ import annotations

import numpy as np
import scipy

from modelweld.core.moments import Hyperparameters
from modelweld.core.values import Array, Index, Stack
from modelweld.families.math.maximise import LARGEST_LOG_STEP as LARGEST_LOG_STEP
from modelweld.families.math.random_effects import SMALLEST_RATIO
from modelweld.families.math.start import FLAT, NoisePrior


class VaryingNoise:
    """The likelihood of hyperparameters given values that are known unequally well, sorted by atom."""

    def __init__(self, y: Array, stack: Stack, labels: Index) -> None:
        order = np.argsort(labels, kind="stable")
        self.y = y[order]
        weight = np.ones_like(y) if stack.weight is None else stack.weight[order]
        self.seen = (weight > 0).astype(np.float64)
        self.inverse_weight = 1.0 / np.where(weight > 0, weight, 1.0)
        self.variance = np.zeros_like(y) if stack.variance is None else stack.variance[order]
        self.atom = labels[order]
        self.first = np.flatnonzero(np.diff(self.atom, prepend=-1))

    def by_atom(self, x: Array) -> Array:
        """Sums over the values of each atom: (K, D)."""
        return np.asarray(np.add.reduceat(x, self.first, axis=0))

    def __call__(self, at: Hyperparameters, c: float) -> tuple[float, Hyperparameters]:
        """Log likelihood, and its gradient (D,) in mean, noise and spread."""
        var = at.noise * self.inverse_weight + c * self.variance
        p = self.seen / var
        P = 1.0 / at.spread + self.by_atom(p)
        off = self.y - at.mean
        S = self.by_atom(p * off)
        value = (
            -0.5 * (self.seen * np.log(2 * np.pi * var) + p * off * off).sum()
            - 0.5 * (np.log(at.spread * P) - S * S / P).sum()
        )
        M = S / P  # posterior mean, measured from the prior mean
        position = np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.atom)))
        r = (off - M[position]) ** 2 + 1.0 / P[position]
        by_variance = 0.5 * p * (r / var - 1)
        gradient = Hyperparameters(
            mean=(M / at.spread).sum(0),
            noise=(by_variance * self.inverse_weight).sum(0),
            spread=(0.5 * ((M * M + 1.0 / P) / at.spread - 1) / at.spread).sum(0),
        )
        return float(value), gradient


def maximise_with_variance(
    y: Array,
    stack: Stack,
    labels: Index,
    old: Hyperparameters,
    c: float,
    floor: Array,
    scalar: bool,
    prior: NoisePrior = FLAT,
) -> Hyperparameters:
    """The most probable hyperparameters for values y (N, D); never less probable than `old`.

    Guards as in `random_effects.maximise`: where nothing is matched noise and spread move together, and noise does
    not fall below `floor`.
    """
    likelihood = VaryingNoise(y, stack, labels)
    tied = len(likelihood.first) == len(labels)
    D, H = len(old.mean), len(old.noise)
    unit = np.sqrt(old.noise + old.spread)

    def value_at(here: Hyperparameters) -> tuple[float, Hyperparameters]:
        value, slope = likelihood(here, c)
        return value + float(prior.log_density(*here).sum()), slope

    start_value = value_at(old)[0]

    def at(x: Array) -> Hyperparameters:
        log_noise, log_spread = x[D : D + H], x[D : D + H] if tied else x[D + H : D + 2 * H]
        return Hyperparameters(
            mean=old.mean + unit * x[:D],
            noise=np.maximum(old.noise * np.exp(log_noise), floor),
            spread=np.maximum(old.spread * np.exp(log_spread), SMALLEST_RATIO * floor),
        )

    def cost(x: Array) -> tuple[float, Array]:
        here = at(x)
        value, slope = value_at(here)
        log_noise, log_spread = slope.noise * here.noise, slope.spread * here.spread
        if scalar:
            log_noise, log_spread = log_noise.sum(keepdims=True), log_spread.sum(keepdims=True)
        by_noise, by_spread = prior.slopes(*here)
        log_noise, log_spread = log_noise + by_noise, log_spread + by_spread
        logs = [log_noise + log_spread] if tied else [log_noise, log_spread]
        return (start_value - value) / len(y), -np.concatenate([slope.mean * unit, *logs]) / len(y)

    lowest = np.log(np.maximum(floor, np.finfo(float).tiny) / old.noise).clip(-LARGEST_LOG_STEP, LARGEST_LOG_STEP)
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * D
    bounds += [(float(low), LARGEST_LOG_STEP) for low in np.broadcast_to(lowest, H)]
    if not tied:
        bounds += [(-LARGEST_LOG_STEP, LARGEST_LOG_STEP)] * H
    found = scipy.optimize.minimize(cost, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds)
    return at(found.x) if found.fun <= 0 else old
