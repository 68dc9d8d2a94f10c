"""Rows of counts or probabilities as what both are: probabilities, and the number of observations behind them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from modelweld.families.effective import effective_count
from modelweld.families.freedom import SEEN_ONCE, log_freedom_and_slope
from modelweld.local import Array
from modelweld.stack import Index

SUM_ROUNDING = 1e-5
"""By how much a row of probabilities may miss the sum of one: those of float32 programs do."""

ZERO = 1e-100
"""Probabilities below this count as zero."""


@dataclass(frozen=True, eq=False)
class Rows:
    """L rows over D words.

    `p` (L, D) are probabilities (zeros for rows that were not seen), `n` (L,) the observations behind each (infinite
    where not known, zero where not seen), `seen` (L, D) which words a site knows, None if all; `once` (L,) counts words
    seen exactly once, `where` and `positive` are row and size of the positive entries of `p`.
    """

    p: Array
    n: Array
    seen: Array | None
    once: Array
    where: Index
    positive: Array

    @staticmethod
    def of(values: Array, weight: Array | None) -> Rows:
        """Counts are values x weight; rows that sum to one with weights of one are probabilities of unknown count."""
        x = values if weight is None else values * weight
        n = x.sum(1)
        unknown = np.abs(n - 1) <= SUM_ROUNDING
        seen = None
        if weight is not None:
            unknown &= ((weight == 0) | (weight == 1)).all(1)
            known = weight > 0
            absent = n <= 0
            if not (known | absent[:, None]).all():
                seen = (known & ~absent[:, None]).astype(np.float64)
        p = x / np.where(n > 0, n, 1.0)[:, None]
        whole = ~unknown & (x == np.rint(x)).all(1)
        once = np.where(whole, (x == 1).sum(1), 0).astype(np.float64)
        where, word = np.nonzero(p > ZERO)
        return Rows(p, np.where(unknown, np.inf, n), seen, once, where, p[where, word])

    def worth(self, between: float) -> Array:
        """Observations each row is worth (L,)."""
        return effective_count(self.n, between)

    def carrier(self, n: Array) -> tuple[Array, Array]:
        """What does not depend on the atom, in the log density of rows worth n; and its slopes by n: (L,) each.

        -n sum p log p + sum a(n p) - a(n), and words seen once: see `modelweld.families.freedom`.
        """
        there = n > 0
        safe = np.where(there, n, 1.0)
        whole, whole_slope = log_freedom_and_slope(safe)
        parts, slopes = log_freedom_and_slope(safe[self.where] * self.positive)
        known = np.isfinite(self.n) & there
        tilt = SEEN_ONCE * self.once / np.where(known, self.n, np.inf) - self._bend
        value = self._added(parts) - whole + n * tilt
        slope = (self._added(slopes) - whole_slope) / safe + tilt
        return np.where(there, value, 0.0), np.where(there, slope, 0.0)

    @property
    def measure(self) -> Array:
        """Log of the constants (L,) that make the density of dense rows integrate to one: 1 / sqrt(2 pi p^2)."""
        several = np.bincount(self.where, minlength=len(self.n))
        return np.asarray(-self._added(np.log(self.positive)) - 0.5 * np.log(2 * np.pi) * np.maximum(several - 1, 0))

    def coefficient(self) -> Array:
        """Log multinomial coefficients (L,), for rows whose counts are exact."""
        from scipy.special import gammaln

        return np.asarray(gammaln(self.n + 1) - self._added(gammaln(self.n[self.where] * self.positive + 1)))

    @cached_property
    def _bend(self) -> Array:
        """Sums of p log p (L,)."""
        return self._added(self.positive * np.log(self.positive))

    def _added(self, terms: Array) -> Array:
        return np.asarray(np.bincount(self.where, weights=terms, minlength=len(self.n)), dtype=np.float64)
