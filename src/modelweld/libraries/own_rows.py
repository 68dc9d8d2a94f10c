"""A site's own rows, given with its model to count points: are they those of the fit, and are they measurements?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from modelweld.core.values import Array
from modelweld.inputs.notebook import DIGITS

MOST_SHARE, MOST_MOVED = 0.05, 0.1
"""By how much shares of components, and their means in typical deviations, times the root of the share, may differ
between a converged fit and its rows. Of 264 fits none differs by more on its own rows, and all on another site's."""

FOREIGN = "X is not what the model was fitted on: {}. Give the rows of the fit, scaled and ordered as they were there."

FEWEST, FILLED_SHARE, FILLED_TIMES = 5, 0.05, 5
"""Rows, and share of rows, that hold one value; so many times as often as any other, where it is a value that might
have been measured: roundings and codes repeat themselves too."""

APART = 4.0
"""Times the widest gap in its half of all other values by which the lowest or the highest is apart from them, and so a
code: amounts are often zero, and then others are nearly."""

TAIL = 0.2
"""Share of other values beyond which a value is no mean or median of them that was filled in."""

FEWEST_VALUES = 10
"""Different values of a column that is measured: fewer are codes or small numbers, which repeat."""

FILLED = "{} is {:.6g} in {} of {} rows: were missing values coded so, or filled in? Leave such rows out."


def doubt_fit(X: Array, shares: Array, weights: Array, means: Array, variances: Array) -> Iterator[str]:
    """Say so if rows are not those of a converged mixture.

    For its own rows, mean shares (n, K) of components are weights (K,), and weighted means of rows are means (K, D).
    """
    numbers, rows = shares.sum(axis=0), np.asarray(X, dtype=np.float64)
    off = float(np.abs(numbers / len(rows) - weights).max())
    held = numbers > 1
    moved = np.abs((shares.T[held] @ rows) / numbers[held, None] - means[held]) / np.sqrt(weights @ variances)
    if off > MOST_SHARE:
        yield FOREIGN.format(f"shares of components differ by up to {off:.0%}")
    elif (np.sqrt(weights[held, None]) * moved).max(initial=0.0) > MOST_MOVED:
        yield FOREIGN.format(f"means of components differ by up to {moved.max():.1f} deviations")


def doubt_columns(X: object, features: Sequence[str] | None) -> Iterator[str]:
    """Say which columns of a table of numbers were filled in; of anything else nothing is said.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> X[:9, 1] = X[9:, 1].mean()
    >>> next(doubt_columns(X, ["age", "weight"]))[:50]
    "'weight' is 0.243574 in 9 of 50 rows: were missing"
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiu":
        return
    for d, column in enumerate(X.T):
        values, numbers = np.unique(column, return_counts=True)
        gaps, measured = np.diff(values), len(values) >= FEWEST_VALUES
        for k in np.flatnonzero(numbers >= max(FEWEST, FILLED_SHARE * len(X))) if len(values) > 2 else ():
            others, rest = np.delete(numbers, k), column[column != values[k]]
            low, high = np.quantile(rest, [TAIL, 1 - TAIL])
            often = measured and numbers[k] >= FILLED_TIMES * others.max()
            computed = _decimals(values[k]) > _decimals(rest) + 1
            own = gaps[: len(gaps) // 2] if k == 0 else gaps[: len(gaps) // 2 : -1]  # from this end to the middle
            apart = measured and k in (0, len(gaps)) and own[0] > APART * own[1:].max()
            if ((often or computed) and low <= values[k] <= high) or apart:
                name = repr(features[d]) if features else f"column {d}"
                yield FILLED.format(name, values[k], numbers[k], len(X))
                break


def _decimals(values: Array) -> int:
    """Digits after the point that numbers were rounded to; beyond those that people read, they were computed."""
    return next((n for n in range(DIGITS) if (np.round(values, n) == values).all()), DIGITS)
