"""First effective sample sizes of covariances, read off values that most likely belong to one atom.

Two covariances of one atom, each worth n points, have by Bartlett's test

    n (2 log|(S + S')/2| - log|S| - log|S'|) ~ chi^2 with D (D + 1) / 2 degrees of freedom, about,

and their means n (y - y')' ((S + S')/2)^-1 (y - y') / 2 ~ chi^2 with D more. Like `modelweld.families.math.start` for
real values, this looks at the closest pairs in optimal matchings between the largest groups; no units, scales or
rotations come in.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from modelweld.families.math.effective_size import SMALLEST_SHARE
from modelweld.families.math.start import CLOSER, CLOSEST, ENOUGH_DISTANCES, GROUPS_COMPARED
from modelweld.families.wishart.evidence import SPARE, Belief, Points, log_det
from modelweld.families.wishart.learning import LARGEST_BETWEEN, Free, Matched, maximise
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack

MOST_PAIRS = 20_000
"""Pairs of values of two groups that are compared, at most: a determinant each."""

UNKNOWN_BETWEEN = 10
"""Times D + SPARE: what values are worth when there are no two groups to compare."""


def first_between(points: Points, stack: Stack) -> list[float]:
    """Guesses worth trying: the closest quarter corrected by its expected share, and the closest tenth as it is."""
    from scipy.optimize import linear_sum_assignment
    from scipy.special import gammaincinv

    D = points.D
    groups = [rows[points.known[rows] > 0] for rows in map(stack.group, map(int, stack.largest(GROUPS_COMPARED)))]
    distances: list[Array] = []
    for a, b in combinations([g for g in groups if len(g)], 2):
        if sum(map(len, distances)) < ENOUGH_DISTANCES:
            table = discrepancies(points, a[: max(1, MOST_PAIRS // len(b))], b)
            distances.append(table[linear_sum_assignment(table)])
    if not distances:
        return [float(UNKNOWN_BETWEEN * (D + SPARE))]
    ranked = np.sort(np.concatenate(distances))
    freedom = D * (D + 1) / 2 + D * points.located
    quarter, tenth = (float(ranked[int(q * (len(ranked) - 1))]) for q in (CLOSEST, CLOSER))
    expected = 2 * gammaincinv(freedom / 2, CLOSEST)
    own = float(np.mean(1 / points.count[points.known > 0]))  # what the numbers of points explain of it
    noise = np.array([quarter / expected, tenth / freedom])
    excess = np.maximum(noise - own, SMALLEST_SHARE * noise)
    return [float(1 / x) for x in np.clip(excess, 1 / LARGEST_BETWEEN, 1 / (D + SPARE))]


def discrepancies(points: Points, a: Index, b: Index) -> Array:
    """Chi squares of one point each of equal atoms, for rows a against rows b."""
    assert points.scatter is not None
    result = np.empty((len(a), len(b)))
    for i, row in enumerate(a):
        middle = (points.scatter[row] + points.scatter[b]) / 2
        result[i] = 2 * log_det(middle) - points.log_det[row] - points.log_det[b]
        if points.located:
            off = points.mean[b] - points.mean[row]
            result[i] += np.einsum("li,li->l", off, np.linalg.solve(middle, off[..., None])[..., 0]) / 2
    return np.maximum(result, 0.0)


def first_hyperparameters(
    points: Points, stack: Stack, belief: Belief, between: float | None, free: Free, scale_given: bool
) -> list[tuple[Belief, float]]:
    """Starts: `between` from the closest pairs; the rest the most likely if all values are of different atoms."""
    apart = Matched.of(points, np.arange(len(points.mean)))
    guesses = [between] if between is not None else first_between(points, stack)
    return [(belief if scale_given else maximise(apart, belief, guess, free)[0], guess) for guess in guesses]


def first_belief(points: Points, freedom: float | None, scale: ArrayLike | None) -> Belief:
    """Mean and average covariance of all values, from which to look for the most likely ones."""
    D, seen, known = points.D, points.seen, points.known
    assert points.scatter is not None
    freedom = float(D + SPARE) if freedom is None else freedom
    average = np.eye(D) if not known.any() else (known[:, None, None] * points.scatter).sum(0) / known.sum()
    mean = (seen[:, None] * points.mean).sum(0) / max(1.0, seen.sum())
    off = seen[:, None] * (points.mean - mean)
    distance = float(np.einsum("li,ij,lj->", off, np.linalg.inv(average), off)) / (D * max(1.0, seen.sum()))
    strength = 1 / distance if distance > 0 else 1.0
    return Belief(mean, strength, freedom, freedom * average if scale is None else np.asarray(scale, dtype=np.float64))
