"""Numbers as JSON takes them: of few digits, or exact; None where there is none.

Values have as many significant digits as tables show, six or more; sums, probabilities and scores are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.notebook import DIGITS, digits_of

Number: TypeAlias = float | None
"""None where there is none: JSON knows no NaN."""

Numbers: TypeAlias = "Number | list[Numbers]"
"""An array as nested lists."""

Content: TypeAlias = dict[str, Any]
"""Part of what a report holds; `modelweld.report.numbers_of` has the layout."""


def exact(x: float | np.floating) -> Number:
    """A float, or None where there is none."""
    return float(x) if np.isfinite(x) else None


def rounded(x: float | np.floating, digits: int = DIGITS) -> Number:
    """A number of so many significant digits; None where there is none."""
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


def carried_digits(values: Array, decimals: Sequence[int]) -> int:
    """Significant digits with which values (n, D) are carried: so many after the point of each column are right.

    Examples
    --------
    >>> carried_digits(np.array([[0.1, 1013.25]]), [2, 2]), carried_digits(np.array([[0.1, 1013.25]]), [2, 4])
    (7, 9)
    """
    return max((digits_of(own, n) for own, n in zip(values.T, decimals, strict=True)), default=DIGITS)


def short(x: Array, digits: int = DIGITS) -> list[Numbers]:
    """Nested lists of such numbers.

    Examples
    --------
    >>> short(np.array([[1 / 3, float("nan")]]))
    [[0.333333, None]]
    """
    table = np.asarray(x)
    entries: list[Numbers] = [
        float(format(entry, f".{digits}g")) if abs(entry) < np.inf else None for entry in table.ravel().tolist()
    ]
    for length in table.shape[:0:-1] if table.size else ():
        entries = [entries[first : first + length] for first in range(0, len(entries), length)]
    return entries if table.size else table.tolist()
