"""Covariances of atoms integrated out: sums of statistics, their log evidence, and its slopes.

An atom has Sigma ~ inverse Wishart(freedom, scale) and, where means are sent, theta ~ N(mean, Sigma / strength). What
is known of it comes as means y ~ N(theta, Sigma / n) and covariances S ~ Wishart(f, Sigma / f), f = n - 1 beside a mean
and n without. Their likelihood depends on sums only:

    exp(C) |Sigma|^(-N/2) exp(-tr Sigma^-1 [M - s theta' - theta s' + W theta theta'] / 2)

    power N    1 for a mean, f for a covariance          weight W   n for a mean
    first s    n y                                       second M   n y y' + f S
    carrier C  D/2 log(n / 2 pi) + (f - D - 1)/2 log|S| - h(f)

with h(x) = log Gamma_D(x/2) - x D/2 log(x/2). Integrated over theta and Sigma,

    log evidence = C + D/2 log(strength / (strength + W)) + F(freedom + N, scale + A) - F(freedom, scale)
    F(x, B) = h(x) - x/2 log|B / x|,    A = M_m - s_m s_m' / (strength + W),

where s_m and M_m are the moments about the prior mean. In h and F the terms of size x log x have been cancelled on
paper: what is left to rounding is below 1e-7 nats for an x of a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from modelweld.families.math.event_densities import effective_count
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

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


@dataclass(frozen=True, eq=False)
class Points:
    """What sites sent: means (L, D), covariances (L, D, D) or None, and numbers of points (L,), zero if not seen.

    `known` (L,) says which covariances count; log_det (L,) is zero where they do not. `located` is False where there
    are no means.
    """

    mean: Array
    scatter: Array | None
    log_det: Array
    known: Array
    count: Array
    located: bool

    @property
    def D(self) -> int:
        """Number of dimensions."""
        return int(self.mean.shape[1])

    @property
    def seen(self) -> Array:
        """1 where anything counts (L,)."""
        return np.asarray((self.count > 0) & (self.located | (self.known > 0)), dtype=np.float64)

    def worth(self, between: float) -> tuple[Array, Array]:
        """Effective counts (L,), at least D + SPARE where the covariance counts, and their slopes in log(between)."""
        n = effective_count(self.count, between)
        floored = (self.known > 0) & (n < self.D + SPARE)
        return np.where(floored, self.D + SPARE, n), np.where(floored, 0.0, n * n / between)

    def statistics(self, n: Array) -> Sums:
        """Of every value, when it is worth n points."""
        D, seen, mean = self.D, self.seen, float(self.located)
        safe = np.where(seen > 0, n, 1.0)
        n = np.where(seen > 0, n, 0.0)
        second = (mean * n)[:, None, None] * self.mean[:, :, None] * self.mean[:, None, :]
        power, carrier = mean * seen, mean * seen * D / 2 * np.log(safe / (2 * np.pi))
        if self.scatter is not None:
            f = np.where(self.known > 0, n - mean, D + SPARE)
            power = power + self.known * f
            carrier = carrier + self.known * ((f - D - 1) / 2 * self.log_det - log_normaliser(f, D))
            second = second + (self.known * f)[:, None, None] * self.scatter
        return Sums(power, mean * n, carrier, (mean * n)[:, None] * self.mean, second)

    def slopes(self, n: Array, at: Slopes, atom: Index) -> Array:
        """Slopes of the log evidence in each value's worth n, given those in the sums of its atom."""
        seen, mean = self.seen, float(self.located)
        off = self.mean[:, :, None] * self.mean[:, None, :] * mean
        result = mean * (self.D / 2 / np.where(seen > 0, n, 1.0) + at.weight[atom] + _dot(self.mean, at.first[atom]))
        if self.scatter is not None:
            f = np.where(self.known > 0, n - mean, self.D + SPARE)
            off = off + self.known[:, None, None] * self.scatter
            result = result + self.known * (self.log_det / 2 - normaliser_slope(f, self.D) + at.power[atom])
        return np.asarray(seen * (result + np.einsum("lij,lij->l", off, at.second[atom])))


def log_normaliser(x: Array, D: int) -> Array:
    """h(x) = log Gamma_D(x/2) - x D/2 log(x/2), for x > D - 1."""
    from scipy.special import gammaln

    x = np.asarray(x, dtype=np.float64)
    leading = x / 2 * np.log(x / 2)
    total = np.full(x.shape, D * (D - 1) / 4 * np.log(np.pi))
    for j in range(D):
        total += gammaln((x - j) / 2) - leading
    return total


def normaliser_slope(x: Array, D: int) -> Array:
    """The derivative of h."""
    from scipy.special import digamma

    x = np.asarray(x, dtype=np.float64)
    total = np.full(x.shape, -D / 2.0)
    for j in range(D):
        total += (digamma((x - j) / 2) - np.log(x / 2)) / 2
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
    weight: Array
    first: Array
    second: Array
    belief: Belief


def slopes(sums: Sums, prior: Belief) -> Slopes:
    """Derivatives of the log evidences of atoms (K,): of each in its sums, of their total in the hyperparameters."""
    D, K, now = len(prior.mean), len(sums.power), posterior(sums, prior)
    precision = now.freedom[:, None, None] * np.linalg.inv(now.scale)
    pull = np.einsum("kij,kj->ki", precision, now.shift)
    centre = now.shift + prior.mean
    first = np.einsum("kij,kj->ki", precision, centre)
    by_power = integral_slope(now.freedom, log_det(now.scale), D)
    of_prior = integral_slope(np.asarray(prior.freedom), log_det(prior.scale), D)
    belief = Belief(
        mean=prior.strength * pull.sum(0),
        strength=float((D / prior.strength - D / now.strength - _dot(now.shift, pull)).sum() / 2),
        freedom=float(by_power.sum() - K * of_prior),
        scale=(K * prior.freedom * np.linalg.inv(prior.scale) - precision.sum(0)) / 2,
    )
    return Slopes(by_power, -(D / now.strength + _dot(centre, first)) / 2, first, -precision / 2, belief)


def log_det(matrices: Array) -> Array:
    """Of positive definite matrices (..., D, D)."""
    return np.asarray(np.linalg.slogdet(matrices)[1])


def _dot(a: Array, b: Array) -> Array:
    return np.asarray((a * b).sum(-1))
