"""States matched by mean and covariance together, each worth as many points as the chain came back to it.

A family of our own, by the public interface. A state's mean m and covariance C are taken for those of n independent
points, n = its visits: within a bout frames are too much alike to count. Rows are [n, n m, n (C + m m')] and add up;
the evidence is that of the points under a normal-inverse-Wishart prior. The library's `Moments` is the same with a full
prior scale and a mean that are learned; here one number is, times the features' variances: few states tell no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import multigammaln

from modelweld.families import Family
from modelweld.families.capabilities import HasStarts

Array = NDArray[np.float64]

EM_STEPS = 20
"""Steps of every update: each raises the evidence, and more updates follow."""

FIRST_SHARE = 0.1
"""Of the features' variance: what is expected within a state to begin with."""


@dataclass(frozen=True, eq=False)
class Visits(HasStarts, Family):
    """Means and covariances under one key, D + D D columns; the weight is the number of points behind both.

    Sigma ~ inverse Wishart(freedom, scale * unit), theta ~ N(mean, Sigma / strength); strength and scale are learned.
    """

    mean: Any = None
    strength: float = 0.01
    scale: float = FIRST_SHARE
    unit: Any = None

    @property
    def freedom(self) -> float:
        """The fewest degrees of freedom with a finite expectation of Sigma."""
        return float(len(self.unit) + 2)

    def starts(self, stack: Any) -> list[Visits]:
        """Mean and variance of all points, as if they came from one state."""
        D = _dimensions(stack.values.shape[1])
        n = stack.weight[:, 0]
        mean = n @ stack.values[:, :D] / n.sum()
        squares = np.diagonal(stack.values[:, D:].reshape(-1, D, D), axis1=1, axis2=2) + stack.values[:, :D] ** 2
        return [replace(self, mean=mean, unit=n @ squares / n.sum() - mean**2)]

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Points, their sums and their products."""
        D = _dimensions(values.shape[1])
        n = np.ones((len(values), 1)) if weight is None else weight[:, :1]
        m = values[:, :D] - (0.0 if self.mean is None else np.asarray(self.mean))
        products = values[:, D:].reshape(-1, D, D) + m[:, :, None] * m[:, None, :]
        return np.concatenate([n, n * m, n * products.reshape(-1, D * D)], axis=1)

    def log_evidence(self, rows: Array) -> Array:
        """Of n points with these sums under the prior."""
        n, _, strength, freedom, scatter = self._posterior(rows)
        D = len(self.unit)
        prior = self.scale * np.asarray(self.unit)
        return np.asarray(
            multigammaln(freedom / 2, D)
            - multigammaln(self.freedom / 2, D)
            + self.freedom / 2 * np.log(prior).sum()
            - freedom / 2 * np.linalg.slogdet(scatter)[1]
            + D / 2 * np.log(self.strength / strength)
            - n * D / 2 * np.log(np.pi)
        )

    def estimate(self, rows: Array) -> Array:
        """Posterior means of theta and of Sigma, side by side."""
        _, m, _, freedom, scatter = self._posterior(rows)
        D = len(self.unit)
        sigma = scatter / (freedom - D - 1)[..., None, None]
        return np.concatenate([m + np.asarray(self.mean), sigma.reshape(*sigma.shape[:-2], D * D)], axis=-1)

    def update(self, sums: Array) -> Visits:
        """Strength and scale by expectation-maximisation: never lowers the evidence."""
        family = self
        D = len(self.unit)
        for _ in range(EM_STEPS):
            _, m, strength, freedom, scatter = family._posterior(sums)
            precision = freedom[:, None, None] * np.linalg.inv(scatter)
            off = D / strength + np.einsum("kd,kde,ke->k", m, precision, m)
            within = np.einsum("d,kdd->", np.asarray(self.unit), precision)
            family = replace(
                family, strength=len(sums) * D / float(off.sum()), scale=len(sums) * self.freedom * D / float(within)
            )
        return family

    def _posterior(self, rows: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Points, mean from the prior's mean, strength, freedom and scatter of every atom."""
        D = len(self.unit)
        n, total, products = rows[..., 0], rows[..., 1 : D + 1], rows[..., D + 1 :]
        strength, freedom = self.strength + n, self.freedom + n
        m = total / strength[..., None]
        products = products.reshape(*products.shape[:-1], D, D)
        scatter = np.diag(self.scale * np.asarray(self.unit)) + products
        return n, m, strength, freedom, scatter - strength[..., None, None] * m[..., :, None] * m[..., None, :]


def _dimensions(width: int) -> int:
    """D of D + D D."""
    return int((np.sqrt(4 * width + 1) - 1) / 2)
