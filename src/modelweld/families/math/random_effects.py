"""Maximum likelihood of (mean, noise, spread) when the matching is known: one-way random effects.

Atom k has theta_k ~ N(mean, spread) and values v ~ N(theta_k, noise / w). With W_k = sum w, the atoms' averages
y_k = sum w v / W_k and the ratio rho = spread / noise, mean and noise have closed forms given rho,

    u_k = W_k / (1 + rho W_k),   mean = sum u y / sum u,   noise = (within + sum u (y - mean)^2) / N,

and what is left is a search in one dimension:

    profile(rho) = -N/2 log noise(rho) - 1/2 sum_k log(1 + rho W_k).

A prior of noise and spread (`families.math.start`) adds to `within` and a function of rho. Where noise may not
fall below a floor, what is left is a search in rho with the noise at its floor. The paper's closed forms (errata E4 to
E6) are `core.moments.step_by_moments`.

A frame in which full covariances are diagonal: where noise and spread can be learned dimension by dimension.

For a noise covariance A and a spread covariance B there is a matrix T with T' A T = 1 and T' B T diagonal. Measured
as y = (v - origin) T, values have independent coordinates, so everything a diagonal Gaussian knows applies; densities
are multiplied by |det T| per value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import scipy

from modelweld.core.family import sum_by_atom, with_fields
from modelweld.core.moments import Effects, Hyperparameters
from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack
from modelweld.families.math.start import FLAT, NoisePrior

if TYPE_CHECKING:
    from modelweld.families.real_values import Gaussian

LOG_RATIO_GRID = np.log(10.0) * np.arange(-8.0, 10.0)
"""Decades of spread / noise that are searched: outside, atoms coincide or noise is at its floor anyway."""

SMALLEST_RATIO = float(np.exp(LOG_RATIO_GRID.min()))

MOST_HALVINGS, CLOSE_ENOUGH = 20, 1e-6
"""Of two decades of log ratio, until two steps agree to this: the likelihood is flat there, so that its maximum is met
to N times the square of this. Ridders' steps more than halve; most often three are enough. (What lies on one side of
the zero all the time halves the bracket no further: its width says nothing.)"""

NEARBY = 0.25
"""Of log ratio, either way: there the maximum is looked for first, since most often the matching has hardly changed."""


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
    log_ratio = np.log(old.spread / old.noise)
    log_ratio = np.where(learnable, best_log_ratio(effects, scalar, prior, log_ratio), log_ratio)
    at = _profile(effects, log_ratio[None], scalar, prior)
    mean, noise, low = at.mean[0], at.noise[0], at.noise[0] < floor
    if low.any():
        log_ratio = np.where(low, best_log_ratio(effects, scalar, prior, log_ratio, floor), log_ratio)
        noise = np.maximum(noise, floor)
        mean = np.where(low, _profile(effects, log_ratio[None], scalar, prior, floor).mean[0], mean)
    new = Hyperparameters(
        mean=np.where(effects.seen > 0, mean, old.mean),
        noise=noise,
        spread=np.maximum(np.exp(log_ratio) * noise, SMALLEST_RATIO * floor),
    )
    rise = log_likelihood(effects, new) - log_likelihood(effects, old)
    log_prior = prior.of_ratio(new.spread / new.noise) - prior.of_ratio(old.spread / old.noise)
    if scalar:
        return new if rise.sum() + log_prior.sum() >= 0 else old
    rise += log_prior
    return Hyperparameters(*(np.where(rise >= 0, a, b) for a, b in zip(new, old, strict=True)))


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


def best_log_ratio(effects: Effects, scalar: bool, prior: NoisePrior, near: Array, noise: Array | None = None) -> Array:
    """The maximum of the profile: `near` the ratios so far, else in the best decade; the slope's zero there by Ridders'
    method.
    """

    def slopes(log_ratio: Array) -> Array:
        return np.asarray(_profile(effects, log_ratio, scalar, prior, noise, with_value=False).slope)

    low, high = near - NEARBY, near + NEARBY
    rise, fall = slopes(np.array([low, high]))
    if not ((rise > 0) & (fall < 0)).all():
        grid = _profile(effects, LOG_RATIO_GRID[:, None], scalar, prior, noise)
        best, columns = np.argmax(grid.value, axis=0), np.arange(grid.value.shape[1])
        below, above = np.maximum(best - 1, 0), np.minimum(best + 1, len(LOG_RATIO_GRID) - 1)
        low, high = LOG_RATIO_GRID[below], LOG_RATIO_GRID[above]
        rise, fall = grid.slope[below, columns], grid.slope[above, columns]
        high, low = np.where(rise > 0, high, low), np.where(fall > 0, high, low)  # no zero between: an end is best
    guess = np.full(low.shape, np.nan)
    for _ in range(MOST_HALVINGS):
        middle, last = (low + high) / 2, guess
        at = slopes(middle[None])[0]
        step = (middle - low) * at / np.sqrt(np.maximum(at * at - rise * fall, np.finfo(float).tiny))
        guess = np.clip(middle + step, low, high)
        if ((np.abs(guess - last) < CLOSE_ENOUGH) | (high - low < CLOSE_ENOUGH)).all():
            break
        there = slopes(guess[None])[0]
        for x, slope in ((middle, at), (guess, there)):
            rising, inside = slope > 0, (low <= x) & (x <= high)
            low, rise = (np.where(rising & inside, new, old) for new, old in ((x, low), (slope, rise)))
            high, fall = (np.where(~rising & inside, new, old) for new, old in ((x, high), (slope, fall)))
    return np.asarray(guess)


Some = TypeVar("Some", bound="Gaussian")


def learn_frame(here: Some, stack: Stack, labels: Index, sums: Array) -> Some:
    """The family `here`, or one learned in the frame that suits the present matching, whichever is more likely."""
    if len(np.unique(labels)) in (1, len(labels)):
        return here
    y = stack.values - np.asarray(here.origin)
    frame = frame_of(*pool_covariances(y, labels))
    D = len(frame)
    floor = NOISE_FLOOR * np.maximum((y @ frame).var(0), 1.0)  # the frame's unit is the noise
    moved = with_fields(here, frame=frame, noise=np.ones(D), spread=np.ones(D), floor=floor)
    atoms = sum_by_atom(moved.rows(stack.values), labels)
    moved = moved.update(atoms)
    return moved if moved.log_evidence(atoms).sum() > here.log_evidence(sums).sum() else here


def pool_covariances(y: Array, labels: Index) -> tuple[Array, Array]:
    """Covariance of values about their atoms' averages, and of these averages, both shrunk (Ledoit and Wolf)."""
    K = int(labels.max()) + 1
    counts = np.bincount(labels, minlength=K)
    averages = np.zeros((K, y.shape[1]))
    np.add.at(averages, labels, y)
    averages /= counts[:, None]
    residuals = y - averages[labels]
    # an atom's own average takes one degree of freedom: values alone say nothing
    several = counts[labels] > 1
    scale = np.sqrt(counts / np.maximum(counts - 1, 1))
    within = _shrunk((residuals * scale[labels][:, None])[several], centred=True)
    return within, _shrunk(averages, centred=False)


