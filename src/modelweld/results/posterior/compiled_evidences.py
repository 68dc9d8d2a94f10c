"""Log evidences of families as compiled functions of one row of sums, for chains that ask for millions of them.

Equations are those of the families. A set of several arrays has the sum of their evidences; its rows stand side by
side. What is not here (vocabularies that differ, users' own families) is drawn in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.compilers import exact
from modelweld.core.family import Family
from modelweld.core.values import Array, Index
from modelweld.families.counts import Counts
from modelweld.families.directions import Directions
from modelweld.families.hyperparameters import SMALLEST_POSITIVE
from modelweld.families.math.bessel import (
    KNOTS_APART,
    LOG_SHARES,
    LONGEST_STEP,
    POINTS,
    STEPS,
    TABLE_TO,
    WIDEST,
    log_uniform,
    tilt_table,
)
from modelweld.families.normal_gamma import NormalGamma
from modelweld.families.rates import Proportions, Rates
from modelweld.families.real_values import Gaussian
from modelweld.families.wishart.scatter import InverseWishart, Moments, Scatter

RATES, DIRICHLET, NORMAL_GAMMA, GAUSSIAN, DIRECTIONS, WISHART = range(6)

FIRST_CELL = 7
"""Where the hyperparameters of directions say which cell of `Evidence.tilts` is their first."""


class Evidence(NamedTuple):
    """Of a set: the kind of each array, its columns of a row, and its hyperparameters among all of them.

    Of directions also the cubics of `families.math.bessel.tilt_table`, which are too many to be copied every time.
    """

    kinds: Index  # (A,)
    cuts: Index  # (A + 1,)
    theta: Array  # (T,)
    at: Index  # (A + 1,)
    tilts: Array  # (cells, 4)


class _Compiled(NamedTuple):
    """How a family goes over: its kind, hyperparameters (T,) for rows of k columns, rows of other sums if need be."""

    kind: int
    theta: Callable[[Any, int], Array]
    rows: Callable[[Any, Array], Array] = lambda family, rows: rows


def _side_by_side(D: int, *vectors: ArrayLike) -> Array:
    """Vectors or single numbers as vectors (D,), one after the other."""
    return np.concatenate([np.zeros(D) + np.asarray(vector, dtype=np.float64) for vector in vectors])


def _of_gaussian(family: Gaussian, k: int) -> Array:
    mean, noise, spread = family.hyperparameters
    return _side_by_side(k // 5, mean, 1 / noise, spread / noise, np.log(2 * np.pi * noise))


def _of_directions(family: Directions, k: int) -> Array:
    law = family.law
    D = len(law.mean)
    head = [D, law.base, 0.0, np.log(law.kappa), law.diversity, log_uniform(D), tilt_table(D)[0], 0]
    theta = np.concatenate([head, law.mean])
    theta[2] = _look_up_tilt(theta, _tilts_of(D), np.log(max(law.base, SMALLEST_POSITIVE)))[0]
    return theta


@lru_cache(maxsize=16)
def _tilts_of(D: int) -> Array:
    """Cubics (cells, 4) of one dimension."""
    return np.ascontiguousarray(tilt_table(D)[1].T)


def _of_wishart(family: InverseWishart, k: int) -> Array:
    at = family.belief
    D = len(at.mean)
    before = _integral(at.freedom, float(np.linalg.slogdet(at.scale)[1]), D)
    return np.array([D, at.strength, at.freedom, before, *at.mean, *at.scale.ravel()])


def _rows_of_wishart(family: InverseWishart, rows: Array) -> Array:
    of = family.sums(rows)
    return np.column_stack([of.power, of.weight, of.carrier, of.first, of.second.reshape(len(rows), -1)])


COMPILED: dict[type[Family], _Compiled] = {
    Rates: _Compiled(RATES, lambda of, k: _side_by_side((k - 1) // 2, *of.prior)),
    Proportions: _Compiled(
        DIRICHLET, lambda of, k: np.append(k // 2, _side_by_side(k // 2, of.successes, of.failures))
    ),
    NormalGamma: _Compiled(NORMAL_GAMMA, lambda of, k: _side_by_side(k // 5, *of.belief)),
    Gaussian: _Compiled(GAUSSIAN, _of_gaussian),
    Counts: _Compiled(DIRICHLET, lambda of, k: np.append(1.0, of.base + np.zeros(k - 2))),
    Directions: _Compiled(DIRECTIONS, _of_directions),
    Scatter: _Compiled(WISHART, _of_wishart, _rows_of_wishart),
    Moments: _Compiled(WISHART, _of_wishart, _rows_of_wishart),
}


def is_compiled(family: Family, rows: Array) -> bool:
    """Whether the evidence of rows like these is here."""
    if isinstance(family, Gaussian) and family.shape == "full":
        return False
    if isinstance(family, Directions) and family.axial:  # values have no sign until they are at an atom
        return False
    if isinstance(family, Directions) and family.diversity and rows[:, 1 : 1 + family.law.columns].any():
        return False  # integrals of uneven weights
    if isinstance(family, Counts) and rows.shape[1] > np.asarray(family.base).size + 2:  # vocabularies differ
        return False
    return type(family) in COMPILED


def compiled_evidence(families: Sequence[Family], rows: Sequence[Array]) -> tuple[Evidence, Array] | None:
    """Evidence and rows (N, k) of a set, side by side; None where some family's evidence is not here."""
    if not all(is_compiled(family, own) for family, own in zip(families, rows, strict=True)):
        return None
    hows = [COMPILED[type(family)] for family in families]
    thetas = [how.theta(family, own.shape[1]) for how, family, own in zip(hows, families, rows, strict=True)]
    sides = [how.rows(family, own) for how, family, own in zip(hows, families, rows, strict=True)]
    tilts = [np.zeros((0, 4))]
    for theta in (theta for how, theta in zip(hows, thetas, strict=True) if how.kind == DIRECTIONS):
        theta[FIRST_CELL] = sum(map(len, tilts))
        tilts.append(_tilts_of(int(theta[0])))
    evidence = Evidence(
        kinds=np.array([how.kind for how in hows]),
        cuts=np.cumsum([0, *(side.shape[1] for side in sides)]),
        theta=np.concatenate(thetas),
        at=np.cumsum([0, *map(len, thetas)]),
        tilts=np.concatenate(tilts) if len(tilts) > 2 else tilts[-1],
    )
    return evidence, np.ascontiguousarray(np.concatenate(sides, axis=1))


