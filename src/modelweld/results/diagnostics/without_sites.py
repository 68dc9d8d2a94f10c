"""Questions about a fusion that are asked without some of its sites, as the fit was made.

Sites that repeat others get the answer of their first. Evidence sent twice is evidence once, after the fit as in it
(`fit.screening.duplicates`): with a copy beside it every site would seem to be shared, well predicted and sure.

A site that was excluded for its number of values is left out, too. Ten thousand values of one site are ten thousand
atoms of their own, and a table of all values and all atoms is theirs: minutes and gigabytes for an answer that is
known. Each is alone in every draw, as other gross outliers are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Index, group_of_values
from modelweld.fit.screening.screens import find_oversized

if TYPE_CHECKING:
    from modelweld.core.values import Array
    from modelweld.fusion import Fusion
    from modelweld.results.diagnostics.matched import Matched
    from modelweld.results.posterior.draws import Posterior
    from modelweld.results.posterior.intervals import Intervals

Found = TypeVar("Found", bound="Intervals")

OF_CROWDS = {"exists": 1.0, "probability": 0.0}
"""What is said of atoms that are oversized sites': they are there, and no other site has them. Where they are was not
asked."""


class Sources(NamedTuple):
    """Whose answers those of a fusion are: numbers (J,) of sites, (N,) of values and (K,) of atoms in the one without.

    An atom that only a repeating site has, a value that was excluded, is the atom of the value it repeats.
    """

    sites: Index
    values: Index
    atoms: Index


def staying(fusion: Matched) -> list[int]:
    """Sites that do not repeat another in every set."""
    again = [matching.duplicates or {} for matching in fusion.matchings.values()]
    return [j for j in range(len(fusion.sites)) if not again or any(j not in duplicates for duplicates in again)]


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
            first = (matching.duplicates or {})[j]
            sites[j] = sites[first]
            own = linear_sum_assignment(cdist(table[span], table[spans[first]], "sqeuclidean"))[1]
        values[span] = kept.offsets[sites[j]] + own
    atoms = np.empty(len(matching.counts), dtype=np.int64)
    atoms[matching.stacked_labels] = kept.stacked_labels[values]
    return Sources(sites, values, atoms)


def without_oversized(fusion: Matched) -> list[int]:
    """Sites that were not excluded for their number, with those that repeat them; all, where there are several sets.

    Sets depend on each other: without a site the atoms of one would be other columns of the next.
    """
    everybody = list(range(len(fusion.sites)))
    if len(fusion.matchings) != 1 or fusion.matching.kept is None:
        return everybody
    matching, duplicates = fusion.matching, fusion.matching.duplicates or {}
    fitted = np.bincount(group_of_values(matching.offsets)[matching.kept], minlength=len(everybody))
    gone = {j for j in find_oversized(np.diff(matching.offsets)).tolist() if fitted[j] == 0}
    return [j for j in everybody if j not in gone and duplicates.get(j) not in gone]


def staying_rows(fusion: Matched) -> NDArray[np.bool_]:
    """Which values of the one set (N,) are of sites that stay."""
    return np.isin(group_of_values(fusion.matching.offsets), without_oversized(fusion))


def with_oversized(shares: Array, fusion: Matched) -> Array:
    """What is said of values (N,) of a fusion, from what is said without oversized sites: that they are alone, for
    certain.
    """
    rows = staying_rows(fusion)
    found = np.ones(len(rows))
    found[rows] = shares
    return found


def draws_with_oversized(posterior: Posterior, fusion: Matched) -> Posterior:
    """Draws for all values of a fusion, from draws without oversized sites: each value of theirs is an atom of its
    own.
    """
    rows = staying_rows(fusion)
    names = 2 * len(rows) + np.arange(len(rows))  # beyond those in use
    labels = np.tile(names, (*posterior.labels.shape[:2], 1))
    labels[..., rows] = posterior.labels
    return replace(posterior, labels=labels, fusion=cast("Fusion", fusion))


def atoms_with_oversized(found: Found, fusion: Matched) -> Found:
    """What is said of all atoms (K,) of a fusion, from what is said of those without oversized sites."""
    labels, rows = fusion.matching.stacked_labels, staying_rows(fusion)
    atoms, K = np.unique(labels[rows]), len(fusion.matching.counts)
    parts: dict[str, Any] = {name: part for name, part in vars(found).items() if isinstance(part, np.ndarray)}
    for name, said in parts.items():
        parts[name] = np.full((K, *said.shape[1:]), OF_CROWDS.get(name, np.nan))
        parts[name][atoms] = said
    return replace(found, **parts)
