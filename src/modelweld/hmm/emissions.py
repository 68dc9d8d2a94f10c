"""States' means and precisions: normal-Wishart prior, posterior from sums, expected log densities, evidence.

Lambda ~ Wishart(nu0, Psi0^-1) and mu ~ N(0, (lambda0 Lambda)^-1), in centred units. With n frames of sum s and squares
S (tempered: all three times zeta),

    lambda = lambda0 + n,  nu = nu0 + n,  m = s / lambda,  Psi = Psi0 + S - lambda m m',  W = E Lambda = nu Psi^-1
    E ln |Lambda| = sum_i psi((nu + 1 - i) / 2) + D ln 2 - ln |Psi|
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln, psi

from modelweld.hmm.statistics import moments
from modelweld.inputs.local_model import Array

SPARE_FREEDOM = 2
"""nu0 - D: the fewest degrees of freedom with which a covariance has an expectation, which is then Psi0."""

LOG_2PI = float(np.log(2 * np.pi))

LEARNING_STEPS = 500
"""Steps in which the scale of the prior settles, statistics given; dozens are usual."""

SETTLED = 1e-12
"""Relative change of the scale at which that ends."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Psi0 = diag(scale) (D,), the covariance expected of a state, and lambda0, what the prior mean is worth."""

    scale: Array
    precision: float

    @property
    def freedom(self) -> float:
        """nu0."""
        return float(len(self.scale) + SPARE_FREEDOM)


@dataclass(frozen=True, eq=False)
class Emissions:
    """Posteriors of K states: m (K, D), lambda (K,), nu (K,), Psi (K, D, D)."""

    mean: Array
    strength: Array
    freedom: Array
    scatter: Array

    @classmethod
    def of(cls, sums: Array, prior: Prior) -> Emissions:
        """Posteriors given (tempered) sums of features (..., P)."""
        n, first, second = moments(sums)
        strength = prior.precision + n
        mean = first / strength[..., None]
        squares = strength[..., None, None] * mean[..., :, None] * mean[..., None, :]
        return cls(mean, strength, prior.freedom + n, np.diag(prior.scale) + second - squares)

    @cached_property
    def precision(self) -> Array:
        """W = E Lambda (K, D, D)."""
        return np.asarray(self.freedom[:, None, None] * np.linalg.inv(self.scatter))

    @property
    def covariance(self) -> Array:
        """Expected covariances (K, D, D)."""
        D = self.mean.shape[-1]
        return np.asarray(self.scatter / (self.freedom - D - 1)[:, None, None])

    @cached_property
    def log_det(self) -> Array:
        """Of the scatter."""
        return np.asarray(np.linalg.slogdet(self.scatter)[1])

    @cached_property
    def expected_log_det(self) -> Array:
        """E ln |Lambda|."""
        D = self.mean.shape[-1]
        return np.asarray(psi((self.freedom[:, None] - np.arange(D)) / 2).sum(axis=1) + D * np.log(2) - self.log_det)

    def coefficients(self) -> Array:
        """(K, P): ``features(x) @ coefficients.T`` are the expected log densities of frames x in all states."""
        D = self.mean.shape[1]
        W = self.precision
        Wm = np.einsum("kij,kj->ki", W, self.mean)
        constant = 0.5 * (self.expected_log_det - D * LOG_2PI - D / self.strength - (Wm * self.mean).sum(axis=1))
        i, j = np.triu_indices(D)
        return np.column_stack([constant, Wm, np.where(i == j, -0.5, -1.0) * W[:, i, j]])

    def divergence(self, prior: Prior) -> float:
        """Sum over states of KL(posterior || prior)."""
        D, W = self.mean.shape[1], self.precision
        off = np.einsum("ki,kij,kj->k", self.mean, W, self.mean)
        ratio = prior.precision / self.strength
        of_means = 0.5 * (D * (ratio - 1 - np.log(ratio)) + prior.precision * off)
        trace = np.einsum("kii,i->k", W, prior.scale)
        prior_log_det = float(np.log(prior.scale).sum())
        of_precisions = (
            _log_normaliser(np.array(prior.freedom), np.array(prior_log_det), D)
            - _log_normaliser(self.freedom, self.log_det, D)
            + 0.5 * (self.freedom - prior.freedom) * self.expected_log_det
            - 0.5 * (self.freedom * D - trace)
        )
        return float((of_means + of_precisions).sum())

    def log_predictive(self, x: Array) -> Array:
        """Log densities (T, K) of new frames: Student-t, the state's mean and covariance integrated out."""
        D = x.shape[1]
        dof = self.freedom - D + 1
        widened = self.scatter * ((self.strength + 1) / (self.strength * dof))[:, None, None]
        root = np.linalg.cholesky(widened)
        constant = gammaln((dof + D) / 2) - gammaln(dof / 2) - 0.5 * D * np.log(dof * np.pi)
        result = np.empty((len(x), len(dof)))
        for k, (m, L) in enumerate(zip(self.mean, root, strict=True)):
            white = np.linalg.solve(L, (x - m).T)
            distance = np.square(white).sum(axis=0)
            result[:, k] = constant[k] - np.log(np.diag(L)).sum() - (dof[k] + D) / 2 * np.log1p(distance / dof[k])
        return result


def log_evidence(sums: Array, prior: Prior) -> Array:
    """Log marginal density of the frames behind (tempered) sums (..., P), up to a constant per frame."""
    at = Emissions.of(sums, prior)
    D = len(prior.scale)
    return np.asarray(
        _log_normaliser(at.freedom, at.log_det, D)
        - _log_normaliser(np.array(prior.freedom), np.log(prior.scale).sum(), D)
        + 0.5 * D * np.log(prior.precision / at.strength)
    )


def pooling_gains(sums: Array, prior: Prior, with_state: int | None = None) -> Array:
    """What the evidence gains when two states become one: (K, K), or (K,) with one state; -inf on the diagonal."""
    alone = log_evidence(sums, prior)
    if with_state is not None:
        gains = log_evidence(sums + sums[with_state], prior) - alone - alone[with_state]
        gains[with_state] = -np.inf
        return np.asarray(gains)
    i, j = np.triu_indices(len(sums), 1)
    result = np.full((len(sums), len(sums)), -np.inf)
    result[i, j] = result[j, i] = log_evidence(sums[i] + sums[j], prior) - alone[i] - alone[j]
    return result


def fitting_scale(emissions: Emissions, prior: Prior) -> Prior:
    """The prior whose scale, all of it times one factor, is likeliest given the posteriors (empirical Bayes)."""
    trace = float(np.einsum("kii,i->", emissions.precision, prior.scale))
    K, D = emissions.mean.shape
    return Prior(prior.scale * (K * prior.freedom * D / trace), prior.precision)


def learned_prior(sums: Array, prior: Prior) -> Prior:
    """The scale and the posteriors that fit each other, given (tempered) sums."""
    for _ in range(LEARNING_STEPS):
        before, prior = prior, fitting_scale(Emissions.of(sums, prior), prior)
        if abs(prior.scale[0] / before.scale[0] - 1) < SETTLED:
            break
    return prior


def _log_normaliser(freedom: Array, log_det: Array, D: int) -> Array:
    """Logarithm of the integral of |Lambda|^((nu - D - 1) / 2) exp(-tr(Psi Lambda) / 2)."""
    gammas = gammaln((freedom[..., None] - np.arange(D)) / 2).sum(axis=-1) + D * (D - 1) / 4 * np.log(np.pi)
    return np.asarray(freedom * D / 2 * np.log(2) + gammas - freedom / 2 * log_det)
