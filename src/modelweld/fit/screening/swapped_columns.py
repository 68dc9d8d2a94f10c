"""Sites with columns in another order: means and deviations of sites, compared column by column (`totals`).

The order of columns that fits best is an assignment; a column may move only for a price, so that sites which merely
differ stay as they are, and only between features that are unlike at every other site: columns in standard units could
be any. (Other units and offsets are site effects: `fit.effects`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.values import Array, Index
from modelweld.errors import Finding, NamesWarning
from modelweld.fit.screening.totals import MOST_FEATURES, MOST_LEFT, Totals, find_misfits

MOST_SUSPECTS = 3
"""Where more than a third of sites misfit, it is not the order of columns by which they differ (`fit.effects`)."""


NOWHERE = 1e12
"""Misfit of a column that was not seen, anywhere but where it is."""


class Swapped(NamedTuple):
    """A site, and in which order its columns would be those of the others: `order[d]` is its column for feature d."""

    site: int
    order: tuple[int, ...]

    @property
    def moved(self) -> list[int]:
        """Features that are elsewhere."""
        return [d for d, e in enumerate(self.order) if d != e]


def find_swapped(totals: Sequence[Totals]) -> list[Swapped]:
    """Sites whose columns fit the others' much better in another order.

    Examples
    --------
    >>> mean = [[50.0, 130.0], [52.0, 128.0], [49.0, 131.0], [131.0, 51.0]]
    >>> deviation = [[8.0, 15.0], [9.0, 14.0], [8.0, 16.0], [15.0, 8.0]]
    >>> sites = [Totals(np.array(m), np.array(s), 1e9, 1e9) for m, s in zip(mean, deviation)]
    >>> [(found.site, found.order) for found in find_swapped(sites)]
    [(3, (1, 0))]
    """
    suspects, price = find_misfits(totals)
    if MOST_SUSPECTS * len(suspects) > len(totals):
        return []
    found = [_best_order(j, every, price) for j, every in suspects.items()]
    return [one for one in found if one.moved]


def _best_order(j: int, every: Array, price: float) -> Swapped:
    """The order in which columns of site j fit best, by the misfit (J, D, D) of all sites; as it is if none fits."""
    D = every.shape[1]
    same, alike = np.eye(D, dtype=bool), np.fmin.reduce(np.delete(every, j, axis=0)) < MOST_LEFT
    usable = np.isfinite(every[j]) & (same | ~(alike | alike.T))
    misfit = np.where(usable, np.minimum(every[j], NOWHERE), np.where(same, 0.0, NOWHERE))
    _, order = scipy.optimize.linear_sum_assignment(misfit + price * (1 - np.eye(D)))
    one = Swapped(j, tuple(order.tolist()))
    fits = all(misfit[d, one.order[d]] < MOST_LEFT for d in one.moved)
    return one if fits else Swapped(j, tuple(range(D)))


def name_swapped(
    totals: Sequence[Totals | None], names: Sequence[str] | None, sites: Sequence[str], only: int | None = None
) -> tuple[Finding, ...]:
    """Sites (or `only` one) with columns in another order, in plain words; `names` are those of features."""
    known: Index = np.array([j for j, t in enumerate(totals) if t is not None], dtype=np.int64)
    found = find_swapped([t for t in totals if t is not None])
    spelt = [f"dimension {d}" for d in range(MOST_FEATURES)] if names is None else [repr(name) for name in names]
    return tuple(
        describe_swapped([spelt[d] for d in one.moved], sites[known[one.site]])
        for one in found
        if only is None or known[one.site] == only
    )


def describe_swapped(features: Sequence[str], site: str) -> Finding:
    """In plain words."""
    return Finding(
        f": its columns for {', '.join(features)} seem to be mixed up: in another order they are like the "
        "other sites', and as they are they are not. Nothing is moved: look at their order and names there and fuse "
        f"again, or leave it out, fusion.remove({site!r}, from_scratch=True). Columns with names, "
        "read(model, features=[...]), are put in order by themselves.",
        NamesWarning,
        [site],
    )
