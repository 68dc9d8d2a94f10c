"""Do sites come closer to each other than chance? Pairs of values of different sites, against sites turned at random.

Every site is turned about the middle of all values by its own random rotation. That keeps how many values it has, how
far out they lie and how they keep clear of each other (components of one fit do), and breaks what sites have in common.
Pairs n(r) closer than r are counted at many r. With lambda(r) their mean over the data and all draws, the statistic is

    T = sum over r with n > lambda of  n log(n / lambda) - n + lambda,

a Poisson log likelihood ratio, and the p-value is the share of draws (and the data) with a T as large. No fit is used:
nothing is judged by what was learned from it.

Local values as points that would lie about evenly in all directions if sites had nothing to do with each other.

Whether sites come closer to each other than chance (`results.diagnostics.pair_scan`) is asked by turning them. Turned
sites look like real ones only if all values together look the same from all sides, whatever their units, skewness,
tails and correlations; so these are taken out first, by maps too smooth to pull apart values that lie close together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.family import Family
from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.families.capabilities import embed_values
from modelweld.fit.effects.effect_starts import site_means, vote
from modelweld.progress import track

RADII = np.geomspace(0.001, 0.6, 24)
"""In units of the typical distance of two values, from copies up to where everything is near."""

CHANCE_NEIGHBOURS = 3.0
"""Pairs by chance, per value, up to which a radius counts: where more lie within it, it tells of the shape of all
values rather than of what is shared (at 20 x 20 skewed values without a limit: .07 yes)."""

FIRST_DRAWS, UNDECIDED = 39, 0.25
"""After so many draws a p-value above this is final (Besag and Clifford): a small one needs more draws, a large one
does not. A p-value below it is that of all draws, so it errs no more often than it says."""

MOST_ALIGNED = 99
"""Draws in which sites are aligned, which takes some twenty times as long: a second for ten sites of twelve values."""

PSEUDO_PAIRS = 0.05
"""Added to lambda: a pair where there never was one is no wonder without end."""


class Scan(NamedTuple):
    """P-value of all sites together, and of each against the others as they are (NaN if it sent nothing)."""

    p_value: float
    sites: Array


def scan_pairs(spreads: Sequence[Spread], offsets: Index, draws: int, seed: int, *, aligned: bool = False) -> Scan:
    """Count close pairs in the data and in random draws.

    Parameters
    ----------
    spreads : sequence of Spread
        The values, sites one after the other; several times where ties are spread. Pairs are counted in all of them.
    offsets : array (J + 1,)
        Where sites begin.
    draws : int
        At most.
    seed : int
        Source of the draws.
    aligned : bool
        Whether sites differ by offsets: each is then turned about its own mean, in all directions, and all are aligned
        in every draw. One site by itself is not judged: it would have to be aligned with the others as they are.
    """
    each = [_turned(*spread, offsets, np.random.default_rng(seed), aligned) for spread in spreads]
    draws, counts = min(draws, MOST_ALIGNED) if aligned else draws, list[Array]()

    def ask(number: int) -> Array:
        for _ in track(range(number + 1 - len(counts)), "turning sites", number):
            counts.append(np.mean([next(turned) for turned in each], axis=0))
        T = _statistic(np.array(counts), CHANCE_NEIGHBOURS * int(offsets[-1]))
        return np.asarray((T[0] * (1 - 1e-12) <= T).mean(0))

    p_values = ask(min(FIRST_DRAWS, draws))
    asked = p_values[:1] if aligned else p_values
    if draws > FIRST_DRAWS and (asked <= UNDECIDED).any():
        p_values = np.where(p_values <= UNDECIDED, ask(draws), p_values)
    return Scan(float(p_values[0]), np.where((np.diff(offsets) > 0) & (not aligned), p_values[1:], np.nan))


def _turned(
    places: Places, reach: Sequence[Array | None], offsets: Index, rng: np.random.Generator, aligned: bool
) -> Iterator[Array]:
    """Pairs (1 + J, R) of all sites and of each, of the data, then of draw after draw: those of each turned site are
    with the others unturned.
    """
    own, count = group_of_values(offsets), _counter(places, offsets)
    if aligned:
        reach = [None] * len(reach)
        places = places._replace(points=places.points - site_means(Stack(places.points, offsets))[own])

    def align(points: Array) -> Array:
        away = vote(Stack(points, offsets), np.ones(points.shape[1]))[own] if aligned else 0.0
        return np.asarray(points - away)

    given = turned = align(places.points)
    while True:
        yield np.vstack([count(turned, turned).sum(0) / 2, count(turned, given)])
        turned = align(_turn(places, reach, offsets, rng))


def _statistic(n: Array, most: float) -> Array:
    """T of every draw, of all sites and of each, from counts (draws, 1 + J, R); at most so many pairs by chance."""
    expected = n.mean(0) + PSEUDO_PAIRS
    more = (n > expected) & (expected[0] <= most)
    terms = n * np.log(np.where(more, n, 1.0) / expected) - n + expected
    return np.asarray(np.where(more, terms, 0.0).sum(-1))


def _turn(places: Places, reach: Sequence[Array | None], offsets: Index, rng: np.random.Generator) -> Array:
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


def _counter(places: Places, offsets: Index) -> Callable[[Array, Array], NDArray[np.int64]]:
    """A function of points and others: pairs of different sites within every radius, by the first one's site."""
    group, J, N = group_of_values(offsets), len(offsets) - 1, int(offsets[-1])
    edges, R = np.square(RADII) * (1 / 6 if places.on_circle else 2.0 * np.square(places.back).sum()), len(RADII)

    def count(points: Array, others: Array) -> NDArray[np.int64]:
        squared = _square_distances(places, points, others).ravel()
        near = np.flatnonzero(squared <= edges[-1])
        rows, columns = np.divmod(near, N)
        apart = group[rows] != group[columns]
        rows, ring = rows[apart], np.searchsorted(edges, squared[near[apart]])
        return np.bincount(group[rows] * R + ring, minlength=J * R).reshape(J, R).cumsum(1)

    return count


