"""Fragments of Gaussian values: a site's value of an atom is their weighted mean, and they differ by a variance of
their own.

An estimated mixture that splits a component sends several values v_1 ... v_R of one atom. What lies near the atom, with
the noise of sites, is their mean; how far they lie apart is a matter of the component's own width W, however little
sites differ. With the values' own variances e_i (standard errors, squared), in every dimension

    y = sum p_i v_i / sum p_i ~ N(theta, noise + e),    p_i = 1 / e_i,  e = 1 / sum p_i
    contrasts of v_1 ... v_R  ~ N(0, t) each of R - 1,   t = tau W + mean of e_i

so that log p(v_1 ... v_R | theta) is the log density of y less [(R - 1) log(2 pi t) + log R + Q / t] / 2, with Q the
squares about the plain mean. tau is learned, with an inverse gamma prior about EXPECTED / D: a cut moves two fragments
by .8 deviations in one direction, so it is the trace that counts.

All of this depends on sums over fragments, [seen, p, p v, p / weight, v, v^2, e] side by side.
"""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Array, Index, Stack

EXPECTED, DEGREES = 1.6, 4.0
"""Prior of tau: inverse gamma of so many degrees about EXPECTED / D. Of 1.28, 1.6 and 2.5 the middle one is best."""

LEAST_ERROR = 1e-6
"""Of the width: values are not known better than that when they are weighed against each other."""

STEPS = np.linspace(-1.0, 1.0, 21)
"""Of log tau about the best so far, in ever smaller units."""


def statistics(y: Array, stack: Stack, width: Array) -> Array:
    """Of values (N, D) measured from the origin: (N, 7 D)."""
    weight = np.ones_like(y) if stack.weight is None else stack.weight
    seen = (weight > 0).astype(np.float64)
    error = np.maximum(0.0 if stack.variance is None else stack.variance, LEAST_ERROR * width)
    p = seen / error
    y = seen * y
    return np.concatenate([seen, p, p * y, p / np.where(weight > 0, weight, 1.0), y, y * y, seen * error], axis=1)


def parts(sums: Array) -> list[Array]:
    """The seven statistics that stand side by side (C, 7 D)."""
    D = sums.shape[1] // 7
    return [sums[:, i * D : (i + 1) * D] for i in range(7)]


def means_of(sums: Array) -> tuple[Array, Array, Array]:
    """Weighted means (C, D) of fragments, their variances and weights; zero where nothing was seen."""
    _, P, S, inverse, *_ = parts(sums)
    some = np.where(P > 0, P, 1.0)
    weight = np.where(P > 0, some / np.where(inverse > 0, inverse, 1.0), 0.0)
    return S / some, np.where(P > 0, 1.0 / some, 0.0), weight


def pool(sums: Array, ratio: Array, width: Array, tau: float) -> Array:
    """Rows (C, 5 D) of weighted means, as of `modelweld.core.gaussian`; `ratio` is that of own variances to noise.

    What contrasts add to the log evidence stands with the logarithms of weights, of which it is twice as much.
    """
    n, P, S, inverse, *_ = parts(sums)
    some, seen = np.where(P > 0, P, 1.0), np.minimum(n, 1.0)
    y, own = S / some, (inverse + ratio) / some
    w = seen / own
    log_w = 2 * log_contrasts(sums, width, tau) - seen * np.log(own)
    return np.concatenate([seen, w, w * y, w * y * y, log_w], axis=1)


def log_contrasts(sums: Array, width: Array, tau: float) -> Array:
    """Log density (C, D) of the contrasts, and of changing to them."""
    n, _, _, _, S, Q, e = parts(sums)
    some = np.maximum(n, 1.0)
    t = tau * width + e / some
    squares = np.maximum(Q - S * S / some, 0.0)
    return np.asarray(-0.5 * ((some - 1) * np.log(2 * np.pi * t) + np.log(some) + squares / t))


def log_prior_of(tau: float, D: int) -> float:
    """Log density of tau, up to a constant."""
    ratio = EXPECTED / D / tau
    return float(0.5 * DEGREES * (np.log(ratio) - ratio))


def best_tau(sums: Array, width: Array, old: float) -> float:
    """The most probable tau, given the statistics of sites' atoms; never less probable than the old one."""
    D = len(width)
    several = sums[(sums[:, :D] > 1).any(axis=1)]

    def value(tau: float) -> float:
        return float(log_contrasts(several, width, tau).sum()) + log_prior_of(tau, D)

    best = max(old, EXPECTED / D, key=value)
    if len(several):
        for unit in (3.0, 0.3, 0.03):
            best = max([best, *(best * np.exp(unit * STEPS))], key=value)
    return float(best)


def pool_stack(sums: Array, origin: Array, offsets: Index) -> Stack:
    """Means of fragments as values with variances and weights."""
    y, variance, weight = means_of(sums)
    return Stack(origin + y, offsets, variance, None if (weight == 1.0).all() else weight)
