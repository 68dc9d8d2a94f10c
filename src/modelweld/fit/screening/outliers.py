"""Before any fit: values that lie so far from all others that they would spoil the hyperparameters.

Location and scale are robust, with a breakdown point in sites, not in values. In every dimension the centre is the
median over sites of the sites' means, the scale the median over sites of their root mean square deviations from it
(medians of means): what fewer than half of the sites send cannot carry them away, however many values it is. A value's
distance is the root mean square over its dimensions of deviations in units of the scale. It is excluded when that
exceeds a limit and no other site has a value near it. What most sites do is never an outlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.errors import Finding, OutlierWarning
from modelweld.fit.screening.site_medians import FEWEST_SITES_TO_COMPARE as FEWEST_SITES_TO_COMPARE
from modelweld.fit.screening.site_medians import (
    any_seen,
    blocks_of_sites,
    centre_and_scale,
    median_over_sites,
    site_means,
)
from modelweld.fit.search.starts import is_large

BREAKDOWN = 0.5
"""Share of sites that all must stay below which may be excluded: medians bear a minority, and no more."""

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

CHANCE = 0.05
"""Probability of a neighbour by chance above which it confirms nothing: it only has to hold back a whole site of
background, which goes if more than half of its values do."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OutlierReport:
    """What `find_outliers` found.

    Attributes
    ----------
    keep : bool array (N,)
        Values to fit; the others are excluded.
    sites : tuple of int
        Sites excluded whole.
    values : dict of int to int array
        Values excluded, counted within their site, of every other site that has some.
    reasons : list of Finding
        One sentence for each of these sites, or one that says why nothing was excluded.
    limit : tuple of float
        For each array, robust deviations beyond which a value seen in full is an outlier; infinite if nothing varies.
    """

    keep: Flags
    sites: tuple[int, ...]
    values: dict[int, Index]
    reasons: list[Finding]
    limit: tuple[float, ...]

    @property
    def clean(self) -> bool:
        """Whether every value is kept."""
        return bool(self.keep.all())


def find_outliers(
    stacks: Sequence[Stack],
    sites: Sequence[str] | None = None,
    arrays: Sequence[str] | None = None,
    columns: Sequence[Sequence[str]] | None = None,
) -> OutlierReport:
    """Find gross outliers among the values of one set.

    Parameters
    ----------
    stacks : sequence of Stack
        The arrays of the set, side by side. Entries of weight zero are ignored; a large `variance`, or a small
        `weight`, excuses a distance.
    sites, arrays, columns : sequences of str, and of such sequences, optional
        Names for the reasons; default: numbers.

    Returns
    -------
    OutlierReport
        Which values to keep, and why not the others. A site most of whose values are outliers is excluded whole. With
        fewer than four sites, or when half of them or more would go, nothing is excluded.

    Notes
    -----
    With p = 1e-6 / N, a value of d dimensions is an outlier beyond the largest of: twice the chi quantile of d degrees
    of freedom at 1 - p, over sqrt(d) (independent dimensions); the quantile of Student's t (dimensions that all say the
    same, no correlation of Gaussians gives more; N / 3 degrees of freedom, because the scale is estimated too); three
    times the typical site's furthest distance, or more where sites differ in it.

    Examples
    --------
    >>> import numpy as np
    >>> from modelweld.inputs.sets import stack_arrays
    >>> rng = np.random.default_rng(0)
    >>> honest = [rng.normal(0, 1, (5, 3)) for _ in range(6)]
    >>> report = find_outliers([stack_arrays([*honest, rng.normal(0, 1000, (4, 3))])])
    >>> report.sites, int(report.keep.sum())
    ((6,), 30)
    >>> print(report.reasons[0][:74])
    site '6': 4 of 4 values lie more than 13 robust deviations from the others
    """
    offsets = stacks[0].offsets
    N, J = int(offsets[-1]), len(offsets) - 1
    keep = np.ones(N, dtype=bool)
    site = group_of_values(offsets)
    seen = any_seen(stacks, N)
    sizes = np.bincount(site, seen, J).astype(np.int64)
    if np.count_nonzero(sizes) < FEWEST_SITES_TO_COMPARE:
        return OutlierReport(keep, (), {}, [], (np.inf,) * len(stacks))
    p = FALSE_ALARM / (N * len(stacks))
    distances = [_Distances.of(stack, p) for stack in stacks]
    far = np.logical_or.reduce([d.far & ~d.confirmed(site) for d in distances])
    limit = tuple(d.full_limit for d in distances)
    number = np.bincount(site[far], minlength=J)
    whole = np.flatnonzero(2 * number > sizes)
    names = [str(j) for j in range(J)] if sites is None else list(sites)
    if len(whole) >= BREAKDOWN * np.count_nonzero(sizes):
        reason = Finding(
            f"{len(whole)} of {np.count_nonzero(sizes)} sites ({', '.join(repr(names[j]) for j in whole)}) lie far "
            "from the others: which of them are honest cannot be told, so nothing was excluded.",
            OutlierWarning,
        )
        return OutlierReport(keep, (), {}, [reason], limit)
    keep = ~(far | np.isin(site, whole))
    labels = [f"array {name!r}, " for name in arrays] if arrays is not None and len(stacks) > 1 else [""] * len(stacks)
    reasons = [
        _reason(names[j], far & (site == j), int(sizes[j]), j in whole, keep & seen, distances, labels, columns)
        for j in np.flatnonzero(number)
    ]
    values = {int(j): np.flatnonzero(far[site == j]) for j in np.flatnonzero(number) if j not in whole}
    return OutlierReport(keep, tuple(int(j) for j in whole), values, reasons, limit)


