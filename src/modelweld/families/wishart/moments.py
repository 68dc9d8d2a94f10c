"""Moments family: a mean and a covariance, taken for those of n independent points; n is the weight, and may be small.

For points x ~ N(theta, Sigma) with mean m and covariance C (about m, divided by n)

    sum log N(x | theta, Sigma) = -n/2 (D log 2 pi + log|Sigma| + tr Sigma^-1 [C + (m - theta)(m - theta)']),

in which n may be any positive number: the n-th power of what one point would say. In the terms of
`modelweld.families.wishart.evidence`, power and weight are both n, and the carrier is -n D/2 log 2 pi.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.families.base import with_fields
from modelweld.families.math.start import NOISE_FLOOR, chosen
from modelweld.families.registry import register
from modelweld.families.wishart.covariances import dimensions, misfit_beside
from modelweld.families.wishart.evidence import SPARE, Sums, posterior
from modelweld.families.wishart.learning import Free, maximise
from modelweld.families.wishart.points import all_points, misfit_singular, not_negative, number_of_points, parts
from modelweld.families.wishart.prior import NormalInverseWishart
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Stack

FIRST_SHARES = (0.01, 0.1)
"""Of the variance of all points, what is within an atom to begin with: both are tried, the better objective wins."""


@register
@dataclass(frozen=True, eq=False)
class Moments(NormalInverseWishart):
    """Means and covariances under one key, such as ``("means", "covariances")``, worth as many points as they weigh.

    A value is a mean (D,) and a covariance (D, D) flattened, D + D D columns; its `weight`, the same in both arrays, is
    the number of independent points behind it: any positive number, one where none is given. The covariance may be
    singular, as that of a single frame is.

    Use it where few independent points lie behind each value, such as the visits to a hidden state, whose frames
    resemble each other too much to count. Each point of a value counts. But a large n is believed, and sites that
    differ by more than chance will not match.

    Parameters
    ----------
    mean, strength, scale : arrays (D,) and (D, D) and a float, optional
        Of the atoms: Sigma ~ inverse Wishart(freedom, scale), so that scale / freedom is typical, and theta ~ N(mean,
        Sigma / strength). What is not given is read off the values; all three are learned.
    freedom : float, optional
        Not learned: D + 2, the fewest with a finite expectation of Sigma, unless it is given. Give a larger one if
        the covariances of atoms are much alike: with D + 2, and a handful of points behind each value, atoms may well
        be as wide as all of them together, and a site's values find partners wherever some are to be had.
    learning : {"likelihood", "nothing"}
        Whether mean, strength and scale are learned.
    origin, floor : array, optional
        Set by `starts`: values are measured from `origin`, and scales do not fall below `floor`.

    Notes
    -----
    The evidence is the density of the points, not that of their mean and covariance: it does not compare with
    objectives of other families.

    Estimates are the mean m of all points of the atom, and (scale + sum n [C + (m_i - m)(m_i - m)']) / (freedom + sum
    n), which is the inverse of the posterior mean precision (see `Scatter`) if nothing is known of theta before. The
    strength is left out because it grows without limit where a few points lie behind each value: posterior means would
    all be the same. Values are then matched by their second moments about the mean of all, for which a state and its
    mirror image are one; where that matters, a larger `freedom` helps.

    Examples
    --------
    >>> import numpy as np
    >>> family = Moments(mean=np.zeros(2), strength=0.5, freedom=4.0, scale=np.eye(2))
    >>> points = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 5.0]])
    >>> value = np.append(points.mean(0), np.cov(points.T, bias=True))
    >>> rows = family.rows(value[None], weight=np.full((1, 6), 3.0))
    >>> family.estimate(rows.sum(0)).round(3)                 # covariances: (scale + 3 C) / (4 + 3)
    array([2.   , 3.   , 0.429, 0.429, 0.429, 1.   ])
    """

    learns = ("mean", "strength", "scale")
    walked = ("strength", "scale")

    mean: ArrayLike | None = None
    strength: float | None = None
    freedom: float | None = None
    scale: ArrayLike | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    origin: ArrayLike = 0.0
    floor: ArrayLike = 0.0

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """A covariance, possibly singular, of the mean's size beside the mean, with one number of points for both."""
        width = stack.values.shape[1]
        D = dimensions(width)
        if width != D + D * D:
            return 0, f"are D means and a covariance of D x D entries, side by side; found {width} columns"
        return self.misfit_sizes(D) or misfit_beside(stack) or misfit_singular(stack)

    def starts(self, stack: Stack) -> list[Self]:
        """Mean and variances of all points, shares of which are within atoms."""
        origin, total = all_points(stack)
        D = len(origin)
        self.check_freedom(D)
        freedom = float(D + SPARE) if self.freedom is None else self.freedom
        known = self.strength is not None and self.scale is not None
        return [
            with_fields(
                self,
                mean=chosen(self.mean, origin),
                strength=share / (1 - share) if self.strength is None else self.strength,
                freedom=freedom,
                scale=np.diag(freedom * share * total) if self.scale is None else self.scale,
                origin=origin,
                floor=NOISE_FLOOR * total,
            )
            for share in FIRST_SHARES[: 1 if known else None]
        ]

    def embedded(self, values: Array) -> Array:
        """The means: covariances may be singular."""
        return values[:, : dimensions(values.shape[1])]

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[n, n m, n (C + m m')] side by side, (L, 1 + D + D D)."""
        n = number_of_points(values, weight)[:, None]
        means, covariances = parts(values)
        means = np.where(n > 0, means - np.asarray(self.origin), 0.0)
        second = not_negative(covariances) + means[:, :, None] * means[:, None, :]
        return np.concatenate([n, n * means, n * second.reshape(len(values), second.shape[1] ** 2)], axis=1)

    def estimate(self, rows: Array) -> Array:
        """Mean of the points, and the covariance, flattened, beside it."""
        unlocated = self.belief._replace(strength=float(np.finfo(float).tiny))
        at = posterior(self.sums(rows), unlocated)
        return np.concatenate([at.shift + np.asarray(self.mean), at.covariance.reshape(*rows.shape[:-1], -1)], axis=-1)

    def update(self, sums: Array) -> Self:
        """Mean, strength and scale by maximum likelihood."""
        if self.learning == "nothing":
            return self
        at, _ = maximise(self.sums(sums), self.belief, 1.0, Free(freedom=False, between=False), np.asarray(self.floor))
        return with_fields(self, mean=at.mean + np.asarray(self.origin), strength=at.strength, scale=at.scale)

    def sums(self, rows: Array) -> Sums:
        """Power and weight are both n, and the carrier is in proportion."""
        D, n = dimensions(rows.shape[-1] - 1), rows[..., 0]
        second = rows[..., 1 + D :].reshape(*rows.shape[:-1], D, D)
        return Sums(n, n, -n * D / 2 * np.log(2 * np.pi), rows[..., 1 : 1 + D], second)
