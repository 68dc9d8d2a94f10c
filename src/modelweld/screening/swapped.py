"""A site whose columns are in another order than the others': found by what travels anyway, and named.

Taken for feature d, a site's column e has the misfit

    X(d, e) = (log s_e / S_d)^2 / v_s + (m_e - M_d)^2 / (S_d^2 v_m)

of `screening.unit_fit`, without any factor. The order of columns that fits best is an assignment; a column may move
only for a price, so that sites which merely differ stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.screening.site_medians import FEWEST_SITES
from modelweld.screening.unit_fit import MOST_FEATURES, MOST_LEFT, Sites

LEAST_GAIN = 16.0
"""By which each column that moves must fit better, beyond what the best of so many sites and columns does by chance. At
6 up to 5 % of few plain values of three clean sites were warned of, at 10 fewer than 1 %, at 16 none, and hardly fewer
were found (66 of 90 for 69)."""

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


def find_swapped(sites: Sites) -> list[Swapped]:
    """Sites whose columns fit the others' much better in another order.

    Examples
    --------
    >>> mean = np.array([[50.0, 130.0], [52.0, 128.0], [49.0, 131.0], [131.0, 51.0]])
    >>> deviation = np.array([[8.0, 15.0], [9.0, 14.0], [8.0, 16.0], [15.0, 8.0]])
    >>> [(found.site, found.order) for found in find_swapped(Sites(mean, deviation, np.zeros((4, 2))))]
    [(3, (1, 0))]
    """
    suspects, (J, D) = may_be_swapped(sites).tolist(), sites.mean.shape
    if not suspects:
        return []
    from scipy.optimize import linear_sum_assignment  # a third of a second at its first import

    price = LEAST_GAIN + np.log(J * D)
    m, log_s, at, (v_m, v_s) = sites.mean, np.log(sites.deviation), sites.medians, sites.allowed(sites.medians)
    expected = (at.mean, at.deviation**2 * v_m, np.log(at.deviation), v_s)
    found = []
    for j in suspects:
        misfit = _misfit(m[j], log_s[j], *(x[j][:, None] for x in expected))
        nowhere = np.where(np.eye(D, dtype=bool), 0.0, NOWHERE)  # also for moving from or to what was not seen
        misfit = np.where(np.isfinite(misfit), np.minimum(misfit, NOWHERE), nowhere)
        _, order = linear_sum_assignment(misfit + price * (1 - np.eye(D)))
        one = Swapped(j, tuple(order.tolist()))
        if one.moved and all(misfit[d, one.order[d]] < MOST_LEFT for d in one.moved):
            found.append(one)
    return found


def may_be_swapped(sites: Sites) -> Index:
    """Sites of which two columns misfit by more than it costs to move them: no others are ever named."""
    J, D = sites.mean.shape
    if J < FEWEST_SITES or not 2 <= D <= MOST_FEATURES:
        return np.arange(0)
    here = np.where(np.isfinite(sites.misfit), np.minimum(sites.misfit, NOWHERE), 0.0)
    return np.flatnonzero(np.partition(here, D - 2, axis=1)[:, -2:].mean(1) > LEAST_GAIN + np.log(J * D))


def _misfit(m: Array, log_s: Array, mean: Array, of_mean: Array, log_deviation: Array, of_deviation: Array) -> Array:
    """X of means and log deviations, taken for features of which these and their variances are expected."""
    return np.asarray((m - mean) ** 2 / of_mean + (log_s - log_deviation) ** 2 / of_deviation)


def describe_swapped(features: Sequence[str], site: str) -> str:
    """In plain words.

    Examples
    --------
    >>> describe_swapped(["'age'", "'pressure'"], "west")[:74]
    "site 'west': its columns for 'age', 'pressure' seem to be mixed up: in ano"
    """
    return (
        f"site {site!r}: its columns for {', '.join(features)} seem to be mixed up: in another order they are like the "
        "other sites', and as they are they are not. Nothing is moved: look at their order and names there and fuse "
        f"again, or leave it out, fusion.remove({site!r}, anew=True); columns with names, read(model, features=[...]), "
        "are put in order by themselves."
    )
