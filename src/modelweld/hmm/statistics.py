"""What the data say of states, their sufficient statistics: sums of features, moves between them, starts. All adds.

What a fitted model remembers of its data, in the units of the data: all that fusion needs, and it adds.

What is handed in: frames of all sequences one below the other, and where the sequences end. The border of this
package.

States' means and precisions: normal-Wishart prior, posterior from sums, expected log densities, evidence.

Lambda ~ Wishart(nu0, Psi0^-1) and mu ~ N(0, (lambda0 Lambda)^-1), in centred units. With n frames of sum s and squares
S (tempered: all three times zeta),

    lambda = lambda0 + n,  nu = nu0 + n,  m = s / lambda,  Psi = Psi0 + S - lambda m m',  W = E Lambda = nu Psi^-1
    E ln |Lambda| = sum_i psi((nu + 1 - i) / 2) + D ln 2 - ln |Psi|
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, psi

from modelweld.core.gaussian import LOG_TWO_PI
from modelweld.core.values import LARGEST_VALUE, Array, Index, offsets_of
from modelweld.errors import InputError
from modelweld.families.wishart.evidence import SPARE


def features(x: Array) -> Array:
    """[1, x, x_i x_j for i <= j] of frames (T, D): sums of these are all a Gaussian asks of its frames."""
    i, j = np.triu_indices(x.shape[1])
    return np.column_stack([np.ones(len(x)), x, x[:, i] * x[:, j]])


def dimensions(width: int) -> int:
    """D of features of this width, 1 + D + D (D + 1) / 2."""
    return int((np.sqrt(8 * width + 1) - 3) / 2)


def moments(sums: Array) -> tuple[Array, Array, Array]:
    """Number (...), sum (..., D) and sum of squares (..., D, D) from sums of features."""
    D = dimensions(sums.shape[-1])
    i, j = np.triu_indices(D)
    second = np.empty((*sums.shape[:-1], D, D))
    second[..., i, j] = second[..., j, i] = sums[..., 1 + D :]
    return sums[..., 0], sums[..., 1 : 1 + D], second


@dataclass(frozen=True, eq=False)
class Statistics:
    """Expected sums of features (K, P), moves (K, K) and starts (K,) of K states; frames count fully (not tempered)."""

    sums: Array
    moves: Array
    starts: Array

    @property
    def counts(self) -> Array:
        """Expected frames of each state."""
        return np.asarray(self.sums[:, 0])

    @property
    def by_size(self) -> Index:
        """States by decreasing number of frames."""
        return np.argsort(-self.counts, kind="stable")

    def take(self, order: Index) -> Statistics:
        """These states only, in this order."""
        return Statistics(self.sums[order], self.moves[np.ix_(order, order)], self.starts[order])

    def merge(self, i: int, j: int) -> Statistics:
        """State j added to state i."""
        into = np.arange(len(self.sums))
        into[j] = i
        join = np.delete(np.eye(len(into))[into], j, axis=1)  # (K, K - 1), one 1 in every row
        return Statistics(join.T @ self.sums, join.T @ self.moves @ join, join.T @ self.starts)


VARIANCE_ROUNDING = 1e-12
"""Variance, as a share of the mean square, that is no more than rounding; added, so that no variance is negative."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Expected numbers and moments of the frames of K states.

    Parameters
    ----------
    counts : array (K,)
        Frames, each worth one whatever zeta is.
    means, covariances : arrays (K, D), (K, D, D)
        Of these frames: with the counts they are the sums of frames and of their squares, without loss of digits.
    moves, starts : arrays (K, K), (K,)
        Transitions, and sequences that begin in a state.
    """

    counts: Array
    means: Array
    covariances: Array
    moves: Array
    starts: Array

    @property
    def visits(self) -> Array:
        """How often each state is entered: starts, and moves from other states. Frames of one visit are kin."""
        return np.asarray(self.starts + self.moves.sum(axis=0) - np.diag(self.moves))

    @property
    def centre(self) -> Array:
        """Mean of all frames (D,)."""
        return np.asarray(self.counts @ self.means / self.counts.sum())

    @property
    def unit(self) -> Array:
        """Standard deviation of all frames (D,)."""
        spread = np.einsum("kii->ki", self.covariances) + np.square(self.means - self.centre)
        return np.asarray(np.sqrt(self.counts @ spread / self.counts.sum()))

    def statistics(self) -> Statistics:
        """Sums of features of frames that are centred and in these units."""
        centre, unit = self.centre, self.unit
        mean = (self.means - centre) / unit
        second = self.covariances / unit[:, None] / unit + mean[:, :, None] * mean[:, None, :]
        i, j = np.triu_indices(len(unit))
        per_frame = np.column_stack([np.ones(len(mean)), mean, second[:, i, j]])
        return Statistics(self.counts[:, None] * per_frame, self.moves, self.starts)

    @classmethod
    def of(cls, statistics: Statistics, centre: Array, unit: Array) -> Summary:
        """The reverse."""
        n, first, second = moments(statistics.sums)
        mean, square = first / n[:, None], second / n[:, None, None]
        covariance = square - mean[:, :, None] * mean[:, None, :] + VARIANCE_ROUNDING * square * np.eye(len(unit))
        scaled = centre + unit * mean, covariance * unit[:, None] * unit
        return cls(n.copy(), *scaled, statistics.moves, statistics.starts)


class Sequences(NamedTuple):
    """Frames (T, D); sequence s is ``frames[offsets[s] : offsets[s + 1]]``."""

    frames: Array
    offsets: Index

    def in_canonical_order(self) -> Sequences:
        """The same sequences in an order that depends on their content alone."""
        parts = sorted(
            (self.frames[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)),
            key=lambda part: (len(part), tuple(part[0]), part.tobytes()),
        )
        return Sequences(np.concatenate(parts), offsets_of([len(part) for part in parts]))

    def units(self) -> tuple[Array, Array]:
        """Means and standard deviations of features (D,), or an `InputError` if they tell no states apart."""
        T, D = self.frames.shape
        if T < D + 2:
            raise InputError(f"{T} frames are too few for states with {D} features: at least {D + 2} are needed.")
        centre, unit = self.frames.mean(axis=0), self.frames.std(axis=0)
        constant = np.flatnonzero(unit <= np.finfo(float).eps * np.abs(centre))
        if constant.size:
            raise InputError(f"feature {constant[0]} is constant ({centre[constant[0]]:g}): leave it out.")
        return centre, unit


def check_sequences(X: ArrayLike, lengths: ArrayLike | None = None, features: int | None = None) -> Sequences:
    """Frames and offsets, or an `InputError` that says what is wrong.

    Parameters
    ----------
    X : array (T, D)
        Frames.
    lengths : sequence of int, optional
        Frames of each sequence; default: X is one.
    features : int, optional
        How many columns a fitted model knows.
    """
    try:
        frames = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError(f"X must be an array of real numbers (frames, features); found {type(X).__name__}.") from None
    if frames.ndim != 2 or 0 in frames.shape:
        hint = " One feature is X.reshape(-1, 1)." if frames.ndim == 1 else ""
        raise InputError(f"X must have the shape (frames, features), neither zero; found {frames.shape}.{hint}")
    bad = np.flatnonzero(~(np.abs(frames) <= LARGEST_VALUE).all(axis=1))
    if bad.size:
        column = int(np.flatnonzero(~(np.abs(frames[bad[0]]) <= LARGEST_VALUE))[0])
        found = f"{frames[bad[0], column]} in frame {bad[0]}, feature {column} ({bad.size} such frames)"
        raise InputError(f"X must be finite: found {found}. Cut the sequences there (`lengths`), or fill the gaps.")
    if features is not None and frames.shape[1] != features:
        raise InputError(f"this model knows {features} features; X has {frames.shape[1]}.")
    return Sequences(frames, _check_offsets(lengths, len(frames)))


def _check_offsets(lengths: ArrayLike | None, frames: int) -> Index:
    if lengths is None:
        return offsets_of([frames])
    found = np.atleast_1d(np.asarray(lengths))
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found < 1).any():
        raise InputError(f"lengths must be whole numbers of frames, at least 1 each; found {lengths!r}.")
    if found.sum() != frames:
        raise InputError(f"lengths add up to {found.sum()}, but X has {frames} frames: say how long each sequence is.")
    return offsets_of(found.astype(np.int64))


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
        return float(len(self.scale) + SPARE)


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
        constant = 0.5 * (self.expected_log_det - D * LOG_TWO_PI - D / self.strength - (Wm * self.mean).sum(axis=1))
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


def learn_prior(sums: Array, prior: Prior) -> Prior:
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
