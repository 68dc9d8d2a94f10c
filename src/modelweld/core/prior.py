"""How probable a matching is before the values are seen, and that atoms are held in several fragments.

An atom in several fragments: over-segmentation, which estimated local models show and the paper's model forbids.

A mixture that is fitted with a component too many splits one of its true components in two. The fragments are noisy
values of the same atom, but one group may hold an atom only once, so second fragments gather into atoms of their own,
more of them the more groups there are. Here a group that holds an atom holds it in r >= 1 fragments with probability (1
- delta) delta^(r - 1):

    log P = ... + sum over (group, atom) held [log(1 - delta) + (r - 1) log delta + lgamma(r + 1)]

(lgamma because the fragments are interchangeable). delta = 0 is the paper's model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from modelweld.core.values import Array, Index


class Prior(ABC):
    """How probable a matching is before the values are seen.

    Exchangeable priors, which do not care which groups hold an atom, write `increments` and `log_prob` and see how many
    groups do. A prior that cares (`modelweld.fit.priors.birth_death`) conditions on when groups come (`condition_on`).

    Examples
    --------
    >>> import numpy as np
    >>> from modelweld import BetaBernoulli
    >>> prior = BetaBernoulli(alpha=1.0, gamma0=1.0)
    >>> shared, apart = (prior.log_prob(np.array(counts), np.array([2, 2])) for counts in ([2, 2], [1, 1, 1, 1]))
    >>> shared > apart
    True
    """

    @abstractmethod
    def increments(self, J: int) -> Array:
        """`increments[m]`: log score of joining an atom that m other groups hold; `increments[0]`: of a new atom."""

    @abstractmethod
    def log_prob(self, counts: Index, sizes: Index) -> float:
        """Log probability of a matching of groups of `sizes`, given how many groups hold each atom."""

    def learn(self, counts: Index, sizes: Index) -> Prior:
        """The prior with its own parameters updated; never lowers `log_prob`."""
        return self

    def condition_on(self, times: Array) -> Prior:
        """The same prior of groups that come at these times (J,); exchangeable ones do not care."""
        return self

    def surcharge(self, size: int) -> Array:
        """What the first, second, ... new atom of a group of `size` pays beyond `increments[0]`."""
        return np.zeros(size)

    def most_new(self, size: int, K: int) -> int:
        """How many atoms a group of `size` may open when there are K."""
        return size

    def as_probability(self) -> Prior:
        """The same prior where it has a form that is not one: scores and probabilities need the exact one."""
        return self

    def parameters(self) -> dict[str, float]:
        """Its own parameters by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, float)}


MOST_FRAGMENTS = 3
"""Fragments of one atom that a group may be given in one step; more can gather over several."""

PRIOR_EXTRA, PRIOR_HELD = 0.5, 2.0
"""Beta(1.5, 3) prior of delta, whose mode given the fragments is (extra + .5) / (N + 2.5): never none."""


@dataclass(frozen=True)
class Fragments:
    """How probable it is that a group holds an atom in several fragments.

    Examples
    --------
    >>> round(Fragments(0.1).log_prob(np.array([1, 2])) - Fragments(0.1).log_prob(np.array([1, 1])), 3)
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

    def learn(self, fragments: Index) -> Fragments:
        """The most probable delta given the fragments."""
        return self.learn_from_sums(len(fragments), int(fragments.sum()))

    def learn_from_sums(self, held: int, values: int) -> Fragments:
        """The same from the number of (group, atom) held and of their fragments."""
        return Fragments(float((values - held + PRIOR_EXTRA) / (values + PRIOR_EXTRA + PRIOR_HELD)))

    def fragment_scores(self, scores: Array, gain: Array) -> Array:
        """Scores (L, K) of first fragments, then of second and third ones: (L, 3 K).

        `log_predictive` is the score without the prior's share for the atom. Fragments are used in order; where a later
        one would score higher, the assignment could take it alone, so it is held down to the one before (a lower bound;
        what was found is judged by the exact objective).
        """
        columns = [scores]
        for r in range(2, MOST_FRAGMENTS + 1):
            columns.append(np.minimum(columns[-1], gain + np.log(self.delta) + np.log(r) - np.log1p(-self.delta)))
        return np.hstack(columns)
