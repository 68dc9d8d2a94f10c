"""How far values lie from all others, by a centre and a scale that no minority of sites can carry away.

The breakdown point is in sites, not in values. In every dimension the centre is the median over sites of the sites'
means, the scale the median over sites of their root mean square deviations from it (medians of means): what fewer than
half of the sites send cannot carry them away, however many values it is. A value's distance is the root mean square
over its dimensions of deviations in units of the scale. `fit.screening.outliers` judges those beyond their limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from modelweld.core.family import HasPlaces, has_places, is_signless
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Flags, Index, Stack, block_size

FEWEST_SITES = 3
"""For one of them to be named: with two, neither is the reference, nor is it known how far sites lie apart."""

FEWEST_SITES_TO_COMPARE = 4
"""Below this nothing is excluded. A median over sites needs an honest majority, and with three a site that merely
differs makes two camps of one and two; from four on, the middle two are honest when one is not."""

FALSE_ALARM = 1e-6
"""Probability that any of N Gaussian values exceeds the limit before generosity."""

GENEROUS = 2.0
"""The limit for independent Gaussian dimensions is multiplied by this, because honest atoms are not one Gaussian: two
equal heaps have no value beyond one deviation, and t with three degrees of freedom reaches twice the Gaussian's
largest of a thousand."""

EFFICIENCY = 1 / 3
"""A median of absolute deviations is worth about 37 % of its values, a median over sites of their mean squares up to 64
%: a third of the values are taken for degrees of freedom of the scale."""

REACH, REACH_DEVIATIONS = 3.0, 4.0
"""A value must lie three times further out than the furthest value of the typical site, and four deviations (of the
logarithm, over sites) of that furthest value beyond it: where sites have far values (rows of topics, incomes) far
values are no news."""

MAD_TO_DEVIATION = 1.4826
"""A Gaussian's standard deviation over its median absolute deviation, 1 / Phi^-1(3/4)."""


def blocks_of_sites(stack: Stack) -> Iterator[tuple[slice, Index]]:
    """Values of some whole sites that have any, and where these sites begin among them: temporaries stay small."""
    edges = np.unique(stack.offsets)
    step = block_size(stack.values.shape[1])
    first = 0
    while first < len(edges) - 1:
        last = max(first + 1, int(np.searchsorted(edges, edges[first] + step, side="right")) - 1)
        yield slice(int(edges[first]), int(edges[last])), edges[first : last + 1] - edges[first]
        first = last


def sites_by_size(values: Array, offsets: Index) -> Iterator[tuple[Index, Array]]:
    """Sites of one size after the other, and their values (L, sites, D)."""
    sizes = np.diff(offsets)
    for L in np.unique(sizes):
        sites = np.flatnonzero(sizes == L)
        yield sites, values[offsets[sites] + np.arange(L)[:, None]]


def site_means(stack: Stack, quantity: Callable[[Stack], Array | None]) -> Array:
    """Means over each site's seen entries of some quantity, (sites that have values, D); NaN where none is seen."""
    means = []
    for part, offsets in blocks_of_sites(stack):
        block = stack.take(part, offsets)
        values = np.asarray(quantity(block))
        if block.weight is None:
            sites = scipy.sparse.csr_array((np.ones(len(values)), np.arange(len(values)), offsets))  # no conversion
            means.append(sites @ values / block.sizes[:, None])
            continue
        seen = block.seen
        number = np.add.reduceat(seen.astype(np.float64), offsets[:-1])
        total = np.add.reduceat(np.where(seen, values, 0.0), offsets[:-1])
        means.append(np.where(number > 0, total / np.maximum(number, 1.0), np.nan))
    return np.concatenate(means)


def lie_unevenly(stack: Stack, matching: Matching) -> bool:
    """Whether, in some dimension, a site's values lie farther from their atoms than chance and other sites allow.

    Or may do so, because sites claim weights. A look at all values, so that most calls need no other.
    """
    [family], [atoms], labels = matching.families.values(), matching.values.values(), matching.stacked_labels
    known = family.variances() if isinstance(family, HasPlaces) and has_places(family) else None
    if known is None or is_signless(family) or np.count_nonzero(stack.sizes) < FEWEST_SITES_TO_COMPARE:
        return False
    claims = stack.weight is not None and np.ptp(stack.weight[stack.weight > 0]) > 0
    noise = known.noise if stack.variance is None else known.noise + known.inflation * stack.variance
    shared = ((matching.counts > 1)[labels] & (labels < matching.K))[:, None]
    squares = Stack(shared * np.square(stack.values - atoms[labels]) / noise, stack.offsets)
    number, mean = stack.sizes[stack.sizes > 0][:, None], site_means(squares, lambda block: block.values)
    beside = number * mean / np.maximum(middle(mean), np.finfo(float).tiny)
    return bool(claims or (scipy.special.chdtrc(number, beside) < FALSE_ALARM / mean.size).any())


