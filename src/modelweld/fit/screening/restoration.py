"""What was not fitted comes back into the matching: excluded values as atoms of their own, copies like the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.values import Flags, Index, SetValues, group_of_values


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
    stay = np.delete(np.arange(len(values.sites)), values.find_emptied(keep)).tolist()
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