def _shrunk(rows: Array, *, centred: bool) -> Array:
    """Ledoit and Wolf's covariance, in units in which fourth powers, which it takes, are numbers; to the same bit."""
    from sklearn.covariance import ledoit_wolf

    unit = 2.0 ** np.frexp(np.abs(rows).max())[1]
    found, _ = ledoit_wolf(rows / unit, assume_centered=centred)
    return np.asarray(found * unit * unit)


def frame_of(within: Array, between: Array) -> Array:
    """T with T' within T = 1 and T' between T diagonal; noise is never nothing, even where values coincide."""
    scale = np.diagonal(within) + np.diagonal(between)
    least = NOISE_FLOOR * np.where(scale > 0, scale, max(scale.max(), np.finfo(float).tiny))
    _, T = scipy.linalg.eigh(between, within + np.diag(least))
    return np.asarray(T)


def full_covariances(family: Gaussian) -> tuple[Array, Array]:
    """Noise and spread of a family as matrices (D, D), in the coordinates of the values."""
    D = np.asarray(family.mean).size
    noise, spread = (np.eye(D) * np.asarray(x) for x in (family.noise, family.spread))
    if family.frame is None:
        return noise, spread
    back = np.linalg.inv(family.frame)
    return back.T @ noise @ back, back.T @ spread @ back
