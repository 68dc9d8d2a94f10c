"""Integrals over the concentration of an atom, which is concentration * exp(diversity z) with z standard normal.

The likelihood of z is the narrower the more values an atom has: on a grid that all atoms share, those of many values
would fall on its nodes, and an objective would have as many maxima as there are teeth in that comb. So every integral
is a sum over points about the mode of its own integrand, as far apart as that is wide, and farther apart farther out.
The mode is two of Newton's steps away from where values and prior put it by an approximation: with mean cosines of
kappa / (nu + sqrt(nu^2 + kappa^2)) (Amos, 1974), n values whose sum has length R are most likely at

    sqrt(1 + (kappa / nu)^2) = (1 + r^2 - 2 / n) / (1 - r^2),       r = R / n,  nu = (D - 1) / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.families.math.bessel import tilts_at
from modelweld.families.math.maximise import ByAtom

NODES = np.linspace(-4.0, 4.0, 21)
"""Values of z for which rows of uneven weights have a column of c; between them c is interpolated."""

COLUMNS = len(NODES) + 1
"""Of rows: c at the nodes, and what weights lack of one."""

STEPS, LONGEST_STEP = 2, 1.5
"""Of Newton's, and the longest."""

WIDEST = 2.0
"""Of an integrand, in deviations of z: where it bends upward, its width is not that of a normal density."""

OwnTilts = Callable[[Array, bool], list[Array]]
"""Logarithms of concentrations (..., K) -> of every atom the sum over its values of the tilt at that concentration
times weight, and, if asked for, its first and second derivative."""


def _points() -> tuple[Array, Array]:
    """Places, and shares of a normal density over that density, in logarithms."""
    y = np.linspace(-3.5, 3.5, 13)
    x = np.sinh(0.7 * y) / 0.7
    share = np.cosh(0.7 * y) * np.exp(-0.5 * x**2)
    return x, np.asarray(np.log(share / share.sum()) + 0.5 * x**2)


POINTS, LOG_SHARES = _points()
"""Of an integral, in units of its width: in the middle .6 apart, at the ends five times as far."""


class Held(NamedTuple):
    """Atoms as an evidence needs them: numbers of values, mean weights, mean'S and |S|^2 of sums S, and own tilts."""

    D: int
    n: Array
    weight: Array
    along: Array
    across: Array
    own: OwnTilts


class Integral(NamedTuple):
    """Of points (G, ...): log concentrations and logs of parts.

    If asked for, also slopes of the log likelihood by log concentration, and of the tilt by half its squared length.
    """

    t: Array
    logs: Array
    by_t: Array
    a: Array

    @property
    def total(self) -> Array:
        """Logarithm of the integral."""
        highest = self.logs.max(0)
        return np.asarray(highest + np.log(np.exp(self.logs - highest).sum(0)))

    @property
    def shares(self) -> Array:
        """Probabilities of the points given an atom's values."""
        odds = np.exp(self.logs - self.logs.max(0))
        return np.asarray(odds / odds.sum(0))


def integrated(held: Held, log_kappa: float, diversity: float, base: float, slopes: bool = False) -> Integral:
    """The integral of every atom's likelihood over its concentration."""
    if diversity:
        z, width = _mode(held, log_kappa, diversity, base)
        shape = (-1, *np.ones(z.ndim, dtype=np.int64))
        z = z + width * POINTS.reshape(shape)
        logs = np.log(width) + LOG_SHARES.reshape(shape) - 0.5 * z**2
    else:
        z = logs = np.zeros((1, *held.across.shape))
    t = log_kappa + diversity * z
    if slopes:
        value, by_t, _, a = _likelihood(held, t, base)
        return Integral(t, logs + value, by_t, a)
    lengths = _log_lengths(held, t, base)
    return Integral(t, logs + tilts_at(held.D, lengths)[0] - held.own(t, False)[0], np.zeros(()), np.zeros(()))


def _log_lengths(held: Held, t: Array, base: float) -> Array:
    """Of base times mean plus concentration times sum."""
    if base:
        return np.asarray(0.5 * np.log(_squares(held, np.exp(t), base)))
    return t + 0.5 * np.log(np.maximum(held.across, np.finfo(float).tiny))


def _squares(held: Held, kappa: Array, base: float) -> Array:
    """Squared lengths of base times mean plus concentration times sum, above zero."""
    squares = kappa**2 * held.across
    if base:
        squares = squares + base**2 + 2 * base * kappa * held.along
    return np.maximum(squares, np.finfo(float).tiny)


