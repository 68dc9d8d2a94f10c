"""An atom in several fragments: over-segmentation, which estimated local models show and the paper's model forbids.

A mixture that is fitted with a component too many splits one of its true components in two. The fragments are noisy
values of the same atom, but one group may hold an atom only once, so second fragments gather into atoms of their own,
more of them the more groups there are. Here a group that holds an atom holds it in r >= 1 fragments with probability (1
- delta) delta^(r - 1):

    log P = ... + sum over (group, atom) held [log(1 - delta) + (r - 1) log delta + lgamma(r + 1)]

(lgamma because the fragments are interchangeable). delta = 0 is the paper's model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.core.values import Index
from modelweld.inputs.local_model import Array

MOST_PIECES = 3
"""Fragments of one atom that a group may be given in one step; more can gather over several."""

PRIOR_EXTRA, PRIOR_HELD = 0.5, 9.5
"""Beta(1.5, 10.5) prior of delta, whose mode given the fragments is (extra + .5) / (N + 10): few fragments, never
none."""

LARGEST_SHARE = 0.15
"""Above this, local components overlap too much to tell fragments from neighbours: fragments are then not believed
in."""


@dataclass(frozen=True)
class Fragments:
    """How probable it is that a group holds an atom in several fragments.

    Examples
    --------
    >>> round(Fragments(0.1).log_prob(np.array([1, 2])) - Fragments(0.1).log_prob(np.array([1, 1])), 3)  # log .1 + log
    2
    -1.609
    """

    delta: float = 0.05

    def log_prob(self, fragments: Index) -> float:
        """Log probability of the numbers of fragments, one per (group, atom) held, with the log prior density of
        delta.
        """
        return float(self.log_prob_each(fragments).sum() + self._log_prior())

    def log_prob_of_sums(self, held: int, values: int, ways: float) -> float:
        """The same from the number of (group, atom) held, of their fragments, and the sum of the lgamma above."""
        each = held * np.log1p(-self.delta) + (values - held) * np.log(self.delta)
        return float(each + ways + self._log_prior())

    def _log_prior(self) -> float:
        from scipy.special import betaln

        beta = PRIOR_EXTRA * np.log(self.delta) + PRIOR_HELD * np.log1p(-self.delta)
        return float(beta - betaln(PRIOR_EXTRA + 1, PRIOR_HELD + 1))

    def log_prob_each(self, fragments: Index) -> Array:
        """The same for each (group, atom), without the prior of delta."""
        from scipy.special import gammaln

        return np.asarray(np.log1p(-self.delta) + (fragments - 1) * np.log(self.delta) + gammaln(fragments + 1.0))

    def learned(self, fragments: Index) -> Fragments:
        """The most probable delta given the fragments."""
        return self.learned_from_sums(len(fragments), int(fragments.sum()))

    def learned_from_sums(self, held: int, values: int) -> Fragments:
        """The same from the number of (group, atom) held and of their fragments."""
        return Fragments(float((values - held + PRIOR_EXTRA) / (values + PRIOR_EXTRA + PRIOR_HELD)))

    def fragment_scores(self, scores: Array, gain: Array) -> Array:
        """Scores (L, K) of first fragments, then of second and third ones: (L, 3 K).

        `log_predictive` is the score without the prior's share for the atom. Fragments are used in order; where a later
        one would score higher, the assignment could take it alone, so it is held down to the one before (a lower bound;
        what was found is judged by the exact objective).
        """
        columns = [scores]
        for r in range(2, MOST_PIECES + 1):
            columns.append(np.minimum(columns[-1], gain + np.log(self.delta) + np.log(r) - np.log1p(-self.delta)))
        return np.hstack(columns)
