"""Sites that coincide are counted once: one of them is fitted, the others are labelled like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from modelweld.core.match import Fit
from modelweld.core.matching import Matching
from modelweld.core.values import Index, SetValues, Stack, group_of_values
from modelweld.errors import DuplicateWarning, Finding
from modelweld.fit.screening.exclusion import keep_sites, restore_duplicates

FEWEST_OWN = 2
"""Values that coinciding sites, and no other site, must have in common: two sites may well send the same single value,
and small sites of counts or codes coincide by themselves."""

COINCIDED = (
    " sent the same values, or nearly: they are counted once. If one was sent twice, or two share a model, leave one "
    "out; if they are independent and coincide all the same, say so with screens=['outliers']."
)

ALL_ALIKE = Finding(
    "all sites sent the same values: they are fused as if they were independent, but say nothing about noise, nor "
    "about what sites have in common.",
    DuplicateWarning,
)


def find_duplicates(stacks: Sequence[Stack], numbers: Index) -> tuple[list[list[int]], Index]:
    """Groups of sites that coincide, by the numbers of their values, none of which a site has twice.

    Of each group the one that is fitted comes first: it is the first by content. And of every value the one that is
    fitted for it.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.fit.screening.duplicates import number_values
    >>> from modelweld.inputs.stacks import stack_arrays
    >>> a, b = np.random.default_rng(0).normal(size=(2, 4, 3))
    >>> stack = stack_arrays([a, b, a[::-1]])
    >>> find_duplicates([stack], number_values([stack], [Gaussian()]))[0]
    [[0, 2]]
    """
    held, stand_in, groups = np.bincount(numbers), np.arange(len(numbers)), list[list[int]]()
    if held.max(initial=0) <= 1:
        return groups, stand_in
    content = np.hstack([a for s in stacks for a in (s.where_seen(-np.inf), s.variance, s.weight) if a is not None])
    spans = [np.arange(a, b) for a, b in pairwise(stacks[0].offsets.tolist())]
    by_content: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(stacks[0].sizes).tolist():
        spans[j] = spans[j][np.argsort(numbers[spans[j]])]
        by_content.setdefault(numbers[spans[j]].tobytes(), []).append(j)
    for group in by_content.values():
        if (held[numbers[spans[group[0]]]] == len(group)).sum() >= FEWEST_OWN and len(group) > 1:
            first = min(group, key=lambda j: sorted(content[spans[j]].tolist()))
            groups.append([first, *(j for j in group if j != first)])
            stand_in[np.concatenate([spans[j] for j in group])] = np.tile(spans[first], len(group))
    return groups, stand_in


def fit_distinct(values: SetValues, fit: Fit) -> Matching:
    """The matching of all sites, of which `fit` sees those once that coincide, by their `numbers`.

    Where all coincide there is no other answer to spoil: all are fitted, and copies give back the model.
    """
    groups, stand_in = find_duplicates(values.stacks, values.numbers)
    if not groups:
        return replace(fit(values), duplicates={})
    if len(groups[0]) == np.count_nonzero(values.sizes):
        return replace(fit(values), duplicates={}).say(ALL_ALIKE)
    stay = np.setdiff1d(np.arange(len(values.sites)), [j for group in groups for j in group[1:]])
    fitted = np.flatnonzero(np.isin(group_of_values(values.offsets), stay))
    matching = restore_duplicates(fit(keep_sites(values, stay)), np.searchsorted(fitted, stand_in), values.offsets)
    matching = replace(matching, duplicates={j: min(group) for group in groups for j in sorted(group)[1:]})
    return matching.say(*(Finding(COINCIDED, DuplicateWarning, [values.sites[j] for j in sorted(g)]) for g in groups))
