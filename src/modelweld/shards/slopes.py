"""Hyperparameters of values in shards that bring their own variance: the exact likelihood and its slope from sums.

As in `modelweld.families.math.standard_errors`, var_i = noise / weight_i + trust variance_i, p_i = 1 / var_i, and an
atom has posterior mean M and precision P. Its share of the slope in noise is

    1/2 sum_i a_i [p_i^2 ((y_i - M)^2 + 1 / P) - p_i]
        = 1/2 [A3 - 2 M A2 + (M^2 + 1 / P) A1 - A0],    a_i = 1 / weight_i,   A0 .. A3 = sums of a p, a p^2 (1, y, y^2),

So every shard adds up four numbers per atom and dimension besides the rows, and one round gives the centre the
likelihood of all values and its whole gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from modelweld.core.family import sum_by_atom
from modelweld.core.random_effects import SMALLEST_RATIO, Hyperparameters
from modelweld.core.values import Array, Index
from modelweld.families import Gaussian
from modelweld.families.math.maximise import LARGEST_LOG_STEP
from modelweld.shards.shard import Shard, restate

BLOCK = 20_000
"""Values of which these are made at a time, so that a pass over a shard needs little more memory than the shard."""

STATISTICS = 9
"""Numbers per dimension that `slopes` adds up: the five of the rows and these four."""

MOST_ROUNDS = 40
"""Evaluations of the likelihood in one refit: each is a pass over all shards. The next refit goes on from there."""

SMALLEST_SLOPE = 1e-3
"""Nats per standard error at which a refit ends: about a millionth of a nat is left then."""


def slopes(shard: Shard, labels: Index, family: Gaussian) -> Array:
    """Rows of the shard's atoms with the four sums: (K, 5 D + 4 D)."""
    stack, own = shard.select_fitted(labels)
    K, noise = int(own.max(initial=-1)) + 1, family.hyperparameters.noise
    beside = np.zeros((K, 4 * stack.values.shape[1]))
    for a in range(0, len(own), BLOCK):
        part = slice(a, a + BLOCK)
        y = stack.values[part] - np.asarray(family.origin)
        weight = np.ones_like(y) if stack.weight is None else stack.weight[part]
        inverse = np.where(weight > 0, 1.0 / np.where(weight > 0, weight, 1.0), 0.0)
        variance = np.zeros_like(y) if stack.variance is None else stack.variance[part]
        p = (weight > 0) / np.where(weight > 0, noise * inverse + family.inflation * variance, 1.0)
        powers = [p, p * p, p * p * y, p * p * y * y]
        beside += sum_by_atom(np.concatenate([x * inverse for x in powers], axis=1), own[part], K)
    return np.concatenate([restate(shard, labels, family), beside], axis=1)


def refit(family: Gaussian, ask: Callable[[Gaussian], Array], matched: bool) -> Gaussian:
    """The most likely family; never less likely than the one given.

    Parameters
    ----------
    family : Gaussian
        Where to start.
    ask : callable
        Sums (K, STATISTICS D) of `slopes` over all shards, for a family.
    matched : bool
        Whether any atom has two values; if not, noise and spread cannot be distinguished and move together.
    """
    if family.learning == "nothing":
        return family
    old, floor = family.hyperparameters, np.asarray(family.floor)
    D, H = len(old.mean), len(old.noise)
    sums = ask(family)
    start, K, N = likelihood(family, sums)[0], len(sums), sums[:, :D].sum() / D
    # what is looked for is measured in its own standard errors, so that all slopes are alike and few rounds do
    parts = [(D, K), (H, N / 2), (H, K / 2)] if matched else [(D, K), (H, N / 2)]
    unit = np.concatenate([np.full(n, 1 / np.sqrt(max(information, 1.0))) for n, information in parts])
    scale = np.sqrt(old.noise + old.spread)

    def at(z: Array) -> Gaussian:
        x = unit * z
        log_noise, log_spread = x[D : D + H], x[D + H : D + 2 * H] if matched else x[D : D + H]
        here = Hyperparameters(
            mean=old.mean + scale * x[:D],
            noise=np.maximum(old.noise * np.exp(log_noise), floor),
            spread=np.maximum(old.spread * np.exp(log_spread), SMALLEST_RATIO * floor),
        )
        return family.with_hyperparameters(here)

    def cost(z: Array) -> tuple[float, Array]:
        here = at(z)
        value, slope = likelihood(here, ask(here) if z.any() else sums)
        log_noise, log_spread = slope.noise * here.hyperparameters.noise, slope.spread * here.hyperparameters.spread
        if family.scalar:
            log_noise, log_spread = log_noise.sum(keepdims=True), log_spread.sum(keepdims=True)
        by_noise, by_spread = here.noise_prior.slopes(*here.hyperparameters)
        log_noise, log_spread = log_noise + by_noise, log_spread + by_spread
        logs = [log_noise, log_spread] if matched else [log_noise + log_spread]
        return start - value, -unit * np.concatenate([slope.mean * scale, *logs])

    low, high = np.full(len(unit), -LARGEST_LOG_STEP), np.full(len(unit), LARGEST_LOG_STEP)
    low[:D], high[:D] = -np.inf, np.inf
    low[D : D + H] = np.maximum(np.log(np.maximum(floor, np.finfo(float).tiny) / old.noise), -LARGEST_LOG_STEP)
    found = scipy.optimize.minimize(
        cost,
        np.zeros(len(unit)),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / unit, high / unit, strict=True)),
        options={"maxfun": MOST_ROUNDS, "gtol": SMALLEST_SLOPE},
    )
    return at(found.x) if found.fun < 0 else family


def likelihood(family: Gaussian, sums: Array) -> tuple[float, Hyperparameters]:
    """Log likelihood with the log prior, and gradient (D,) in mean, noise and spread."""
    D = sums.shape[1] // STATISTICS
    _, W, S = (sums[:, i * D : (i + 1) * D] for i in range(3))
    mean, noise, spread = family.hyperparameters
    P = 1.0 / spread + W / noise
    M = (mean / spread + S / noise) / P
    a0, a1, a2, a3 = (sums[:, (5 + i) * D : (6 + i) * D] for i in range(4))
    off = M - mean
    gradient = Hyperparameters(
        mean=(off / spread).sum(0),
        noise=0.5 * (a3 - 2 * M * a2 + (M * M + 1.0 / P) * a1 - a0).sum(0),
        spread=(0.5 * ((off * off + 1.0 / P) / spread - 1) / spread).sum(0),
    )
    value = float(family.log_evidence(sums[:, : 5 * D]).sum()) + family.log_prior()
    return value, gradient
