"""The sites' values of one array, stacked, in an order that depends on their content alone.

A *group* is what one site sent of a set: the paper's exchangeable group of local parameters. Groups arrive in any
order, and the order of values within one means nothing. Everything random later on is drawn over the canonical order
made here, so the order of arrival cannot matter.

The mean and variance of all values, which set the scale below which noise is rounding.

Temporaries (values x atoms x dimensions) in blocks that stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError, OutOfRangeError

if TYPE_CHECKING:
    from modelweld.core.family import Family

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

Key = str | tuple[str, ...]
"""An array, or several arrays that one family takes together."""


LARGEST_VALUE = 1e120
"""Evidences add squares of up to 1e60 values: sums of 1e300 still fit in a float64."""


def check_squares(values: Array) -> None:
    """A fast first look at many values: refuse if their squares add up to too much, or to no number at all."""
    flat = values.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        if not flat @ flat < LARGEST_VALUE**2:
            raise OutOfRangeError(f"values must be finite and at most {LARGEST_VALUE:g} in size.")


def arrays_of(key: Key) -> tuple[str, ...]:
    """The arrays of a family.

    Examples
    --------
    >>> arrays_of("means"), arrays_of(("means", "covariances"))
    (('means',), ('means', 'covariances'))
    """
    return (key,) if isinstance(key, str) else tuple(key)


@dataclass(frozen=True, eq=False)
class Stack:
    """N local values of dimension D; group j has those from ``offsets[j]`` to ``offsets[j + 1]``.

    `variance` and `weight` have the shape of `values` or are None (zero and one everywhere). Where groups
    and values do not stand in canonical order, `group_order` lists the groups and `value_order` the values of each so.
    `moments` are the mean (D,) and the sums of squares about it (D,), where they are known.
    """

    values: Array
    offsets: Index
    variance: Array | None = None
    weight: Array | None = None
    group_order: Index | None = None
    value_order: Index | None = None
    moments: tuple[Array, Array] | None = None

    @cached_property
    def sizes(self) -> Index:
        """Number of values of every group."""
        return np.diff(self.offsets)

    @property
    def plain(self) -> bool:
        """Whether every value is known equally well, so that counts and sums are sufficient statistics."""
        return self.variance is None and self.weight is None

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which entries were seen (N, D): those of a weight of zero were not."""
        return np.ones(self.values.shape, dtype=bool) if self.weight is None else self.weight > 0

    def where_seen(self, otherwise: Array | float) -> Array:
        """Values (N, D), with something else where nothing was seen."""
        return self.values if self.weight is None else np.where(self.seen, self.values, otherwise)

    def blind(self) -> Stack:
        """The same with zeros where nothing was seen, so that what stands there cannot even decide an order."""
        if self.weight is None:
            return self
        variance = None if self.variance is None else np.where(self.seen, self.variance, 0.0)
        return replace(self, values=self.where_seen(0.0), variance=variance)

    def filled(self) -> Array:
        """Values (N, D), with the least that was seen in a column where nothing was: alike in all units."""
        if self.weight is None:
            return self.values
        least = self.where_seen(np.inf).min(0, initial=np.inf)
        return self.where_seen(np.where(np.isfinite(least), least, 0.0))

    def largest(self, number: int) -> Index:
        """The largest groups, the first by content among equals."""
        order = np.arange(len(self.sizes)) if self.group_order is None else self.group_order
        return np.asarray(order[np.argsort(-self.sizes[order], kind="stable")[:number]])

    def group(self, j: int) -> Index:
        """The values of group j in canonical order."""
        span = slice(self.offsets[j], self.offsets[j + 1])
        return np.arange(span.start, span.stop) if self.value_order is None else self.value_order[span]

    def take(self, values: Index | slice, offsets: Index) -> Stack:
        """These values, cut into groups at `offsets`."""
        return replace(
            self,
            values=self.values[values],
            offsets=offsets,
            variance=None if self.variance is None else self.variance[values],
            weight=None if self.weight is None else self.weight[values],
        )


NOISE_FLOOR = 1e-9
"""Smallest noise relative to the values' variance. Sums of squares lose about 1e-15 of the total to rounding, so
above this floor at least six digits of the noise are left; below it values coincide for all purposes."""

SMALLEST_RANGE = 1e-120
"""Differences below this have squares that underflow."""


def total_variance(stack: Stack, pooled: bool) -> tuple[Array, Array]:
    """Mean (D,) and variance (D,), or (1,) when `pooled`, of all seen values; positive even when they coincide."""
    values = stack.values
    N, D = values.shape
    if N == 0:
        return np.zeros(D), np.ones(1 if pooled else D)
    if stack.moments is not None:
        origin, total = stack.moments[0], stack.moments[1] / N
    elif stack.weight is None:
        origin = values.mean(0)
        total = np.square(values - origin).mean(0)
    else:
        seen = stack.weight > 0
        number = np.maximum(seen.sum(0), 1)
        origin = np.where(seen, values, 0.0).sum(0) / number
        total = np.where(seen, np.square(values - origin), 0.0).sum(0) / number
    return origin, usable_variance(origin, total, values, pooled)


def usable_variance(origin: Array, total: Array, values: Array, pooled: bool) -> Array:
    """Variances (D,), pooled if asked, with constant dimensions given the scale of the others."""
    rounding = np.square(4 * np.finfo(float).eps * np.abs(origin))
    varies = total > rounding
    if total.max() < SMALLEST_RANGE**2 and 0 < (difference := np.ptp(values)) < SMALLEST_RANGE:
        raise InputError(
            f"the values differ by {difference:g} at most, too little for their squares to be represented; "
            "change the units (multiply all values)."
        )
    if not varies.any():
        scale = float(np.square(origin).max())
        return np.full(1 if pooled else len(total), scale if scale > 0 else 1.0)
    typical = total[varies].mean()
    if pooled:
        return np.array([np.where(varies, total, 0.0).mean()])
    return np.where(varies, total, typical)


