"""Sites that nearly repeat another: a copy with rounded or slightly retrained parameters, a copy with noise on it.

What coincides is found before the fit (`screening.twins`). What nearly does is found after it, because nearly is a
matter of how far sites lie from each other that are not copies: values of two copies differ by next to nothing of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from modelweld.families import Family
from modelweld.families.base import sum_by_atom
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, group_of_values
from modelweld.matching.result import Matching
from modelweld.screening.twins import components

NEARLY = 0.02
"""Of the deviation between sites within which a copy lies. A site of 20,000 points lies within .055 of that of one of
60 points, and two such agree by that much without being copies."""

FEWEST_NUMBERS = 6
"""Numbers that must agree: fewer agree that well by chance once in 10,000 pairs of sites."""

FEWEST_SITES = 3
"""Two sites alone say nothing about how far apart others are."""

NEIGHBOURS = 4
"""How many sites a site is compared with, those whose means are next to its own on a line."""


def number_near(matching: Matching, stacks: Sequence[Stack], families: Sequence[Family], numbers: Index) -> Index:
    """Numbers of values (`twins.number_values`), those of a near copy made the same, if any; `matching` is of them."""
    if len(stacks[0].sizes) < FEWEST_SITES or not all(family.has_places for family in families):
        return numbers
    labels = matching.stacked_labels
    values, seen = np.hstack([stack.filled() for stack in stacks]), np.hstack([_seen(stack) for stack in stacks])
    deviation = _deviation(values, seen, labels)
    line = values @ (np.random.default_rng(0).normal(size=len(deviation)) / deviation)
    alike = [np.zeros((2, 0), dtype=np.int64)]
    for one, other in _neighbours(line, labels, matching.offsets):
        both = seen[one]
        if np.array_equal(numbers[one], numbers[other]) or not np.array_equal(both, seen[other]):
            continue
        off = ((values[one] - values[other]) / deviation)[both]
        if off.size >= FEWEST_NUMBERS and np.mean(off * off) / 2 < NEARLY**2:
            alike.append(np.stack([numbers[one], numbers[other]]))
    pairs = np.hstack(alike)
    return components(pairs, int(numbers.max()) + 1)[numbers] if pairs.size else numbers


def _neighbours(line: Array, labels: Index, offsets: Index) -> Iterator[tuple[Index, Index]]:
    """Values, atom by atom, of two sites that hold the same atoms once each and whose means are close on a `line`."""
    begin, sizes = offsets[:-1], np.diff(offsets)
    if not len(labels):
        return
    site = group_of_values(offsets)
    by_label = np.lexsort((labels, site))  # site by site, by the numbers of their atoms
    again = (np.diff(labels[by_label]) == 0) & (np.diff(site) == 0)
    whole = np.flatnonzero((sizes > 0) & (np.bincount(site[1:][again], minlength=len(sizes)) == 0))
    means = np.bincount(site, line, len(sizes)) / np.maximum(sizes, 1)
    # sites of the same atoms have the same sum of random marks, and others hardly ever: few are looked at closely
    marks = np.random.default_rng(0).integers(2**40, size=int(labels.max()) + 1)
    mark = np.bincount(site, marks[labels].astype(np.float64), len(sizes))
    order = whole[np.argsort(means[whole], kind="stable")]
    for lag in range(1, NEIGHBOURS + 1):
        one, other = order[:-lag], order[lag:]
        for i, j in zip(*(x[mark[one] == mark[other]].tolist() for x in (one, other)), strict=True):
            spans = [by_label[begin[k] : begin[k] + sizes[k]] for k in (i, j)]
            if np.array_equal(labels[spans[0]], labels[spans[1]]):
                yield spans[0], spans[1]


def _seen(stack: Stack) -> NDArray[np.bool_]:
    return np.ones(stack.values.shape, dtype=bool) if stack.weight is None else stack.weight > 0


def _deviation(values: Array, seen: NDArray[np.bool_], labels: Index) -> Array:
    """Of values that were seen about the mean of their atom, column by column; infinite where they do not differ."""
    count = sum_by_atom(seen.astype(np.float64), labels)
    means = sum_by_atom(np.where(seen, values, 0.0), labels) / np.maximum(count, 1)
    about = np.where(seen, values - means[labels], 0.0)
    free = np.maximum((count - (count > 0)).sum(0), 1)
    deviation = np.sqrt(np.einsum("nd,nd->d", about, about) / free)
    return np.where(deviation > 0, deviation, np.inf)