def evidence_of(family: Family, sums: Array) -> float:
    """Log evidence of all atoms with these sums (K, k): compiled where it can be."""
    found = compiled_evidence([family], [sums])
    if found is None:
        return float(family.log_evidence(sums).sum())
    each = np.empty(len(sums))
    log_evidences(*found, each)
    return float(each.sum())


@exact
def log_evidences(of, rows, found):
    """Log evidences of the first rows of sums (., k), as many as are `found`: one call, because calls cost the most."""
    for r in range(len(found)):
        found[r] = 0.0
    for a in range(len(of.kinds)):
        kind, theta, own = of.kinds[a], of.theta[of.at[a] : of.at[a + 1]], rows[:, of.cuts[a] : of.cuts[a + 1]]
        for r in range(len(found)):
            if kind == GAUSSIAN:
                found[r] += _gaussian(theta, own[r])
            elif kind == RATES:
                found[r] += _rates(theta, own[r])
            elif kind == DIRICHLET:
                found[r] += _dirichlet(theta, own[r])
            elif kind == NORMAL_GAMMA:
                found[r] += _normal_gamma(theta, own[r])
            elif kind == DIRECTIONS:
                found[r] += _directions(theta, own[r], of.tilts)
            else:
                found[r] += _wishart(theta, own[r])


@exact
def _rates(theta, row):
    D = len(theta) // 2
    total = row[2 * D]
    for d in range(D):
        a, b, p, r = theta[d], theta[D + d], row[d], row[D + d]
        total += lgamma(a + p) - lgamma(a) - a * np.log1p(r / b) - p * np.log(b + r)
    return total


@exact
def _dirichlet(theta, row):
    """Of so many compositions side by side, each of every so manieth column: of words, or of successes and failures."""
    D, total = int(theta[0]), row[len(row) - 1]
    for d in range(D):
        A, n = 0.0, 0.0
        for c in range(d, len(theta) - 1, D):
            A, n = A + theta[1 + c], n + row[c]
            if row[c] > 0:
                total += lgamma(theta[1 + c] + row[c]) - lgamma(theta[1 + c])
        total += lgamma(A) - lgamma(A + n)
    return total


@exact
def _normal_gamma(theta, row):
    D = len(theta) // 4
    total = 0.0
    for d in range(D):
        m, strength, shape, rate = theta[d], theta[D + d], theta[2 * D + d], theta[3 * D + d]
        n, W, S, Q, G = row[d], row[D + d], row[2 * D + d], row[3 * D + d], row[4 * D + d]
        off, now = S - m * W, shape + n / 2
        squares = max(Q - m * (2 * S - m * W) - off * off / (strength + W), 0.0)
        total += G / 2 - n / 2 * np.log(2 * np.pi * rate) + 0.5 * np.log(strength / (strength + W))
        total += lgamma(now) - lgamma(shape) - now * np.log1p(squares / (2 * rate))
    return total


@exact
def _gaussian(theta, row):
    D = len(theta) // 4
    total, product = 0.0, 1.0
    for d in range(D):
        m, inverse, rho, log_noise = theta[d], theta[D + d], theta[2 * D + d], theta[3 * D + d]
        n, W, S, Q, G = row[d], row[D + d], row[2 * D + d], row[3 * D + d], row[4 * D + d]
        shrink, off = 1 + rho * W, S - m * W
        total += G - n * log_noise - (Q - m * (S + off) - rho * off * off / shrink) * inverse
        product *= shrink
        if product > 1e200:
            total -= np.log(product)
            product = 1.0
    return 0.5 * (total - np.log(product))


