"""Covariance functions of Gaussian processes, one lengthscale per feature, with slopes for learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array

NAMES = ("rbf", "matern12", "matern32", "matern52")
"""Squared exponential, and Matern of smoothness 1/2, 3/2, 5/2."""

SMALLEST_EIGENVALUE = 1e-10
"""Relative to the largest. Those of smooth kernels fall off exponentially; below this, divided by an eigenvalue and by
its root again, the rounding of a covariance (1e-15 of its size) is worth as much as what data say."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """k(x, y) = outputscale * g(r^2), r^2 = sum over features of ((x - y) / lengthscale)^2.

    Parameters
    ----------
    lengthscales : array (D,)
        Distances over which the function changes, per feature.
    outputscale : float
        Variance of the function.
    name : {"rbf", "matern12", "matern32", "matern52"}
        The function g.

    Examples
    --------
    >>> kernel = Kernel(np.array([1.0, 2.0]), 4.0)
    >>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 2.0]])).round(3)     # 4, 4 / e
    array([[4.   , 1.472]])
    """

    lengthscales: Array
    outputscale: float
    name: str = "rbf"

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f"a kernel is one of {list(NAMES)}; found {self.name!r}.")

    def __call__(self, X: Array, Y: Array) -> Array:
        """Covariances (rows of X, rows of Y)."""
        return self.outputscale * _shape(self._squared(X, Y), self.name)

    def with_slopes(self, X: Array, Y: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Covariances, and what gives the derivatives of ``(weight * k(X, Y)).sum()``, weight (rows of X, rows of Y).

        They are by the logarithms of lengthscales and outputscale, (D + 1,).
        """
        squared = self._squared(X, Y)
        shape = _shape(squared, self.name)
        slope = _slope(squared, shape, self.name)
        x, y = X / self.lengthscales, Y / self.lengthscales
        centre = x.mean(axis=0)
        x, y = x - centre, y - centre

        def slopes(weight: Array) -> Array:
            H = weight * slope
            spread = H.sum(1) @ (x * x) + H.sum(0) @ (y * y) - 2 * (x * (H @ y)).sum(0)
            return self.outputscale * np.append(-2 * spread, np.vdot(weight, shape))

        return self.outputscale * shape, slopes

    def _squared(self, X: Array, Y: Array) -> Array:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(X / self.lengthscales, Y / self.lengthscales, "sqeuclidean"))


def _shape(squared: Array, name: str) -> Array:
    """G as a function of r^2."""
    if name == "rbf":
        return np.asarray(np.exp(-0.5 * squared))
    if name == "matern12":
        return np.asarray(np.exp(-np.sqrt(squared)))
    if name == "matern32":
        r = np.sqrt(3 * squared)
        return np.asarray((1 + r) * np.exp(-r))
    r = np.sqrt(5 * squared)
    return np.asarray((1 + r + r * r / 3) * np.exp(-r))


def _slope(squared: Array, shape: Array, name: str) -> Array:
    """The derivative of g by r^2; that of "matern12" is infinite at zero, where its factor (x - y)^2 is zero."""
    if name == "rbf":
        return -0.5 * shape
    if name == "matern12":
        r = np.sqrt(np.where(squared > 0, squared, 1.0))
        return np.where(squared > 0, -0.5 * shape / r, 0.0)
    if name == "matern32":
        return np.asarray(-1.5 * np.exp(-np.sqrt(3 * squared)))
    r = np.sqrt(5 * squared)
    return np.asarray(-5 / 6 * (1 + r) * np.exp(-r))


class Whitened(NamedTuple):
    """A covariance matrix K by its largest eigenvalues: ``colour @ colour.T`` is K, ``white @ white.T`` its inverse."""

    colour: Array
    white: Array


def whiten(K: Array) -> Whitened:
    """The basis in which K is the identity, without the directions in which it has next to no variance.

    They are left out, not given some variance: what is known of them would then seem to come from data.

    Examples
    --------
    >>> basis = whiten(np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> (basis.white @ basis.white.T).round(12).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return Whitened(vectors * roots, vectors / roots)
