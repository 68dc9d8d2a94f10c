"""Normal-Gamma family: v ~ N(theta, 1 / (lambda weight)), precision lambda ~ Gamma of each atom its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.families.base import Family, with_fields
from modelweld.families.checks import check_choice, freeze_vectors
from modelweld.families.math.normal_gamma import Belief, log_evidence, maximise, predictive, squares, statistics_of
from modelweld.families.math.start import NOISE_FLOOR, chosen, noise_shares, total_variance
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Stack

FIRST_SHAPE = 2.0
"""Where the search begins: precisions that differ by a factor of two, give or take."""


@register
@dataclass(frozen=True, eq=False)
class NormalGamma(Family):
    """Real values, independent per dimension, whose noise differs per atom.

    Parameters
    ----------
    mean, strength, shape, rate : float or array (D,), optional
        Of the atoms: lambda ~ Gamma(shape, rate), so that noise rate / shape is typical, and theta ~ N(mean, 1 /
        (lambda strength)). What is not given is read off the values, whatever their units.
    learning : {"likelihood", "nothing"}
        Whether they are learned.
    origin, floor : array, optional
        Set by `starts`: values are measured from `origin` before they are squared (rounding only), and the typical
        noise rate / shape does not fall below `floor`.

    Notes
    -----
    A row is, per dimension, [seen, w, w y, w y^2, log w] with y = v - origin and w the weight; entries of weight zero
    are zeros. With sums n, W, S, Q, G of such rows and mean m measured from the origin::

        log evidence = G/2 - n/2 log(2 pi rate) + 1/2 log(strength / (strength + W))
                       + log Gamma(shape + n/2) - log Gamma(shape) - (shape + n/2) log(1 + R / (2 rate))
        R = Q - 2 m S + m^2 W - (S - m W)^2 / (strength + W).

    Conjugacy has its price: atoms with more noise also lie further from the mean, by the same factor.

    Examples
    --------
    >>> import numpy as np
    >>> family = NormalGamma(mean=0.0, strength=0.5, shape=2.0, rate=1.0)
    >>> rows = family.rows(np.array([[1.0], [2.0]]))
    >>> family.estimate(rows.sum(0)), family.noise(rows.sum(0)).round(3)  # 3 / (2 + 0.5); (1 + 1.4 / 2) / (2 + 2 / 2)
    (array([1.2]), array([0.567]))
    """

    learns = ("mean", "strength", "shape", "rate")
    walked = ("strength", "shape", "rate")

    mean: ArrayLike | None = None
    strength: ArrayLike | None = None
    shape: ArrayLike | None = None
    rate: ArrayLike | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    origin: ArrayLike = 0.0
    floor: ArrayLike = 0.0

    def __post_init__(self) -> None:
        check_choice(self, "learning")
        freeze_vectors(self, "mean", "origin", "floor")
        freeze_vectors(self, "strength", "shape", "rate", positive=True)

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Any real values, without variance."""
        if stack.variance is not None:
            return 0, "come without variance (the noise is each atom's own); send `weight`"
        D = stack.values.shape[1]
        for name in ("mean", "strength", "shape", "rate"):
            given = getattr(self, name)
            if given is not None and given.size not in (1, D):
                return 0, f"have as many dimensions as the {name} that was given, {given.size}; found {D}"
        return None

    def starts(self, stack: Stack) -> list[Self]:
        """Origin, floor and all hyperparameters not given, free of units: see `modelweld.families.math.start`."""
        return [self._with_share(stack, share) for share in noise_shares(stack, total_variance(stack, pooled=False)[1])]

    def expecting(self, stack: Stack, share: float) -> Self:
        """As `starts`, of nothing given."""
        return with_fields(self, mean=None, strength=None, shape=None, rate=None)._with_share(stack, share)

    def _with_share(self, stack: Stack, share: float) -> Self:
        """What is not given, if this share of the variance is noise."""
        origin, total = total_variance(stack, pooled=False)
        shape = chosen(self.shape, FIRST_SHAPE + 0 * total)
        return with_fields(
            self,
            origin=origin,
            floor=NOISE_FLOOR * total,
            mean=chosen(self.mean, origin),
            strength=chosen(self.strength, share / (1 - share) + 0 * total),
            shape=shape,
            rate=chosen(self.rate, shape * share * total),
        )

    def embedded(self, values: Array) -> Array:
        """Values are real numbers."""
        return values

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen, w, w y, w y^2, log w] side by side, (L, 5 D)."""
        y = values - np.asarray(self.origin)
        w = np.ones_like(y) if weight is None else weight
        seen = (w > 0).astype(np.float64)
        y = np.where(w > 0, y, 0.0)
        return np.concatenate([seen, w, w * y, w * y * y, np.log(np.where(w > 0, w, 1.0))], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        return np.asarray(log_evidence(statistics_of(rows), self.belief).sum(-1))

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of theta: origin + (strength m + S) / (strength + W)."""
        of, at = statistics_of(rows), self.belief
        return np.asarray(np.asarray(self.origin) + (at.strength * at.mean + of.S) / (at.strength + of.W))

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Precision from its Gamma, then theta given that."""
        of, at = statistics_of(sums), self.belief
        precision = rng.gamma(at.shape + of.n / 2) / (at.rate + squares(of, at) / 2)
        wide = 1 / np.sqrt(precision * (at.strength + of.W))
        return self.estimate(sums) + wide * rng.standard_normal(wide.shape)

    def noise(self, rows: Array) -> Array:
        """Noise (..., D) of the atoms' values: the inverse of the posterior mean of lambda."""
        of, at = statistics_of(rows), self.belief
        return np.asarray((at.rate + squares(of, at) / 2) / (at.shape + of.n / 2))

    def gain(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: Student's t, in blocks."""
        return predictive(statistics_of(own), statistics_of(sums), self.belief)

    def update(self, sums: Array) -> Self:
        """Maximum likelihood; in dimensions in which nothing is matched, strength and shape stay."""
        if self.learning == "nothing":
            return self
        at = maximise(statistics_of(sums), self.belief, np.asarray(self.floor))
        return with_fields(self, **at._replace(mean=at.mean + np.asarray(self.origin))._asdict())

    def rows_change(self, stack: Stack) -> bool:
        """Never."""
        return False

    @property
    def belief(self) -> Belief:
        """The hyperparameters, the mean measured from the origin."""
        mean, strength, shape, rate = (
            np.asarray(x, dtype=np.float64) for x in (self.mean, self.strength, self.shape, self.rate)
        )
        return Belief(np.asarray(mean - np.asarray(self.origin)), strength, shape, rate)