def _square_distances(places: Places, points: Array, others: Array) -> Array:
    if places.on_circle:
        apart = np.abs(points[:, None] - others)
        return np.asarray(np.square(np.minimum(apart, 1 - apart)))
    points, others, ones = points @ places.back, others @ places.back, np.ones((len(points), 1))
    # all in one product: |x|^2 + |y|^2 - 2 x y
    left = np.hstack([-2 * points, np.square(points).sum(1, keepdims=True), ones])
    return np.asarray(left @ np.hstack([others, ones, np.square(others).sum(1, keepdims=True)]).T)


VALUES_PER_AXIS = 4
"""Values behind every principal axis that is kept: with fewer, axes fit the values (with as many axes as values all lie
equally far apart, and nothing is left to see)."""

BANDWIDTH = 1.5
"""Of the smoothed distribution function, in units of N^(-1/5) robust deviations. 1 is Silverman's, best for densities;
a shared value is a lump that should survive: power .81, .85, .88 at 1, 1.5, 2, at 2 uniform values begin to show."""

SAME = 1e-12
"""Share of a feature's largest value within which two are the same: corrections of site effects leave rounding."""

SPREADS, HEAP_WIDTH = 5, 0.85
"""Times that rounded values are spread over their step, and the share of its width over which a heap is, once. Spread
once, chance hides much: a quarter of values rounded to a third of their deviation was seen in .62, spread five times in
.95 (60 and 40 sets; where nothing is shared in .02 to .07, over four ways to round). Heaps spread five times got a yes
in .13 where 30 % are zeros and nothing is shared; over their whole width 60 % zeros are seen in .58 instead of .64."""

STEPS_TO_MEDIAN, LEAST_STEP = 10, 0.1
"""Of the iteration towards spatial median and shape, and the least by which one shrinks a variance."""

GRID = 128
"""Points at which the distribution function is computed; between them it is a straight line."""


class Places(NamedTuple):
    """Points (N, q) that look the same from all sides, the point (D, q) of a step along each feature that is `used`,
    and the way `back` (q, q) to scores.

    Sites are turned among points; how close values lie is measured among scores. (Where values lie near a plane, what
    is off it is rounding and the bend of scores, not another feature to agree in.) With one feature there is nothing to
    turn but a circle: points (N,) are then on one of length one.
    """

    points: Array
    axes: Array
    back: Array
    used: NDArray[np.bool_]

    @property
    def on_circle(self) -> bool:
        """Whether there is but one feature."""
        return self.points.ndim == 1


Spread = tuple[Places, Sequence[Array | None]]
"""Values, and the directions (q, k) in which each site's can lie, given what it has seen of them; None: all."""


def embed(stacks: Sequence[Stack], families: Sequence[Family]) -> Array | None:
    """Values of all arrays side by side, (N, D), NaN where not seen; None where a family has no points for them."""
    parts = []
    for stack, family in zip(stacks, families, strict=True):
        points = embed_values(family, stack.values)
        if points is None:
            return None
        if stack.weight is not None:
            same = points.shape == stack.values.shape
            seen = stack.weight > 0 if same else (stack.weight > 0).all(1, keepdims=True)
            points = np.where(seen, points, np.nan)
        parts.append(points)
    return np.concatenate(parts, axis=1)


def place(values: Array) -> Places | None:
    """Where values (N, D) with NaN for unseen entries lie; None if no feature differs between values."""
    seen = np.isfinite(values)
    low = values.min(0, initial=np.inf, where=seen)
    high = values.max(0, initial=-np.inf, where=seen)
    used = high - low > np.sqrt(np.finfo(float).eps) * np.maximum(np.abs(low), np.abs(high))
    if not used.any():
        return None
    exponent = np.frexp(np.maximum(np.abs(low), np.abs(high))[used])[1]
    x = _unskew(_standard(np.ldexp(values[:, used], -exponent)))  # else squares may be beyond all numbers
    shares = np.stack([_smooth_shares(column) for column in x.T], axis=1)
    if shares.shape[1] == 1:
        return Places(_stretch(shares[:, 0]), np.ones((1, 1)), np.ones((1, 1)), used)
    return Places(*_whiten(shares), used)


