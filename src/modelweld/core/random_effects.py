"""Maximum likelihood of (mean, noise, spread) when the matching is known: one-way random effects.

Atom k has theta_k ~ N(mean, spread) and values v ~ N(theta_k, noise / w). With W_k = sum w, the atoms' averages
y_k = sum w v / W_k and the ratio rho = spread / noise, mean and noise have closed forms given rho,

    u_k = W_k / (1 + rho W_k),   mean = sum u y / sum u,   noise = (within + sum u (y - mean)^2) / N,

and what is left is a search in one dimension:

    profile(rho) = -N/2 log noise(rho) - 1/2 sum_k log(1 + rho W_k).

A prior of noise and spread (`families.real_values`) adds to `within` and a function of rho. Where noise may not
fall below a floor, what is left is a search in rho with the noise at its floor. The paper's closed forms (errata E4 to
E6) are `step_by_moments` below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.prior import FLAT, NoisePrior
from modelweld.core.values import Array

LOG_RATIO_GRID = np.log(10.0) * np.arange(-8.0, 10.0)
"""Decades of spread / noise that are searched: outside, atoms coincide or noise is at its floor anyway."""

SMALLEST_RATIO = float(np.exp(LOG_RATIO_GRID[0]))

MOST_HALVINGS, CLOSE_ENOUGH = 20, 1e-9
"""Of two decades of log ratio, until two steps agree to this: the likelihood is flat there, so that its maximum is met
to N times the square of this. Ridders' steps more than halve; most often four are enough. (What lies on one side of the
zero all the time halves the bracket no further: its width says nothing.)"""


class Hyperparameters(NamedTuple):
    """Mean (D,), noise and spread (D,) or (1,)."""

    mean: Array
    noise: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Effects:
    """What the likelihood needs to know of a matching. Atoms of equal weight share a line (C lines).

    weight (C, D or 1), atoms (C, D or 1): W and how many atoms have it; averages, squares (C, D): sums over
    those atoms of y and y^2; within (D,): sum of w (v - y)^2; seen (D,): number of values; log_weight (D,): sum
    of log w.
    """

    weight: Array
    atoms: Array
    averages: Array
    squares: Array
    within: Array
    seen: Array
    log_weight: Array

    @classmethod
    def from_counts(cls, counts: NDArray[np.int64], sums: Array, total_squares: Array) -> Effects:
        """Of atoms with `counts` equally known values, their `sums` (K, D) and all values' squares (D,)."""
        distinct, line = np.unique(counts, return_inverse=True)
        C, D = len(distinct), sums.shape[1]
        y = sums / counts[:, None]
        member = np.zeros((C, len(counts)))
        member[line, np.arange(len(counts))] = 1.0
        within = total_squares - (counts[:, None] * y * y).sum(0)
        return cls(
            weight=distinct[:, None].astype(np.float64),
            atoms=member.sum(1)[:, None],
            averages=member @ y,
            squares=member @ (y * y),
            within=np.maximum(within, 0.0),
            seen=np.full(D, float(counts.sum())),
            log_weight=np.zeros(D),
        )

    @classmethod
    def from_sums(cls, n: Array, W: Array, S: Array, Q: Array, G: Array) -> Effects:
        """Of atoms with these numbers of values, and sums (K, D) of w, w y, w y^2 and log w."""
        if (n == n[:, :1]).all() and (n == W).all():
            return cls.from_counts(n[:, 0].astype(np.int64), S, Q.sum(0))
        y = S / np.where(W > 0, W, 1.0)
        return cls(
            weight=W,
            atoms=(W > 0).astype(np.float64),
            averages=y,
            squares=y * y,
            within=np.maximum(Q - W * y * y, 0.0).sum(0),
            seen=n.sum(0),
            log_weight=G.sum(0),
        )

    @property
    def free(self) -> Array:
        """Values beyond the first of their atom (D,): where there are none, the ratio cannot be learned."""
        return np.asarray(self.seen - np.broadcast_to(self.atoms, self.averages.shape).sum(0))

    def residuals(self, mean: Array) -> Array:
        """Sum over the atoms of a line of (y - mean)^2: (C, D)."""
        return np.asarray(self.squares - 2 * mean * self.averages + mean * mean * self.atoms)


