"""How much the other sites scatter: medians and robust deviations of all but one, for every one at the cost of two."""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.screening.outliers import MAD_TO_DEVIATION

FEWEST_TO_SCALE, LARGEST_SCATTER = 6, 1.3
"""Honest sites may have shifts of their own (a cold station is cold everywhere): where that many others' z-scores have
a robust deviation above this, a site's is divided by it. Six give it to a third, and one below 1.3 may be chance."""


def scatter_of_others(z: Array) -> Array:
    """By how much the other sites' z-scores (J, D) scatter more than chance, for each site; one if it may be chance.

    Examples
    --------
    >>> scatter_of_others(np.array([[9.0], [-2], [2], [-2], [2], [-2], [2]]))[0].round(3)
    array([2.965])
    """
    z = np.where(np.isfinite(z), z, np.nan)
    known = np.isfinite(z)
    deviation = MAD_TO_DEVIATION * deviations_of_others(z)
    others = known.sum(0) - known
    some = known.any(1)
    enough = (some.sum() - some)[:, None] >= FEWEST_TO_SCALE
    return np.where(enough & (others >= FEWEST_TO_SCALE) & (deviation > LARGEST_SCATTER), deviation, 1.0)


def medians_of_others(x: Array) -> Array:
    """Median (J, D) of every column without each of its rows; NaN is not known, and zero the median of nothing.

    Examples
    --------
    >>> medians_of_others(np.array([[1.0], [2.0], [4.0], [np.nan]])).ravel()
    array([3. , 2.5, 1.5, 2. ])
    """
    known = np.isfinite(x)
    order = np.argsort(x, axis=0, kind="stable")  # NaN comes last
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(len(x))[:, None], x.shape), axis=0)
    ordered = np.take_along_axis(x, order, axis=0)
    others = known.sum(0) - known
    low, high = (
        np.take_along_axis(ordered, np.clip(i + (known & (i >= rank)), 0, len(x) - 1), axis=0)
        for i in ((others - 1) // 2, others // 2)
    )
    return np.where(others > 0, (low + high) / 2, 0.0)


def deviations_of_others(x: Array) -> Array:
    """Median absolute deviation (J, D) from the median, of every column without each of its rows.

    Without one row a column has one of four medians at most: as a smaller, the middle, a larger or no value is left
    out.
    """
    middle = medians_of_others(x)
    result, done = np.zeros_like(middle), np.zeros(middle.shape, dtype=bool)
    columns = np.arange(x.shape[1])
    while not done.all():
        next_row = np.argmin(done, axis=0)  # the first whose median was not seen before
        median = middle[next_row, columns]
        same = (middle == median) & ~done
        result[same] = medians_of_others(np.abs(x - median))[same]
        done |= same
    return result