def untie(values: Array) -> list[Array]:
    """Values (N, D) that repeat in a feature, though rows differ, spread over what rounding or a bound made one.

    That is a step, or, around a value which many have, the distance to half as many others. At random, `SPREADS` times;
    what is wider than a step is so but once, as heaps do not look the same from all sides, and many spreads would show
    it; all is once, as it is, where nothing is tied. Whole rows that repeat are no ties: they may be shared.

    Examples
    --------
    >>> x = np.array([[0.0, 1.3], [0.0, 2.2], [0.0, 5.0], [1.0, 2.5], [2.0, 4.1], [2.0, 4.1]])
    >>> found, *others = untie(x)
    >>> bool((np.abs(found - x)[:, 0] <= 0.5).all()), len(np.unique(found[:, 0])), bool((found == x)[:, 1].all())
    (True, 6, True)
    >>> len(others), len(untie(x[:, 1:]))
    (4, 1)
    """
    peak = np.nanmax(np.abs(values), axis=0, initial=0.0)
    unit = np.where(peak > 0, peak, 1.0) * SAME
    steps = np.rint(values / unit)
    rng, rows, number = np.random.default_rng(0), np.unique(steps, axis=0), 1
    reach, heaps = np.zeros(values.shape), np.zeros(values.shape, dtype=bool)
    for d, own in enumerate(rows.T):
        own = own[np.isfinite(own)]
        levels, counts = np.unique(own, return_counts=True)
        if len(levels) < 2 or len(levels) == len(own):
            continue
        width = np.full(len(levels), np.diff(levels).min())
        for i in np.flatnonzero(counts > 1):
            gaps = np.abs(own[own != levels[i]] - levels[i])
            nearest = (min(counts[i], len(gaps)) + 1) // 2 - 1
            width[i] = np.partition(gaps, nearest)[nearest]
        seen = np.isfinite(values[:, d])
        at, wide = np.searchsorted(levels, steps[seen, d]), np.rint(width / width.min()) > 1
        reach[seen, d], heaps[seen, d] = unit[d] * width[at] / 2, wide[at]
        number = max(number, SPREADS * bool((~wide & (counts > 1)).any()))
    once = HEAP_WIDTH * rng.uniform(-1, 1, reach.shape)
    return [values + reach * np.where(heaps, once, rng.uniform(-1, 1, reach.shape)) for _ in range(number)]


def _standard(x: Array) -> Array:
    """Mean zero and deviation one in every column."""
    return np.asarray((x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0))


def _unskew(x: Array) -> Array:
    """Every column by Yeo and Johnson's power transform under which it is most likely normal, in standard units."""
    from sklearn.preprocessing import PowerTransformer

    with np.errstate(all="ignore"):
        return np.asarray(PowerTransformer().fit_transform(x))


def _smooth_shares(x: Array) -> Array:
    """Share of all values below each, by a distribution function too smooth to see single ones; NaN where not seen."""
    known = x[np.isfinite(x)]
    low, high = np.quantile(known, [0.25, 0.75])
    width = BANDWIDTH * min(1.0, (high - low) / 1.34 or 1.0) * len(known) ** -0.2
    grid = np.linspace(known.min(), known.max(), GRID)
    return np.asarray(np.interp(x, grid, scipy.special.ndtr((grid[:, None] - known) / width).mean(1)))  # NaN stays NaN


def _stretch(share: Array) -> Array:
    """Shares over the whole circle: smoothing has drawn them in from its ends."""
    n = np.isfinite(share).sum()
    return np.asarray((share - np.nanmin(share)) / np.ptp(share[np.isfinite(share)]) * (n - 1) / n)


def _whiten(shares: Array) -> tuple[Array, Array, Array]:
    """Points, axes and way `back` of normal scores on their first principal axes; what was not seen is at the mean.

    About the spatial median, with Tyler's shape, of rows that were seen whole; one iteration finds both (Hettmansperger
    and Randles). Mean and covariance would follow values far out, and leave all sites a dense middle in common.
    """
    z = np.nan_to_num(_standard(scipy.special.ndtri(shares)))
    N, D = z.shape
    u, length, axes = np.linalg.svd(z / np.sqrt(N), full_matrices=False)
    q = min(D, max(2, N // VALUES_PER_AXIS), int((length > np.sqrt(np.finfo(float).eps) * length[0]).sum()))
    points, into = u[:, :q] * np.sqrt(N), axes[:q].T / length[:q]
    whole = np.isfinite(shares).all(1)
    for _ in range(STEPS_TO_MEDIAN if whole.sum() >= VALUES_PER_AXIS * q else 0):
        radius = np.maximum(np.linalg.norm(points[whole], axis=1, keepdims=True), np.finfo(float).eps)
        sign = points[whole] / radius
        value, vector = np.linalg.eigh(q * sign.T @ sign / len(sign))
        step = vector / np.sqrt(np.maximum(value, LEAST_STEP)) @ vector.T
        points, into = (points - sign.mean(0) / (1 / radius).mean()) @ step, into @ step
    unit = np.sqrt(np.square(points).mean())
    return points / unit, into / unit, np.linalg.pinv(into / unit) @ axes[:q].T
