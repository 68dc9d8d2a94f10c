"""Directions about a mean: evidence, and the most likely mean and concentrations given sums at atoms.

Equations: `modelweld.families.Directions`. In learning the mean is turned by expectation maximisation, and the
concentrations are climbed, in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.families.math.bessel import log_uniform, slope, tilt, tilt_and_slope
from modelweld.inputs.local_model import Array

CONCENTRATIONS = (1e-3, 1e6)
"""Bounds of a learned concentration of values of typical weight: below the first, a value is uniform for all purposes;
the second, times the dimension, is an angle of a thousandth about the atom. Lengths of sums are exact to 1e-16 of
themselves, so that at least nine digits of an evidence are left there."""

MOST_ROUNDS, ENOUGH = 30, 1e-6
"""Learning ends after this many rounds, or at the first that brings less than this many nats; after the next sweep it
goes on from where it ended."""


class Weights(NamedTuple):
    """Weights of values, each once, and how many values have it."""

    weight: Array
    number: Array


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
        return np.asarray(self.alone(rows) + tilt(D, self.squares(rows)) - tilt(D, np.asarray(self.base**2)))

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
        result += self.alone(own)[:, None]
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

    def alone(self, rows: Array) -> Array:
        """The part of the evidence that adds up over values: n (log C(0) - tilt(kappa)) + c."""
        D = self._sums(rows).shape[-1]
        return np.asarray(rows[..., 0] * (log_uniform(D) - float(tilt(D, np.asarray(self.kappa**2)))) + rows[..., 1])

    def _sums(self, rows: Array) -> Array:
        """S of rows."""
        return rows[..., 1 + self.columns :]

    def learned(self, sums: Array, weights: Weights | None, typical: float) -> At:
        """Hyperparameters at a maximum reached from the present ones, given atoms' rows.

        Where no atom has two values nothing tells noise from spread, and kappa stays as it is.
        """
        if not (sums[:, 0] > 1).any():
            weights = None
        held = self._sums(sums[sums[:, 0] > 0])
        low, high = CONCENTRATIONS[0] / typical, CONCENTRATIONS[1] * held.shape[1] / typical
        return maximise(held, weights, self, (min(low, self.kappa), max(high, self.kappa)))


def maximise(S: Array, weights: Weights | None, at: At, bounds: tuple[float, float]) -> At:
    """Turn the mean, then search both concentrations, until that helps no more; without `weights` kappa is held."""
    across = np.einsum("kd,kd->k", S, S)

    def log_likelihood(at: At) -> float:
        return value_and_slopes(S @ at.mean, across, S.shape[1], weights, at.kappa, at.base)[0]

    for _ in range(MOST_ROUNDS):
        before = log_likelihood(at)
        at = max((at, *_turn(S, at)), key=log_likelihood)
        at = max((at, _concentrate(S, across, weights, at, bounds)), key=log_likelihood)
        if log_likelihood(at) - before < ENOUGH:
            break
    return at


def value_and_slopes(
    along: Array, across: Array, D: int, weights: Weights | None, kappa: float, base: float
) -> tuple[float, float, float]:
    """Log likelihood but for constants, and its derivatives by kappa and base.

    Of the atoms' weighted sums S of values only `along` = mean'S (K,) and `across` = |S|^2 (K,) are needed.
    """
    squares = np.maximum(base**2 + 2 * base * kappa * along + kappa**2 * across, 0.0)
    tilts, a = tilt_and_slope(D, squares)
    base_tilt, base_slope = tilt_and_slope(D, np.asarray(base**2))
    value = tilts.sum() - len(along) * base_tilt
    by_base = (a * (base + kappa * along)).sum() - len(along) * base * base_slope
    by_kappa = (a * (base * along + kappa * across)).sum()
    if weights is not None:
        own_tilts, own_slopes = tilt_and_slope(D, (kappa * weights.weight) ** 2)
        value -= weights.number @ own_tilts
        by_kappa -= kappa * (weights.number * weights.weight**2) @ own_slopes
    return float(value), float(by_kappa), float(by_base)


def _turn(S: Array, at: At) -> tuple[At, At]:
    """The mean turned by expectation maximisation, which never lowers the likelihood, and further.

    Expected atoms are a_k (kappa_0 mean + kappa S_k) with the slope a_k at their squared length; the new mean is the
    direction of their sum. The part of it that only says where the mean was holds it back; without it the fixed points
    are the same, but a step may go too far.
    """
    pull = at.base * at.mean + at.kappa * S
    a = slope(S.shape[1], np.einsum("kd,kd->k", pull, pull))
    return at._replace(mean=direction_of(a @ pull, at.mean)), at._replace(mean=direction_of(a @ S, at.mean))


def directions_of(pull: Array, otherwise: Array) -> Array:
    """Of length one, each; `otherwise` where there is no pull (and nothing of that either: the first axis)."""
    length = np.linalg.norm(pull, axis=-1, keepdims=True)
    none = otherwise if otherwise.any() else np.eye(1, pull.shape[-1])[0]
    return np.asarray(np.where(length > 0, pull / np.where(length > 0, length, 1.0), none))


def direction_of(vector: Array, otherwise: Array) -> Array:
    """Of length one."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else otherwise


def _concentrate(S: Array, across: Array, weights: Weights | None, at: At, bounds: tuple[float, float]) -> At:
    """Both concentrations at a maximum, the mean held: a search in log kappa and log(1 + base / D)."""
    from scipy.optimize import minimize

    D = S.shape[1]
    along = S @ at.mean

    def cost(x: Array) -> tuple[float, Array]:
        kappa, base = float(np.exp(x[0])), float(D * np.expm1(x[1]))
        value, by_kappa, by_base = value_and_slopes(along, across, D, weights, kappa, base)
        return -value, -np.array([kappa * by_kappa, (D + base) * by_base])

    start = np.array([np.log(at.kappa), np.log1p(at.base / D)])
    kappas = (start[0], start[0]) if weights is None else (np.log(bounds[0]), np.log(bounds[1]))
    bases = (0.0, max(float(np.log1p(CONCENTRATIONS[1])), start[1]))
    best = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=(kappas, bases))
    kappa = at.kappa if weights is None else float(np.exp(best.x[0]))
    return at._replace(kappa=kappa, base=float(D * np.expm1(best.x[1])))


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
