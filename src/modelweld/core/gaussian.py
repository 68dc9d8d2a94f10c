"""The paper's Gaussian family: v ~ N(theta, noise / weight + variance), theta ~ N(mean, spread).

Its cost (equation 7 of the paper) is `log_predictive`, its hyperparameter step (equation 8) is `update`, by the closed
forms of `core.moments`. What `modelweld.Gaussian` adds, above all first hyperparameters that are read off the values,
and maximum likelihood, is in `families.real_values`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import Family, HasStarts, Predictive, Unites, with_fields
from modelweld.core.moments import Effects, Hyperparameters, step_by_moments
from modelweld.core.values import NOISE_FLOOR, Array, Stack, blocks, total_variance

LOG_TWO_PI = float(np.log(2 * np.pi))


def score_unequal(y: Array, seen: Array, own_variance: Array, mu: Array, extra: Array) -> Array:
    """Log density (L, K) of values y (L, D), where seen, of variance `own_variance`, given atoms at mu +- `extra`."""
    result = np.empty((len(y), len(mu)))
    for part in blocks(len(y), mu.shape[0] * y.shape[1]):
        v = own_variance[part, None, :] + extra
        off = y[part, None, :] - mu
        terms = np.log(2 * np.pi * v) + off * off / v
        result[part] = -0.5 * (seen[part, None, :] * terms).sum(-1)
    return result


@dataclass(frozen=True, eq=False)
class Gaussian(HasStarts, Predictive, Unites, Family):
    """Real values whose dimensions are independent.

    Parameters
    ----------
    mean, noise, spread : array or float
        Mean and variance of the atoms, and variance of a value about its atom.
    shape : {"diagonal", "scalar"}
        Whether noise and spread are learned per dimension or as one number.
    learning : {"moments", "nothing"}
        How hyperparameters are learned: by the paper's closed forms, or not at all.
    inflation : float
        Factor on the sites' own `variance`: 1 if their standard errors are right.
    origin, floor : array or float
        Values are measured from `origin` before they are squared (rounding only); noise does not fall below `floor`.
        Set by `starts`.

    Notes
    -----
    A row is, per dimension, [seen, w, w y, w y^2, log w] with y = v - origin and w = 1 / (1 / weight + inflation
    variance / noise); weight zero gives a row of zeros. With sums n, W, S, Q, G of such rows, rho = spread / noise and
    mean m measured from the origin,

        log evidence = G/2 - n/2 log(2 pi noise) - 1/2 log(1 + rho W)
                       - [Q - 2 m S + m^2 W - rho (S - m W)^2 / (1 + rho W)] / (2 noise).

    Examples
    --------
    >>> family = Gaussian(mean=0.0, noise=1.0, spread=4.0)
    >>> rows = family.rows(np.array([[1.0], [2.0]]))
    >>> family.estimate(rows.sum(0)).round(3)                 # 4 * 3 / (1 + 2 * 4)
    array([1.333])
    """

    mean: ArrayLike | None = None
    noise: ArrayLike | None = None
    spread: ArrayLike | None = None
    shape: Literal["diagonal", "scalar", "full"] = "diagonal"
    learning: Literal["likelihood", "moments", "nothing"] = "moments"
    inflation: float = 1.0
    origin: ArrayLike = 0.0
    floor: ArrayLike = 0.0

    def __post_init__(self) -> None:
        for name in ("mean", "noise", "spread", "origin", "floor"):
            object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64)))

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Mean measured from the origin, noise, spread."""
        mean = self._measure(np.asarray(self.mean, dtype=np.float64))
        return Hyperparameters(mean, np.asarray(self.noise), np.asarray(self.spread))

    @property
    def scalar(self) -> bool:
        """Whether one noise and one spread serve all dimensions."""
        return self.shape == "scalar"

    def starts(self, stack: Stack) -> list[Self]:
        """What is given, with values measured from their mean and noise above rounding."""
        origin, total = total_variance(stack, self.scalar)
        floor = np.maximum(NOISE_FLOOR * total, np.asarray(self.floor))
        mean, noise, spread = (np.asarray(given) for given in (self.mean, self.noise, self.spread))
        at = Hyperparameters(mean + 0 * origin, np.maximum(noise, floor), spread + 0 * total)
        return [with_fields(self, origin=origin, floor=floor, **at._asdict())]

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen, w, w y, w y^2, log w] side by side, (L, 5 D)."""
        y = self._measure(values)
        if variance is None and weight is None:
            D = y.shape[-1]
            rows = np.empty((*y.shape[:-1], 5 * D))
            rows[..., : 2 * D], rows[..., 2 * D : 3 * D], rows[..., 4 * D :] = 1.0, y, 0.0
            np.multiply(y, y, out=rows[..., 3 * D : 4 * D])
            return rows
        inverse = np.ones_like(y)
        seen = inverse if weight is None else (weight > 0).astype(np.float64)
        if weight is not None:
            inverse = 1.0 / np.where(weight > 0, weight, 1.0)
        if variance is not None:
            inverse = inverse + self.inflation * variance / self.hyperparameters.noise
        w = seen / inverse
        return np.concatenate([seen, w, w * y, w * y * y, -seen * np.log(inverse)], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        _, W, S, _, _ = parts(rows)
        return self._straight(rows) + self._bent(W, S)

    def _straight(self, rows: Array) -> Array:
        """The part of the log evidence that is linear in rows."""
        m, noise, _ = self.hyperparameters
        inverse, D = 1.0 / noise, rows.shape[-1] // 5
        line = np.ones(5 * D)
        line[:D], line[3 * D : 4 * D] = -np.log(2 * np.pi * noise), -inverse
        line[D : 2 * D], line[2 * D : 3 * D] = -m * m * inverse, 2 * m * inverse
        return np.asarray(0.5 * (rows @ line))

    def _bent(self, W: Array, S: Array) -> Array:
        """The part that is not: of atoms with summed weights W and weighted sums S."""
        m, noise, spread = self.hyperparameters
        rho = spread / noise
        shrink = 1 + rho * W
        bent = S - m * W  # in place from here on: this is where the time of questions and of small jobs goes
        bent *= bent
        bent *= rho / noise
        bent /= shrink
        bent -= np.log(shrink, out=shrink)
        return np.asarray(0.5 * bent.sum(-1))

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: the cost of equation 7, but for the prior and the evidence of the value alone."""
        seen, w, wy, _, _ = parts(own)
        _, W, S, _, _ = parts(sums)
        m, noise, spread = self.hyperparameters
        shrink = 1 + spread / noise * W
        return self.density(seen, w, wy, noise, (m + spread / noise * S) / shrink, spread / shrink)

    score_unequal: ClassVar = staticmethod(score_unequal)

    @classmethod
    def density(cls, seen: Array, w: Array, wy: Array, noise: Array, mu: Array, extra: Array) -> Array:
        """Of values y (L, D) of weight w, where `seen`, given atoms at mu, known with variance `extra` (K, D): (L, K).

        One matrix product where all values are equally well known.
        """
        if not ((seen == 1).all() and (w == 1).all()):
            some = np.where(w > 0, w, 1.0)
            return np.asarray(cls.score_unequal(wy / some, seen, noise / some, mu, extra))
        v = noise + extra
        inverse = 1.0 / v
        weights = mu * inverse
        result, squares = wy @ weights.T, (wy * wy) @ inverse.T
        squares += np.log(v, out=v).sum(-1) + np.einsum("kd,kd->k", mu, weights) + v.shape[1] * LOG_TWO_PI
        squares *= 0.5
        result -= squares
        return np.asarray(result)

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of the atom: origin + (m + rho S) / (1 + rho W)."""
        return self.posterior_mean(*parts(rows)[1:3])

    def posterior_mean(self, W: Array, S: Array) -> Array:
        """Of atoms with summed weights W and weighted sums S measured from the origin."""
        m, noise, spread = self.hyperparameters
        rho = spread / noise
        return self._locate((m + rho * S) / (1 + rho * W))

    def update(self, sums: Array) -> Self:
        """The hyperparameter step, equation 8."""
        return self.fit_to(Effects.from_sums(*parts(sums)))

    def fit_to(self, effects: Effects) -> Self:
        """The same family with the hyperparameters that suit a matching."""
        if self.learning == "nothing":
            return self
        at = step_by_moments(effects, self.hyperparameters, np.asarray(self.floor), self.scalar)
        return self.with_hyperparameters(at)

    def with_hyperparameters(self, at: Hyperparameters) -> Self:
        """The same family with these hyperparameters (mean measured from the origin)."""
        return with_fields(self, mean=self._locate(at.mean), noise=at.noise, spread=at.spread)

    def _measure(self, values: Array) -> Array:
        """Values in the coordinates everything is computed in."""
        return np.asarray(values - np.asarray(self.origin))

    def _locate(self, y: Array) -> Array:
        """And back."""
        return np.asarray(np.asarray(self.origin) + y)


def parts(rows: Array) -> list[Array]:
    """The five statistics that stand side by side in rows (..., 5 D)."""
    D = rows.shape[-1] // 5
    return [rows[..., i * D : (i + 1) * D] for i in range(5)]
