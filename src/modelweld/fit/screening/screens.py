"""The screens; the one list of them is `screens_of` in `fit.static_matcher`.

Most exclude values: out of the fit and in the result, each an atom of its own, named with the reason. Each looks first
whether there is anything to exclude; what it then does stands in a file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelweld.core.family import has_places
from modelweld.core.match import Fit
from modelweld.core.matching import Matching
from modelweld.core.values import Flags, Index, SetValues, Stack, arrays_of, canonical_values, group_of_values
from modelweld.errors import Finding
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE, any_seen, measure_distances
from modelweld.fit.screening.duplicates import number_values
from modelweld.fit.screening.exclusion import count_by_site, describe_oversized, keep_values, restore
from modelweld.fit.screening.outliers import find_outliers
from modelweld.fit.search.split_rules import name_oversplit
from modelweld.progress import report_progress

OVERSIZED, FEWEST_OF_OVERSIZED = 30.0, 200
"""Times the number of values of the median site from which a site is excluded, and values below which it costs
nothing. A layer of 512 units beside layers of 32 is sixteen times as wide; fragments of up to thirteen times as many
values are joined (`fit.search.split_rules`)."""


def exclude_unobserved(values: SetValues, fit: Fit) -> Matching:
    """Exclude rows that were not observed, or repeat another of their site (dead units).

    They would be atoms at every site that has some. Where no row was observed, all are kept.
    """
    values = number_rows(values)
    keep, reasons, atoms = find_unobserved(values)
    return fit(values) if keep.all() else restore(values, fit(keep_values(values, keep)), keep, atoms).say(*reasons)


def number_rows(values: SetValues) -> SetValues:
    """The values with numbers, the same for those of one time that coincide."""
    return replace(values, numbers=values.at_one_time(number_values(values.stacks, values.families)))


def find_unobserved(values: SetValues) -> tuple[Flags, list[str], Index]:
    """Rows that say something, why the others do not, and atoms of these: second copies of a value are one."""
    N, numbers = len(values.rows), values.numbers
    seen = any_seen(values.stacks, N)
    seen = seen if seen.any() else ~seen
    numbers = np.where(seen, numbers, N + np.arange(N))
    before = count_repetitions(values.stacks, numbers)
    found = ((~seen, "were not seen (weight zero)"), (before > 0, "repeat another of them"))
    reasons = [
        f"site {values.sites[j]!r}: {number[j]} of its {values.sizes[j]} values {why}. They are excluded."
        for number, why in ((count_by_site(values, which), why) for which, why in found if which.any())
        for j in np.flatnonzero(number).tolist()
    ]
    return (before == 0) & seen, reasons, before * (int(numbers.max(initial=0)) + 1) + numbers


def count_repetitions(stacks: Sequence[Stack], numbers: Index) -> Index:
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


def exclude_oversized(values: SetValues, fit: Fit) -> Matching:
    """Exclude sites that send far more values than others.

    Ten thousand values are as many chances to lie near something by accident, and matching them takes minutes;
    fragments of atoms by the dozen bring the noise down for all. What most sites send says how many there can be.
    """
    found, sizes = find_oversized(values.sizes), values.sizes
    if not found.size:
        return fit(values)
    keep = ~np.isin(group_of_values(values.offsets), found)
    matching = restore(values, exclude_oversized(keep_values(values, keep), fit), keep)
    return matching.say(*(describe_oversized(values.sites[j], int(sizes[j]), sizes) for j in found.tolist()))


def find_oversized(sizes: Index) -> Index:
    """Sites whose numbers of values no minority of sites can make look usual.

    Examples
    --------
    >>> find_oversized(np.array([7, 9, 0, 6, 10_000])).tolist()
    [4]
    >>> find_oversized(np.array([7, 9, 10_000])).tolist()
    []
    """
    filled = sizes[sizes > 0]
    if len(filled) < FEWEST_SITES_TO_COMPARE:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(sizes >= max(OVERSIZED * float(np.median(filled)), FEWEST_OF_OVERSIZED))


def exclude_outliers(values: SetValues, fit: Fit) -> Matching:
    """Exclude gross outliers. Only values that have places can be far from others: other arrays do not decide."""
    real = [i for i, family in enumerate(values.families) if has_places(family)]
    if not real:
        return replace(fit(values), screened=True)
    report_progress("looking for outliers", 0)
    stacks, keep, reasons = [values.stacks[i] for i in real], np.ones(len(values.rows), dtype=bool), list[Finding]()
    if any(distances.far.any() for distances in measure_distances(stacks)):
        names = [", ".join(arrays_of(values.names[i])) for i in real]
        columns = None if values.columns is None else [values.columns[i] for i in real]
        keep, reasons = find_outliers(stacks, values.sites, names, columns)
    matching = replace(fit(values), kept=keep) if keep.all() else restore(values, fit(keep_values(values, keep)), keep)
    return replace(matching, screened=True).say(*reasons)


def oversplit(values: SetValues, fit: Fit) -> Matching:
    """Exclude nothing: name sites that sent their atoms in fragments, where most did not."""
    matching = fit(values)
    return matching.say(*name_oversplit(matching, values.sites)) if matching.splits is not None else matching
