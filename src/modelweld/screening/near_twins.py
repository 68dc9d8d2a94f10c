"""Sites that nearly repeat another: a copy with rounded or slightly retrained parameters, a copy with noise on it.

What coincides is found before the fit (`screening.twins`). What nearly does is found after it, because nearly is a
matter of how far sites lie from each other that are not copies: values of two copies differ by next to nothing of that.
Copies with more noise agree with each other far better than with anybody else, which two sites that know their values
well do not: those agree with all the others' mean. Many copies could bring the noise down to their own, and nothing
else would match, so `number_likely` counts suspects once in a first fit, by which they are then judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelweld.families import Drift, Family
from modelweld.families.base import sum_by_atom
from modelweld.families.math.blocks import blocks
from modelweld.families.math.start import voted_share
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, group_of_values
from modelweld.matching.result import Matching
from modelweld.screening.pipeline import Fit, SetValues
from modelweld.screening.site_medians import means_by_site
from modelweld.screening.twins import any_direction, components, fit_distinct

NEARLY = 0.02
"""Of the deviation between sites within which a copy lies, whatever the others say. A site of 20,000 points lies within
.055 of that of one of 60 points, and two such agree by that much without being copies."""

SIMILAR, ASTRAY = 0.12, 5.0
"""Of that deviation within which copies lie that have gone astray together: the mean square of their distance from the
others' mean is that many times what two independent sites as close would have. Branches of one house may be a third of
the deviation apart, and each says something of its own."""

BY_CHANCE = 1e-4
"""Probability that any two sites come as close as `SIMILAR` copies by chance."""

MOST_OF_SITES = 0.75
"""Quantile over sites of what they say noise is, from which suspects are told: three quarters may be copies."""

FEWEST_NUMBERS = 6
"""Numbers that must agree: fewer agree that well by chance once in 10,000 pairs of sites."""

FEWEST_SITES = 3
"""Two sites alone say nothing about how far apart others are."""

NEIGHBOURS = 4
"""How many sites a site is compared with, those whose means are next to its own on a line."""


def twins(values: SetValues, fit: Fit) -> Matching:
    """Count sites once that coincide, or nearly do: one of them is fitted, the others are labelled like it."""
    stacks, families, numbers = values.stacks, values.families, values.numbers
    assert numbers is not None
    likely = number_likely(stacks, families, numbers, values.times)
    if likely is not numbers:
        judged = fit_distinct(replace(values, numbers=likely), fit)
        numbers = number_near(judged, values, numbers, likely)
    matching = fit_distinct(replace(values, numbers=numbers), fit)
    near = number_near(matching, values, numbers)
    return matching if near is numbers else fit_distinct(replace(values, numbers=near), fit)


def number_likely(
    stacks: Sequence[Stack], families: Sequence[Family], numbers: Index, times: Array | None = None
) -> Index:
    """Numbers of values (`twins.number_values`), before any fit: a minority that may be copies has the same ones."""
    sizes, offsets = stacks[0].sizes, stacks[0].offsets
    filled = np.flatnonzero(sizes)
    if len(filled) <= FEWEST_SITES or not all(family.has_places for family in families):
        return numbers
    values = _side_by_side(stacks)
    share = sizes[filled, None] / len(values)
    means, means_about = means_by_site(Stack(values, offsets))
    total = (share * means_about((share * means).sum(0))).sum(0)
    total = np.where(total > 0, total, np.inf)
    means = means / np.sqrt(total)
    order = np.argsort(means @ any_direction(len(total)), kind="stable")
    alike = sizes[filled] if times is None else np.stack([sizes[filled], times[filled]])
    near = list(_next_to(order, means, sizes[filled], alike, 4 * SIMILAR**2))
    if not near:
        return numbers  # noise is at most all there is
    voted = voted_share(Stack(values, offsets, group_order=filled[order]), total, MOST_OF_SITES)
    noise = min(voted or 0.0, 1.0)
    pairs, suspects = [np.zeros((2, 0), dtype=np.int64)], set()
    for i, j in ((filled[one], filled[other]) for one, other, apart in near if apart < 4 * SIMILAR**2 * noise):
        spans = [np.arange(offsets[k], offsets[k + 1]) for k in (i, j)]
        a, b = (values[span] / np.sqrt(total) for span in spans)
        squares = np.square(a[:, None] - b).mean(axis=2)
        nearest = squares.argmin(axis=1)
        pair = np.stack([numbers[spans[0]], numbers[spans[1][nearest]]])
        new = len(set(nearest.tolist())) == len(nearest) and not np.array_equal(*pair)
        if new and squares.min(axis=1).mean() / 2 < 2 * SIMILAR**2 * noise:
            pairs.append(pair)
            suspects |= {int(i), int(j)}
    return _joined(numbers, pairs) if 2 * len(suspects) < len(filled) else numbers  # a majority is no copy


def _next_to(
    order: Index, means: Array, sizes: Index, alike: NDArray[Any], within: float
) -> Iterator[tuple[int, int, float]]:
    """Pairs of sites, `alike` in size and time, next to each other in `order`, and how far apart their means are."""
    for lag in range(1, NEIGHBOURS + 1):
        one, other = order[:-lag], order[lag:]
        same = np.atleast_2d(alike[..., one] == alike[..., other]).all(0)
        one, other = one[same], other[same]
        apart = np.square(means[one] - means[other]).mean(axis=1) * sizes[one] / 2
        near = apart < within
        yield from zip(one[near].tolist(), other[near].tolist(), apart[near].tolist(), strict=True)


def number_near(matching: Matching, given: SetValues, numbers: Index, fitted: Index | None = None) -> Index:
    """Numbers of values (`twins.number_values`), those of near copies made the same, if any; `matching` is of them.

    Or of others, `fitted` (`number_likely`): what was counted once there and is no copy has numbers of its own.
    """
    stacks = given.stacks
    if len(stacks[0].sizes) < FEWEST_SITES or not all(family.has_places for family in given.families):
        return numbers
    labels = matching.stacked_labels
    if fitted is not None and matching.kept is not None:  # what was set aside of one was of its copies
        labels = np.where(matching.kept, labels, len(matching.counts) + fitted)
    labels = given.at_one_time(labels)
    marks = _marks(labels, matching.offsets)
    held = marks[stacks[0].sizes > 0]
    if len(np.unique(held)) == len(held):
        return numbers  # no two sites hold the same atoms
    values, once = _side_by_side(stacks), ~np.isin(group_of_values(matching.offsets), list(matching.twins or ()))
    deviation = _deviation(stacks, labels, once) if given.times is None else _noise(matching, stacks[0])
    if not np.isfinite(deviation).any():
        return numbers
    line = values @ (any_direction(len(deviation)) / deviation)
    alike, similar = [np.zeros((2, 0), dtype=np.int64)], list[Index]()
    for one, other in _neighbours(line, labels, marks, matching.offsets):
        both, others = _seen(stacks, one), _seen(stacks, other)
        if np.array_equal(numbers[one], numbers[other]) or not np.array_equal(both, others):
            continue
        off = ((values[one] - values[other]) / deviation)[both]
        apart = float(np.mean(off * off)) / 2 if off.size >= FEWEST_NUMBERS else np.inf
        if apart < SIMILAR**2:
            (alike if apart < NEARLY**2 else similar).append(np.stack([one, other]))
    near = [numbers[pair] for pair in alike]
    if similar:
        near += [numbers[pair] for pair in _astray(similar, alike, values / deviation, labels, matching.offsets)]
    return _joined(numbers, near)


def _joined(numbers: Index, pairs: Sequence[Index]) -> Index:
    """The numbers with those of each pair made the same; the very same if there is none."""
    all_pairs = np.hstack(pairs)
    return components(all_pairs, int(numbers.max()) + 1)[numbers] if all_pairs.size else numbers


def _side_by_side(stacks: Sequence[Stack]) -> Array:
    """All arrays, columns side by side."""
    columns = [stack.filled() for stack in stacks]
    return columns[0] if len(columns) == 1 else np.hstack(columns)


def _astray(
    similar: Sequence[Index], alike: Sequence[Index], values: Array, labels: Index, offsets: Index
) -> Iterator[Index]:
    """Those pairs of similar sites that, with all that are similar to them, lie where nobody else does."""
    site = group_of_values(offsets)
    J = len(offsets) - 1
    edges = np.array([[site[pair[0, 0]], site[pair[1, 0]]] for pair in [*similar, *alike] if pair.size]).T
    part = components(edges, J)
    verdicts = {p: _gone_astray(part[site] == p, values, labels, J) for p in np.unique(part[edges[0]]).tolist()}
    yield from (pair for pair in similar if verdicts[int(part[site[pair[0, 0]]])])


def _gone_astray(members: NDArray[np.bool_], values: Array, labels: Index, J: int) -> bool:
    """Whether sites agree better than chance allows, and with each other only; `values` in deviations between sites."""
    from scipy.special import chdtr

    number, others = (np.bincount(labels[which], minlength=int(labels.max()) + 1) for which in (members, ~members))
    held, shared = number > 1, (number > 1) & (others > 0)
    centre, elsewhere = (
        sum_by_atom(np.where(which[:, None], values, 0.0), labels) / np.maximum(n, 1)[:, None]
        for which, n in ((members, number), (~members, others))
    )
    copies = members & held[labels]
    free = number[held].sum() - held.sum()
    apart = np.square(values - centre[labels])[copies].mean(axis=1).sum() / free
    # columns may all say the same: no more numbers are taken for independent than there are columns, or atoms
    independent = free * max(values.shape[1] / held.sum(), 1.0)
    if chdtr(independent, independent * apart) > BY_CHANCE / J**2:
        return False
    if shared.sum() < held.sum() / 2:
        return True
    off = np.square(centre - elsewhere)[shared].mean()
    return bool(off > ASTRAY * (apart * np.mean(1 / number[shared]) + np.mean(1 / others[shared])))


def _marks(labels: Index, offsets: Index) -> Array:
    """A number for every site, the same for those that hold the same atoms, and hardly ever for others."""
    marks = np.random.default_rng(0).integers(2**40, size=int(labels.max(initial=0)) + 1).astype(np.float64)
    return np.asarray(np.bincount(group_of_values(offsets), marks[labels], len(offsets) - 1), dtype=np.float64)


def _neighbours(line: Array, labels: Index, marks: Array, offsets: Index) -> Iterator[tuple[Index, Index]]:
    """Values, atom by atom, of two sites that hold the same atoms once each and whose means are close on a `line`."""
    begin, sizes = offsets[:-1], np.diff(offsets)
    site = group_of_values(offsets)
    by_label = np.lexsort((labels, site))  # site by site, by the numbers of their atoms
    again = (np.diff(labels[by_label]) == 0) & (np.diff(site) == 0)
    whole = np.flatnonzero((sizes > 0) & (np.bincount(site[1:][again], minlength=len(sizes)) == 0))
    means = np.bincount(site, line, len(sizes)) / np.maximum(sizes, 1)
    order = whole[np.argsort(means[whole], kind="stable")]
    for lag in range(1, NEIGHBOURS + 1):
        one, other = order[:-lag], order[lag:]
        for i, j in zip(*(x[marks[one] == marks[other]].tolist() for x in (one, other)), strict=True):
            spans = [by_label[begin[k] : begin[k] + sizes[k]] for k in (i, j)]
            if np.array_equal(labels[spans[0]], labels[spans[1]]):
                yield spans[0], spans[1]


def _seen(stacks: Sequence[Stack], rows: Index | slice) -> NDArray[np.bool_]:
    """What was seen of some values, columns side by side."""
    return np.hstack(
        [np.ones(s.values[rows].shape, dtype=bool) if s.weight is None else s.weight[rows] > 0 for s in stacks]
    )


def _noise(matching: Matching, stack: Stack) -> Array:
    """Deviation of values about atoms that move: few of one atom are of one time."""
    [family] = matching.families.values()
    assert isinstance(family, Drift)
    return np.sqrt(np.broadcast_to(np.asarray(family.noise, dtype=np.float64), stack.values.shape[1:]))


def _deviation(stacks: Sequence[Stack], labels: Index, once: NDArray[np.bool_]) -> Array:
    """Of values that were seen, and count `once`, about the mean of their atom, column by column; infinite where they
    do not differ.
    """
    K, D = int(labels.max(initial=-1)) + 1, sum(stack.values.shape[1] for stack in stacks)
    labels = np.where(once, labels, -1)
    parts = list(blocks(len(labels), D))
    count, means, squares = np.zeros((K, D)), np.zeros((K, D)), np.zeros(D)

    def about(part: slice, middle: Array | float) -> Array:
        values = np.hstack([stack.values[part] for stack in stacks])
        return np.where(_seen(stacks, part) & once[part, None], values - middle, 0.0)

    for part in parts:
        count += sum_by_atom(_seen(stacks, part).astype(np.float64), labels[part], K)
        means += sum_by_atom(about(part, 0.0), labels[part], K)
    means /= np.maximum(count, 1)
    for part in parts:
        squares += np.square(about(part, means[labels[part]])).sum(0)
    free = np.maximum((count - (count > 0)).sum(0), 1)
    deviation = np.sqrt(squares / free)
    return np.where(deviation > 0, deviation, np.inf)
