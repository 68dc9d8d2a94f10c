"""Differences of two methods on the same draws: their mean with its 95 % interval. All studies compare by this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

LEVEL = 0.95


class Paired(NamedTuple):
    """Mean difference, its 95 % interval (Student's, over draws), and the number of draws."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if self.n < 2:
            return f"{self.mean:+.3g} (n = {self.n})"
        return f"{self.mean:+.3g} [{self.low:+.3g}, {self.high:+.3g}] (n = {self.n})"

    @property
    def verdict(self) -> str:
        """Of two methods of which more is better: ahead, behind, or not told apart by so many draws."""
        if self.n < 2 or self.low <= 0 <= self.high:
            return "not told apart"
        return "ahead" if self.mean > 0 else "behind"


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Of ours less theirs, draw by draw.

    >>> print(paired([3.0, 5.0, 4.0], [1.0, 4.0, 4.0]))
    +1 [-1.48, +3.48] (n = 3)
    >>> paired([2.0], [1.0]).verdict
    'not told apart'
    """
    difference = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    n, mean = len(difference), float(difference.mean())
    if n < 2:
        return Paired(mean, float("-inf"), float("inf"), n)
    half = float(t.ppf((1 + LEVEL) / 2, n - 1) * difference.std(ddof=1) / np.sqrt(n))
    return Paired(mean, mean - half, mean + half, n)
