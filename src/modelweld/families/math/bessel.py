"""The normaliser of the von Mises-Fisher distribution, for any dimension and concentration.

A unit vector v in D dimensions with density C(kappa) exp(kappa theta'v) on the sphere has

    log C(kappa) = log C(0) - tilt(kappa),        tilt(kappa) = log E exp(kappa theta'v) under uniform v
                                                              = log 0F1(; D/2; kappa^2 / 4),
    1 / C(0)     = area of the sphere = 2 pi^(D/2) / Gamma(D/2).

With order nu = D/2 - 1 this is kappa^nu / ((2 pi)^(D/2) I_nu(kappa)), but unlike the Bessel function I the tilt neither
overflows nor underflows, is a smooth function of kappa^2, and is zero at zero. All functions here take kappa^2: that is
what a squared length is. They are accurate to about 1e-13 relative to 1 + tilt for every D from 1 on.

For orders from `SMALLEST_ORDER` on: Debye's uniform expansion (DLMF 10.41.3) in logarithms. With z = kappa / nu,
r = sqrt(1 + z^2) and p = 1 / r, the terms in log kappa and Stirling's series cancel and leave

    tilt = nu (r - 1 - log((1 + r) / 2)) - log(r) / 2 + sum over k of (E_k(p) - E_k(1)) / nu^k.

Inserting exp(sum E_k / nu^k) into the recursion of DLMF 10.41.9 gives one for the derivatives e_k of E_k:

    e_1 = (1 - 5 p^2) / 8,
    e_{k+1} = p^2 (1 - p^2) / 2 (e_k' + sum over i + j = k of e_i e_j) + (p - 2 p^3) e_k.

Lower orders are reached from above, where the recursion is stable: with slope a = tilt' / kappa,

    a at order nu - 1 = 1 / (2 nu + kappa^2 a),      tilt at order nu - 1 = tilt + log(1 + kappa^2 a / (2 nu)).

A costly function of one number, interpolated so that it is computed at a few nodes only.

Integrals over the concentration of an atom, which is concentration * exp(diversity z) with z standard normal.

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
import scipy
from numpy.polynomial import Polynomial

from modelweld.core.values import Array, Index
from modelweld.families.math.maximise import ByAtom

SMALLEST_ORDER, MOST_TERMS = 20.0, 9
"""From this order on, this many terms leave 1.2e-13: the tenth is at most 1.24 / nu^10, see `_expansion`."""

TABLE_FROM, TABLE_TO, KNOTS_APART = 1e-5, 34.0, 0.004
"""Of the table over log kappa: it begins where the tilt, kappa^2 / (2 D), is nothing, and ends at a kappa of 5e14."""

PRECISION = 1e-13
"""Terms of the expansion that are smaller than this everywhere are left out."""


def log_uniform(D: int) -> float:
    """Logarithm of C_D(0): minus that of the area of the sphere."""
    return float(scipy.special.gammaln(D / 2) - np.log(2.0) - D / 2 * np.log(np.pi))


def tilt(D: int, squared: Array) -> Array:
    """Difference log C_D(0) - log C_D(kappa) given kappa^2; zero at zero."""
    order, steps = _reachable(D)
    if steps == 0:
        return _expand(order, squared, with_slope=False)[0]
    return tilt_and_slope(D, squared)[0]


def slope(D: int, squared: Array) -> Array:
    """Derivative of the tilt by kappa, over kappa: the mean cosine E theta'v over kappa; 1 / D at zero."""
    return tilt_and_slope(D, squared)[1]


def tilt_and_slope(D: int, squared: Array) -> tuple[Array, Array]:
    """Both, at the price of one."""
    order, steps = _reachable(D)
    value, a = _expand(order, squared, with_slope=True)
    factor = np.ones_like(value)
    for i in range(steps):
        growth = squared * a
        factor *= 1.0 + growth / (2 * (order - i))
        a = 1.0 / (2 * (order - i) + growth)
    return np.asarray(value + np.log(factor)), a


