"""Matches that a site's own values contradict: those nearer to each other than to their match are different atoms.

Two values of one site that are no pieces of one are different atoms. How far apart they lie is thus a yardstick that
the sites bring along: in units of the features' deviations let r_v be the distance of value v from the nearest value of
its own site at another atom. A member v of an atom whose members from other sites are M stays only if

    d(v, mean of M) sqrt(2 |M| / (|M| + 1)) <= max(r_v, mean of r_u over u in M),

the root making the distance that of two single values. Else, the worst first, it becomes an atom of its own.

It is a guard, not a model: it takes matches back, makes none, and the objective falls. It is for values that resemble
each other across sites less than the evidence thinks, such as the states of hidden Markov models of different people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from modelweld.errors import ModelweldWarning, warn_user
from modelweld.families.base import sum_by_atom
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, group_of_values
from modelweld.matching.result import Matching
from modelweld.screening.pipeline import Fit, Refit, SetValues

MOST_NAMED = 3
"""Sites that are named, those with most matches taken back first: a message is for people."""

ADVICE = (
    "Matching hardly pays here: sites differ more than what they describe. Look whether all measure the same in the "
    "same units and places; else use their models apart. fuse(models, {array: family}) matches all the same."
)
"""What can be done about it."""


def strangers(values: SetValues, fit: Fit, refit: Refit) -> Matching:
    """Take matches back that the sites' own values contradict, and say so; warn if most are gone. Nothing is learned.

    Values without places have no neighbours: their matching stays.
    """
    matching = fit(values)
    places = [stack for family, stack in zip(values.families, values.stacks, strict=True) if family.has_places]
    if len(places) != 1:
        return matching
    labels = part_strangers(matching.stacked_labels, places[0])
    taken = labels != matching.stacked_labels
    if not taken.any():
        return matching
    found = refit(matching, values, labels, learn=False)
    before, after = (int((m.counts[m.stacked_labels] > 1).sum()) for m in (matching, found))
    reason = _reason(values.number(taken), values.sites, before, after)
    if 2 * after < before:
        warn_user(f"{reason} {ADVICE}", ModelweldWarning)
    return replace(
        found,
        history=(*matching.history, found.objective),
        changes=matching.changes,
        converged=matching.converged,
        reasons=(*matching.reasons, reason),
    )


def _reason(taken: Index, sites: Sequence[str], before: int, after: int) -> str:
    """How many matches were taken back, and from whom."""
    most = np.argsort(-taken, kind="stable")[:MOST_NAMED]
    named = ", ".join(f"{sites[j]!r} {taken[j]}" for j in most if taken[j])
    return (
        f"{taken.sum()} parameters were matched but lie farther from their match than parameters of one site lie from "
        f"each other (site {named}): each is an atom of its own. Of {before} that were shared, {after} still are."
    )


def part_strangers(labels: Index, places: Stack) -> Index:
    """Labels with members that lie too far from the rest of their atom taken out, each an atom of its own."""
    labels, values = labels.copy(), places.values / np.sqrt(own_variance(places))
    group = group_of_values(places.offsets)
    reach = own_distances(values, places.offsets, labels)
    for atom in np.unique(labels):
        members = np.flatnonzero(labels == atom)
        while len(np.unique(group[members])) > 1:
            excess = _excess(values[members], reach[members], group[members])
            worst = int(excess.argmax())
            if excess[worst] <= 0:
                break
            labels[members[worst]] = labels.max() + 1
            members = np.delete(members, worst)
    return labels


def own_distances(values: Array, offsets: Index, labels: Index) -> Array:
    """Of every value (N, D) to the nearest one of its own site at another atom; infinite where there is none.

    Examples
    --------
    >>> own_distances(np.array([[0.0], [3.0], [4.0], [9.0]]), np.array([0, 3, 4]), np.array([0, 1, 2, 0]))
    array([ 3.,  1.,  1., inf])
    """
    reach = np.full(len(values), np.inf)
    for first, end in pairwise(offsets):
        own, atom = values[first:end], labels[first:end]
        apart = np.linalg.norm(own[:, None] - own, axis=2)
        apart[atom[:, None] == atom] = np.inf
        reach[first:end] = apart.min(axis=1, initial=np.inf)
    return reach


def own_variance(places: Stack) -> Array:
    """Variances (D,) of a site's values about its own mean, averaged over all values of all sites.

    Standard errors are part of it; sites that are off by a constant do not widen it.
    """
    group = group_of_values(places.offsets)
    sizes = np.diff(places.offsets)
    mean = sum_by_atom(places.values, group, len(sizes)) / np.maximum(sizes, 1)[:, None]
    own = 0.0 if places.variance is None else places.variance
    variance = np.mean(np.square(places.values - mean[group]) + own, axis=0)
    return np.where(variance > 0, variance, 1.0)


def _excess(values: Array, reach: Array, group: Index) -> Array:
    """By how much each member of an atom lies farther from those of other sites than it may."""
    excess = np.empty(len(values))
    for v in range(len(values)):
        others = group != group[v]
        n = int(others.sum())
        distance = np.linalg.norm(values[v] - values[others].mean(axis=0)) * np.sqrt(2 * n / (n + 1))
        excess[v] = distance - max(reach[v], reach[others].mean())
    return excess