def offsets_of(sizes: Sequence[int] | Index) -> Index:
    """Where the groups of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def spans(begin: Index, sizes: Index) -> Index:
    """Places of several spans, one after the other.

    Examples
    --------
    >>> spans(np.array([7, 0]), np.array([2, 3]))
    array([7, 8, 0, 1, 2])
    """
    return np.asarray(np.repeat(begin - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum()))


def group_of_values(offsets: Index) -> Index:
    """The group of each value."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def canonical_values(stacks: Sequence[Stack]) -> Index:
    """Order of the values by content within their group (lexicographically over all stacks side by side)."""
    group, first = group_of_values(stacks[0].offsets), _sortable(stacks[0])[:, 0]
    order = np.lexsort((first, group))
    if not _repeats(group[order], first[order]):
        return order  # the first number almost always decides
    keys = [column for array in _contents(stacks) for column in array.T]
    return np.lexsort((*keys[::-1], group))


def canonical_groups(stacks: Sequence[Stack]) -> Index:
    """Groups sorted by content; their values must already be in canonical order."""
    offsets, sizes = stacks[0].offsets, stacks[0].sizes
    first = np.zeros(len(sizes))
    begin = offsets[:-1][sizes > 0]
    begin = begin if stacks[0].value_order is None else stacks[0].value_order[begin]
    first[sizes > 0] = _sortable(stacks[0])[begin, 0]
    order = np.lexsort((first, sizes))
    if not _repeats(sizes[order], first[order]):
        return order
    # size and first number almost always decide; if not, whole groups are compared
    arrays = _contents(stacks)
    keys = [tuple(a[stacks[0].group(j)].ravel().tolist() for a in arrays) for j in range(len(sizes))]
    return np.array(sorted(range(len(sizes)), key=lambda j: (sizes[j], first[j], keys[j])), dtype=np.int64)


def _sortable(stack: Stack) -> Array:
    """Values that sort alike in all units and from every origin: what was not seen comes first."""
    return stack.where_seen(-np.inf)


def _contents(stacks: Sequence[Stack]) -> list[Array]:
    """All that values are sorted by."""
    return [a for s in stacks for a in (_sortable(s), s.variance, s.weight) if a is not None]


def _repeats(*keys: Array | Index) -> bool:
    """Whether some two neighbours have all keys in common."""
    return bool(np.logical_and.reduce([key[1:] == key[:-1] for key in keys]).any())


def canonical_order(stacks: Sequence[Stack]) -> tuple[Index, Index]:
    """Groups in canonical order, and all values so; nothing is moved."""
    offsets, within = stacks[0].offsets, canonical_values(stacks)
    groups = canonical_groups([replace(stack, value_order=within) for stack in stacks])
    return groups, within[spans(offsets[groups], stacks[0].sizes[groups])]


def arrange(stacks: Sequence[Stack]) -> tuple[list[Stack], Index]:
    """The same stacks with values and groups in canonical order, and where each value came from."""
    groups, order = canonical_order(stacks)
    return [s.take(order, offsets_of(stacks[0].sizes[groups])) for s in stacks], order


BLOCK = 250_000
"""Numbers of a temporary: what is computed of them stays near the processor (of 50,000 to 10,000,000 the quickest at a
million values). Results do not depend on it."""


def block_size(each: int) -> int:
    """How many values fit into a block if each takes so many elements: at least one."""
    return max(1, BLOCK // max(1, each))


def blocks(number: int, each: int) -> Iterator[slice]:
    """Slices of so many values, of which `each` takes that many elements.

    Examples
    --------
    >>> [(part.start, part.stop) for part in blocks(5, 100_000)]
    [(0, 2), (2, 4), (4, 6)]
    """
    step = block_size(each)
    return (slice(a, a + step) for a in range(0, number, step))


@dataclass(frozen=True, eq=False)
class SetValues:
    """Values of one set, of all sites: what a screen gets, and hands on.

    Attributes
    ----------
    stacks, families, names : sequences
        The arrays that decide the matching, one below the other for all sites, with family and name of each.
    sites : list of str
        Names of the sites, one per group of the stacks.
    columns : sequence of sequences of str, or None
        Names of the features, for messages.
    rows : int array (N,)
        Which of the values given at first these are.
    numbers : int array (N,)
        The same for values that coincide; empty where that is not known yet.
    times : array (J,), optional
        When the sites were trained. Atoms move from one time to another, and at one they are all in one place.
    """

    stacks: Sequence[Stack]
    families: Sequence[Family]
    names: Sequence[Key]
    sites: Sequence[str]
    columns: Sequence[Sequence[str]] | None
    rows: Index
    numbers: Index = field(default_factory=lambda: np.arange(0))
    times: Array | None = None

    @cached_property
    def offsets(self) -> Index:
        """Where sites begin."""
        return self.stacks[0].offsets

    @cached_property
    def sizes(self) -> Index:
        """Number of values of every site."""
        return self.stacks[0].sizes

    def at_one_time(self, numbers: Index) -> Index:
        """Numbers of values, made others where times are others."""
        if self.times is None:
            return numbers
        time = np.repeat(np.unique(self.times, return_inverse=True)[1], self.sizes)
        return np.unique(np.stack([numbers, time]), axis=1, return_inverse=True)[1].ravel()
