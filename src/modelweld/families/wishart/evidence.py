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

from abc import abstractmethod
from math import isqrt
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.family import ChecksValues, Family, Predictive
from modelweld.core.values import Array, Index, Stack, blocks
from modelweld.errors import InputError
from modelweld.families.capabilities import Embeds, HasStarts, NamesHyperparameters, Sampled, first_row
from modelweld.families.math.event_densities import effective_count
from modelweld.families.math.start import usable_variance
from modelweld.families.registry import check_choice

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

    `known` (L,) says which covariances count; log_det (L,) is zero where they do not.
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


ASYMMETRY = 1e-8
"""Largest difference of S from its transpose, in units of the deviations: above it, it is no rounding."""

SMALLEST_RATIO = 1e-8
"""Of eigenvalues, below which a logarithm says nothing but rounding."""


def dimensions(width: int) -> int:
    """D of D + D D columns, a mean and its covariance side by side."""
    return (isqrt(1 + 4 * width) - 1) // 2


def counts(weight: Array | None, values: Array) -> Array:
    """Numbers of points (L,): infinite where they are not known, zero where any entry was not seen."""
    return np.full(len(values), np.inf) if weight is None else np.asarray(weight.min(1))


def believed(weight: Array | None, values: Array, D: int) -> Array:
    """1 where a covariance of size D has enough points to count (L,)."""
    return (counts(weight, values) >= D + SPARE).astype(np.float64)