def middle(x: Array) -> Array:
    """Median over the first axis of what is known; NaN where nothing is.

    Examples
    --------
    >>> middle(np.array([[1.0, np.nan], [4.0, np.nan], [2.0, np.nan]])).tolist()
    [2.0, nan]
    """
    ordered = np.sort(np.ascontiguousarray(np.moveaxis(x, 0, -1)), axis=-1)  # what is not known comes last
    if not np.isnan(ordered[..., -1]).any():
        return np.asarray((ordered[..., (len(x) - 1) // 2] + ordered[..., len(x) // 2]) / 2)
    last = (~np.isnan(ordered)).sum(axis=-1, keepdims=True) - 1
    ends = [np.take_along_axis(ordered, np.maximum(at, 0), axis=-1)[..., 0] for at in (last // 2, (last + 1) // 2)]
    return np.asarray((ends[0] + ends[1]) / 2)


def median_over_sites(x: Array) -> Array:
    """Median of each column over the sites that have it; NaN where fewer than FEWEST_SITES_TO_COMPARE have."""
    return np.where(np.isfinite(x).sum(0) >= FEWEST_SITES_TO_COMPARE, middle(x), np.nan)


def centre_and_scale(stack: Stack) -> tuple[Array, Array]:
    """Medians of means; the scale is NaN in a dimension where most sites' values coincide: it tells none apart."""
    centre = np.nan_to_num(median_over_sites(site_means(stack, lambda block: block.values)))
    scale = np.sqrt(median_over_sites(site_means(stack, lambda block: np.square(block.values - centre))))
    rounding = np.finfo(float).eps * np.abs(centre) * stack.sizes.max()
    return centre, np.where(scale > rounding, scale, np.nan)


def any_seen(stacks: Sequence[Stack], N: int) -> Flags:
    """Values of which at least one entry is seen."""
    if any(s.weight is None for s in stacks):
        return np.ones(N, dtype=bool)
    return np.asarray(np.logical_or.reduce([s.seen.any(1) for s in stacks]))


@dataclass(frozen=True, eq=False)
class Distances:
    """How far the values of one array lie from its centre, in units of its scale, and how far they may."""

    stack: Stack
    centre: Array
    scale: Array
    typical_weight: Array | None
    distance: Array
    limits: Array

    @classmethod
    def of(cls, stack: Stack, p: float) -> Distances:
        """Measure every value of a stack; `p` is the probability of a false alarm at one Gaussian value."""
        N, D = stack.values.shape
        centre, scale = centre_and_scale(stack)
        weight = None if stack.weight is None else median_over_sites(site_means(stack, lambda b: b.weight))
        self = cls(stack, centre, scale, weight, np.zeros(N), np.zeros(N))
        if not np.isfinite(scale).any():
            return replace(self, limits=np.full(N, np.inf))
        number = self.measure()
        filled = np.unique(stack.offsets)[:-1]
        furthest = np.maximum.reduceat(self.distance, filled)[np.maximum.reduceat(number, filled) > 0]
        degrees = np.arange(1, D + 1)
        student = -float(scipy.special.stdtrit(max(EFFICIENCY * np.count_nonzero(number), 1.0), p / 2))
        gaussian = np.maximum(GENEROUS * np.sqrt(scipy.special.chdtri(degrees, p) / degrees), student)
        limits = np.maximum(gaussian, _reach(furthest))
        return replace(self, limits=limits[np.maximum(number, 1) - 1])

    def measure(self) -> Index:
        """Write down how far every value lies; in how many dimensions each was measured."""
        measured = np.isfinite(self.scale)
        number = np.full(len(self.distance), np.count_nonzero(measured))
        for block, _ in blocks_of_sites(self.stack):
            off, usable = self.deviations(block)
            number[block] = usable.sum(1)
            squares = np.einsum("ld,ld->l", off, off)
            self.distance[block] = np.sqrt(squares / np.maximum(number[block], 1))
        return number

    def deviations(self, order: slice | Index) -> tuple[Array, Flags]:
        """Deviations of some values in units of the scale, zero where not usable; and which are usable.

        A value's own uncertainty excuses some: its variance is added to the square of the scale, and where it has less
        weight than is typical, that square is larger in proportion (it holds spread and the noise of a typical weight).
        """
        part = self.stack.take(order, self.stack.offsets)
        measured = np.isfinite(self.scale)
        off = part.values - self.centre
        off *= np.where(measured, 1 / np.where(measured, self.scale, 1.0), 0.0)
        if part.plain:
            return off, np.broadcast_to(measured, off.shape)
        usable = np.broadcast_to(measured, off.shape) if part.weight is None else measured & (part.weight > 0)
        allowed = np.ones(off.shape)
        if part.weight is not None:
            allowed = np.maximum(1.0, self.typical_weight / np.where(usable, part.weight, np.inf))
        if part.variance is not None:
            allowed = allowed + part.variance / np.square(self.scale)
        return np.where(usable, off / np.sqrt(np.where(usable, allowed, 1.0)), 0.0), usable

    @property
    def far(self) -> Flags:
        """Values beyond their limit."""
        return np.asarray(self.distance > self.limits)


def _reach(furthest: Array) -> float:
    """How far out a value may lie, judged by the furthest value of every site."""
    if not (furthest > 0).any():
        return 0.0
    logs = np.log(furthest[furthest > 0])
    typical = np.median(logs)
    deviation = MAD_TO_DEVIATION * np.median(np.abs(logs - typical))
    with np.errstate(over="ignore"):
        return float(np.exp(typical + max(np.log(REACH), REACH_DEVIATIONS * deviation)))


def measure_distances(stacks: Sequence[Stack]) -> list[Distances]:
    """Of the values of one set, array by array; none where fewer than four sites can be compared.

    With p = 1e-6 / N, a value of d dimensions is far beyond the largest of: twice the chi quantile of d degrees of
    freedom at 1 - p, over sqrt(d) (independent dimensions); the quantile of Student's t (dimensions that all say the
    same, no correlation of Gaussians gives more; N / 3 degrees of freedom, because the scale is estimated too); three
    times the typical site's furthest distance, or more where sites differ in it.
    """
    N = int(stacks[0].offsets[-1])
    filled = np.add.reduceat(any_seen(stacks, N), np.unique(stacks[0].offsets)[:-1]) if N else np.zeros(0)
    if np.count_nonzero(filled) < FEWEST_SITES_TO_COMPARE:
        return []
    return [Distances.of(stack, FALSE_ALARM / (N * len(stacks))) for stack in stacks]