def _likelihood(held: Held, t: Array, base: float) -> tuple[Array, Array, Array, Array]:
    """Log likelihood at log concentrations, its first and second derivative, and a of `Integral`."""
    kappa = np.exp(t)
    squares = _squares(held, kappa, base)
    value, slope, bend = tilts_at(held.D, 0.5 * np.log(squares), derivatives=True)
    a = slope / squares
    if base:  # log lengths do not rise by one with log concentrations
        pull = base * kappa * held.along
        rise = (pull + kappa**2 * held.across) / squares
        bend = bend * rise**2 + slope * ((pull + 2 * kappa**2 * held.across) / squares - 2 * rise**2)
        slope = slope * rise
    own, own_slope, own_bend = held.own(t, True)
    return value - own, slope - own_slope, bend - own_bend, a


def _mode(held: Held, log_kappa: float, diversity: float, base: float) -> tuple[Array, Array]:
    """About where the integrand is highest, and how wide it is there, in deviations of z."""
    n, nu = np.maximum(held.n, 1.0), max((held.D - 1) / 2, 0.5)
    r = held.across / (n * held.weight) ** 2
    root = np.maximum((1 + r - 2 / n) / np.maximum(1 - r, 1e-12), 1 + 1e-12)
    likely = np.log(nu / held.weight * np.sqrt(root**2 - 1))
    known = (n - 1) * nu * (1 - 1 / root) * diversity**2
    z = np.asarray(known / (known + 1) * (likely - log_kappa) / diversity)
    for _ in range(STEPS):
        _, slope, bend, _ = _likelihood(held, log_kappa + diversity * z, base)
        steep = np.maximum(1 - diversity**2 * bend, WIDEST**-2)
        z = z + np.clip((diversity * slope - z) / steep, -LONGEST_STEP, LONGEST_STEP)
    return z, 1 / np.sqrt(steep)


def even_tilts(n: Array, D: int, less: Array | float = 0.0) -> OwnTilts:
    """Of atoms of so many values of weight one each; or, with their c taken away, of any at one concentration."""

    def at(t: Array, derivatives: bool) -> list[Array]:
        value, *more = (n * x for x in tilts_at(D, t, derivatives))
        return [value - less, *more]

    return at


def weighted_tilts(weight: Array, labels: Index, K: int, D: int) -> OwnTilts:
    """Of K atoms of values with these weights and labels."""
    seen = weight > 0
    add, log_weight, label = ByAtom(labels[seen], K), np.log(weight[seen]), labels[seen]

    def at(t: Array, derivatives: bool) -> list[Array]:
        found = tilts_at(D, t[..., label] + log_weight, derivatives)
        return [add(x.reshape(-1, len(label)).T).T.reshape(t.shape) for x in found]

    return at


def column_tilts(n: Array, c: Array, D: int, log_kappa: float, diversity: float) -> tuple[Array, OwnTilts]:
    """Mean weights, and tilts, of atoms that are known by their columns alone: c (..., G), and what weights lack.

    With the tilt of as many values of the mean weight taken out, what is left changes little with the logarithm of the
    concentration: a cubic spline, and straight beyond the nodes.
    """
    weight, nodes = 1 - c[..., -1] / np.maximum(n, 1.0), log_kappa + diversity * NODES
    uneven = tilts_at(D, nodes)[0] - tilts_at(D, nodes + np.log(weight)[..., None])[0]
    cubics = np.einsum("pcg,...g->pc...", _spline(), n[..., None] * uneven - c[..., :-1])
    apart = (NODES[1] - NODES[0]) * (diversity or 1.0)

    def at(t: Array, derivatives: bool) -> list[Array]:
        x = (t.reshape(-1, *n.shape) - log_kappa) / apart - NODES[0] / (NODES[1] - NODES[0])
        inside = np.clip(x, 0.0, len(NODES) - 1.0)
        cell = np.minimum(inside.astype(np.int64), len(NODES) - 2)
        p3, p2, p1, p0 = (np.take_along_axis(cubic, cell, axis=0) for cubic in cubics)
        y = inside - cell
        steep = p1 + y * (2 * p2 + 3 * y * p3)
        rest = p0 + y * (p1 + y * (p2 + y * p3)) + steep * (x - inside), steep / apart, (2 * p2 + 6 * y * p3) / apart**2
        known = tilts_at(D, t + np.log(weight), derivatives)
        return [n * one + other.reshape(t.shape) for one, other in zip(known, rest, strict=False)]

    return weight, at


@lru_cache(maxsize=1)
def _spline() -> Array:
    """Cubics (4, cells, G) through numbers at the nodes, which are one apart."""
    from scipy.interpolate import CubicSpline

    return np.asarray(CubicSpline(np.arange(len(NODES)), np.eye(len(NODES)), bc_type="natural").c)
