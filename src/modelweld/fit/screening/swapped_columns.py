"""Sites with columns in another order: means and deviations of sites, compared column by column.

Taken for feature d, a site's column e, of mean m and deviation s, misfits what most others have there, M and S, by

    X(d, e) = (log s / S)^2 / v_s + (m - M)^2 / (S^2 v_m),

v_s and v_m being squared robust deviations of log s and of m / S among the others, and what sites differ by anyway. The
order of columns that fits best is an assignment; a column may move only for a price, so that sites which merely differ
stay as they are, and only between features that are unlike at every other site: columns in standard units could be any.
(Other units and offsets are site effects: `fit.effects`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.values import Array, Index, Stack
from modelweld.errors import Finding, NamesWarning
from modelweld.fit.screening.distances import MAD_TO_DEVIATION, middle

BY_THEMSELVES = 0.3
"""Deviation by which sites' log deviations, and means in deviations, differ where few sites happen to agree."""

PRICE, MOST_LEFT = 16.0, 6.0
"""By which each column that moves must fit better, beyond what the best of so many sites and columns does by chance,
and what may be left of its misfit. At 6 up to 5 % of few plain values of three clean sites were warned of, at 10 fewer
than 1 %, at 16 none, and hardly fewer were found (66 of 90 for 69)."""

FEWEST_SITES = 4
"""Sites from which on columns can be mixed up: of two others nobody knows how far sites differ by themselves. Of 580
clean fusions of real tables, in units and standardised, none is warned of; at three sites penguins by island are."""

MOST_SUSPECTS = 3
"""Where more than a third of sites misfit, it is not the order of columns by which they differ (`fit.effects`)."""

MOST_SITES, MOST_FEATURES, FEWEST_VALUES = 200, 60, 4
"""Sites and features up to which columns are compared, and plain values of a site from which on."""

TYPICAL_POINTS = 100.0
"""Points of a site that does not say how many it has: beyond, their number makes no difference here."""

OF_MEDIANS = 2.5
"""Values of which a median absolute difference says as much as one value does of a deviation."""

NOWHERE = 1e12
"""Misfit of a column that was not seen, anywhere but where it is."""


class Totals(NamedTuple):
    """Mean and deviation (D,) of all points of a site, NaN where a feature was not seen, and how many each rests on."""

    mean: Array
    deviation: Array
    points: float
    parts: float


def total_components(means: Array, variances: Array, weight: Array, points: float | None) -> Totals | None:
    """Of components with these means, variances and counts (K, D), zero where not seen; None if there are none.

    Variances that are the same in all features are those of k-means and of spherical components: in units of none of
    them, so that centres alone say how wide features are.

    Examples
    --------
    >>> total_components(np.array([[0.0], [4.0]]), np.ones((2, 1)), np.array([[3.0], [1.0]]), 4.0).deviation.tolist()
    [2.0]
    """
    seen, number = variances[:, weight.any(axis=0)], weight.sum(0)
    spherical = seen.shape[1] > 1 and bool((seen == seen[:, :1]).all())
    if not (number > 0).any():
        return None
    share = weight / np.where(number > 0, number, np.nan)
    mean = (share * means).sum(0)
    within = 0.0 if spherical else (share * variances).sum(0)
    points = TYPICAL_POINTS if points is None else points
    deviation = np.sqrt(within + (share * (means - mean) ** 2).sum(0))
    return Totals(mean, deviation, points, len(means) if spherical else points)


def total_values(values: Array, seen: NDArray[np.bool_] | None = None) -> Totals | None:
    """Of plain values (L, D), where `seen`, by medians: one of them may be anything.

    Examples
    --------
    >>> total_values(np.array([[1.0], [2.0], [4.0], [900.0], [3.0]])).mean.tolist()
    [3.0]
    """
    if len(values) < FEWEST_VALUES or values.ndim != 2:
        return None
    known = values if seen is None or seen.all() else np.where(seen, values, np.nan)
    mean = middle(known)
    worth = len(values) / OF_MEDIANS
    return Totals(mean, MAD_TO_DEVIATION * middle(np.abs(known - mean)), worth, worth)


def total_stack(stack: Stack) -> list[Totals | None]:
    """Of plain values, site by site; of too many sites none."""
    if len(stack.sizes) > MOST_SITES or stack.values.shape[1] < 2:
        return []
    seen = None if stack.weight is None else stack.seen
    edges = zip(stack.offsets[:-1], stack.offsets[1:], strict=True)
    return [total_values(stack.values[a:b], None if seen is None else seen[a:b]) for a, b in edges]


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
    if len({t.mean.shape for t in totals}) != 1:
        return []
    m, s = np.array([t.mean for t in totals]), np.array([t.deviation for t in totals])
    J, D = m.shape
    if J < FEWEST_SITES or not 2 <= D <= MOST_FEATURES:
        return []
    usable = np.isfinite(m) & (s > np.finfo(float).eps * np.abs(m))
    m, log_s = np.where(usable, m, np.nan), np.log(np.where(usable, s, np.nan))
    chance = 1 / np.maximum(np.array([(t.points, t.parts) for t in totals]) - (0, 1), 1.0)
    anyway, price, suspects = BY_THEMSELVES**2 * (1 + 1 / (J - 1)), PRICE + float(np.log(J * D)), dict[int, Array]()
    for j in range(J):
        others = np.delete(np.arange(J), j)
        M, log_S = middle(m[others]), middle(log_s[others])
        of_mean = _square_deviation(m[others] - M) / np.exp(2 * log_S) + anyway + chance[j, 0]
        of_deviation = _square_deviation(log_s[others] - log_S) + anyway + chance[j, 1]
        off = (m[:, None] - M[:, None]) ** 2 / (np.exp(2 * log_S) * of_mean)[:, None]
        every = off + (log_s[:, None] - log_S[:, None]) ** 2 / of_deviation[:, None]  # (J, D, D)
        if np.sort(np.nan_to_num(np.diagonal(every[j])))[-2:].mean() > price:
            suspects[j] = every
    if MOST_SUSPECTS * len(suspects) > J:
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


def _square_deviation(off: Array) -> Array:
    return np.asarray((MAD_TO_DEVIATION * middle(np.abs(off))) ** 2)


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