@lru_cache(maxsize=16)
def tilt_table(D: int) -> tuple[float, Array]:
    """The tilt by log kappa: the first knot, and cubics (4, cells) with its values and slopes at the knots."""
    t = np.arange(np.log(TABLE_FROM * np.sqrt(D)), TABLE_TO, KNOTS_APART)
    value, a = tilt_and_slope(D, np.exp(2 * t))
    rise, steep = np.diff(value), np.exp(2 * t) * a * KNOTS_APART
    left, right = steep[:-1], steep[1:]
    return float(t[0]), np.array([value[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise])


def tilts_at(D: int, t: Array, derivatives: bool = False) -> list[Array]:
    """The tilt at log kappa, to 1e-10 of itself in a fraction of the time of `tilt`; and its first two derivatives."""
    first, coefficients = tilt_table(D)
    x = np.clip((t - first) * (1 / KNOTS_APART), 0.0, coefficients.shape[1] - TABLE_FROM)
    cell = x.astype(np.int64)
    a, b, c, d = coefficients.take(cell, axis=1, mode="clip")
    x -= cell
    value = a + x * (b + x * (c + x * d))
    if not derivatives:
        return [value]
    return [value, (b + x * (2 * c + 3 * x * d)) / KNOTS_APART, (2 * c + 6 * x * d) / KNOTS_APART**2]


def _reachable(D: int) -> tuple[float, int]:
    """The order at which to expand, and how many steps it lies above that of D."""
    steps = max(0, int(np.ceil(SMALLEST_ORDER - (D / 2 - 1))))
    return D / 2 - 1 + steps, steps


def _expand(order: float, squared: Array, with_slope: bool) -> tuple[Array, Array]:
    """Tilt at a large order, and (else zero) its slope."""
    series, its_slope = _series(order)
    square = np.asarray(squared, dtype=np.float64) / order**2
    r = np.sqrt(1.0 + square)
    p = 1.0 / r
    above = square / (1.0 + r)  # r - 1, without cancellation
    value = order * (above - np.log1p(0.5 * above)) - 0.5 * np.log(r) + _polynomial(series, p)
    if not with_slope:
        return value, np.zeros(())
    return value, (order / (1.0 + r) - p * p * (0.5 + p * _polynomial(its_slope, p))) / order**2


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's scheme in place: these arrays are large and many."""
    result = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        result *= x
        result += c
    return result


@lru_cache
def _series(order: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coefficients in p of the sum over k of (E_k(p) - E_k(1)) / order^k, and of its derivative."""
    total = Polynomial([0.0])
    for k, (term, largest) in enumerate(_expansion(), start=1):
        if largest / order**k < PRECISION:
            break
        total = total + term / order**k
    total = total - total(1.0)
    return tuple(map(float, total.coef)), tuple(map(float, total.deriv().coef))


@lru_cache
def _expansion() -> list[tuple[Polynomial, float]]:
    """E_1, ... and the largest absolute value of each E_k(p) - E_k(1)."""
    p = Polynomial([0.0, 1.0])
    derivatives = [(1 - 5 * p**2) / 8]
    while len(derivatives) < MOST_TERMS:
        k = len(derivatives)
        products = sum((derivatives[i] * derivatives[k - 2 - i] for i in range(k - 1)), Polynomial([0.0]))
        last = derivatives[-1]
        derivatives.append(p**2 * (1 - p**2) / 2 * (last.deriv() + products) + (p - 2 * p**3) * last)
    terms = [e.integ() for e in derivatives]
    grid = np.linspace(0.0, 1.0, 1001)
    return [(term, float(np.abs(term(grid) - term(1.0)).max())) for term in terms]


AROUND = np.array([-1.0, 0.0, 1.0, 2.0])
"""The nodes round a point between 0 and 1, in units of their distance: values and slopes there, a polynomial of degree
seven."""


class Interpolated:
    """Value and slope of a smooth function, from both at the four nearest nodes of a fixed grid.

    A node is computed when it is first needed; the grid is fixed, so that results do not depend on what was asked
    before. The error is at most 8e-6 h^8 times the eighth derivative, h the distance of nodes.

    Examples
    --------
    >>> sine = Interpolated(lambda x: (float(np.sin(x)), float(np.cos(x))), 0.25)
    >>> bool(np.abs(np.array(sine(0.7)) - (np.sin(0.7), np.cos(0.7))).max() < 1e-9)
    True
    """

    def __init__(self, function: Callable[[float], tuple[float, float]], apart: float) -> None:
        self._function, self._apart = function, apart
        self._nodes: dict[int, tuple[float, float]] = {}

    def __call__(self, x: float) -> tuple[float, float]:
        """Value and slope at x."""
        left = int(np.floor(x / self._apart))
        t = x / self._apart - left
        known = np.array([self._node(left + int(i)) for i in AROUND])
        coefficients = _POLYNOMIAL @ np.concatenate([known[:, 0] - known[1, 0], known[:, 1] * self._apart])
        powers = t ** np.arange(8)
        slope = (np.arange(1, 8) * coefficients[1:]) @ powers[:-1]
        return float(known[1, 0] + coefficients @ powers), float(slope / self._apart)

    def _node(self, i: int) -> tuple[float, float]:
        if i not in self._nodes:
            self._nodes[i] = self._function(i * self._apart)
        return self._nodes[i]


def _solve() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Coefficients of the polynomial (8,) from values and slopes (8,) at the nodes."""
    k = np.arange(8)
    values = AROUND[:, None] ** k
    slopes = k * AROUND[:, None] ** np.maximum(k - 1, 0)
    return np.linalg.inv(np.concatenate([values, slopes]))


_POLYNOMIAL = _solve()


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


def integrate_concentration(
    held: Held, log_kappa: float, diversity: float, base: float, slopes: bool = False
) -> Integral:
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


def weigh_tilts(weight: Array, labels: Index, K: int, D: int) -> OwnTilts:
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
    return np.asarray(scipy.interpolate.CubicSpline(np.arange(len(NODES)), np.eye(len(NODES)), bc_type="natural").c)
