"""Compositions (values on the simplex), sent as counts or probabilities: these, and the observations behind them.

Logarithms of rising factorials, log Gamma(c + x) - log Gamma(c), added up over coordinates.

Evidence of compositions over parts of a vocabulary: which words a site knows differs from site to site.

A site that knows the words V sees theta_w / theta_V, and if members of an atom know different words the integral over
theta has no closed form. With theta = g / sum(g), g_w ~ Gamma(a_w), a value's likelihood has the factor g_V^-n; its
logarithm is bounded from below by the tangent at the expected g_V = A_V = sum of a_w over V:

    -n log g_V >= n - n log A_V - n g_V / A_V.

What is left is a product of Gamma integrals, and adds up. With E_w = sum of n / A_V over values that know w,
N = sum of n, U = sum of n (1 - log A_V), A = sum of n A_V / N,

    log evidence = sum_w [log Gamma(a_w + s_w) - log Gamma(a_w) - (a_w + s_w) log(1 + E_w)] + U + R(N, A)
    R(N, A)      = log Gamma(A) - log Gamma(A + N) + (A + N) log(A + N) - A log A - N.

R makes up for the tangent where all values know the same words, so that the evidence is then exact. Otherwise it is
mostly too low, the more so the further an atom's share of V is from that of the mean atom: by less than a nat where
words are many or observations few, by several nats for few words and many observations (tables in
experiments/families). Tangents at each atom's own shares would need its members' effective sample sizes,
vocabulary by vocabulary.

Matched compositions: the Dirichlet-multinomial likelihood of pseudo-counts and effective sample sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.family import sum_by_atom
from modelweld.core.values import Array, Index, Stack, block_size, group_of_values
from modelweld.families.math.bessel import Interpolated
from modelweld.families.math.event_densities import SEEN_ONCE, effective_count, log_freedom_and_slope
from modelweld.families.math.maximise import ByAtom, LogLikelihood

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
    seen exactly once, `positive` are the positive entries of `p` row by row, those of row i from `first[i]` on. With
    `typical` observations, every one of them is worth as much as one of so many (`Counts.typical`).
    """

    p: Array
    n: Array
    seen: Array | None
    once: Array
    positive: Array
    first: Index
    typical: float = 0.0

    @staticmethod
    def of(values: Array, weight: Array | None, counted: bool | None = None, typical: float = 0.0) -> Compositions:
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
        n, positive = np.where(unknown, np.inf, n), p.ravel() if there.all() else p[there]
        return Compositions(p, n, seen, once, positive, first, typical)

    @staticmethod
    def of_stack(stack: Stack, counted: bool | None, typical: float = 0.0) -> Compositions:
        """The same, kept as long as the stack is: learning asks for them after every sweep."""
        kept = _KEPT.setdefault(stack, {})
        if (counted, typical) not in kept:
            kept[counted, typical] = Compositions.of(stack.values, stack.weight, counted, typical)
        return kept[counted, typical]

    def effective_size(self, between: float) -> Array:
        """Observations each value is worth (L,)."""
        return self.n / (1 + self.typical / between) if self.typical else effective_count(self.n, between)

    def slopes(self, n: Array, between: float) -> Array:
        """Of what values are worth, n, by the logarithm of `between` (L,)."""
        return n * (effective_count(np.array(self.typical), between) if self.typical else n) / between

    def carrier(self, between: float) -> Array:
        """What does not depend on the atom, in the log density of values (L,).

        -n sum p log p + sum a(n p) - a(n), and words seen once: see `modelweld.families.math.event_densities`.
        """
        n = self.effective_size(between)
        return np.where(n > 0, self._freedoms(n)[0] + n * self._tilt, 0.0)

    def total_carrier(self, between: float) -> tuple[float, float]:
        """Sum of the carriers and its slope by the logarithm of `between`, quickly: the slow part is interpolated."""
        n = self.effective_size(between)
        value, slope = self._total_freedom(float(np.log(between)))
        return value + float(n @ self._tilt), slope + float(self.slopes(n, between) @ self._tilt)

    @property
    def measure(self) -> Array:
        """Log of the constants (L,) that make the density of dense values integrate to one: 1 / sqrt(2 pi p^2)."""
        several = np.diff(self.first)
        return np.asarray(-self._logs[0] - 0.5 * np.log(2 * np.pi) * np.maximum(several - 1, 0))

    def coefficient(self) -> Array:
        """Log multinomial coefficients (L,), for values whose counts are exact."""
        of_words = self._add_terms(lambda p, n: (scipy.special.gammaln(n * p + 1),), self.n)[0]
        return np.asarray(scipy.special.gammaln(self.n + 1) - of_words)

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
            n = self.effective_size(float(np.exp(x)))
            value, slope = self._freedoms(n) * (n > 0)
            by_log = self.slopes(n, float(np.exp(x))) / np.where(n > 0, n, 1.0)
            return float(value.sum()), float(slope @ by_log)

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