def log_covariances(flat: Array) -> Array:
    """Upper triangles (L, D (D + 1) / 2) of the matrices' logarithms; small eigenvalues count as SMALLEST_RATIO."""
    D = isqrt(flat.shape[1])
    values, vectors = np.linalg.eigh(flat.reshape(-1, D, D))
    least = np.maximum(SMALLEST_RATIO * values[:, -1:], np.finfo(float).tiny)
    logs = (vectors * np.log(np.maximum(values, least))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return np.asarray(logs[(slice(None), *np.triu_indices(D))])


def misfit_beside(stack: Stack) -> tuple[int, str] | None:
    """Rows whose entries are known unequally well."""
    if stack.variance is not None:
        return 0, "come without variance; send `weight`, the number of points"
    if stack.weight is None:
        return None
    low, high = stack.weight.min(1), stack.weight.max(1)
    row = first_row((low != high) & (high > 0))
    if row is None:
        return None
    return (
        row,
        f"have the same weight in all entries of a row, the number of points; found {low[row]:g} to {high[row]:g}",
    )


def misfit_covariances(flat: Array, known: Array) -> tuple[int, str] | None:
    """The first of the covariances (L, D D) that count which is not symmetric, or not positive definite."""
    D = isqrt(flat.shape[1])
    counting = np.flatnonzero(known)
    matrices = flat[counting].reshape(-1, D, D)
    variances = np.einsum("lii->li", matrices)
    bad = first_row((variances <= 0).any(1))
    if bad is not None:
        return int(counting[bad]), f"have a positive diagonal; found {variances[bad].min():g}"
    deviations = np.sqrt(variances)
    scaled = matrices / deviations[:, :, None] / deviations[:, None, :]
    skew = np.abs(scaled - np.swapaxes(scaled, 1, 2)).max((1, 2), initial=0.0)
    bad = first_row(skew > ASYMMETRY)
    if bad is not None:
        i, j = np.unravel_index(np.abs(scaled[bad] - scaled[bad].T).argmax(), (D, D))
        pair = f"{matrices[bad, i, j]:g} at ({i}, {j}) and {matrices[bad, j, i]:g} at ({j}, {i})"
        return int(counting[bad]), f"are symmetric matrices; found {pair}"
    smallest = np.linalg.eigvalsh(scaled)[:, 0]
    bad = first_row(smallest <= D * np.finfo(float).eps)
    if bad is not None:
        lowest = float(np.linalg.eigvalsh(matrices[bad])[0])
        return int(counting[bad]), f"are positive definite matrices; found a smallest eigenvalue of {lowest:g}"
    return None


SYMMETRY_ROUNDING = 1e-6
"""Of the deviations of all points: a covariance less symmetric, or more negative, than this has not been rounded (to
single precision, at worst) but is wrong."""


def parts(values: Array) -> tuple[Array, Array]:
    """Means (L, D) and covariances (L, D, D), these made symmetric."""
    D = dimensions(values.shape[1])
    matrices = values[:, D:].reshape(-1, D, D)
    return values[:, :D], (matrices + np.swapaxes(matrices, 1, 2)) / 2


def number_of_points(values: Array, weight: Array | None) -> Array:
    """Numbers of points (L,): one where none are given."""
    return np.ones(len(values)) if weight is None else counts(weight, values)


def all_points(stack: Stack) -> tuple[Array, Array]:
    """Mean (D,) and variances (D,) of all points of all values; positive even when they coincide."""
    n = number_of_points(stack.values, stack.weight)
    share = n / max(n.sum(), np.finfo(float).tiny)
    means, covariances = parts(stack.values)
    origin = share @ means
    within = np.maximum(np.einsum("lii->li", covariances), 0.0)
    return origin, usable_variance(origin, share @ (within + np.square(means - origin)), means, pooled=False)


def not_negative(matrices: Array) -> Array:
    """The same symmetric matrices (L, D, D) with zero for eigenvalues that rounding has made negative.

    Those of the correlations: channels in small units must not be lost beside those in large ones.
    """
    variances = np.einsum("lii->li", matrices)
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
    unit = deviations[:, :, None] * deviations[:, None, :]
    values, vectors = np.linalg.eigh(matrices / unit)
    mended = unit * ((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2))
    return np.where((values[:, 0] < 0)[:, None, None], mended, matrices)


def misfit_singular(stack: Stack) -> tuple[int, str] | None:
    """The first covariance that counts and is not symmetric, or negative in some direction."""
    D = dimensions(stack.values.shape[1])
    seen = number_of_points(stack.values, stack.weight) > 0
    given, (_, matrices) = stack.values[:, D:].reshape(-1, D, D), parts(stack.values)
    deviations = np.sqrt(all_points(stack)[1])
    unit = np.outer(deviations, deviations)
    skew = np.abs(given - np.swapaxes(given, 1, 2)) / unit
    row = first_row(seen & (skew.max((1, 2)) > SYMMETRY_ROUNDING))
    if row is not None:
        i, j = sorted(map(int, np.unravel_index(skew[row].argmax(), (D, D))))
        pair = f"{given[row, i, j]:g} at ({i}, {j}) and {given[row, j, i]:g} at ({j}, {i})"
        return row, f"have a symmetric covariance beside the mean; found {pair}"
    row = first_row(seen & (np.linalg.eigvalsh(matrices / unit)[:, 0] < -SYMMETRY_ROUNDING))
    if row is not None:
        lowest = float(np.linalg.eigvalsh(matrices[row])[0])
        return row, f"have a covariance without negative eigenvalues beside the mean; found {lowest:g}"
    return None


class InverseWishart(ChecksValues, Predictive, NamesHyperparameters, HasStarts, Embeds, Sampled, Family):
    """Atoms have Sigma ~ inverse Wishart(freedom, scale). Subclasses are dataclasses with these fields.

    They write `sums`, what rows are in the terms of `modelweld.families.wishart.evidence`, and `belief`.
    """

    freedom: float | None
    scale: ArrayLike | None
    learning: Literal["likelihood", "nothing"]

    @abstractmethod
    def sums(self, rows: Array) -> Sums:
        """Summed rows as summed statistics."""

    @property
    @abstractmethod
    def belief(self) -> Belief:
        """The hyperparameters, the mean measured from the origin."""

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of what is behind summed rows."""
        return log_evidence(self.sums(rows), self.belief)

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: a determinant per value and atom, in blocks."""
        result = np.empty((len(own), len(sums)))
        before = self.log_evidence(sums)
        for part in blocks(len(own), sums.size):
            result[part] = self.log_evidence(own[part, None, :] + sums) - before
        return result

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_choice(self, "learning")
        if self.freedom is not None and not np.isfinite(self.freedom):
            raise InputError(f"{name}: freedom is a finite number; found {self.freedom!r}.")
        if self.scale is None:
            return
        scale = np.array(self.scale, dtype=np.float64)
        if scale.ndim != 2 or scale.shape[0] != scale.shape[1] or not np.isfinite(scale).all():
            raise InputError(f"{name}: scale is a finite matrix (D, D); found shape {scale.shape}.")
        found = misfit_covariances(scale.reshape(1, -1), np.ones(1))
        if found is not None:
            raise InputError(f"{name}: the scale must be a covariance; covariances {found[1]}.")
        object.__setattr__(self, "scale", scale)
        self.check_freedom(len(scale))

    def check_freedom(self, D: int) -> None:
        """Refuse an inverse Wishart of matrices (D, D) that is no distribution."""
        if self.freedom is not None and not self.freedom > D - 1:
            raise InputError(
                f"{type(self).__name__}: freedom must exceed D - 1 = {D - 1} for matrices of size {D}; "
                f"found {self.freedom!r}."
            )