@exact
def _directions(theta, row, tilts):
    """`families.math.bessel.integrate_concentration`; of concentrations that differ, of values of weight one."""
    D, of_base, log_kappa, diversity, n = int(theta[0]), theta[2], theta[3], theta[4], row[0]
    if n <= 0:
        return 0.0
    first, along, across = len(row) - D, 0.0, 0.0
    for d in range(D):
        along += theta[8 + d] * row[first + d]
        across += row[first + d] * row[first + d]
    alone = n * theta[5] - of_base
    if diversity == 0:
        return _likelihood(theta, tilts, log_kappa, n, along, across)[0] + row[1] + alone
    nu, r = max((D - 1) / 2, 0.5), across / (n * n)
    root = max((1 + r - 2 / n) / max(1 - r, 1e-12), 1 + 1e-12)
    known = (n - 1) * nu * (1 - 1 / root) * diversity**2
    z = known / (known + 1) * (np.log(nu * np.sqrt(root**2 - 1)) - log_kappa) / diversity
    steep = 1.0
    for _ in range(STEPS):
        _, slope, bend = _likelihood(theta, tilts, log_kappa + diversity * z, n, along, across)
        steep = max(1 - diversity**2 * bend, WIDEST**-2)
        z += min(max((diversity * slope - z) / steep, -LONGEST_STEP), LONGEST_STEP)
    width, total, highest = 1 / np.sqrt(steep), 0.0, -np.inf
    for g in range(len(POINTS)):
        at = z + width * POINTS[g]
        here = _likelihood(theta, tilts, log_kappa + diversity * at, n, along, across)[0]
        here += LOG_SHARES[g] - 0.5 * at**2
        if here > highest:
            total, highest = total * np.exp(highest - here) + 1.0, here
        else:
            total += np.exp(here - highest)
    return highest + np.log(total * width) + alone


@exact
def _likelihood(theta, tilts, t, n, along, across):
    """Log likelihood of an atom's values at a log concentration, and its first and second derivative."""
    base, kappa = theta[1], np.exp(t)
    squares = max(kappa**2 * across + base**2 + 2 * base * kappa * along, SMALLEST_POSITIVE)
    value, slope, bend = _look_up_tilt(theta, tilts, 0.5 * np.log(squares))
    own, own_slope, own_bend = _look_up_tilt(theta, tilts, t)
    pull = base * kappa * along
    rise = (pull + kappa**2 * across) / squares
    bend = bend * rise**2 + slope * ((pull + 2 * kappa**2 * across) / squares - 2 * rise**2)
    return value - n * own, slope * rise - n * own_slope, bend - n * own_bend


@exact
def _look_up_tilt(theta, tilts, t):
    """`families.math.bessel.tilts_at`, with derivatives."""
    x = max(min(t, TABLE_TO - 2 * KNOTS_APART) - theta[6], 0.0) / KNOTS_APART
    cell = int(x)
    x -= cell
    a, b, c, d = tilts[int(theta[FIRST_CELL]) + cell]
    value = a + x * (b + x * (c + x * d))
    return value, (b + x * (2 * c + 3 * x * d)) / KNOTS_APART, (2 * c + 6 * x * d) / KNOTS_APART**2


@exact
def _wishart(theta, row):
    power, weight = row[0], row[1]
    if power <= 0:
        return 0.0
    D, strength, freedom = int(theta[0]), theta[1] + weight, theta[2] + power
    scale = np.empty((D, D))
    for i in range(D):
        of_i = row[3 + i] - weight * theta[4 + i]
        for j in range(D):
            of_j = row[3 + j] - weight * theta[4 + j]
            about = row[3 + D + i * D + j] - of_i * theta[4 + j] - of_j * theta[4 + i]
            about -= weight * theta[4 + i] * theta[4 + j]
            scale[i, j] = theta[4 + D + i * D + j] + about - of_i * of_j / strength
    after = _integral(freedom, _log_det(scale), D)
    return row[2] + D / 2 * np.log(theta[1] / strength) + after - theta[3]


@exact
def _log_det(scale):
    """Of a positive definite matrix, by elimination, which overwrites it; LAPACK's takes longer to compile."""
    D, total = len(scale), 0.0
    for i in range(D):
        total += np.log(scale[i, i])
        for j in range(i + 1, D):
            ratio = scale[j, i] / scale[i, i]
            for k in range(i + 1, D):
                scale[j, k] -= ratio * scale[i, k]
    return total


@exact
def _integral(x, log_det, D):
    """F(x, B) of `families.wishart.evidence`, given log|B|."""
    total = D * (D - 1) / 4 * np.log(np.pi)
    for j in range(D):
        total += lgamma((x - j) / 2) - x / 2 * np.log(x / 2)
    return total - x / 2 * (log_det - D * np.log(x))