def log_likelihood(effects: Effects, at: Hyperparameters) -> Array:
    """Log evidence of all values, one number per dimension (D,)."""
    total = at.noise + at.spread * effects.weight
    u = (effects.weight / total)[None]
    squares, averages, atoms = (_over_atoms(u, x)[0] for x in (effects.squares, effects.averages, effects.atoms))
    return np.asarray(
        0.5 * effects.log_weight
        - 0.5 * effects.seen * np.log(2 * np.pi * at.noise)
        - 0.5 * (effects.atoms * np.log(total / at.noise)).sum(0)
        - 0.5 * effects.within / at.noise
        - 0.5 * (squares - 2 * at.mean * averages + at.mean * at.mean * atoms)
    )


def maximise(
    effects: Effects, old: Hyperparameters, floor: Array, scalar: bool, prior: NoisePrior = FLAT
) -> Hyperparameters:
    """The most probable hyperparameters; never less probable than `old`.

    Where nothing is matched the likelihood is flat in the ratio, which then stays. Noise is not let below `floor`.
    """
    learnable = effects.free.sum(keepdims=True) > 0 if scalar else effects.free > 0
    effects = replace(effects, within=effects.within + prior.squares, seen=effects.seen + prior.degrees)
    log_ratio = np.where(learnable, best_log_ratio(effects, scalar, prior), np.log(old.spread / old.noise))
    at = _profile(effects, log_ratio[None], scalar, prior)
    mean, noise, low = at.mean[0], at.noise[0], at.noise[0] < floor
    if low.any():
        log_ratio = np.where(low, best_log_ratio(effects, scalar, prior, floor), log_ratio)
        noise = np.maximum(noise, floor)
        mean = np.where(low, _profile(effects, log_ratio[None], scalar, prior, floor).mean[0], mean)
    new = Hyperparameters(
        mean=np.where(effects.seen > 0, mean, old.mean),
        noise=noise,
        spread=np.maximum(np.exp(log_ratio) * noise, SMALLEST_RATIO * floor),
    )
    rise = log_likelihood(effects, new) - log_likelihood(effects, old)
    believed = prior.of_ratio(new.spread / new.noise) - prior.of_ratio(old.spread / old.noise)
    if scalar:
        return new if rise.sum() + believed.sum() >= 0 else old
    rise += believed
    return Hyperparameters(*(np.where(rise >= 0, a, b) for a, b in zip(new, old, strict=True)))


def step_by_moments(effects: Effects, old: Hyperparameters, floor: Array, scalar: bool) -> Hyperparameters:
    """The paper's closed forms (equation 8), 1/L before both sums of spread (erratum E4). The likelihood may fall.

    Where nothing is matched (N = K: the authors' program divides by zero) the old values stay.
    """
    K = np.maximum(effects.atoms.sum(0), 1.0)
    mean = effects.averages.sum(0) / K
    within, free = effects.within, effects.free
    between = effects.residuals(mean).sum(0) / K
    if scalar:
        within, free, between = (x.sum(keepdims=True) for x in (within, free, between))
        between = between / len(effects.within)
    noise = np.where(free > 0, within / np.maximum(free, 1), old.noise)
    spread = np.where(free > 0, between - noise * (effects.atoms / effects.weight).sum(0) / K, old.spread)
    return Hyperparameters(mean, np.maximum(noise, floor), np.maximum(spread, floor))


class _Profile(NamedTuple):
    """Given log ratios (R, D or 1): mean (R, D); noise, log likelihood and its slope (R, D or 1)."""

    mean: Array
    noise: Array
    value: Array
    slope: Array


