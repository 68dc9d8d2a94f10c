"""What was sent more than once: values that coincide, and sites that repeat another.

Two independent sites never agree to a millionth of their own range. Taken for independent, two that do say that the
noise is next to nothing, and then nobody else's values match. So a site whose values are those of another, in whatever
order, is *counted once*: one of them is fitted, the others are labelled like it and are in the result as it is.

Every value gets a number, the same for those that coincide; sites with the same numbers coincide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from modelweld.errors import Finding, TwinWarning
from modelweld.families import Family
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, canonical_groups, canonical_values, group_of_values, offsets_of
from modelweld.matching.result import Matching, ranks
from modelweld.screening.pipeline import Fit, SetValues

COINCIDE = 1e-6
"""Share of a site's own range, in each column, within which two values are the same: far below any noise with which
people estimate parameters, far above what writing numbers with eight digits loses."""

FEWEST_OWN = 2
"""Values that coinciding sites, and nobody else, must have in common: two sites may well send the same single value,
and small sites of counts or codes coincide by themselves."""

NEIGHBOURS = 4
"""How many values a value is compared with, those next to it on a random line: values that coincide to a millionth of
the range are hardly ever parted there by one other value, let alone by this many."""


class Twins(NamedTuple):
    """Groups of sites that coincide, the one that is fitted first, and of every value the one that is fitted for it."""

    groups: list[list[int]]
    stand_in: Index

    @property
    def of(self) -> dict[int, int]:
        """Every site that repeats an earlier one, and the earliest: their labels are the same, whichever was fitted."""
        return {j: min(group) for group in self.groups for j in sorted(group)[1:]}


def number_values(stacks: Sequence[Stack], families: Sequence[Family]) -> Index:
    """A number for every value, the same for those that coincide: nearly, in arrays of families that have places.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.inputs.stack import stack_arrays
    >>> number_values([stack_arrays([[[0.0, 0.1], [9.0, 9.1]], [[9.0, 9.1 + 1e-9], [5.0, 4.0]]])], [Gaussian()])
    array([0, 1, 1, 2])
    """
    table, near = _side_by_side(stacks, families)
    N, D = table.shape
    if not N:
        return np.arange(0)
    high, low = table.max(0), table.min(0)
    widest, largest = high - low, np.maximum(np.abs(high), np.abs(low))
    line = any_direction(D) / np.where(widest > 0, widest, 1.0)
    key, rounding = table @ line, D * np.finfo(float).eps * float(largest @ np.abs(line))
    order, limit = np.argsort(key), COINCIDE * near * widest  # of the widest site that could be
    gap, key = limit @ np.abs(line) + rounding, key[order]
    pairs = [np.zeros((2, 0), dtype=np.int64)]
    for lag in range(1, min(NEIGHBOURS + 1, N)):
        close = np.flatnonzero(key[lag:] - key[:-lag] <= gap)
        if not len(close):
            break  # what is further on is further off
        a, b = order[close], order[close + lag]
        for column, off in zip(table.T, limit, strict=True):
            if not len(a):
                break
            same = np.abs(column[a] - column[b]) <= off
            a, b = a[same], b[same]
        pairs.append(np.stack([a, b]))
    return components(_within_reach(np.hstack(pairs), table, near, stacks[0]), N)


@lru_cache
def any_direction(D: int) -> Array:
    """A direction (D,) that nobody chose, always the same: what coincides does so along it, and little else does."""
    direction = np.random.default_rng(0).normal(size=D)
    direction.setflags(write=False)
    return direction


def _within_reach(pairs: Index, table: Array, near: Array, stack: Stack) -> Index:
    """Those pairs of values that differ by next to nothing of the range of either's own site."""
    if not pairs.size:
        return pairs
    filled = np.flatnonzero(stack.sizes)
    begin = stack.offsets[:-1][filled]
    limit = COINCIDE * near * (np.maximum.reduceat(table, begin) - np.minimum.reduceat(table, begin))
    site = np.repeat(np.arange(len(filled)), stack.sizes[filled])
    a, b = pairs
    return pairs[:, (np.abs(table[a] - table[b]) <= np.minimum(limit[site[a]], limit[site[b]])).all(1)]


def _side_by_side(stacks: Sequence[Stack], families: Sequence[Family]) -> tuple[Array, Array]:
    """All arrays and what was seen of them, and the columns in which a little may be off (one, else zero)."""
    columns, near = [], []
    for stack, family in zip(stacks, families, strict=True):
        columns.append(stack.filled())
        near.append(np.full(stack.values.shape[1], float(family.has_places)))
        if stack.weight is not None:
            columns.append((stack.weight > 0).astype(np.float64))
            near.append(np.zeros(stack.weight.shape[1]))
    return columns[0] if len(columns) == 1 else np.hstack(columns), np.concatenate(near)


