"""Covariances of atoms integrated out: sums of statistics, their log evidence, and its slopes.

An atom has Sigma ~ inverse Wishart(freedom, scale) and, where means are sent, theta ~ N(mean, Sigma / strength). What
is known of it comes as covariances S ~ Wishart(n, Sigma / n), or as points (`Moments`). The likelihood depends on
sums only:

    exp(C) |Sigma|^(-N/2) exp(-tr Sigma^-1 [M - s theta' - theta s' + W theta theta'] / 2)

    power N    n                                         weight W   0
    first s    0                                         second M   n S
    carrier C  (n - D - 1)/2 log|S| - h(n)

with h(x) = log Gamma_D(x/2) - x D/2 log(x/2). Integrated over theta and Sigma,

    log evidence = C + D/2 log(strength / (strength + W)) + F(freedom + N, scale + A) - F(freedom, scale)
    F(x, B) = h(x) - x/2 log|B / x|,    A = M_m - s_m s_m' / (strength + W),

where s_m and M_m are the moments about the prior mean. In h and F the terms of size x log x have been cancelled on
paper: what is left to rounding is below 1e-7 nats for an x of a million.

Covariances as values of a family: which are seen, and which are refused.

Means with covariances, possibly singular ones, as moments of points: see `modelweld.families.wishart.scatter`.

What families of atoms with a covariance share: the prior, its checks, and evidences from sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.values import Array, Index
from modelweld.families.math.event_densities import effective_count

SPARE = 2
"""Points beyond D that a covariance needs to be believed: with D + 2 the inverse of its Wishart matrix has a mean."""


class Belief(NamedTuple):
    """Hyperparameters: mean (D,), strength, freedom, scale (D, D). Covariances alone know nothing of the first two."""

    mean: Array
    strength: float
    freedom: float
    scale: Array

    @property
    def typical(self) -> Array:
        """The covariance of a typical atom, scale / freedom: the inverse of the mean precision."""
        return np.asarray(self.scale / self.freedom)


class Sums(NamedTuple):
    """Summed statistics of atoms: power, weight, carrier (...,), first (..., D), second (..., D, D)."""

    power: Array
    weight: Array
    carrier: Array
    first: Array
    second: Array


class Points(NamedTuple):
    """What sites sent: covariances (L, D, D), and numbers of points (L,), zero if not seen.

    `require` (L,) says which covariances count; log_det (L,) is zero where they do not.
    """

    scatter: Array
    log_det: Array
    known: Array
    number: Array

    @property
    def D(self) -> int:
        """Number of dimensions."""
        return int(self.scatter.shape[1])

    def effective_size(self, between: float) -> tuple[Array, Array]:
        """Effective counts (L,), at least D + SPARE, and their slopes in log(between)."""
        n = effective_count(self.number, between)
        floored = (self.known > 0) & (n < self.D + SPARE)
        return np.where(floored, self.D + SPARE, n), np.where(floored, 0.0, n * n / between)

    def statistics(self, n: Array) -> Sums:
        """Of every value, when it is worth n points."""
        D = self.D
        f = np.where(self.known > 0, n, D + SPARE)
        carrier = self.known * ((f - D - 1) / 2 * self.log_det - log_normaliser(f, D))
        power = self.known * f
        return Sums(power, np.zeros(len(n)), carrier, np.zeros((len(n), D)), power[:, None, None] * self.scatter)

    def slopes(self, n: Array, at: Slopes, atom: Index) -> Array:
        """Slopes of the log evidence in each value's worth n, given those in the sums of its atom."""
        f = np.where(self.known > 0, n, self.D + SPARE)
        by_power = self.log_det / 2 - normaliser_slope(f, self.D) + at.power[atom]
        return np.asarray(self.known * (by_power + np.einsum("lij,lij->l", self.scatter, at.second[atom])))


