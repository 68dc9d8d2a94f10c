"""Do sites come closer to each other than chance? Pairs of values of different sites, against sites turned at random.

Every site is turned about the middle of all values by its own random rotation. That keeps how many values it has, how
far out they lie and how they keep clear of each other (components of one fit do), and breaks what sites have in common.
Pairs n(r) closer than r are counted at many r. With lambda(r) their mean over the data and all draws, the statistic is

    T = sum over r with n > lambda of  n log(n / lambda) - n + lambda,

a Poisson log likelihood ratio, and the p-value is the share of draws (and the data) with a T as large. No fit is used:
nothing is judged by what was learned from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.diagnostics.places import Places
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, group_of_values
from modelweld.progress import track

RADII = np.geomspace(0.001, 0.6, 24)
"""In units of the typical distance of two values, from copies up to where everything is near."""

CHANCE_NEIGHBOURS, PILOT_DRAWS = 3.0, 3
"""Pairs by chance, per value, up to which a radius counts, as some draws beforehand tell: where more lie within it, it
tells of the shape of all values rather than of what is shared (at 20 x 20 skewed values without a limit: .07 yes)."""

FIRST_DRAWS, UNDECIDED = 39, 0.25
"""After so many draws a p-value above this is final (Besag and Clifford): a small one needs more draws, a large one
does not. A p-value below it is that of all draws, so it errs no more often than it says."""

PSEUDO_PAIRS = 0.05
"""Added to lambda: a pair where there never was one is no wonder without end."""


class Scan(NamedTuple):
    """P-value of all sites together, and of each against the others as they are (NaN if it sent nothing)."""

    p_value: float
    sites: Array


class _Counts(NamedTuple):
    """Pairs (draws, R) of all sites, and (draws, J, R) of each turned site with the others unturned."""

    all: Array
    of_site: Array


def scan_pairs(places: Places, reach: Sequence[Array | None], offsets: Index, draws: int, seed: int) -> Scan:
    """Count close pairs in the data and in random draws.

    Parameters
    ----------
    places : Places
        The values, sites one after the other.
    reach : sequence of arrays (q, k) or None
        Directions each site's values can lie in, given what it has seen of them; None: all.
    offsets : array (J + 1,)
        Where sites begin.
    draws : int
        At most.
    seed : int
        Source of the draws.
    """
    rng = np.random.default_rng(seed)
    count = _counter(places, offsets)
    pilot = []
    for _ in range(PILOT_DRAWS):
        turned = _turned(places, reach, offsets, rng)
        pilot.append(count(turned, turned, slice(None)).sum(0) / 2)
    used = slice(int((np.mean(pilot, axis=0) <= CHANCE_NEIGHBOURS * len(places.points)).sum()))
    own = count(places.points, places.points, used)
    counts = [(own.sum(0) / 2, own)]

    def draw(number: int) -> _Counts:
        for _ in track(range(number - len(counts) + 1), "turning sites", number):
            turned = _turned(places, reach, offsets, rng)
            counts.append((count(turned, turned, used).sum(0) / 2, count(turned, places.points, used)))
        return _Counts(np.array([c[0] for c in counts]), np.array([c[1] for c in counts]))

    first = _p_values(draw(min(FIRST_DRAWS, draws)))
    if draws > FIRST_DRAWS and (first <= UNDECIDED).any():
        first = np.where(first <= UNDECIDED, _p_values(draw(draws)), first)
    return Scan(float(first[0]), np.where(np.diff(offsets) > 0, first[1:], np.nan))


def _p_values(counts: _Counts) -> Array:
    """Of all sites, then of each."""
    T = np.concatenate([_statistic(counts.all)[:, None], _statistic(counts.of_site)], axis=1)
    return np.asarray((T[0] * (1 - 1e-12) <= T).mean(0))


def _statistic(n: Array) -> Array:
    """T of every draw, from counts (draws, ..., R)."""
    expected = n.mean(0) + PSEUDO_PAIRS
    more = n > expected
    terms = n * np.log(np.where(more, n, 1.0) / expected) - n + expected
    return np.asarray(np.where(more, terms, 0.0).sum(-1))


def _turned(places: Places, reach: Sequence[Array | None], offsets: Index, rng: np.random.Generator) -> Array:
    """All sites, each turned at random within its reach."""
    x, J = places.points, len(offsets) - 1
    if places.on_circle:
        return np.asarray((x + rng.uniform(size=J)[group_of_values(offsets)]) % 1.0)
    rotations = _rotations(rng, J, x.shape[1])
    result = np.empty_like(x)
    for (a, b), rotation, directions in zip(pairwise(offsets.tolist()), rotations, reach, strict=True):
        if directions is None:
            result[a:b] = x[a:b] @ rotation
        else:
            k = directions.shape[1]
            inside = x[a:b] @ directions
            change = inside @ (_rotations(rng, 1, k)[0] - np.eye(k)) if k else np.zeros_like(inside)
            result[a:b] = x[a:b] + change @ directions.T
    return result


def _rotations(rng: np.random.Generator, number: int, D: int) -> Array:
    """Random orthogonal matrices (number, D, D), evenly distributed (reflections among them)."""
    q, r = np.linalg.qr(rng.standard_normal((number, D, D)))
    return np.asarray(q * np.where(np.einsum("jdd->jd", r) < 0, -1.0, 1.0)[:, None, :])


def _counter(places: Places, offsets: Index) -> Callable[[Array, Array, slice], NDArray[np.int64]]:
    """A function of points and others: pairs of different sites within every radius, by the first one's site."""
    group, J, N = group_of_values(offsets), len(offsets) - 1, int(offsets[-1])
    typical = 1 / 6 if places.on_circle else 2.0 * places.points.shape[1]
    squares = np.square(RADII) * typical

    def count(points: Array, others: Array, used: slice) -> NDArray[np.int64]:
        edges = squares[used]
        R = len(edges)
        if R == 0:
            return np.zeros((J, 0), dtype=np.int64)
        squared = _squared_distances(points, others, places.on_circle).ravel()
        near = np.flatnonzero(squared <= edges[-1])
        rows, columns = np.divmod(near, N)
        apart = group[rows] != group[columns]
        rows, ring = rows[apart], np.searchsorted(edges, squared[near[apart]])
        return np.bincount(group[rows] * R + ring, minlength=J * R).reshape(J, R).cumsum(1)

    return count


def _squared_distances(points: Array, others: Array, on_circle: bool) -> Array:
    if on_circle:
        apart = np.abs(points[:, None] - others)
        return np.asarray(np.square(np.minimum(apart, 1 - apart)))
    ones = np.ones((len(points), 1))  # all in one product: |x|^2 + |y|^2 - 2 x y
    left = np.hstack([-2 * points, np.square(points).sum(1, keepdims=True), ones])
    return np.asarray(left @ np.hstack([others, ones, np.square(others).sum(1, keepdims=True)]).T)
