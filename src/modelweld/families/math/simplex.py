"""Compositions (values on the simplex), sent as counts or probabilities: these, and the observations behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from modelweld.core.values import Array, Index, Stack
from modelweld.families.math.bessel import Interpolated
from modelweld.families.math.event_densities import SEEN_ONCE, effective_count, log_freedom_and_slope

SUM_ROUNDING = 1e-5
"""By how much probabilities may miss the sum of one: those of float32 programs do."""

ZERO = 1e-100
"""Probabilities below this count as zero."""

BLOCK = 32_768
"""Entries worked on at a time: a handful of temporaries of this size fit in a processor's second cache."""

NODES_APART = 0.25
"""Of the logarithm of `between`, for interpolation: the error is then 1e-10 nats per entry at most (measured, for 300
and 2,000 observations and for unknown numbers); at twice the distance it is 200 times as large."""


@dataclass(frozen=True, eq=False)
class Compositions:
    """L compositions over D words.

    `p` (L, D) are probabilities (zeros for values that were not seen), `n` (L,) the observations behind each (infinite
    where not known, zero where not seen), `seen` (L, D) which words a site knows, None if all; `once` (L,) counts words
    seen exactly once, `positive` are the positive entries of `p` row by row, those of row i from `first[i]` on.
    """

    p: Array
    n: Array
    seen: Array | None
    once: Array
    positive: Array
    first: Index

    @staticmethod
    def of(values: Array, weight: Array | None, counted: bool | None = None) -> Compositions:
        """Counts are values x weight; which values are probabilities of unknown count, see `are_counted`."""
        x = values if weight is None else values * weight
        n = x.sum(1)
        n[n < np.finfo(float).tiny] = 0.0  # of which one has no inverse: nothing was seen
        x = x * (n > 0)[:, None] if (n == 0).any() else x
        counted = are_counted(values, weight) if counted is None else counted
        whole = (x == np.rint(x)).all(1)
        unknown = _sum_to_one(n, weight) & ~(whole & counted)
        seen = None
        if weight is not None:
            known = weight > 0
            absent = n <= 0
            if not (known | absent[:, None]).all():
                seen = (known & ~absent[:, None]).astype(np.float64)
        p = x / np.where(n > 0, n, 1.0)[:, None]
        once = np.zeros(len(n))
        whole &= ~unknown
        once[whole] = (x[whole] == 1).sum(1)
        there = p > ZERO
        first = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(np.int64)
        return Compositions(p, np.where(unknown, np.inf, n), seen, once, p.ravel() if there.all() else p[there], first)

    @staticmethod
    def of_stack(stack: Stack, counted: bool | None) -> Compositions:
        """The same, kept as long as the stack is: learning asks for them after every sweep."""
        kept = _KEPT.setdefault(stack, {})
        if counted not in kept:
            kept[counted] = Compositions.of(stack.values, stack.weight, counted)
        return kept[counted]

    def objective_gain(self, between: float) -> Array:
        """Observations each value is worth (L,)."""
        return effective_count(self.n, between)

    def carrier(self, between: float) -> Array:
        """What does not depend on the atom, in the log density of values (L,).

        -n sum p log p + sum a(n p) - a(n), and words seen once: see `modelweld.families.math.event_densities`.
        """
        n = self.objective_gain(between)
        return np.where(n > 0, self._freedoms(n)[0] + n * self._tilt, 0.0)

    def total_carrier(self, between: float) -> tuple[float, float]:
        """Sum of the carriers and its slope by the logarithm of `between`, quickly: the slow part is interpolated."""
        n = self.objective_gain(between)
        value, slope = self._total_freedom(float(np.log(between)))
        return value + float(n @ self._tilt), slope + float((n * n) @ self._tilt) / between

    @property
    def measure(self) -> Array:
        """Log of the constants (L,) that make the density of dense values integrate to one: 1 / sqrt(2 pi p^2)."""
        several = np.diff(self.first)
        return np.asarray(-self._logs[0] - 0.5 * np.log(2 * np.pi) * np.maximum(several - 1, 0))

    def coefficient(self) -> Array:
        """Log multinomial coefficients (L,), for values whose counts are exact."""
        from scipy.special import gammaln

        return np.asarray(gammaln(self.n + 1) - self._add_terms(lambda p, n: (gammaln(n * p + 1),), self.n)[0])

    @cached_property
    def _logs(self) -> Array:
        """Sums of log p and of p log p, (2, L)."""

        def terms(p: Array, _: Array) -> tuple[Array, Array]:
            logs = np.log(p)
            return logs, p * logs

        return self._add_terms(terms, self.n)

    @cached_property
    def _tilt(self) -> Array:
        """What of the carrier is proportional to n, (L,)."""
        known = np.isfinite(self.n) & (self.n > 0)
        return np.asarray(SEEN_ONCE * self.once / np.where(known, self.n, np.inf) - self._logs[1])

    def _freedoms(self, n: Array) -> Array:
        """The sums over a value of a(n p), minus a(n), and their slopes by the logarithm of n: (2, L)."""
        whole = log_freedom_and_slope(np.where(n > 0, n, 1.0))
        return self._add_terms(lambda p, n: log_freedom_and_slope(n * p), n) - whole

    @cached_property
    def _total_freedom(self) -> Interpolated:
        """Sum over values of `_freedoms` and its slope, by the logarithm of `between`."""

        def exactly(x: float) -> tuple[float, float]:
            n = self.objective_gain(float(np.exp(x)))
            value, slope = self._freedoms(n) * (n > 0)
            return float(value.sum()), float(slope @ n) / float(np.exp(x))

        return Interpolated(exactly, NODES_APART)

    def _add_terms(self, terms: Callable[[Array, Array], tuple[Array, ...]], n: Array) -> Array:
        """Sums over the positive entries of each value of one or two functions of p and n: (2, L)."""
        sizes = np.diff(self.first)
        found = np.zeros((2, len(sizes)))
        begin = 0
        while begin < len(sizes):
            end = max(begin + 1, int(np.searchsorted(self.first, self.first[begin] + BLOCK, "right")) - 1)
            part = slice(begin, end)
            there = np.flatnonzero(sizes[part])
            if len(there):
                p = self.positive[self.first[begin] : self.first[end]]
                of_block = terms(p, np.repeat(n[part], sizes[part]))
                starts = self.first[part][there] - self.first[begin]
                for k, term in enumerate(of_block):
                    found[k, begin + there] = np.add.reduceat(term, starts)
            begin = end
        return found


def are_counted(values: Array, weight: Array | None) -> bool:
    """Whether a value that is one number 1 and zeros is a single observation, not a probability.

    Values of counts may happen to sum to one. They do not all do so: if all values that were seen sum to one, they are
    probabilities of unknown count. A value that sums to one and is not whole is one in any company.

    Examples
    --------
    >>> are_counted(np.array([[0.0, 1.0], [2.0, 3.0]]), None), are_counted(np.array([[0.0, 1.0], [0.2, 0.8]]), None)
    (True, False)
    """
    n = (values if weight is None else values * weight).sum(1)
    return not bool((_sum_to_one(n, weight) | (n <= 0)).all())


def _sum_to_one(n: Array, weight: Array | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Values of sum one whose weights are no numbers of observations."""
    found = np.abs(n - 1) <= SUM_ROUNDING
    if weight is not None:
        found &= ((weight == 0) | (weight == 1)).all(1)
    return found


_KEPT: WeakKeyDictionary[Stack, dict[bool | None, Compositions]] = WeakKeyDictionary()