@dataclass(frozen=True, eq=False)
class _Distances:
    """How far the values of one array lie from its centre, in units of its scale, and how far they may."""

    stack: Stack
    centre: Array
    scale: Array
    typical_weight: Array | None
    distance: Array
    limits: Array
    full_limit: float

    @classmethod
    def of(cls, stack: Stack, p: float) -> _Distances:
        """Measure every value of a stack; `p` is the probability of a false alarm at one Gaussian value."""
        from scipy.special import chdtri, stdtrit

        N, D = stack.values.shape
        centre, scale = centre_and_scale(stack)
        weight = None if stack.weight is None else median_over_sites(site_means(stack, lambda b: b.weight))
        self = cls(stack, centre, scale, weight, np.zeros(N), np.zeros(N), np.inf)
        if not np.isfinite(scale).any():
            return replace(self, limits=np.full(N, np.inf))
        number = self.measure()
        filled = np.unique(stack.offsets)[:-1]
        furthest = np.maximum.reduceat(self.distance, filled)[np.maximum.reduceat(number, filled) > 0]
        degrees = np.arange(1, D + 1)
        student = -float(stdtrit(max(EFFICIENCY * np.count_nonzero(number), 1.0), p / 2))
        gaussian = np.maximum(GENEROUS * np.sqrt(chdtri(degrees, p) / degrees), student)
        limits = np.maximum(gaussian, _reach(furthest))
        full = int(np.isfinite(scale).sum())
        return replace(self, limits=limits[np.maximum(number, 1) - 1], full_limit=float(limits[full - 1]))

    def measure(self) -> Index:
        """Write down how far every value lies; in how many dimensions each was measured."""
        measured = np.isfinite(self.scale)
        number = np.full(len(self.distance), np.count_nonzero(measured))
        if self.stack.plain and is_large(self.stack):
            from modelweld.fit.screening.screening_kernels import squared_distances

            squares = squared_distances(self.stack.values, self.centre, np.where(measured, self.scale, np.inf))
            np.sqrt(squares / number, out=self.distance)
            return number
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

    def confirmed(self, site: Index) -> Flags:
        """Far values that another site has too: within the limit before generosity, and nearer than by chance.

        Two sites that send the same place independently have seen something there. A repeat to the last bit is no
        second opinion (a message that arrived twice), and errors of units are not confirmed: they stretch the noise as
        well, so that copies lie apart. Of n values thrown anywhere within distance r, the nearest lies within `apart`
        with probability n (apart / r)^d at most.
        """
        far, result = self.far, np.zeros(len(site), dtype=bool)
        if not far.any():
            return result
        within = self.limits / GENEROUS
        # by the triangle inequality only these can be near a far value, and only where distances are alike
        near = np.flatnonzero(self.distance > self.limits.min() - within[far].max())
        near = near[np.argsort(self.distance[near])]
        for j in np.unique(site[far]):
            others = near[site[near] != j]
            own = np.flatnonzero(far & (site == j))
            ends = [np.searchsorted(self.distance[others], self.distance[own] + sign * within[own]) for sign in (-1, 1)]
            if self.stack.weight is not None:  # values that see different dimensions obey no triangle inequality
                ends = [np.zeros_like(own), np.full_like(own, len(others))]
            for i, first, last in zip(own, *ends, strict=True):
                if first < last:
                    apart, d = self._nearest(i, others[first:last])
                    by_chance = np.log(len(others)) + d * np.log(apart / self.distance[i])
                    result[i] = apart < within[i] and by_chance < np.log(CHANCE)
        return result

    def _nearest(self, i: int, others: Index) -> tuple[float, int]:
        """How far the nearest other value is that is not the same, and in how many dimensions it was compared."""
        (theirs, they_have), (own, has) = self.deviations(others), self.deviations(np.array([i]))
        both = they_have & has
        d = both.sum(1)
        apart = np.sqrt(np.where(both, np.square(theirs - own), 0.0).sum(1) / np.maximum(d, 1))
        apart[apart == 0] = np.inf
        nearest = int(apart.argmin())
        return float(apart[nearest]), int(d[nearest])


