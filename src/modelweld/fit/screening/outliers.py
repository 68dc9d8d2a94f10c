"""Gross outliers: values that lie so far from all others that they would spoil the hyperparameters.

A far value (`fit.screening.distances`) is excluded when no other site has a value near it. What most sites do is never
an outlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Flags, Index, Stack, group_of_values
from modelweld.errors import Finding, OutlierWarning
from modelweld.fit.screening.distances import GENEROUS, Distances, any_seen, measure_distances

CHANCE = 0.05
"""Probability of a neighbour by chance above which it confirms nothing: it only has to hold back a whole site of
background, which goes if more than half of its values do."""


class Outliers(NamedTuple):
    """Which values (N,) to fit, and one sentence for each site of the others, or why nothing was excluded."""

    keep: Flags
    reasons: list[Finding]


def find_outliers(
    stacks: Sequence[Stack],
    sites: Sequence[str] | None = None,
    arrays: Sequence[str] | None = None,
    columns: Sequence[Sequence[str]] | None = None,
) -> Outliers:
    """Find gross outliers among the values of one set.

    Parameters
    ----------
    stacks : sequence of Stack
        The arrays of the set, side by side. Entries of weight zero are ignored; a large `variance`, or a small
        `weight`, excuses a distance.
    sites, arrays, columns : sequences of str, and of such sequences, optional
        Names for the reasons; default: numbers.

    Returns
    -------
    Outliers
        Which values to keep, and why not the others. A site most of whose values are outliers is excluded whole. With
        fewer than four sites, or when half of them or more would go, nothing is excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from modelweld.inputs.stacks import stack_arrays
    >>> rng = np.random.default_rng(0)
    >>> honest = [rng.normal(0, 1, (5, 3)) for _ in range(6)]
    >>> keep, reasons = find_outliers([stack_arrays([*honest, rng.normal(0, 1000, (4, 3))])])
    >>> int(keep.sum())
    30
    >>> print(reasons[0][:74])
    site '6': 4 of 4 values lie more than 13 robust deviations from the others
    """
    offsets = stacks[0].offsets
    N, J = int(offsets[-1]), len(offsets) - 1
    site, seen = group_of_values(offsets), any_seen(stacks, N)
    distances = measure_distances(stacks)
    if not distances:
        return Outliers(np.ones(N, dtype=bool), [])
    far = np.logical_or.reduce([d.far & ~find_confirmed(d, site) for d in distances])
    sizes = np.bincount(site, seen, J).astype(np.int64)
    number = np.bincount(site[far], minlength=J)
    whole = np.flatnonzero(2 * number > sizes)
    names = [str(j) for j in range(J)] if sites is None else list(sites)
    if len(whole) and 2 * len(whole) >= np.count_nonzero(sizes):
        reason = Finding(
            f"{len(whole)} of {np.count_nonzero(sizes)} sites ({', '.join(repr(names[j]) for j in whole)}) lie far "
            "from the others: which of them are honest is not known, so nothing was excluded.",
            OutlierWarning,
        )
        return Outliers(np.ones(N, dtype=bool), [reason])
    keep = ~(far | np.isin(site, whole))
    labels = [f"array {name!r}, " for name in arrays] if arrays is not None and len(stacks) > 1 else [""] * len(stacks)

    def describe(j: int) -> Finding:
        """How many of a site's values lie how far, and where most: no value, which may be of one person."""
        own = np.flatnonzero(far & (site == j))
        off = [d.deviations(own)[0] for d in distances]
        which = max(range(len(off)), key=lambda i: float(np.abs(off[i]).max()))
        place, dimension = np.unravel_index(int(np.abs(off[which]).argmax()), off[which].shape)
        column = f"dimension {dimension}" if columns is None else columns[which][int(dimension)]
        worst = float(off[which][place, dimension])
        return Finding(
            f": {len(own)} of {sizes[j]} {'values lie' if sizes[j] > 1 else 'value lies'} more than "
            f"{distances[which].limits[own].min():.2g} robust deviations from the others; largest in "
            f"{labels[which]}{column} (about {abs(worst):.1g} {'above' if worst > 0 else 'below'}). "
            + ("The whole site is excluded." if j in whole else "Only these are excluded."),
            OutlierWarning,
            [names[j]],
        )

    return Outliers(keep, [describe(j) for j in np.flatnonzero(number).tolist()])


def find_confirmed(distances: Distances, site: Index) -> Flags:
    """Far values that another site has too: within the limit before generosity, and nearer than by chance.

    Two sites that send the same place independently have seen something there. A repeat to the last bit is no second
    opinion (a message that arrived twice), and errors of units are not confirmed: they stretch the noise as well, so
    that copies lie apart. Of n values thrown anywhere within distance r, the nearest lies within `apart` with
    probability n (apart / r)^d at most.
    """
    far, result = np.flatnonzero(distances.far), np.zeros(len(site), dtype=bool)
    within = distances.limits / GENEROUS
    # by the triangle inequality only these can be near a far value
    near = np.flatnonzero(distances.distance > distances.limits.min(initial=np.inf) - within[far].max(initial=0.0))
    for j in np.unique(site[far]).tolist():
        others = near[site[near] != j]
        theirs, they_have = distances.deviations(others)
        for i in far[site[far] == j].tolist() if len(others) else ():
            own, has = distances.deviations(np.array([i]))
            both = they_have & has
            d = both.sum(1)
            apart = np.sqrt(np.where(both, np.square(theirs - own), 0.0).sum(1) / np.maximum(d, 1))
            apart[apart == 0] = np.inf
            nearest = int(apart.argmin())
            by_chance = np.log(len(others)) + d[nearest] * np.log(apart[nearest] / distances.distance[i])
            result[i] = apart[nearest] < within[i] and by_chance < np.log(CHANCE)
    return result