_KEPT: WeakKeyDictionary[Stack, dict[tuple[bool | None, float], Compositions]] = WeakKeyDictionary()


COMPILED_FROM = 200_000
"""Terms from which on the compiled sums are used: below, scipy takes a few hundredths of a second, and no call should
wait for a compiler."""


def log_rising(S: Array, a: Array) -> Array:
    """Sum over w of log Gamma(a_w + S_w) - log Gamma(a_w): (...) from S (..., D) and a (D,).

    Examples
    --------
    >>> np.exp(log_rising(np.array([[2.0, 1.0]]), np.array([3.0, 5.0]))).round(6)          # 3 * 4 * 5
    array([60.])
    """
    if S.size >= COMPILED_FROM:  # most words are in few atoms
        flat = S.reshape(-1, S.shape[-1])
        rows, words = np.nonzero(flat)
        terms = scipy.special.gammaln(a[words] + flat[rows, words]) - scipy.special.gammaln(a)[words]
        return np.asarray(np.bincount(rows, terms, minlength=len(flat)).reshape(S.shape[:-1]))
    return np.asarray((scipy.special.gammaln(a + S) - scipy.special.gammaln(a)).sum(-1))


def log_rising_pairs(X: Array, C: Array) -> Array:
    """The same for every row of X (L, D) on top of every row of C (K, D): (L, K)."""
    if X.shape[0] * C.size >= COMPILED_FROM:
        from modelweld.families.math import log_rising_compiled

        return log_rising_compiled.log_rising_pairs(X, C)
    before = scipy.special.gammaln(C).sum(-1)
    result = np.empty((len(X), len(C)))
    block = block_size(C.size)
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        result[part] = scipy.special.gammaln(C + X[part, None, :]).sum(-1) - before
    return result


LEAST_SHARED = 0.1
"""Of a site's mass, on words that another site knows. With less, its values would be matched by the prior alone: where
nothing is shared, every atom predicts a value equally well."""


class Sums(NamedTuple):
    """Summed statistics (..., D) or (...) of atoms: see the module's equations; `mass` is N A."""

    s: Array
    E: Array
    N: Array
    U: Array
    mass: Array


def vocabulary_statistics(p: Array, seen: Array, n: Array, a: Array) -> Sums:
    """Of single values worth n."""
    known = np.where(n > 0, seen @ a, 1.0)
    return Sums(n[:, None] * p, seen * (n / known)[:, None], n, n * (1 - np.log(known)), n * known)


def log_evidence_of_vocabularies(sums: Sums, a: Array) -> Array:
    """The module's equation, (...)."""
    rising = log_rising(sums.s, a) - ((a + sums.s) * np.log1p(sums.E)).sum(-1)
    return np.asarray(rising + sums.U + _remainder(sums.N, _mean(sums)))


def vocabulary_slopes(p: Array, seen: Array, n: Array, a: Array, labels: Index, sums: Sums) -> tuple[Array, Array]:
    """Derivatives of the summed evidence of atoms by a (D,) and by each value's n (L,)."""
    known = np.where(n > 0, seen @ a, 1.0)
    rate = (a + sums.s) / (1 + sums.E)
    by_s = scipy.special.digamma(a + sums.s) - np.log1p(sums.E)
    A, N = _mean(sums), np.where(sums.N > 0, sums.N, 1.0)
    R_N = np.log(A + N) - scipy.special.digamma(A + N)
    R_A = scipy.special.digamma(A) - np.log(A) + R_N
    tilt = (seen * rate[labels]).sum(1) / known
    by_known = n / known * (tilt - 1) + (R_A / N)[labels] * n
    by_a = (by_s - scipy.special.digamma(a)).sum(0) + by_known @ seen
    by_n = (p * by_s[labels]).sum(1) - tilt + 1 - np.log(known) + R_N[labels] + (R_A / N)[labels] * (known - A[labels])
    return by_a, np.where(n > 0, by_n, 0.0)


def _mean(sums: Sums) -> Array:
    there = sums.N > 0
    return np.asarray(np.where(there, sums.mass / np.where(there, sums.N, 1.0), 1.0))


def _remainder(N: Array, A: Array) -> Array:
    return np.asarray(
        scipy.special.gammaln(A) - scipy.special.gammaln(A + N) + (A + N) * np.log(A + N) - A * np.log(A) - N
    )


