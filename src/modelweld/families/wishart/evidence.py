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

Maximum likelihood of hyperparameters of atoms with covariances, when the matching is known: by gradient.

The search runs over logarithms and a Cholesky factor, each measured from the present values: log(freedom - D + 1), the
factor A of typical = L A A' L' (typical = scale / freedom, present value L L'; its diagonal as logarithms), for means
their prior mean in units of the atoms' spread and log(strength), and log(between), on which the statistics depend.

First effective sample sizes of covariances, read off values that most likely belong to one atom.

Two covariances of one atom, each worth n points, have by Bartlett's test

    n (2 log|(S + S')/2| - log|S| - log|S'|) ~ chi^2 with D (D + 1) / 2 degrees of freedom, about.

Like `modelweld.families.math.start` for real values, this looks at the closest pairs in optimal matchings between
groups, of which each pair has a vote; no units, scales or rotations come in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack
from modelweld.families.math.event_densities import SMALLEST_SHARE, effective_count
from modelweld.families.math.maximise import LARGEST_LOG_STEP, climb, log_bounds
from modelweld.families.math.share_starts import pair_evenly
from modelweld.families.math.start import CLOSER, CLOSEST
from modelweld.families.normal_gamma import MOST_UPDATE_STEPS, STRENGTHS

SPARE = 2
"""Points beyond D that a covariance needs to count: with D + 2 the inverse of its Wishart matrix has a mean."""


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


FREEDOMS = (0.01, 1e6)
"""Bounds of freedom - (D - 1): from atoms with nothing in common to atoms that are all the same; the second is also
that of `between`: covariances that agree to a tenth of a percent (the square root of 2 / 1e6) coincide for all
purposes, and beyond, the likelihood would have to be distinguished from rounding."""

HOPELESS = 1e10
"""Nats by which a search is made to turn back where a scale has no inverse."""


@dataclass(frozen=True, eq=False)
class Matched:
    """Values sorted by atom, to be summed for any `between`."""

    points: Points
    atom: Index

    @classmethod
    def of(cls, points: Points, labels: Index) -> Matched:
        """From values in any order and the atom of each."""
        order = np.argsort(labels, kind="stable")
        return cls(Points(*(x[order] for x in points)), np.unique(labels[order], return_inverse=True)[1])

    @property
    def any_matched(self) -> bool:
        """Whether some atom has two values: otherwise nothing tells noise from spread."""
        return bool((np.bincount(self.atom, self.points.known) > 1).any())

    def sums(self, between: float) -> Sums:
        """By atom."""
        statistics = self.points.statistics(self.points.effective_size(between)[0])
        first = np.flatnonzero(np.diff(self.atom, prepend=-1))
        return Sums(*(np.add.reduceat(x, first, axis=0) for x in statistics))

    def slope(self, between: float, at: Slopes) -> float:
        """Of the log evidence in log(between)."""
        n, steep = self.points.effective_size(between)
        return float((self.points.slopes(n, at, self.atom) * steep).sum())


@dataclass(frozen=True)
class Free:
    """Which hyperparameters are learned beside the scale."""

    mean: bool = True  # with its strength
    freedom: bool = True
    between: bool = True


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where the search runs: vectors x (D + 3 + D (D + 1) / 2,) measured from old hyperparameters, which are zero.

    Shift of the mean, logarithms of strength, freedom and `between`, and the lower triangle of A.
    """

    old: Belief
    between: float

    @cached_property
    def D(self) -> int:
        """Number of dimensions."""
        return len(self.old.mean)

    @cached_property
    def factor(self) -> Array:
        """L."""
        return np.asarray(np.linalg.cholesky(self.old.typical))

    @cached_property
    def unit(self) -> Array:
        """Of the mean: the spread of atoms."""
        return np.asarray(self.factor / np.sqrt(self.old.strength))

    @cached_property
    def below(self) -> tuple[Index, Index]:
        """Rows and columns of the lower triangle."""
        return np.tril_indices(self.D)

    @cached_property
    def diagonal(self) -> NDArray[np.bool_]:
        """Which of these are on the diagonal."""
        return np.asarray(self.below[0] == self.below[1])

    def at(self, x: Array) -> tuple[Belief, float, Array]:
        """Hyperparameters, `between` and A."""
        D, old = self.D, self.old
        shift, (log_strength, log_freedom, log_between), entries = x[:D], x[D : D + 3], x[D + 3 :]
        A = np.zeros((D, D))
        A[self.below] = np.where(self.diagonal, np.exp(np.where(self.diagonal, entries, 0.0)), entries)
        root = self.factor @ A
        freedom = D - 1 + (old.freedom - D + 1) * float(np.exp(log_freedom))
        strength = old.strength * float(np.exp(log_strength))
        belief = Belief(old.mean + self.unit @ shift, strength, freedom, freedom * (root @ root.T))
        return belief, self.between * float(np.exp(log_between)), A

    def gradient(self, by: Belief, by_between: float, belief: Belief, A: Array) -> Array:
        """Slopes in x, from those in hyperparameters and in log(between)."""
        by_factor = 2 * belief.freedom * (self.factor.T @ by.scale @ self.factor @ A)
        entries = by_factor[self.below] * np.where(self.diagonal, A[self.below], 1.0)
        by_freedom = (by.freedom + float((by.scale * belief.typical).sum())) * (belief.freedom - self.D + 1)
        logs = [by.strength * belief.strength, by_freedom, by_between]
        return np.concatenate([self.unit.T @ by.mean, logs, entries])

    def bounds(self, free: Free, floor: Array | float) -> tuple[Array, Array]:
        """Of x, from below and above."""
        D, old = self.D, self.old
        lowest = np.sqrt(np.maximum(floor, NOISE_FLOOR * np.diag(old.typical))) / np.diag(self.factor)
        logs = np.array(
            [
                log_bounds(free.mean, old.strength, *STRENGTHS),
                log_bounds(free.freedom, old.freedom - D + 1, *FREEDOMS),
                log_bounds(free.between, self.between, D, FREEDOMS[1]),
            ]
        )
        shift = np.full(D, np.inf if free.mean else 0.0)
        low, high = (np.where(self.diagonal, sign * LARGEST_LOG_STEP, sign * np.inf) for sign in (-1, 1))
        low[self.diagonal] = np.clip(np.log(lowest), -LARGEST_LOG_STEP, 0.0)
        return np.concatenate([-shift, logs[:, 0], low]), np.concatenate([shift, logs[:, 1], high])


def maximise(
    given: Matched | Sums, old: Belief, between: float, free: Free, floor: Array | float = 0.0
) -> tuple[Belief, float]:
    """The most likely hyperparameters and `between`; never less likely than the old ones.

    `between` needs the values; with sums alone it stays. What each dimension of the typical covariance has beyond the
    ones before it does not fall below `floor` (D,), nor below NOISE_FLOOR of its present variance: values in less than
    D directions would make the likelihood unbounded. A scale whose determinant is rounding, as such values can bring
    about all the same, is not taken: the old ones stay.
    """
    search = Coordinates(old, between)
    matched = given if isinstance(given, Matched) and free.between else None
    fixed = given.sums(between) if isinstance(given, Matched) else given

    def log_likelihood(x: Array) -> tuple[float, Array]:
        belief, width, A = search.at(x)
        sums = fixed if matched is None else matched.sums(width)
        try:
            slope = slopes(sums, belief)
        except np.linalg.LinAlgError:  # a step too far: the scale is rounding
            return -HOPELESS, np.zeros(len(x))
        by_between = 0.0 if matched is None else matched.slope(width, slope)
        return float(log_evidence(sums, belief).sum()), search.gradient(slope.belief, by_between, belief, A)

    low, high = search.bounds(replace(free, between=matched is not None), floor)
    x = climb(log_likelihood, np.zeros(len(low)), low, high, most_steps=MOST_UPDATE_STEPS)
    best, width, _ = search.at(x)
    found = x.any() and np.linalg.matrix_rank(best.scale, hermitian=True) == search.D
    return (best, width) if found else (old, between)


MOST_PAIRS = 2_000
"""Pairs of values of two groups that are compared, at most: a determinant each."""

UNKNOWN_BETWEEN = 10
"""Times D + SPARE: what values are worth when there are no two groups to compare."""


def first_between(points: Points, stack: Stack) -> list[float]:
    """Guesses worth trying: the closest quarter corrected by its expected share, and the closest tenth as it is.

    Of each pair of groups, and of these the median.
    """
    D = points.D
    groups = [rows[points.known[rows] > 0] for rows in map(stack.group, map(int, stack.largest(len(stack.sizes))))]
    votes = [np.sort(match_discrepancies(points, *pair)) for pair in pair_evenly([g for g in groups if len(g)])]
    if not votes:
        return [float(UNKNOWN_BETWEEN * (D + SPARE))]
    freedom = D * (D + 1) / 2
    quarter, tenth = (float(np.median([own[int(q * (len(own) - 1))] for own in votes])) for q in (CLOSEST, CLOSER))
    expected = 2 * scipy.special.gammaincinv(freedom / 2, CLOSEST)
    own = float(np.mean(1 / points.number[points.known > 0]))  # what the numbers of points explain of it
    noise = np.array([quarter / expected, tenth / freedom])
    excess = np.maximum(noise - own, SMALLEST_SHARE * noise)
    return [float(1 / x) for x in np.clip(excess, 1 / FREEDOMS[1], 1 / (D + SPARE))]


def match_discrepancies(points: Points, a: Index, b: Index) -> Array:
    """Chi squares of one point each of equal atoms, for rows a and those of b that they are matched with."""
    a = a[: max(1, MOST_PAIRS // len(b))]
    result = np.empty((len(a), len(b)))
    for i, row in enumerate(a):
        middle = (points.scatter[row] + points.scatter[b]) / 2
        result[i] = 2 * log_det(middle) - points.log_det[row] - points.log_det[b]
    table = np.maximum(result, 0.0)
    return np.asarray(table[scipy.optimize.linear_sum_assignment(table)])


def first_belief(points: Points, freedom: float | None, scale: ArrayLike | None) -> Belief:
    """Average covariance of all values, from which to look for the most likely one."""
    D, known = points.D, points.known
    freedom = float(D + SPARE) if freedom is None else freedom
    average = np.eye(D) if not known.any() else (known[:, None, None] * points.scatter).sum(0) / known.sum()
    return Belief(
        np.zeros(D), 1.0, freedom, freedom * average if scale is None else np.asarray(scale, dtype=np.float64)
    )
