"""Summaries computed without duplicate and oversized sites, as the fit was.

Duplicate sites get the summary of the first of them. Evidence sent twice is evidence once, after the fit as in it
(`fit.screening.duplicates`): beside its duplicate every site would seem to be shared, well predicted and sure.

A site that was excluded for its number of values is left out, too. Ten thousand values of one site are ten thousand
atoms of their own: a table of all values and all atoms takes minutes and gigabytes. Each is a singleton in every draw,
as other gross outliers are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.values import Index, group_of_values
from modelweld.fit.screening.screens import find_oversized

if TYPE_CHECKING:
    from modelweld.core.values import Array
    from modelweld.results.fit_result import FitResult
    from modelweld.results.posterior.draws import Posterior
    from modelweld.results.posterior.intervals import Intervals

Found = TypeVar("Found", bound="Intervals")

OF_OVERSIZED = {"exists": 1.0, "probability": 0.0}
"""Probabilities for atoms of oversized sites: they exist, and no other site has them. Where they are is unknown."""


class Sources(NamedTuple):
    """Numbers (J,) of sites, (N,) of values and (K,) of atoms in the fit without duplicates.

    An atom that only a repeating site has, a value that was excluded, is the atom of the value it repeats.
    """

    sites: Index
    values: Index
    atoms: Index


def first_sites(fit: FitResult) -> list[int]:
    """Sites that do not repeat another in every set."""
    again = [matching.duplicates or {} for matching in fit.matchings.values()]
    return [j for j in range(len(fit.sites)) if not again or any(j not in duplicates for duplicates in again)]


def sources_of(fit: FitResult, once: FitResult, set_name: str) -> Sources:
    """For each site, value and atom, the one that stands for it in `once`, the fit without duplicates."""
    matching, kept = fit.matchings[set_name], once.matchings[set_name]
    number = {j: i for i, j in enumerate(first_sites(fit))}
    table = np.hstack([stack.filled() for stack in fit.stacks(set_name)])
    spans = [slice(a, b) for a, b in pairwise(matching.offsets.tolist())]
    sites = np.array([number.get(j, -1) for j in range(len(fit.sites))])
    values = np.empty(len(table), dtype=np.int64)
    for j, span in enumerate(spans):
        own = np.arange(span.stop - span.start)
        if sites[j] < 0:
            first = (matching.duplicates or {})[j]
            sites[j] = sites[first]
            distances = scipy.spatial.distance.cdist(table[span], table[spans[first]], "sqeuclidean")
            own = scipy.optimize.linear_sum_assignment(distances)[1]
        values[span] = kept.offsets[sites[j]] + own
    atoms = np.empty(len(matching.counts), dtype=np.int64)
    atoms[matching.stacked_labels] = kept.stacked_labels[values]
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


def rows_of_usual_size(fit: FitResult) -> NDArray[np.bool_]:
    """Which values of the one set (N,) are of sites that stay."""
    return np.isin(group_of_values(fit.matching.offsets), sites_of_usual_size(fit))


def with_oversized(shares: Array, fit: FitResult) -> Array:
    """Confidences (N,) of all values, from those without oversized sites: theirs are singletons for certain."""
    rows = rows_of_usual_size(fit)
    found = np.ones(len(rows))
    found[rows] = shares
    return found


def draws_with_oversized(posterior: Posterior, fit: FitResult) -> Posterior:
    """Draws for all values, from draws without oversized sites: each value of theirs is an atom of its own."""
    rows = rows_of_usual_size(fit)
    names = 2 * len(rows) + np.arange(len(rows))  # beyond those in use
    labels = np.tile(names, (*posterior.labels.shape[:2], 1))
    labels[..., rows] = posterior.labels
    return replace(posterior, labels=labels)


def atoms_with_oversized(found: Found, fit: FitResult) -> Found:
    """Intervals of all atoms (K,), from those of the fit without oversized sites."""
    labels, rows = fit.matching.stacked_labels, rows_of_usual_size(fit)
    atoms, K = np.unique(labels[rows]), len(fit.matching.counts)
    parts: dict[str, Any] = {name: part for name, part in vars(found).items() if isinstance(part, np.ndarray)}
    for name, said in parts.items():
        parts[name] = np.full((K, *said.shape[1:]), OF_OVERSIZED.get(name, np.nan))
        parts[name][atoms] = said
    return replace(found, **parts)
