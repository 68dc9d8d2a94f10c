"""Numbers as JSON takes them: of few digits, or exact; None where there is none."""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.report.contents import Number, Numbers

DIGITS = 6
"""Significant digits of values: more than a table or a picture can show. Sums, probabilities and scores are exact."""


def exact(x: float | np.floating) -> Number:
    """A float, or None where there is none."""
    return float(x) if np.isfinite(x) else None


def rounded(x: float | np.floating, digits: int = DIGITS) -> Number:
    """A number of so many significant digits; None where there is none."""
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


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
