"""Normal-Gamma family: v ~ N(theta, 1 / (lambda weight)), precision lambda ~ Gamma of each atom its own.

Values per dimension whose atoms have a precision each: evidence, its slopes, and hyperparameters of most likelihood.

Equations: `modelweld.families.NormalGamma`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.family import ChecksValues, Predictive, with_fields
from modelweld.core.values import NOISE_FLOOR, Array, Stack, blocks, total_variance
from modelweld.families.capabilities import Drawable, Embeds, register
from modelweld.families.hyperparameters import check_choice, freeze_vectors
from modelweld.families.math.maximise import LARGEST_LOG_STEP, log_bounds
from modelweld.families.math.share_starts import StartsByShare
from modelweld.families.math.start import prefer_given

STRENGTHS = (1e-8, 1e8)
"""Bounds of strength: the decades in which spread / noise of real values is searched."""

MOST_UPDATE_STEPS = 60
"""Steps of one update. It starts from the last one's result, so what is left undone is done after the next sweep."""


SHAPES = (0.1, 1e4)
"""Bounds of the shape: from noise that differs by orders of magnitude to noise that is the same within a percent."""


class Statistics(NamedTuple):
    """Of atoms, per dimension (..., D): number, weight, weighted sum and squares, sum of log weights."""

    n: Array
    W: Array
    S: Array
    Q: Array
    G: Array


class Belief(NamedTuple):
    """Hyperparameters per dimension (D,), the mean measured from the origin."""

    mean: Array
    strength: Array
    shape: Array
    rate: Array


def statistics_of(rows: Array) -> Statistics:
    """The five statistics that stand side by side in rows (..., 5 D)."""
    D = rows.shape[-1] // 5
    return Statistics(*(rows[..., i * D : (i + 1) * D] for i in range(5)))


def squares(of: Statistics, at: Belief) -> Array:
    """R of the class's notes; not below zero by rounding."""
    off = of.S - at.mean * of.W
    found = of.Q - at.mean * (2 * of.S - at.mean * of.W) - off * off / (at.strength + of.W)
    return np.maximum(found, 0.0)


def log_evidence(of: Statistics, at: Belief) -> Array:
    """Per dimension, (..., D)."""
    shape = at.shape + of.n / 2
    return np.asarray(
        of.G / 2
        - of.n / 2 * np.log(2 * np.pi * at.rate)
        + 0.5 * np.log(at.strength / (at.strength + of.W))
        + scipy.special.gammaln(shape)
        - scipy.special.gammaln(at.shape)
        - shape * np.log1p(squares(of, at) / (2 * at.rate))
    )


def predictive(own: Statistics, of: Statistics, at: Belief) -> Array:
    """Log densities of single values at atoms (L, K): Student's t."""
    strength, shape = at.strength + of.W, at.shape + of.n / 2
    centre, rate = (at.strength * at.mean + of.S) / strength, at.rate + squares(of, at) / 2
    constant = scipy.special.gammaln(shape + 0.5) - scipy.special.gammaln(shape) - 0.5 * np.log(2 * np.pi * rate)
    y = own.S / np.where(own.W > 0, own.W, 1.0)
    result = np.empty((len(y), len(of.n)))
    for part in blocks(len(y), of.n.size):
        w = own.W[part, None, :]
        share = strength / (strength + w)
        off = y[part, None, :] - centre
        terms = constant + 0.5 * np.log(share) - (shape + 0.5) * np.log1p(share * w * off * off / (2 * rate))
        result[part] = (own.n[part, None, :] * terms).sum(-1)
    return np.asarray(result + 0.5 * own.G.sum(-1)[:, None])


def slopes(of: Statistics, at: Belief) -> Belief:
    """Of the atoms' total log evidence in the hyperparameters, (D,) each."""
    strength, shape = at.strength + of.W, at.shape + of.n / 2
    rate = at.rate + squares(of, at) / 2
    shift = (of.S - at.mean * of.W) / strength
    return Belief(
        mean=(shape / rate * at.strength * shift).sum(0),
        strength=0.5 * (1 / at.strength - 1 / strength - shape / rate * shift * shift).sum(0),
        shape=(scipy.special.digamma(shape) - scipy.special.digamma(at.shape) - np.log(rate / at.rate)).sum(0),
        rate=(at.shape / at.rate - shape / rate).sum(0),
    )


