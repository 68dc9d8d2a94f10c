"""Concentrations and mean of directions: the most likely ones, given the sums of directions at atoms.

Equations: `modelweld.families.Directions`. The mean is turned by expectation maximisation, the concentrations are
climbed, in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.families.math.bessel import slope, tilt_and_slope
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
    """Hyperparameters: a point at which the likelihood is evaluated."""

    mean: Array
    kappa: float
    base: float


def maximise(S: Array, weights: Weights | None, at: At, bounds: tuple[float, float]) -> At:
    """Turn the mean, then search both concentrations, until that helps no more; without `weights` kappa is held."""
    across = np.einsum("kd,kd->k", S, S)

    def log_likelihood(at: At) -> float:
        return value_and_slopes(S @ at.mean, across, S.shape[1], weights, at.kappa, at.base)[0]

    for _ in range(MOST_ROUNDS):
        before = log_likelihood(at)
        at = max((at, *_turned(S, at)), key=log_likelihood)
        at = max((at, _concentrated(S, across, weights, at, bounds)), key=log_likelihood)
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


def _turned(S: Array, at: At) -> tuple[At, At]:
    """The mean turned by expectation maximisation, which never lowers the likelihood, and further.

    Expected atoms are a_k (kappa_0 mean + kappa S_k) with the slope a_k at their squared length; the new mean is the
    direction of their sum. The part of it that only says where the mean was holds it back; without it the fixed points
    are the same, but a step may go too far.
    """
    pull = at.base * at.mean + at.kappa * S
    a = slope(S.shape[1], np.einsum("kd,kd->k", pull, pull))
    return at._replace(mean=_direction(a @ pull, at.mean)), at._replace(mean=_direction(a @ S, at.mean))


def _direction(vector: Array, otherwise: Array) -> Array:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else otherwise


def _concentrated(S: Array, across: Array, weights: Weights | None, at: At, bounds: tuple[float, float]) -> At:
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


def first_concentrations(D: int, scatter: float, share: float) -> tuple[float, float]:
    """Of values and of atoms, if this share of the values' scatter is noise.

    With A the mean cosine of values to their atom and A_0 that of atoms to their mean, two copies have mean cosine A^2
    = 1 - noise, and the mean of all values has squared length A_0^2 A^2 = 1 - scatter.
    """
    noise = share * scatter
    return concentration_at(D, noise), concentration_at(D, min((scatter - noise) / (1 - noise), 1.0))
