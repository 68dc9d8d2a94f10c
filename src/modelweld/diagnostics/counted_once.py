"""Questions about a fusion in which sites repeat others: asked without these, which get the answer of their first.

Evidence sent twice is evidence once, after the fit as in it (`screening.duplicates`): with a copy beside it every site
would seem to be shared, well predicted and sure.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelweld.inputs.stack import Index

if TYPE_CHECKING:
    from modelweld.diagnostics.matched import Matched


class Sources(NamedTuple):
    """Whose answers those of a fusion are: numbers (J,) of sites, (N,) of values and (K,) of atoms in the one without.

    An atom that only a repeating site has, a value that was set aside, is the atom of the value it repeats.
    """

    sites: Index
    values: Index
    atoms: Index


def staying(fusion: Matched) -> list[int]:
    """Sites that do not repeat another in every set."""
    again = [matching.twins or {} for matching in fusion.matchings.values()]
    return [j for j in range(len(fusion.sites)) if not again or any(j not in twins for twins in again)]


def sources_of(fusion: Matched, once: Matched, set_name: str) -> Sources:
    """Of each site, value and atom of a fusion, the one that stands for it in `once`, without repeating sites."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    matching, kept = fusion.matchings[set_name], once.matchings[set_name]
    number = {j: i for i, j in enumerate(staying(fusion))}
    table = np.hstack([stack.filled() for stack in fusion.stacks(set_name)])
    spans = [slice(a, b) for a, b in pairwise(matching.offsets.tolist())]
    sites = np.array([number.get(j, -1) for j in range(len(fusion.sites))])
    values = np.empty(len(table), dtype=np.int64)
    for j, span in enumerate(spans):
        own = np.arange(span.stop - span.start)
        if sites[j] < 0:
            first = (matching.twins or {})[j]
            sites[j] = sites[first]
            own = linear_sum_assignment(cdist(table[span], table[spans[first]], "sqeuclidean"))[1]
        values[span] = kept.offsets[sites[j]] + own
    atoms = np.empty(len(matching.counts), dtype=np.int64)
    atoms[matching.stacked_labels] = kept.stacked_labels[values]
    return Sources(sites, values, atoms)
