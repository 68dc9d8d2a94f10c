"""Matched compositions: the Dirichlet-multinomial likelihood of pseudo-counts and effective sample sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.families.math import vocabulary
from modelweld.families.math.log_rising import log_rising
from modelweld.families.math.maximise import ByAtom, LogLikelihood
from modelweld.families.math.simplex import Compositions
from modelweld.families.math.vocabulary import Sums


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

    def added(self, n: Array) -> Array:
        """Probabilities times n, by atom (K, D)."""
        return self.by_atom(self.compositions.p, n) if self.together is None else self.together * n[0]

    def evidence(self, a: Array, n: Array) -> tuple[float, Array, float]:
        """Log evidence without carriers of values worth n; slopes by a, and by log `between` times `between`."""
        if self.compositions.seen is not None:
            return self._of_vocabularies(self.compositions.seen, a, n)
        value, by_a, by_s, by_N = over_atoms(a, self.added(n), self.by_atom(n))
        return value, by_a, float((by_s * self.added(n * n)).sum() + (by_N * self.by_atom(n * n)).sum())

    def log_likelihood(self, x: Array) -> tuple[float, Array]:
        """And its gradient, at logarithms of a and of `between`, last."""
        a, between = np.exp(x[:-1]), float(np.exp(x[-1]))
        value, by_a, by_n = self.evidence(a, self.compositions.objective_gain(between))
        carrier, slope = self.compositions.total_carrier(between)
        return value + carrier, np.append(a * by_a, by_n / between + slope)

    def likelihood_of_atoms(self, between: float) -> LogLikelihood:
        """Of logarithms of a alone."""
        n = self.compositions.objective_gain(between)

        def log_likelihood(x: Array) -> tuple[float, Array]:
            value, by_a, _ = self.evidence(np.exp(x), n)
            return value, np.exp(x) * by_a

        return log_likelihood

    def _of_vocabularies(self, seen: Array, a: Array, n: Array) -> tuple[float, Array, float]:
        of = vocabulary.statistics(self.compositions.p, seen, n, a)
        atoms = Sums(*(self.by_atom(part) for part in of))
        value = float(vocabulary.log_evidence(atoms, a).sum())
        by_a, by_row = vocabulary.slopes(self.compositions.p, seen, n, a, self.labels, atoms)
        return value, by_a, float((by_row * n * n).sum())


def over_atoms(a: Array, S: Array, N: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by a (D,), by S (K, D) and by N (K,)."""
    from scipy.special import digamma, gammaln

    A, K = a.sum(), len(S)
    by_S, by_N = digamma(a + S), -digamma(A + N)
    value = float(log_rising(S, a).sum() + (gammaln(A) - gammaln(A + N)).sum())
    by_a = by_S.sum(0) - K * digamma(a) + K * digamma(A) + by_N.sum()
    return value, by_a, by_S, by_N


def likelihood_of_atoms(S: Array, N: Array) -> LogLikelihood:
    """Of logarithms of pseudo-counts (D,), given sums of values (K, D) and what they are worth (K,)."""

    def log_likelihood(x: Array) -> tuple[float, Array]:
        value, by_a, _, _ = over_atoms(np.exp(x), S, N)
        return value, np.exp(x) * by_a

    return log_likelihood
