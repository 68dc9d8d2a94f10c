"""A site's own rows, given with its model to count points: are they those of the fit, and are they measurements?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from modelweld.core.values import Array

MOST_SHARE, MOST_MOVED = 0.05, 0.2
"""By how much shares of components, and their means in typical deviations, may differ between a converged fit and its
rows. Own rows differ by a quarter of that at most; of another hospital's, or unscaled, 48 of 48 differ by more."""

FOREIGN = (
    "X is not what the model was fitted on: {}. Numbers of points were counted with it. Give the rows of the fit, "
    "scaled and ordered as they were there."
)

FEWEST, FILLED_SHARE, FILLED_TIMES = 5, 0.05, 5
"""Rows, and share of rows, that hold one value; so many times as often as any other, where it is a value that might
have been measured: roundings and codes repeat themselves too."""

OUTSIDE = 5.0
"""Deviations of all other values beyond which the lowest or the highest is a code: amounts are often zero."""

FEWEST_VALUES = 10
"""Different values of a column that is measured: fewer are codes or small numbers, which repeat."""

MOST_DECIMALS = 6
"""Beyond so many digits a value was computed, not written down."""

FILLED = "{} is {:.6g} in {} of {} rows: were missing values coded so, or filled in? Leave such rows out."


def doubt_fit(X: Array, shares: Array, weights: Array, means: Array, variances: Array) -> Iterator[str]:
    """Say so if rows are not those of a converged mixture.

    For its own rows, mean shares (n, K) of components are weights (K,), and weighted means of rows are means (K, D).
    """
    numbers, rows = shares.sum(axis=0), np.asarray(X, dtype=np.float64)
    off = float(np.abs(numbers / len(rows) - weights).max())
    counted = numbers > 1
    moved = np.abs((shares.T[counted] @ rows) / numbers[counted, None] - means[counted]) / np.sqrt(weights @ variances)
    if off > MOST_SHARE:
        yield FOREIGN.format(f"shares of components differ by up to {off:.0%}")
    elif moved.max(initial=0.0) > MOST_MOVED:
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
        k = int(numbers.argmax())
        others, rest = np.delete(numbers, k), column[column != values[k]]
        if numbers[k] < max(FEWEST, FILLED_SHARE * len(X)) or len(values) < FEWEST_VALUES:
            continue
        often = numbers[k] >= FILLED_TIMES * others.max() or _decimals(values[k]) > _decimals(rest)
        if (often and 0 < k < len(others)) or abs(values[k] - rest.mean()) > OUTSIDE * rest.std():
            name = repr(features[d]) if features else f"column {d}"
            yield FILLED.format(name, values[k], numbers[k], len(X))


def _decimals(values: Array) -> int:
    """Digits after the point that numbers were rounded to."""
    return next((n for n in range(MOST_DECIMALS) if (np.round(values, n) == values).all()), MOST_DECIMALS)