def _profile(
    effects: Effects,
    log_ratio: Array,
    scalar: bool,
    prior: NoisePrior,
    noise: Array | None = None,
    with_value: bool = True,
) -> _Profile:
    """What is maximised, with mean and noise (unless given) at their best given the ratio, up to a constant.

    `effects` have the prior's squares in them. Its slope takes fewer logarithms without the value.
    """
    rho = np.exp(log_ratio)[:, None, :]
    u = effects.weight / (1 + rho * effects.weight)
    atoms, averages = _over_atoms(u, effects.atoms), _over_atoms(u, effects.averages)
    mean = averages / np.maximum(atoms, np.finfo(float).tiny)
    squares = effects.within + _over_atoms(u, effects.squares) - mean * averages
    u = u * u
    steep = (
        _over_atoms(u, effects.squares)
        - 2 * mean * _over_atoms(u, effects.averages)
        + mean * mean * _over_atoms(u, effects.atoms)
    )
    log_det = (effects.atoms * np.log1p(rho * effects.weight)).sum(1) if with_value else np.zeros_like(rho[:, 0, :])
    seen, pull = effects.seen, atoms
    if scalar:
        D = len(effects.seen)
        seen, squares, steep = (x.sum(-1, keepdims=True) for x in (seen, squares, steep))
        log_det, pull = (x * D if x.shape[-1] == 1 else x.sum(-1, keepdims=True) for x in (log_det, pull))
    ratio = rho[:, 0, :]
    value = prior.of_ratio(ratio) - 0.5 * log_det
    slope = prior.slope_of_ratio(ratio) - 0.5 * ratio * pull
    if noise is not None:
        fixed = np.broadcast_to(noise, squares.shape)
        return _Profile(mean, fixed, value - 0.5 * squares / fixed, slope + 0.5 * ratio * steep / fixed)
    squares = np.maximum(squares, np.finfo(float).tiny)
    return _Profile(
        mean=mean,
        noise=squares / np.maximum(seen, 1.0),
        value=value - 0.5 * seen * np.log(squares),
        slope=slope + 0.5 * ratio * seen * steep / squares,
    )


def _over_atoms(u: Array, x: Array) -> Array:
    """Sum over lines of u (R, C, D or 1) times x (C, D or 1)."""
    return np.asarray(u[:, :, 0] @ x if u.shape[-1] == 1 else (u * x).sum(1))


def best_log_ratio(effects: Effects, scalar: bool, prior: NoisePrior, noise: Array | None = None) -> Array:
    """The maximum of the profile: the best decade, then the slope's zero beside it by Ridders' method."""

    def slopes(log_ratio: Array) -> Array:
        return np.asarray(_profile(effects, log_ratio[None], scalar, prior, noise, with_value=False).slope[0])

    grid = _profile(effects, LOG_RATIO_GRID[:, None], scalar, prior, noise)
    best, columns = np.argmax(grid.value, axis=0), np.arange(grid.value.shape[1])
    below, above = np.maximum(best - 1, 0), np.minimum(best + 1, len(LOG_RATIO_GRID) - 1)
    low, high, rise, fall = (
        LOG_RATIO_GRID[below],
        LOG_RATIO_GRID[above],
        grid.slope[below, columns],
        grid.slope[above, columns],
    )
    high, low = np.where(rise > 0, high, low), np.where(fall > 0, high, low)  # no zero between: an end is best
    guess = np.full(low.shape, np.nan)
    for _ in range(MOST_HALVINGS):
        middle, last = (low + high) / 2, guess
        at = slopes(middle)
        step = (middle - low) * at / np.sqrt(np.maximum(at * at - rise * fall, np.finfo(float).tiny))
        guess = np.clip(middle + step, low, high)
        if ((np.abs(guess - last) < CLOSE_ENOUGH) | (high - low < CLOSE_ENOUGH)).all():
            break
        there = slopes(guess)
        for x, slope in ((middle, at), (guess, there)):
            rising, inside = slope > 0, (low <= x) & (x <= high)
            low, rise = (np.where(rising & inside, new, old) for new, old in ((x, low), (slope, rise)))
            high, fall = (np.where(~rising & inside, new, old) for new, old in ((x, high), (slope, fall)))
    return np.asarray(guess)