def misfit_vocabulary(values: Array, seen: NDArray[np.bool_], stack: Stack) -> tuple[int, str] | None:
    """The first value of a site that has little of its mass on words that another site knows too."""
    group = group_of_values(stack.offsets)
    known = sum_by_atom(seen.astype(np.float64), group, len(stack.sizes)) > 0
    elsewhere = known.sum(0) - known > 0
    mass = sum_by_atom(values / np.where(seen.any(1), values.sum(1), 1.0)[:, None], group, len(stack.sizes))
    shared = (mass * elsewhere).sum(1) / np.where(known.any(1), mass.sum(1), 1.0)
    strange = known.any(1) & (shared < LEAST_SHARED)
    if not strange.any():
        return None
    row = int(np.flatnonzero(strange[group] & seen.any(1))[0])
    return row, (
        f"have at least {LEAST_SHARED:.0%} of a site's mass on words that another site knows; found "
        f"{shared[group[row]]:.1%}, so that there is nothing to compare"
    )


@dataclass(frozen=True, eq=False)
class MatchedCompositions:
    """Values (N, D) of known atoms: their likelihood, a function of pseudo-counts a (D,) and of what they are worth."""

    compositions: Compositions
    labels: Index

    @cached_property
    def by_atom(self) -> ByAtom:
        """Sums over the values of each atom."""
        return ByAtom(self.labels)

    @cached_property
    def together(self) -> Array | None:
        """Summed probabilities, if values have the same n: they then need be added only once."""
        return self.by_atom(self.compositions.p) if len(np.unique(self.compositions.n)) == 1 else None

    def add_weighted(self, n: Array) -> Array:
        """Probabilities times n, by atom (K, D)."""
        return self.by_atom(self.compositions.p, n) if self.together is None else self.together * n[0]

    def evidence(self, a: Array, between: float) -> tuple[float, Array, float]:
        """Log evidence without carriers; slopes by a, and by the logarithm of `between`."""
        n = self.compositions.effective_size(between)
        by_log = self.compositions.slopes(n, between)
        if self.compositions.seen is not None:
            return self._of_vocabularies(self.compositions.seen, a, n, by_log)
        value, by_a, by_s, by_N = over_atoms(a, self.add_weighted(n), self.by_atom(n))
        return value, by_a, float((by_s * self.add_weighted(by_log)).sum() + (by_N * self.by_atom(by_log)).sum())

    def log_likelihood(self, x: Array) -> tuple[float, Array]:
        """And its gradient, at logarithms of a and of `between`, last."""
        a, between = np.exp(x[:-1]), float(np.exp(x[-1]))
        value, by_a, by_log = self.evidence(a, between)
        carrier, slope = self.compositions.total_carrier(between)
        return value + carrier, np.append(a * by_a, by_log + slope)

    def likelihood_of_atoms(self, between: float) -> LogLikelihood:
        """Of logarithms of a alone."""
        return of_logarithms(lambda a: self.evidence(a, between)[:2])

    def _of_vocabularies(self, seen: Array, a: Array, n: Array, by_log: Array) -> tuple[float, Array, float]:
        of = vocabulary_statistics(self.compositions.p, seen, n, a)
        atoms = Sums(*(self.by_atom(part) for part in of))
        value = float(log_evidence_of_vocabularies(atoms, a).sum())
        by_a, by_row = vocabulary_slopes(self.compositions.p, seen, n, a, self.labels, atoms)
        return value, by_a, float((by_row * by_log).sum())


def over_atoms(a: Array, S: Array, N: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by a (D,), by S (K, D) and by N (K,)."""
    A, K = a.sum(), len(S)
    by_S, by_N = scipy.special.digamma(a + S), -scipy.special.digamma(A + N)
    value = float(log_rising(S, a).sum() + (scipy.special.gammaln(A) - scipy.special.gammaln(A + N)).sum())
    by_a = by_S.sum(0) - K * scipy.special.digamma(a) + K * scipy.special.digamma(A) + by_N.sum()
    return value, by_a, by_S, by_N


def likelihood_of_atoms(S: Array, N: Array) -> LogLikelihood:
    """Of logarithms of pseudo-counts (D,), given sums of values (K, D) and what they are worth (K,)."""
    return of_logarithms(lambda a: over_atoms(a, S, N)[:2])


def of_logarithms(of: LogLikelihood) -> LogLikelihood:
    """The same function of logarithms."""

    def log_likelihood(x: Array) -> tuple[float, Array]:
        value, slope = of(np.exp(x))
        return value, np.exp(x) * slope

    return log_likelihood
