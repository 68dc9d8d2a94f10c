"""Scatter family: covariances S ~ Wishart(n, Sigma / n), Sigma ~ inverse Wishart(freedom, scale)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.families.base import with_fields
from modelweld.families.checks import freeze_number, known
from modelweld.families.registry import register
from modelweld.families.wishart.covariances import (
    believed,
    counts,
    covariance_points,
    log_covariances,
    misfit_beside,
    misfit_covariances,
)
from modelweld.families.wishart.evidence import Belief, Points, Sums, posterior
from modelweld.families.wishart.learning import Free, Matched, maximise
from modelweld.families.wishart.prior import InverseWishart
from modelweld.families.wishart.start import first_belief, first_hyperparameters
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack


@register
@dataclass(frozen=True, eq=False)
class Scatter(InverseWishart):
    """Covariance matrices: of mixture components, of states, of sites.

    A value is a matrix (D, D), flattened; its `weight`, the same in all entries, is the number of points behind it.
    Without a weight that number counts as infinite, and values differ by what sites differ alone.

    Parameters
    ----------
    freedom, scale : float and array (D, D), optional
        Of the atoms' covariances: inverse Wishart, so that scale / freedom is typical, and the larger the freedom, the
        more alike they are. What is not given is read off the values.
    between : float, optional
        How many points of its atom a site's truth is worth: a covariance from n points is worth 1 / (1 / n + 1 /
        between), but at least D + 2. Learned; it is for covariances what noise is for means.
    learning : {"likelihood", "nothing"}
        Whether all three are learned.

    Notes
    -----
    A covariance from fewer than D + 2 points counts as not seen: a row of zeros. Which ones count does not depend on
    `between`, so that the likelihood of different values of it can be compared. The estimate is the inverse of the
    posterior mean of the precision, (scale + sum n S) / (freedom + sum n): the average of what was sent and of the
    typical covariance. It always exists, is the posterior mode under the measure that prefers no units
    (``|Sigma|^(-(D + 1)/2) dSigma``), and comes nearest to the truth in Stein's loss; the posterior mean of Sigma is
    (freedom + sum n) / (freedom + sum n - D - 1) times as large, several times what sites sent where few points count.
    Equations: `modelweld.families.wishart.evidence`, without means.

    Examples
    --------
    >>> import numpy as np
    >>> family = Scatter(freedom=4.0, scale=np.eye(2), between=20.0)
    >>> rows = family.rows(np.array([[2.0, 0.5, 0.5, 1.0]]))
    >>> family.estimate(rows.sum(0)).round(3)                 # (scale + 20 S) / 24
    array([1.708, 0.417, 0.417, 0.875])
    """

    learns = ("freedom", "scale", "between")
    walked = ("between",)
    specificity = 6

    freedom: float | None = None
    scale: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze_number(self, "between", "a positive number of points")

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Matrices that are symmetric and positive definite, with one number of points each."""
        width = stack.values.shape[1]
        D = isqrt(width)
        if width != D * D:
            return 0, f"are square matrices, flattened; found {width} columns"
        if self.scale is not None and np.shape(self.scale) != (D, D):
            return 0, f"have the size of the scale that was given, {np.shape(self.scale)}; found {(D, D)}"
        return misfit_beside(stack) or misfit_covariances(stack.values, believed(stack.weight, stack.values, D))

    def starts(self, stack: Stack) -> list[Self]:
        """`between` from the closest pairs; freedom and scale most likely if all values are of different atoms."""
        points = self.points(stack.values, stack.weight)
        self.check_freedom(points.D)
        belief = first_belief(points, self.freedom, self.scale)
        free = Free(mean=False, strength=False, freedom=self.freedom is None, between=False)
        found = first_hyperparameters(points, stack, belief, self.between, free, self.scale is not None)
        return [with_fields(self, freedom=at.freedom, scale=at.scale, between=between) for at, between in found]

    def points(self, values: Array, weight: Array | None) -> Points:
        """Values as what sites sent."""
        D = isqrt(values.shape[1])
        known = believed(weight, values, D)
        return covariance_points(np.zeros((len(values), D)), values, known, counts(weight, values), located=False)

    def embedded(self, values: Array) -> Array:
        """Logarithms of the matrices."""
        return log_covariances(values)

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[n, carrier, n S] side by side, (L, 2 + D D)."""
        points = self.points(values, weight)
        of = points.statistics(points.worth(known(self.between))[0])
        return np.column_stack([of.power, of.carrier, of.second.reshape(len(values), of.second.shape[1] ** 2)])

    def estimate(self, rows: Array) -> Array:
        """(scale + sum n S) / (freedom + sum n), flattened."""
        covariance = posterior(self.sums(rows), self.belief).covariance
        return covariance.reshape(*rows.shape[:-1], covariance.shape[-1] ** 2)

    def update(self, sums: Array) -> Self:
        """Freedom and scale by maximum likelihood; `between` stays."""
        return self if self.learning == "nothing" else self._learned(self.sums(sums), between=False)

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """All three by maximum likelihood; where nothing is matched, `between` stays."""
        if self.learning == "nothing":
            return self
        matched = Matched.of(self.points(stack.values, stack.weight), labels)
        return self._learned(matched, between=matched.any_matched)

    def rows_change(self, stack: Stack) -> bool:
        """Always: they depend on `between`."""
        return True

    @property
    def belief(self) -> Belief:
        """The hyperparameters; there are no means, so theirs say nothing."""
        scale = np.asarray(self.scale, dtype=np.float64)
        return Belief(np.zeros(len(scale)), 1.0, known(self.freedom), scale)

    def sums(self, rows: Array) -> Sums:
        """Without means."""
        D = isqrt(rows.shape[-1] - 2)
        second = rows[..., 2:].reshape(*rows.shape[:-1], D, D)
        return Sums(rows[..., 0], np.zeros(rows.shape[:-1]), rows[..., 1], np.zeros((*rows.shape[:-1], D)), second)

    def _learned(self, given: Matched | Sums, between: bool) -> Self:
        free = Free(mean=False, strength=False, between=between)
        at, width = maximise(given, self.belief, known(self.between), free)
        return with_fields(self, freedom=at.freedom, scale=at.scale, between=width)
