"""What was sent more than once: sites that repeat another, exactly or nearly, and models of nearly the same rows.

Two independent sites never agree to a millionth of their own range. Taken for independent, two that do say that the
noise is next to nothing, and then no other values match. So a site whose values are those of another, in whatever
order, is *counted once*: one of them is fitted, the others are labelled like it and are in the result as it is. Every
value gets a number, the same for those that coincide; sites with the same numbers coincide.

What *nearly* coincides (rounded or slightly retrained parameters, noise on a copy) is found after a fit, because nearly
is a matter of how far sites lie from each other that are not copies. Many copies could bring the noise down to their
own, and nothing else would match, so `number_likely` counts suspects once in a first fit, by which they are then
judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelweld.core.family import has_places
from modelweld.core.match import Fit
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Flags, Index, SetValues, Stack, group_of_values
from modelweld.families import Family
from modelweld.families.math.start import vote_share
from modelweld.fit.screening.distances import FEWEST_SITES, site_means
from modelweld.fit.screening.duplicate_sites import fit_distinct
from modelweld.fit.screening.near_duplicates import (
    SIMILAR,
    choose_copies,
    components,
    embed_all,
    join,
    noise_in_time,
    number_suspects,
)

COINCIDE = 1e-6
"""Share of a site's own range, in each column, within which two values are the same: far below any noise with which
people estimate parameters, far above what writing numbers with eight digits loses."""


NEIGHBOURS = 4
"""How many values or sites each is compared with, those next to it on a random line: what coincides is hardly ever
parted there by one other value, let alone by this many."""

NEARLY = 0.02
"""Of the deviation between sites within which a copy lies, whatever the others say. A site of 20,000 points lies within
.055 of that of one of 60 points, and two such agree by that much without being copies."""

FEWEST_NUMBERS = 6
"""Numbers that must agree: fewer agree that well by chance once in 10,000 pairs of sites."""

MOST_OF_SITES = 0.75
"""Quantile over sites of what they say noise is, from which suspects are identified: three quarters may be copies."""


def duplicates(values: SetValues, fit: Fit) -> Matching:
    """Count sites once that coincide, or nearly do: one of them is fitted, the others are labelled like it."""
    numbers, likely = values.numbers, number_likely(values)
    if likely is not numbers:
        judged = fit_distinct(replace(values, numbers=likely), fit)
        numbers = number_near(judged, values, numbers, likely)
    if np.bincount(numbers).max(initial=0) <= 1:
        matching = replace(fit(replace(values, numbers=numbers)), duplicates={})
    else:
        matching = fit_distinct(replace(values, numbers=numbers), fit)
    near = number_near(matching, values, numbers)
    return matching if near is numbers else fit_distinct(replace(values, numbers=near), fit)


def number_values(stacks: Sequence[Stack], families: Sequence[Family]) -> Index:
    """A number for every value, the same for those that coincide: nearly, in arrays of families that have places.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.inputs.stacks import stack_arrays
    >>> number_values([stack_arrays([[[0.0, 0.1], [9.0, 9.1]], [[9.0, 9.1 + 1e-9], [5.0, 4.0]]])], [Gaussian()])
    array([0, 1, 1, 2])
    """
    table = np.hstack(
        [s.filled() for s in stacks] + [s.seen.astype(np.float64) for s in stacks if s.weight is not None]
    )
    (N, D), near = table.shape, [has_places(f) for s, f in zip(stacks, families, strict=True) for _ in s.values.T]
    if not N:
        return np.arange(0)
    filled = stacks[0].sizes > 0
    begin, site = stacks[0].offsets[:-1][filled], np.repeat(np.arange(filled.sum()), stacks[0].sizes[filled])
    may_differ = COINCIDE * np.append(near, np.zeros(D - len(near)))
    high, low = table.max(0), table.min(0)
    line = any_direction(D) / np.where(high > low, high - low, 1.0)
    rounding = D * np.finfo(float).eps * float(np.maximum(np.abs(high), np.abs(low)) @ np.abs(line))
    key, limit = table @ line, may_differ * (high - low)  # of the widest site that could be
    order = np.argsort(key)
    key, pairs = key[order], [np.zeros((2, 0), dtype=np.int64)]
    for lag in range(1, min(NEIGHBOURS + 1, N)):
        close = np.flatnonzero(key[lag:] - key[:-lag] <= limit @ np.abs(line) + rounding)
        if not len(close):
            break  # what is further on is further off
        pair = np.stack([order[close], order[close + lag]])
        pairs.append(pair[:, (np.abs(table[pair[0]] - table[pair[1]]) <= limit).all(1)])
    a, b = np.hstack(pairs)
    if not len(a):
        return np.arange(N)
    limits = may_differ * (np.maximum.reduceat(table, begin) - np.minimum.reduceat(table, begin))
    own = (np.abs(table[a] - table[b]) <= np.minimum(limits[site[a]], limits[site[b]])).all(1)
    return components(np.stack([a[own], b[own]]), N)


def any_direction(D: int) -> Array:
    """An arbitrary direction (D,), always the same: what coincides does so along it, and little else does."""
    return np.random.default_rng(0).normal(size=D)


def _points(given: SetValues, matching: Matching | None = None) -> tuple[Array, Flags] | None:
    """Values as points, all arrays side by side, and what was seen of them; None where a family has none."""
    if not all(has_places(family) for family in given.families):
        return embed_all(given, matching)
    return np.hstack([s.filled() for s in given.stacks]), np.hstack([s.seen for s in given.stacks])


def number_likely(given: SetValues) -> Index:
    """Numbers of values, before any fit: a minority of sites of one time that may be copies has the same ones."""
    sizes, offsets, numbers = given.sizes, given.offsets, given.numbers
    filled = np.flatnonzero(sizes)
    if len(filled) <= FEWEST_SITES or (points := _points(given)) is None:
        return numbers
    values, share = points[0], sizes[filled, None] / len(points[0])
    stack = Stack(values, offsets)
    means = site_means(stack, lambda block: block.values)
    centre = (share * means).sum(0)
    total = (share * site_means(stack, lambda block: np.square(block.values - centre))).sum(0)
    total = np.where(total > 0, total, np.inf)
    means, times = means / np.sqrt(total), np.zeros(len(sizes)) if given.times is None else given.times
    order, limit = np.argsort(means @ any_direction(len(total)), kind="stable"), 4 * SIMILAR**2
    rank = np.cumsum(sizes > 0) - 1
    near = list[tuple[int, int, float]]()
    for i, j in ((filled[order[:-lag]], filled[order[lag:]]) for lag in range(1, NEIGHBOURS + 1)):
        apart = np.square(means[rank[i]] - means[rank[j]]).mean(axis=1) * sizes[i] / 2
        close = (apart < limit) & (sizes[i] == sizes[j]) & (times[i] == times[j])
        near += zip(i[close].tolist(), j[close].tolist(), apart[close].tolist(), strict=True)
    if near:  # noise is at most all there is
        limit *= min(vote_share(Stack(values, offsets, group_order=filled[order]), total, MOST_OF_SITES) or 0.0, 1.0)
        near = [pair for pair in near if pair[2] < limit]
    return number_suspects(given, values, np.sqrt(total), limit, near) if near else numbers


def number_near(matching: Matching, given: SetValues, numbers: Index, fitted: Index | None = None) -> Index:
    """Numbers of values, those of near copies made the same, if any; `matching` is of them.

    Or of others, `fitted` (`number_likely`): what was counted once there and is no copy has numbers of its own.
    """
    site, J = group_of_values(given.offsets), len(given.sizes)
    if J < FEWEST_SITES:
        return numbers
    labels = matching.stacked_labels
    if fitted is not None and matching.kept is not None:  # what was excluded of one was of its copies
        labels = np.where(matching.kept, labels, len(matching.counts) + fitted)
    labels = given.at_one_time(labels)
    if not (together := _group_by_atoms(labels, given.offsets)) or (points := _points(given, matching)) is None:
        return numbers
    values, seen = points
    once = ~np.isin(site, list(matching.duplicates or ()))
    deviation = _deviation(values, seen, labels, once) if given.times is None else noise_in_time(matching, values)
    line = values @ (any_direction(len(deviation)) / deviation)
    alike, similar = list[Index](), list[Index]()
    for sites in together:
        order = np.argsort([line[own].mean() for own in sites], kind="stable").tolist()
        for a, b in ((a, a + lag) for lag in range(1, NEIGHBOURS + 1) for a in range(len(order) - lag)):
            one, other = sites[order[a]], sites[order[b]]
            both = seen[one]
            off = ((values[one] - values[other]) / deviation)[both]
            apart = float(np.mean(off * off)) / 2 if off.size >= FEWEST_NUMBERS else np.inf
            if apart < SIMILAR**2 and np.array_equal(both, seen[other]) and (numbers[one] != numbers[other]).any():
                (alike if apart < NEARLY**2 else similar).append(np.stack([one, other]))
    if similar:
        alike += choose_copies(similar, alike, values / deviation, labels, site, J)
    return join(numbers, [numbers[pair] for pair in alike]) if alike else numbers


def _group_by_atoms(labels: Index, offsets: Index) -> list[list[Index]]:
    """Values of several sites that hold the same atoms, once each: site by site, in the order of the atoms."""
    found: dict[bytes, list[Index]] = {}
    marks = np.random.default_rng(0).integers(2**40, size=2 * len(labels))
    summed = np.bincount(group_of_values(offsets), marks[labels], len(offsets) - 1)  # whole numbers: no rounding
    _, mark, number = np.unique(summed, return_inverse=True, return_counts=True)
    for j in np.flatnonzero((number[mark] > 1) & (np.diff(offsets) > 0)).tolist():  # sites that may hold the same
        own = np.arange(offsets[j], offsets[j + 1])[np.argsort(labels[offsets[j] : offsets[j + 1]])]
        if (np.diff(labels[own]) > 0).all():
            found.setdefault(labels[own].tobytes(), []).append(own)
    return [sites for sites in found.values() if len(sites) > 1]


def _deviation(values: Array, seen: Flags, labels: Index, once: Flags) -> Array:
    """Of values that were seen, and count `once`, about their atom's mean (D,); infinite where they do not differ."""
    deviation = np.full(values.shape[1], np.inf)
    for d, column in enumerate(values.T):
        rows = np.flatnonzero(once & seen[:, d])
        own, x = labels[rows], column[rows]
        number = np.bincount(own)
        off = x - (np.bincount(own, x) / np.maximum(number, 1))[own]
        if (total := off @ off) > 0:
            deviation[d] = np.sqrt(total / max((number - (number > 0)).sum(), 1))
    return deviation
