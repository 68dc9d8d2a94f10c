"""Values are left out of a fit, and come back into the matching: as atoms of their own, or labelled like others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.values import Flags, Index, SetValues, group_of_values, offsets_of
from modelweld.errors import Finding, OutlierWarning


def keep_values(values: SetValues, keep: Flags) -> SetValues:
    """These values alone; sites that keep none are no groups any more."""
    if keep.all():
        return values
    gone = find_emptied(values, keep)
    stay, sizes = np.delete(np.arange(len(values.sites)), gone), np.delete(count_by_site(values, keep), gone)
    return _take(values, np.flatnonzero(keep), sizes, stay)


def keep_sites(values: SetValues, stay: Index) -> SetValues:
    """The values of some sites."""
    own = np.flatnonzero(np.isin(group_of_values(values.offsets), stay))
    return _take(values, own, values.sizes[stay], stay)


def _take(values: SetValues, own: Index, sizes: Index, stay: Index) -> SetValues:
    """Some values of some sites."""
    return replace(
        values,
        stacks=[stack.take(own, offsets_of(sizes)) for stack in values.stacks],
        sites=[values.sites[j] for j in stay.tolist()],
        rows=values.rows[own],
        numbers=values.numbers[own] if len(values.numbers) else values.numbers,
        times=None if values.times is None else values.times[stay],
    )


def count_by_site(values: SetValues, which: Flags) -> Index:
    """How many of some values every site has."""
    return np.diff(np.concatenate([[0], np.cumsum(which)])[values.offsets])


def find_emptied(values: SetValues, keep: Flags) -> Index:
    """Sites that had values and keep none."""
    return np.flatnonzero((count_by_site(values, keep) == 0) & (values.sizes > 0))


def describe_oversized(site: str, size: int, sizes: Index) -> Finding:
    """That a site sent so many values, where all sent `sizes`."""
    return Finding(
        f" sent {size:,} values, a typical site {float(np.median(sizes[sizes > 0])):g}: the whole site is excluded, "
        "so that its number decides nothing. Ask its owner for a model with fewer components; screens=['duplicates'] "
        "takes it.",
        OutlierWarning,
        [site],
    )


def restore(values: SetValues, matching: Matching, keep: Flags, atoms: Index | None = None) -> Matching:
    """The matching of those kept, with the others as atoms of their own, after all others, numbered by content.

    One for each value, or for those with the same of some numbers, `atoms`. What was excluded before stays so.
    """
    outside = np.flatnonzero(~keep)
    outside = outside[by_count(np.ones_like(outside), np.hstack([s.values[outside] for s in values.stacks]))]
    _, first, atom, counts = np.unique(
        outside if atoms is None else atoms[outside], return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    labels = np.empty(len(keep), dtype=np.int64)
    labels[keep] = matching.stacked_labels
    labels[outside] = len(matching.counts) + ranks(order)[atom]
    kept = keep.copy()
    kept[keep] = True if matching.kept is None else matching.kept
    stay = np.delete(np.arange(len(values.sites)), find_emptied(values, keep)).tolist()
    return replace(
        matching,
        stacked_labels=labels,
        offsets=values.offsets,
        counts=np.concatenate([matching.counts, counts[order]]),
        values={
            name: np.vstack([places, stack.values[outside[first[order]]]])
            for (name, places), stack in zip(matching.values.items(), values.stacks, strict=True)
        },
        kept=kept,
        duplicates=matching.duplicates and {stay[j]: stay[first] for j, first in matching.duplicates.items()},
    )


def restore_duplicates(matching: Matching, source: Index, offsets: Index) -> Matching:
    """The matching of all sites: every value labelled like the fitted one that is its `source`.

    What was excluded of the one is excluded of the others, each value an atom of its own; which atoms are atoms is
    decided by the sites fitted.
    """
    kept = np.ones(len(source), dtype=bool) if matching.kept is None else matching.kept[source]
    fitted = matching.stacked_labels[source]
    own = np.where(kept, fitted, len(matching.counts) + np.arange(len(source)))
    _, first, labels = np.unique(own, return_index=True, return_inverse=True)
    atom = fitted[first]
    counts = np.bincount(np.unique(np.stack([labels, group_of_values(offsets)]), axis=1)[0])
    block = np.where(~kept[first], 2, atom >= matching.K)
    number = np.lexsort((*next(iter(matching.values.values()))[atom].T[::-1], -counts, block))
    rank = ranks(number)
    return replace(
        matching,
        stacked_labels=rank[labels],
        offsets=offsets,
        counts=counts[number],
        values={name: values[atom[number]] for name, values in matching.values.items()},
        kept=None if matching.kept is None else kept,
    )