def log_normaliser(x: Array, D: int) -> Array:
    """h(x) = log Gamma_D(x/2) - x D/2 log(x/2), for x > D - 1."""
    x = np.asarray(x, dtype=np.float64)
    leading = x / 2 * np.log(x / 2)
    total = np.full(x.shape, D * (D - 1) / 4 * np.log(np.pi))
    for j in range(D):
        total += scipy.special.gammaln((x - j) / 2) - leading
    return total


def normaliser_slope(x: Array, D: int) -> Array:
    """The derivative of h."""
    x = np.asarray(x, dtype=np.float64)
    total = np.full(x.shape, -D / 2.0)
    for j in range(D):
        total += (scipy.special.digamma((x - j) / 2) - np.log(x / 2)) / 2
    return total


def integral(x: Array, log_det: Array, D: int) -> Array:
    """F(x, B), given log|B|."""
    return np.asarray(log_normaliser(x, D) - x / 2 * (log_det - D * np.log(x)))


def integral_slope(x: Array, log_det: Array, D: int) -> Array:
    """The derivative of F in x."""
    return np.asarray(normaliser_slope(x, D) + (D - log_det + D * np.log(x)) / 2)


class Posterior(NamedTuple):
    """Of atoms: freedom, strength (...,), the mean's distance from the prior mean (..., D), scale (..., D, D)."""

    freedom: Array
    strength: Array
    shift: Array
    scale: Array

    @property
    def covariance(self) -> Array:
        """The inverse of the posterior mean of the precision: averages of what was sent and of the typical one."""
        return np.asarray(self.scale / self.freedom[..., None, None])


def posterior(sums: Sums, prior: Belief) -> Posterior:
    """Of atoms with these sums."""
    m, strength = prior.mean, prior.strength + sums.weight
    off = sums.first - sums.weight[..., None] * m
    cross = off[..., :, None] * m
    about = sums.second - cross - np.swapaxes(cross, -1, -2) - sums.weight[..., None, None] * np.outer(m, m)
    shift = off / strength[..., None]
    scale = prior.scale + about - off[..., :, None] * shift[..., None, :]
    return Posterior(prior.freedom + sums.power, strength, shift, scale)


def log_evidence(sums: Sums, prior: Belief) -> Array:
    """Log marginal density of what was sent, (...,); exactly zero where nothing was."""
    D, now = len(prior.mean), posterior(sums, prior)
    before = integral(np.asarray(prior.freedom), log_det(prior.scale), D)
    after = integral(now.freedom, log_det(now.scale), D)
    value = sums.carrier + D / 2 * np.log(prior.strength / now.strength) + after - before
    return np.where(sums.power > 0, value, 0.0)


class Slopes(NamedTuple):
    """Of the log evidence: by atom in its sums; over all atoms in the hyperparameters."""

    power: Array
    second: Array
    belief: Belief


def slopes(sums: Sums, prior: Belief) -> Slopes:
    """Derivatives of the log evidences of atoms (K,): of each in its sums, of their total in the hyperparameters."""
    D, K, now = len(prior.mean), len(sums.power), posterior(sums, prior)
    precision = now.freedom[:, None, None] * np.linalg.inv(now.scale)
    pull = np.einsum("kij,kj->ki", precision, now.shift)
    by_power = integral_slope(now.freedom, log_det(now.scale), D)
    of_prior = integral_slope(np.asarray(prior.freedom), log_det(prior.scale), D)
    belief = Belief(
        mean=prior.strength * pull.sum(0),
        strength=float((D / prior.strength - D / now.strength - (now.shift * pull).sum(-1)).sum() / 2),
        freedom=float(by_power.sum() - K * of_prior),
        scale=(K * prior.freedom * np.linalg.inv(prior.scale) - precision.sum(0)) / 2,
    )
    return Slopes(by_power, -precision / 2, belief)


def log_det(matrices: Array) -> Array:
    """Of positive definite matrices (..., D, D)."""
    return np.asarray(np.linalg.slogdet(matrices)[1])
