"""Maximum likelihood of hyperparameters of atoms with covariances, when the matching is known: by gradient.

The search runs over logarithms and a Cholesky factor, each measured from the present values: log(freedom - D + 1), the
factor A of typical = L A A' L' (typical = scale / freedom, present value L L'; its diagonal as logarithms), for means
their prior mean in units of the atoms' spread and log(strength), and log(between), on which the statistics depend.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modelweld.families.math.maximise import LARGEST_LOG_STEP, log_bounds
from modelweld.families.math.normal_gamma import MOST_STEPS, STRENGTHS
from modelweld.families.math.start import NOISE_FLOOR
from modelweld.families.wishart.evidence import Belief, Points, Slopes, Sums, log_evidence, slopes
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

LARGEST_BETWEEN = 1e6
"""Covariances that agree to a tenth of a percent (the square root of 2 / 1e6) coincide for all purposes: beyond, the
likelihood would have to be told from rounding."""

FREEDOMS = (0.01, 1e6)
"""Bounds of freedom - (D - 1): from atoms with nothing in common to atoms that are all the same."""


@dataclass(frozen=True, eq=False)
class Matched:
    """Values sorted by atom, to be summed for any `between`."""

    points: Points
    atom: Index

    @classmethod
    def of(cls, points: Points, labels: Index) -> Matched:
        """From values in any order and the atom of each."""
        order = np.argsort(labels, kind="stable")
        sorted_points = replace(
            points,
            mean=points.mean[order],
            scatter=None if points.scatter is None else points.scatter[order],
            log_det=points.log_det[order],
            known=points.known[order],
            count=points.count[order],
        )
        return cls(sorted_points, np.unique(labels[order], return_inverse=True)[1])

    @property
    def any_matched(self) -> bool:
        """Whether some atom has two values: otherwise nothing tells noise from spread."""
        return bool((np.bincount(self.atom, self.points.seen) > 1).any())

    def sums(self, between: float) -> Sums:
        """By atom."""
        statistics = self.points.statistics(self.points.worth(between)[0])
        first = np.flatnonzero(np.diff(self.atom, prepend=-1))
        return Sums(*(np.add.reduceat(x, first, axis=0) for x in statistics))

    def slope(self, between: float, at: Slopes) -> float:
        """Of the log evidence in log(between)."""
        n, steep = self.points.worth(between)
        return float((self.points.slopes(n, at, self.atom) * steep).sum())


@dataclass(frozen=True)
class Free:
    """Which hyperparameters are learned beside the scale."""

    mean: bool = True
    strength: bool = True
    freedom: bool = True
    between: bool = True


def maximise(
    given: Matched | Sums, old: Belief, between: float, free: Free, floor: Array | float = 0.0
) -> tuple[Belief, float]:
    """The most likely hyperparameters and `between`; never less likely than the old ones.

    `between` needs the values; with sums alone it stays. What each dimension of the typical covariance has beyond the
    ones before it does not fall below `floor` (D,), nor below NOISE_FLOOR of its present variance: values in less than
    D directions would make the likelihood unbounded.
    """
    from scipy.optimize import minimize

    D = len(old.mean)
    factor = np.linalg.cholesky(old.typical)
    unit = factor / np.sqrt(old.strength)
    below = np.tril_indices(D)
    diagonal = below[0] == below[1]
    T = len(diagonal)
    moving = isinstance(given, Matched) and free.between
    fixed = given.sums(between) if isinstance(given, Matched) else given

    def at(x: Array) -> tuple[Belief, float, Array]:
        shift, (log_strength, log_freedom, log_between), entries = x[:D], x[D : D + 3], x[D + 3 :]
        A = np.zeros((D, D))
        A[below] = np.where(diagonal, np.exp(np.where(diagonal, entries, 0.0)), entries)
        root = factor @ A
        freedom = D - 1 + (old.freedom - D + 1) * float(np.exp(log_freedom))
        strength = old.strength * float(np.exp(log_strength))
        belief = Belief(old.mean + unit @ shift, strength, freedom, freedom * (root @ root.T))
        return belief, between * float(np.exp(log_between)), A

    start_value = float(log_evidence(fixed, old).sum())
    K = max(1, len(fixed.power))

    def cost(x: Array) -> tuple[float, Array]:
        belief, width, A = at(x)
        sums = given.sums(width) if moving and isinstance(given, Matched) else fixed
        rise = float(log_evidence(sums, belief).sum()) - start_value
        slope = slopes(sums, belief)
        by = slope.belief
        by_factor = 2 * belief.freedom * (factor.T @ by.scale @ factor @ A)
        entries = by_factor[below] * np.where(diagonal, A[below], 1.0)
        by_freedom = (by.freedom + float((by.scale * belief.typical).sum())) * (belief.freedom - D + 1)
        by_between = given.slope(width, slope) if moving and isinstance(given, Matched) else 0.0
        gradient = [unit.T @ by.mean, [by.strength * belief.strength, by_freedom, by_between], entries]
        return -rise / K, -np.concatenate(gradient) / K

    lowest = np.sqrt(np.maximum(floor, NOISE_FLOOR * np.diag(old.typical))) / np.diag(factor)
    bounds = [(None, None) if free.mean else (0.0, 0.0)] * D
    bounds += [
        log_bounds(free.strength, old.strength, *STRENGTHS),
        log_bounds(free.freedom, old.freedom - D + 1, *FREEDOMS),
        log_bounds(moving, between, D, LARGEST_BETWEEN),
    ]
    bounds += [
        (float(np.clip(np.log(lowest[i]), -LARGEST_LOG_STEP, 0.0)), LARGEST_LOG_STEP) if i == j else (None, None)
        for i, j in zip(*below, strict=True)
    ]
    found = minimize(
        cost, np.zeros(D + 3 + T), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_STEPS}
    )
    if not found.fun < 0:
        return old, between
    return at(found.x)[:2]
