"""Directions about a mean, of one concentration: evidence (equations: `modelweld.families.Directions`), and starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array
from modelweld.families.math.bessel import log_uniform, tilt

CONCENTRATIONS = (1e-3, 1e6)
"""Bounds of a learned concentration of values of typical weight: below the first, a value is uniform for all purposes;
the second, times the dimension, is an angle of a thousandth about the atom. Lengths of sums are exact to 1e-16 of
themselves, so that at least nine digits of an evidence are left there."""


class At(NamedTuple):
    """Hyperparameters: mean direction and concentration of atoms (`base`), concentration of values about theirs.

    Rows have so many `columns` of c, all of them alike. Where values are `axial`, which have no sign, there is no mean,
    the base is zero, and a value has the sign that suits the atom.
    """

    mean: Array
    kappa: float
    base: float
    columns: int = 1
    axial: bool = False

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows [n, c, S]."""
        D = self._sums(rows).shape[-1]
        return np.asarray(self.singletons(rows) + tilt(D, self.squares(rows)) - tilt(D, np.asarray(self.base**2)))

    def predictive(self, own: Array, sums: Array) -> Array:
        """Log densities of values at atoms (L, K): one matrix product, and the tilt of squared lengths."""
        V, S = self._sums(own), self._sums(sums)
        D = V.shape[1]
        ours, theirs = self.squares(own) - self.base**2, self.squares(sums)
        lengths = np.abs(V @ S.T) if self.axial else V @ S.T
        lengths *= 2 * self.kappa**2
        lengths += ours[:, None]
        lengths += theirs
        result = tilt(D, np.maximum(lengths, 0.0, out=lengths))
        result -= tilt(D, theirs)
        result += self.singletons(own)[:, None]
        return result

    def mode(self, rows: Array) -> Array:
        """Direction of kappa_0 mean + kappa S; the mean if there is none."""
        return directions_of(self.base * self.mean + self.kappa * self._sums(rows), self.mean)

    def squares(self, rows: Array) -> Array:
        """Squared lengths of kappa_0 mean + kappa S; the same at zero to the last bit as kappa_0 squared."""
        S = self._sums(rows)
        across = np.einsum("...d,...d->...", S, S)
        if self.axial:
            return np.asarray(self.kappa**2 * across)
        along = S @ self.mean
        squares = self.base**2 + 2 * self.base * self.kappa * along + self.kappa**2 * across
        return np.asarray(np.maximum(squares, 0.0))

    def singletons(self, rows: Array) -> Array:
        """The part of the evidence that adds up over values: n (log C(0) - tilt(kappa)) + c."""
        D = self._sums(rows).shape[-1]
        return np.asarray(rows[..., 0] * (log_uniform(D) - float(tilt(D, np.asarray(self.kappa**2)))) + rows[..., 1])

    def _sums(self, rows: Array) -> Array:
        """S of rows."""
        return rows[..., 1 + self.columns :]


def directions_of(pull: Array, otherwise: Array) -> Array:
    """Of length one, each; `otherwise` where there is no pull (and nothing of that either: the first axis)."""
    length = np.linalg.norm(pull, axis=-1, keepdims=True)
    none = otherwise if otherwise.any() else np.eye(1, pull.shape[-1])[0]
    return np.asarray(np.where(length > 0, pull / np.where(length > 0, length, 1.0), none))


def direction_of(vector: Array, otherwise: Array) -> Array:
    """Of length one."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else otherwise


def concentration_at(D: int, scatter: float) -> float:
    """Concentration at which the mean cosine r has about 1 - r^2 = scatter (within a tenth or so: for starts).

    r (D - r^2) / (1 - r^2), the approximation of Banerjee, Dhillon, Ghosh and Sra (2005), exact at zero and one.
    """
    return float(np.sqrt(1 - scatter) * (D - 1 + scatter) / scatter)


def first_concentrations(D: int, scatter: float, share: float, weight: float) -> tuple[float, float]:
    """Of values of weight one and of atoms, if this share of the scatter of values of typical weight is noise.

    With A the mean cosine of values to their atom and A_0 that of atoms to their mean, two copies have mean cosine A^2
    = 1 - noise, and the mean of all values has squared length A_0^2 A^2 = 1 - scatter.
    """
    noise = share * scatter
    return concentration_at(D, noise) / weight, concentration_at(D, min((scatter - noise) / (1 - noise), 1.0))