def components(pairs: Index, N: int) -> Index:
    """The connected parts of a graph, numbered."""
    if not pairs.size:
        return np.arange(N)
    from scipy.sparse import coo_matrix  # of arrays older SciPy (1.11) wants other numbers
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(pairs.shape[1], dtype=bool), (pairs[0], pairs[1])), shape=(N, N))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def repetitions(stacks: Sequence[Stack], numbers: Index) -> Index:
    """For every value how many of its site come before it, by content, that coincide with it."""
    before = np.zeros(len(numbers), dtype=np.int64)
    if np.bincount(numbers).max(initial=0) <= 1:
        return before
    own = group_of_values(stacks[0].offsets) * (int(numbers.max()) + 1) + numbers
    order = canonical_values(stacks)
    order = order[np.argsort(own[order], kind="stable")]
    _, first, kind = np.unique(own[order], return_index=True, return_inverse=True)
    before[order] = np.arange(len(order)) - first[kind]
    return before


def find_twins(stacks: Sequence[Stack], numbers: Index) -> Twins:
    """Sites that coincide, by the numbers of their values, none of which a site has twice.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.inputs.stack import stack_arrays
    >>> a, b = np.random.default_rng(0).normal(size=(2, 4, 3))
    >>> stack = stack_arrays([a, b, a[::-1]])
    >>> find_twins([stack], number_values([stack], [Gaussian()])).of
    {2: 0}
    """
    held, stand_in = np.bincount(numbers), np.arange(len(numbers))
    if held.max(initial=0) <= 1:
        return Twins([], stand_in)
    spans = [np.arange(a, b) for a, b in pairwise(stacks[0].offsets.tolist())]
    by_content: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(stacks[0].sizes).tolist():
        spans[j] = spans[j][np.argsort(numbers[spans[j]])]
        by_content.setdefault(numbers[spans[j]].tobytes(), []).append(j)
    groups = []
    for group in by_content.values():
        if (held[numbers[spans[group[0]]]] == len(group)).sum() >= FEWEST_OWN and len(group) > 1:
            first = _first_by_content(stacks, group)
            groups.append([first, *(j for j in group if j != first)])
            stand_in[np.concatenate([spans[j] for j in group])] = np.tile(spans[first], len(group))
    return Twins(groups, stand_in)


def _first_by_content(stacks: Sequence[Stack], group: Sequence[int]) -> int:
    """The first of some sites, whoever came first."""
    span = np.concatenate([np.arange(stacks[0].offsets[j], stacks[0].offsets[j + 1]) for j in group])
    some = [stack.take(span, offsets_of(stacks[0].sizes[list(group)])) for stack in stacks]
    within = canonical_values(some)
    return group[int(canonical_groups([stack.take(within, stack.offsets) for stack in some])[0])]


def fit_distinct(values: SetValues, fit: Fit) -> Matching:
    """The matching of all sites, of which `fit` sees those once that coincide, by their `numbers`.

    Where all coincide there is nobody whose answer they could spoil: all are fitted, and copies give back the model.
    """
    assert values.numbers is not None
    twins = find_twins(values.stacks, values.numbers)
    if not twins.groups:
        return replace(fit(values), twins={})
    if len(twins.groups[0]) == np.count_nonzero(values.sizes):
        return replace(fit(values), twins={}).say(ALL_ALIKE)
    stay = np.setdiff1d(np.arange(len(values.sites)), [j for group in twins.groups for j in group[1:]])
    distinct = values.of(stay)
    fitted = np.searchsorted(np.flatnonzero(np.isin(group_of_values(values.offsets), stay)), twins.stand_in)
    matching = replace(put_twins_back(fit(distinct), fitted, values.offsets), twins=twins.of)
    return matching.say(*(Finding(COINCIDED, TwinWarning, [values.sites[j] for j in sorted(g)]) for g in twins.groups))


ALL_ALIKE = Finding(
    "all sites sent the same values: they are fused as if they were independent, but say nothing about noise, nor "
    "about what sites have in common.",
    TwinWarning,
)

COINCIDED = (
    " sent the same values, or nearly: they are counted once. If one was sent twice, or two share a model, leave one "
    "out; if they are independent and coincide all the same, say so with twins='independent'."
)


def put_twins_back(matching: Matching, source: Index, offsets: Index) -> Matching:
    """The matching of all sites: every value labelled like the fitted one that is its `source`.

    What was set aside of the one is set aside of the others, each value an atom of its own; which atoms are atoms is
    decided by the sites fitted.
    """
    kept = np.ones(len(source), dtype=bool) if matching.kept is None else matching.kept[source]
    fitted = matching.stacked_labels[source]
    own = np.where(kept, fitted, len(matching.counts) + np.arange(len(source)))
    _, first, labels = np.unique(own, return_index=True, return_inverse=True)
    atom = fitted[first]
    counts = np.bincount(np.unique(np.stack([labels, group_of_values(offsets)]), axis=1)[0])
    artefact = np.isin(atom, [one.atom for one in matching.artefacts])
    block = np.where(~kept[first], 3, np.where(artefact, 2, atom >= matching.K))
    number = np.lexsort((*next(iter(matching.values.values()))[atom].T[::-1], -counts, block))
    rank, now = ranks(number), np.empty(len(matching.counts), dtype=np.int64)
    now[atom] = rank
    return replace(
        matching,
        stacked_labels=rank[labels],
        offsets=offsets,
        counts=counts[number],
        values={name: values[atom[number]] for name, values in matching.values.items()},
        artefacts=tuple(artefact.renumbered(now) for artefact in matching.artefacts),
        kept=None if matching.kept is None else kept,
    )
