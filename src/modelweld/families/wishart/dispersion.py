"""Maximum likelihood of hyperparameters of atoms with covariances, when the matching is known: by gradient.

The search runs over logarithms and a Cholesky factor, each measured from the present values: log(freedom - D + 1), the
factor A of typical = L A A' L' (typical = scale / freedom, present value L L'; its diagonal as logarithms), for means
their prior mean in units of the atoms' spread and log(strength), and log(between), on which the statistics depend.

First effective sample sizes of covariances, read off values that most likely belong to one atom.

Two covariances of one atom, each worth n points, have by Bartlett's test

    n (2 log|(S + S')/2| - log|S| - log|S'|) ~ chi^2 with D (D + 1) / 2 degrees of freedom, about.

Like `modelweld.families.math.start` for real values, this looks at the closest pairs in optimal matchings between the
largest groups; no units, scales or rotations come in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack
from modelweld.families.math.event_densities import SMALLEST_SHARE
from modelweld.families.math.maximise import LARGEST_LOG_STEP, climb, log_bounds
from modelweld.families.math.start import CLOSER, CLOSEST, GROUPS_COMPARED, rank_matched
from modelweld.families.normal_gamma import MOST_UPDATE_STEPS, STRENGTHS
from modelweld.families.wishart.evidence import SPARE, Belief, Points, Slopes, Sums, log_det, log_evidence, slopes

LARGEST_BETWEEN = 1e6
"""Covariances that agree to a tenth of a percent (the square root of 2 / 1e6) coincide for all purposes: beyond, the
likelihood would have to be told from rounding."""

FREEDOMS = (0.01, 1e6)
"""Bounds of freedom - (D - 1): from atoms with nothing in common to atoms that are all the same."""

HOPELESS = 1e10
"""Nats by which a search is told to turn back where a scale has no inverse."""


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
                log_bounds(free.between, self.between, D, LARGEST_BETWEEN),
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
    told = x.any() and np.linalg.matrix_rank(best.scale, hermitian=True) == search.D
    return (best, width) if told else (old, between)


MOST_PAIRS = 20_000
"""Pairs of values of two groups that are compared, at most: a determinant each."""

UNKNOWN_BETWEEN = 10
"""Times D + SPARE: what values are worth when there are no two groups to compare."""


def first_between(points: Points, stack: Stack) -> list[float]:
    """Guesses worth trying: the closest quarter corrected by its expected share, and the closest tenth as it is."""
    D = points.D
    groups = [rows[points.known[rows] > 0] for rows in map(stack.group, map(int, stack.largest(GROUPS_COMPARED)))]
    ranked = rank_matched([g for g in groups if len(g)], partial(match_discrepancies, points))
    if not len(ranked):
        return [float(UNKNOWN_BETWEEN * (D + SPARE))]
    freedom = D * (D + 1) / 2
    quarter, tenth = (float(ranked[int(q * (len(ranked) - 1))]) for q in (CLOSEST, CLOSER))
    expected = 2 * scipy.special.gammaincinv(freedom / 2, CLOSEST)
    own = float(np.mean(1 / points.number[points.known > 0]))  # what the numbers of points explain of it
    noise = np.array([quarter / expected, tenth / freedom])
    excess = np.maximum(noise - own, SMALLEST_SHARE * noise)
    return [float(1 / x) for x in np.clip(excess, 1 / LARGEST_BETWEEN, 1 / (D + SPARE))]


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
