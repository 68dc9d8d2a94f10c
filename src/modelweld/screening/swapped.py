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
from scipy.optimize import linear_sum_assignment

from modelweld.inputs.local_model import Array
from modelweld.screening.unit_fit import BY_THEMSELVES, MOST_FEATURES, MOST_LEFT, Sites, expect_medians

FEWEST_SITES = 3
"""Of two sites nobody knows which is in order."""

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
    >>> [(found.site, found.order) for found in find_swapped(Sites(mean, deviation, np.zeros((4, 2)), [], []))]
    [(3, (1, 0))]
    """
    J, D = sites.mean.shape
    if J < FEWEST_SITES or not 2 <= D <= MOST_FEATURES:
        return []
    misfit, price = _misfit(sites), LEAST_GAIN + np.log(J * D)
    found = []
    for j in np.flatnonzero(np.einsum("jdd->j", misfit) > 2 * price).tolist():
        _, order = linear_sum_assignment(misfit[j] + price * (1 - np.eye(D)))
        one = Swapped(j, tuple(order.tolist()))
        if one.moved and all(misfit[j, d, one.order[d]] < MOST_LEFT for d in one.moved):
            found.append(one)
    return found


def _misfit(sites: Sites) -> Array:
    """X(d, e) of every site (J, D, D); nothing where a feature was not seen, and NOWHERE for moving from or to it."""
    m, log_s, at = sites.mean, np.log(sites.deviation), expect_medians(sites)
    anyway = BY_THEMSELVES**2 * (1 + 1 / max(len(m) - 1, 1))
    v_m, v_s = (v + anyway + sites.chance[:, i : i + 1] for i, v in enumerate((at.of_mean, at.of_deviation)))
    off = (m[:, None, :] - at.mean[:, :, None]) ** 2 / (at.deviation**2 * v_m)[:, :, None]
    wide = (log_s[:, None, :] - np.log(at.deviation)[:, :, None]) ** 2 / v_s[:, :, None]
    here = np.eye(m.shape[1], dtype=bool)
    known = np.isfinite(off + wide)
    return np.where(known, np.minimum(off + wide, NOWHERE), np.where(here, 0.0, NOWHERE))


def describe_swapped(features: Sequence[str], site: str) -> str:
    """In plain words.

    Examples
    --------
    >>> describe_swapped(["'age'", "'pressure'"], "west")[:74]
    "site 'west': its columns for 'age', 'pressure' seem to be mixed up: in ano"
    """
    return (
        f"site {site!r}: its columns for {', '.join(features)} seem to be mixed up: in another order they are like the "
        "other sites', and as they are they are not. Look at their order and names there, and fuse again; columns with "
        "names, read(model, features=[...]), are put in order by themselves."
    )
