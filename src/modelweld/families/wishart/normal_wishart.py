"""Normal-Wishart family: v ~ N(theta, Sigma / weight), or mean and covariance of n points; Sigma is each atom's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.families.base import Learned, with_fields
from modelweld.families.checks import freeze_number, known
from modelweld.families.math.start import NOISE_FLOOR, noise_shares, total_variance
from modelweld.families.registry import register
from modelweld.families.wishart.covariances import (
    believed,
    counts,
    covariance_points,
    dimensions,
    log_covariances,
    misfit_beside,
    misfit_covariances,
)
from modelweld.families.wishart.evidence import SPARE, Belief, Points, Sums, posterior, predictive
from modelweld.families.wishart.evidence import Posterior as AtomPosterior
from modelweld.families.wishart.learning import Free, Matched, maximise
from modelweld.families.wishart.prior import NormalInverseWishart
from modelweld.families.wishart.start import first_belief, first_hyperparameters
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack


@register
@dataclass(frozen=True, eq=False)
class NormalWishart(NormalInverseWishart):
    """Real values whose noise, a full covariance, differs per atom; or means together with covariances.

    Parameters
    ----------
    mean, strength, freedom, scale : arrays (D,) and (D, D) and floats, optional
        Of the atoms: Sigma ~ inverse Wishart(freedom, scale), so that scale / freedom is typical, and theta ~ N(mean,
        Sigma / strength). What is not given is read off the values.
    between : float, optional
        Only with `pair`: how many points of its atom a site's truth is worth, as in `Scatter`.
    pair : bool
        What a value is. False: one array, v (D,) ~ N(theta, Sigma / weight). True: two arrays under one key, such as
        ``("means", "covariances")``, so that a row is a mean (D,) and a covariance (D, D) flattened, D + D D columns,
        and the weight of both is the number of points n behind them: mean ~ N(theta, Sigma / n), covariance ~ Wishart(n
        - 1, Sigma / (n - 1)), with 1 / (1 / n + 1 / between) for n. It must be said because widths do not tell: six
        columns are six dimensions or two with their covariance.
    learning : {"likelihood", "nothing"}
        Whether all of them are learned.
    origin, floor : array, optional
        Set by `starts`: values are measured from `origin` before they are squared (rounding only), and what the typical
        noise of a dimension has beyond that of the dimensions before it does not fall below `floor`.

    Notes
    -----
    A covariance from fewer than D + 2 points counts as not seen; its mean still counts. Estimates are the posterior
    mean of theta and, for pairs, the inverse of the posterior mean precision (see `Scatter`), which `covariance` also
    gives for plain values. Equations: `modelweld.families.wishart.evidence`.

    Examples
    --------
    >>> import numpy as np
    >>> family = NormalWishart(mean=np.zeros(2), strength=0.5, freedom=4.0, scale=np.eye(2))
    >>> rows = family.rows(np.array([[1.0, 2.0], [1.5, 2.5]]))
    >>> family.estimate(rows.sum(0)).round(3)                 # sums / (2 + 0.5)
    array([1. , 1.8])
    """

    walked = ("strength", "scale", "between")

    mean: ArrayLike | None = None
    strength: float | None = None
    freedom: float | None = None
    scale: ArrayLike | None = None
    between: float | None = None
    pair: bool = False
    learning: Literal["likelihood", "nothing"] = "likelihood"
    origin: ArrayLike = 0.0
    floor: ArrayLike = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze_number(self, "between", "a positive number of points")

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Any real values with one weight per row; pairs have a covariance of the mean's size beside the mean."""
        width = stack.values.shape[1]
        D = self._dimensions(width)
        if self.pair and width != D + D * D:
            return 0, f"are D means and a covariance of D x D entries, side by side; found {width} columns"
        wrong = self.misfit_sizes(D) or misfit_beside(stack)
        if wrong is not None or not self.pair:
            return wrong
        return misfit_covariances(stack.values[:, D:], self._known(stack.values, stack.weight))

    def starts(self, stack: Stack) -> list[Self]:
        """Pairs: `between` from the closest ones, the rest as if all were of different atoms; else as the Gaussian."""
        D = self._dimensions(stack.values.shape[1])
        self.check_freedom(D)
        return self._pair_starts(stack, D) if self.pair else self._value_starts(stack, D)

    def _value_starts(self, stack: Stack, D: int) -> list[Self]:
        origin, total = total_variance(stack, pooled=False)
        result: list[Self] = []
        for share in noise_shares(stack, total):
            freedom = float(D + SPARE) if self.freedom is None else self.freedom
            at = Belief(
                mean=origin if self.mean is None else np.zeros(D) + np.asarray(self.mean),
                strength=share / (1 - share) if self.strength is None else self.strength,
                freedom=freedom,
                scale=np.diag(freedom * share * total) if self.scale is None else np.asarray(self.scale),
            )
            result.append(with_fields(self, **at._asdict(), origin=origin, floor=NOISE_FLOOR * total))
        return result

    def _pair_starts(self, stack: Stack, D: int) -> list[Self]:
        mean = stack.values[:, :D]
        weight = None if stack.weight is None else stack.weight[:, :D]
        origin, _ = total_variance(Stack(mean, stack.offsets, None, weight), pooled=False)
        measured = with_fields(self, origin=origin)
        points = measured.points(stack.values, stack.weight)
        belief = first_belief(points, self.freedom, self.scale)
        if self.mean is not None:
            belief = belief._replace(mean=np.asarray(self.mean) - origin)
        if self.strength is not None:
            belief = belief._replace(strength=self.strength)
        free = Free(self.mean is None, self.strength is None, self.freedom is None, between=False)
        found = first_hyperparameters(points, stack, belief, self.between, free, self.scale is not None)
        return [measured._with(at, between) for at, between in found]

    def points(self, values: Array, weight: Array | None) -> Points:
        """Values as what sites sent, means measured from the origin."""
        D = self._dimensions(values.shape[1])
        count = counts(weight, values) if self.pair or weight is not None else np.ones(len(values))
        mean = np.where(count[:, None] > 0, values[:, :D] - np.asarray(self.origin), 0.0)
        if not self.pair:
            nothing = np.zeros(len(values))
            return Points(mean, None, nothing, nothing, count, located=True)
        return covariance_points(mean, values[:, D:], self._known(values, weight), count, located=True)

    def _embedded_pairs(self, values: Array) -> Array:
        D = dimensions(values.shape[1])
        return np.hstack([values[:, :D], log_covariances(values[:, D:])])

    def embedded(self, values: Array) -> Array:
        """Means, and with `pair` logarithms of covariances beside them."""
        return self._embedded_pairs(values) if self.pair else values

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[power, weight, carrier, first, second] side by side, (L, 3 + D + D D)."""
        points = self.points(values, weight)
        of = points.statistics(points.worth(known(self.between))[0] if self.pair else points.count)
        return np.column_stack(
            [of.power, of.weight, of.carrier, of.first, of.second.reshape(len(values), of.second.shape[1] ** 2)]
        )

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of theta; for pairs with the covariance, flattened, beside it."""
        at = self.posterior(rows)
        mean = at.shift + np.asarray(self.mean)
        if not self.pair:
            return np.asarray(mean)
        return np.concatenate([mean, at.covariance.reshape(*rows.shape[:-1], -1)], axis=-1)

    def covariance(self, rows: Array) -> Array:
        """Covariances (..., D, D) of the atoms' values, the inverse of the posterior mean precision."""
        return self.posterior(rows).covariance

    def posterior(self, rows: Array) -> AtomPosterior:
        """Of atoms, given summed rows."""
        return posterior(self.sums(rows), self.belief)

    def gain(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: a determinant per value and atom for pairs, matrix products for plain values."""
        if self.pair:
            return super().gain(own, sums)
        return predictive(self.sums(own), self.posterior(sums), self.belief.mean)

    def update(self, sums: Array) -> Self:
        """All but `between` by maximum likelihood; of plain values of which none are matched, mean and scale only."""
        atoms = self.sums(sums)
        told = self.pair or bool((atoms.power > 1).any())
        return self._learned(atoms, Free(strength=told, freedom=told, between=False))

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, and `between` of pairs; where nothing is matched it stays."""
        if not self.pair or self.learning == "nothing":
            return self.update(sums)
        matched = Matched.of(self.points(stack.values, stack.weight), labels)
        return self._learned(matched, Free(between=matched.any_matched))

    def rows_change(self, stack: Stack) -> bool:
        """Those of pairs do: they depend on `between`."""
        return self.pair

    def learned(self) -> Learned:
        """Mean, strength, freedom, scale, and of pairs between."""
        names = ("mean", "strength", "freedom", "scale") + ("between",) * self.pair
        return {name: getattr(self, name) for name in names}

    def _dimensions(self, width: int) -> int:
        return dimensions(width) if self.pair else width

    def _known(self, values: Array, weight: Array | None) -> Array:
        D = self._dimensions(values.shape[1])
        return believed(weight, values, D)

    def sums(self, rows: Array) -> Sums:
        """As they stand side by side."""
        D = dimensions(rows.shape[-1] - 3)
        second = rows[..., 3 + D :].reshape(*rows.shape[:-1], D, D)
        return Sums(rows[..., 0], rows[..., 1], rows[..., 2], rows[..., 3 : 3 + D], second)

    def _learned(self, given: Matched | Sums, free: Free) -> Self:
        if self.learning == "nothing":
            return self
        return self._with(*maximise(given, self.belief, self.between or 1.0, free, np.asarray(self.floor)))

    def _with(self, at: Belief, between: float) -> Self:
        """With these hyperparameters, the mean measured from the origin."""
        located = at._replace(mean=at.mean + np.asarray(self.origin))
        return with_fields(self, **located._asdict(), between=between if self.pair else None)