def _reach(furthest: Array) -> float:
    """How far out a value may lie, judged by the furthest value of every site."""
    if not (furthest > 0).any():
        return 0.0
    logs = np.log(furthest[furthest > 0])
    typical = np.median(logs)
    deviation = MAD_TO_DEVIATION * np.median(np.abs(logs - typical))
    with np.errstate(over="ignore"):
        return float(np.exp(typical + max(np.log(REACH), REACH_DEVIATIONS * deviation)))


def _reason(
    who: str,
    own: Flags,
    size: int,
    whole: bool,
    rest: Flags,
    distances: Sequence[_Distances],
    labels: Sequence[str],
    columns: Sequence[Sequence[str]] | None,
) -> Finding:
    """One sentence about one site: how many of its values, how far, and the worst entry beside the others' range."""
    far = np.flatnonzero(own)
    sizes = [np.abs(d.deviations(far)[0]) for d in distances]
    which = max(range(len(sizes)), key=lambda i: float(sizes[i].max()))
    d = distances[which]
    place, dimension = np.unravel_index(int(sizes[which].argmax()), sizes[which].shape)
    column = f"dimension {dimension}" if columns is None else columns[which][int(dimension)]
    weight = d.stack.weight
    others = d.stack.values[rest if weight is None else rest & (weight[:, dimension] > 0), dimension]
    between = f", the others between {others.min():.4g} and {others.max():.4g}" if len(others) else ""
    lie = "values lie" if size > 1 else "value lies"
    value = d.stack.values[far[place], dimension]
    return Finding(
        f": {len(far)} of {size} {lie} more than {d.limits[far].min():.2g} robust deviations from the others; "
        f"largest in {labels[which]}{column} (value {value:.4g}{between}). "
        + ("The whole site is excluded." if whole else "Only these are excluded."),
        OutlierWarning,
        [who],
    )
