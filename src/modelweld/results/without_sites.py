"""Summaries computed without duplicate and oversized sites, as the fit was.

Duplicate sites get the summary of the first of them. Evidence sent twice is evidence once, after the fit as in it
(`fit.screening.duplicates`): beside its duplicate every site would seem to be shared, well predicted and sure.

A site that was excluded for its number of values is left out, too. Ten thousand values of one site are ten thousand
atoms of their own: a table of all values and all atoms takes minutes and gigabytes. Each is a singleton in every draw,
as other gross outliers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from modelweld.core.matching import Matching
from modelweld.core.values import Index, group_of_values, offsets_of
from modelweld.fit.screening.screens import find_oversized

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult


class Sources(NamedTuple):
    """Numbers (J,) of sites, (N,) of values and (K,) of atoms in the fit without these sites; -1: of oversized ones.

    An atom that only a repeating site has, a value that was excluded, is the atom of the value it repeats.
    """

    sites: Index
    values: Index
    atoms: Index


def first_sites(fit: FitResult) -> list[int]:
    """Sites that do not repeat another in every set."""
    again = [matching.duplicates or {} for matching in fit.matchings.values()]
    return [j for j in range(len(fit.sites)) if not again or any(j not in duplicates for duplicates in again)]


def select_sites(matching: Matching, stay: Sequence[int]) -> Matching:
    """The matching of some of the sites; atoms that none of them holds are gone."""
    at = {j: i for i, j in enumerate(stay)}
    rows = np.isin(group_of_values(matching.offsets), stay)
    atoms, labels = np.unique(matching.stacked_labels[rows], return_inverse=True)
    duplicates = matching.duplicates and {at[j]: at[first] for j, first in matching.duplicates.items() if j in at}
    return replace(
        matching,
        stacked_labels=labels,
        offsets=offsets_of(np.diff(matching.offsets)[list(stay)]),
        counts=matching.presence[list(stay)][:, atoms].sum(0),
        values={name: values[atoms] for name, values in matching.values.items()},
        kept=None if matching.kept is None else matching.kept[rows],
        effects=None if matching.effects is None else matching.effects.of(np.array(stay)),
        duplicates=duplicates,
    )


def sources_of(fit: FitResult, once: FitResult, set_name: str) -> Sources:
    """For each site, value and atom, the one that stands for it in `once`, the fit without some of the sites."""
    matching, kept = fit.matchings[set_name], once.matchings[set_name]
    number, duplicates = {site: i for i, site in enumerate(once.sites)}, matching.duplicates or {}
    table = np.hstack([stack.filled() for stack in fit.stacks(set_name)])
    spans = [slice(a, b) for a, b in pairwise(matching.offsets.tolist())]
    sites = np.array([number.get(site, -1) for site in fit.sites])
    values = np.full(len(table), -1)
    for j, span in enumerate(spans):
        own = np.arange(span.stop - span.start)
        if sites[j] < 0 and j in duplicates:
            first = duplicates[j]
            sites[j] = sites[first]
            distances = scipy.spatial.distance.cdist(table[span], table[spans[first]], "sqeuclidean")
            own = scipy.optimize.linear_sum_assignment(distances)[1]
        if sites[j] >= 0:
            values[span] = kept.offsets[sites[j]] + own
    atoms = np.full(len(matching.counts), -1)
    atoms[matching.stacked_labels] = np.where(values < 0, -1, kept.stacked_labels[values])
    return Sources(sites, values, atoms)


def sites_of_usual_size(fit: FitResult) -> list[int]:
    """Sites that were not excluded for their number, with those that repeat them; all, where there are several sets.

    Sets depend on each other: without a site the atoms of one would be other columns of the next.
    """
    sites = list(range(len(fit.sites)))
    if len(fit.matchings) != 1 or fit.matching.kept is None:
        return sites
    matching, duplicates = fit.matching, fit.matching.duplicates or {}
    fitted = np.bincount(group_of_values(matching.offsets)[matching.kept], minlength=len(sites))
    gone = {j for j in find_oversized(np.diff(matching.offsets)).tolist() if fitted[j] == 0}
    return [j for j in sites if j not in gone and duplicates.get(j) not in gone]
