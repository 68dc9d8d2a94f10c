"""A Gaussian process known by its values at inducing inputs: kernels, and predictions.

Covariance functions of Gaussian processes, one lengthscale per feature, with slopes for learning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeGuard, overload

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame


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
        return self.outputscale * _shape(self._square_distances(X, Y), self.name)

    def with_slopes(self, X: Array, Y: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Covariances, and what gives the derivatives of ``(weight * k(X, Y)).sum()``, weight (rows of X, rows of Y).

        They are by the logarithms of lengthscales and outputscale, (D + 1,).
        """
        squared = self._square_distances(X, Y)
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

    def _square_distances(self, X: Array, Y: Array) -> Array:
        return np.asarray(scipy.spatial.distance.cdist(X / self.lengthscales, Y / self.lengthscales, "sqeuclidean"))


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


@dataclass(frozen=True, eq=False, repr=False)
class SparseGP:
    """A Gaussian process f ~ GP(mean, kernel) of which f(inputs) ~ N(values, covariance) is known.

    Parameters
    ----------
    inputs, values, covariance : arrays (M, D), (M,), (M, M)
        Inducing inputs, and what is known of the function there.
    kernel : Kernel
        Its covariance function.
    mean : float
        Its mean.
    noise : float
        Variance of responses about it.
    feature_names_in_ : sequence of str, optional
        Names of the features.

    Notes
    -----
    In the basis that whitens K = kernel(inputs, inputs), with k a row of kernel(X, inputs) in it,

        E f(x) = mean + k a,    Var f(x) = kernel(x, x) - k (1 - B) k^T,

    a and B the whitened values and covariance.

    Examples
    --------
    >>> known = np.zeros((1, 1))
    >>> gp = SparseGP(np.zeros((1, 1)), np.array([3.0]), known, Kernel(np.ones(1), 4.0), mean=1.0, noise=0.25)
    >>> gp.predict([[0.0], [99.0]], return_std=True)         # at the inducing input, and far away
    (array([3., 1.]), array([0.5       , 2.06155281]))
    """

    inputs: Array
    values: Array
    covariance: Array
    kernel: Kernel
    mean: float = 0.0
    noise: float = 0.0
    feature_names_in_: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        M, D = self.inputs.shape
        return f"<SparseGP of {M} points, {D} features, {self.kernel.name}>"

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.inputs.shape[1])

    @cached_property
    def basis(self) -> Whitened:
        """The basis in which the prior of the values is standard."""
        return whiten(self.kernel(self.inputs, self.inputs))

    @cached_property
    def knowledge(self) -> tuple[Array, Array]:
        """Values and covariance in that basis."""
        white = self.basis.white
        return white.T @ (self.values - self.mean), white.T @ self.covariance @ white

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Means and variances of the function itself.

        Parameters
        ----------
        X : array (rows, features)
            Where.
        """
        a, B = self.knowledge
        k = self.kernel(X, self.inputs) @ self.basis.white
        variance = self.kernel.outputscale - (k * (k - k @ B)).sum(axis=1)
        return self.mean + k @ a, np.maximum(variance, 0.0)

    @overload
    def predict(self, X: ArrayLike | DataFrame, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(self, X: ArrayLike | DataFrame, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: ArrayLike | DataFrame, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Expected responses and, if asked for, standard deviations of new responses, their noise included.

        Parameters
        ----------
        X : array (rows, features) or DataFrame
            Where. Columns of a DataFrame are found by name where the sites named their features.
        return_std : bool
            Whether standard deviations are wanted, too.
        """
        mean, variance = self.latent(self._rows(X))
        return (mean, np.sqrt(variance + self.noise)) if return_std else mean

    def _rows(self, X: ArrayLike | DataFrame) -> Array:
        names = self.feature_names_in_
        if names is not None and _has_columns(X):
            missing = [name for name in names if name not in X.columns]
            if missing:
                raise InputError(f"X must have the columns {list(names)}; it lacks {missing}.")
            X = X[list(names)]
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise InputError(f"X must have {self.n_features_in_} columns; found shape {rows.shape}.")
        return rows


def _has_columns(X: object) -> TypeGuard[DataFrame]:
    return hasattr(X, "columns")