def maximise(of: Statistics, old: Belief, floor: Array) -> Belief:
    """The most likely hyperparameters of atoms; no dimension less likely than with the old ones.

    The search is over the mean in units of the atoms' spread and the logarithms of strength, shape and typical noise,
    rate / shape. In a dimension where no atom has two values nothing tells noise from spread: strength and shape stay.
    """
    D = of.n.shape[1]
    old = Belief(*(np.broadcast_to(x, D).astype(np.float64) for x in old))
    noise = old.rate / old.shape
    unit = np.sqrt(noise * (1 + 1 / old.strength))
    start_value = log_evidence(of, old).sum(0)
    K = max(1, len(of.n))

    def at(x: Array) -> Belief:
        shift, log_strength, log_shape, log_noise = x.reshape(4, D)
        shape = old.shape * np.exp(log_shape)
        return Belief(
            old.mean + unit * shift, old.strength * np.exp(log_strength), shape, shape * noise * np.exp(log_noise)
        )

    def cost(x: Array) -> tuple[float, Array]:
        here = at(x)
        by = slopes(of, here)
        rise = log_evidence(of, here).sum() - start_value.sum()
        gradient = [
            by.mean * unit,
            by.strength * here.strength,
            by.shape * here.shape + by.rate * here.rate,
            by.rate * here.rate,
        ]
        return -float(rise) / K, -np.concatenate(gradient) / K

    known, low = np.asarray(of.n).max(0, initial=0.0) > 1, np.maximum(np.broadcast_to(floor, D), np.finfo(float).tiny)
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * D
    bounds += [log_bounds(bool(known[d]), old.strength[d], *STRENGTHS) for d in range(D)]
    bounds += [log_bounds(bool(known[d]), old.shape[d], *SHAPES) for d in range(D)]
    bounds += [log_bounds(True, noise[d], low[d], noise[d] * np.exp(LARGEST_LOG_STEP)) for d in range(D)]
    found = scipy.optimize.minimize(
        cost, np.zeros(4 * D), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_UPDATE_STEPS}
    )
    new = at(found.x)
    better = log_evidence(of, new).sum(0) > start_value
    return Belief(*(np.where(better, a, b) for a, b in zip(new, old, strict=True)))


FIRST_SHAPE = 2.0
"""Where the search begins: precisions that differ by a factor of two, give or take."""


@register
@dataclass(frozen=True, eq=False)
class NormalGamma(ChecksValues, Predictive, StartsByShare, Embeds, Drawable):
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
    sampled = ("strength", "shape", "rate")

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
        return None

    def with_share(self, stack: Stack, share: float) -> Self:
        """Origin, floor and all hyperparameters not given: see `modelweld.families.math.start`."""
        origin, total = total_variance(stack, pooled=False)
        shape = prefer_given(self.shape, FIRST_SHAPE + 0 * total)
        return with_fields(
            self,
            origin=origin,
            floor=NOISE_FLOOR * total,
            mean=prefer_given(self.mean, origin),
            strength=prefer_given(self.strength, share / (1 - share) + 0 * total),
            shape=shape,
            rate=prefer_given(self.rate, shape * share * total),
        )

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

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: Student's t, in blocks."""
        return predictive(statistics_of(own), statistics_of(sums), self.belief)

    def update(self, sums: Array) -> Self:
        """Maximum likelihood; in dimensions in which nothing is matched, strength and shape stay."""
        if self.learning == "nothing":
            return self
        at = maximise(statistics_of(sums), self.belief, np.asarray(self.floor))
        return with_fields(self, **at._replace(mean=at.mean + np.asarray(self.origin))._asdict())

    @property
    def belief(self) -> Belief:
        """The hyperparameters, the mean measured from the origin."""
        at = Belief(*(np.asarray(getattr(self, name), dtype=np.float64) for name in self.learns))
        return at._replace(mean=np.asarray(at.mean - np.asarray(self.origin)))
