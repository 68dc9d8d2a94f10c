"""What the centre knows: the atoms of all shards as sums, which of them are one, and the one objective of it all.

An atom of a shard is like a local parameter that n sites hold already: joining it to an atom that m others hold scores

    R(m + n) - R(m) - R(n) + log evidence(both) - log evidence(one) - log evidence(other),

with R the prior's score of an atom by the number of its sites (`modelweld.priors.beta_bernoulli`). Atoms of one shard
stay apart, so a shard given the rest is a linear assignment, as a site is, and `alternate` merges shards as it matches
sites.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modelweld.families import Gaussian
from modelweld.families.base import Family
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import SMALLEST_RISE
from modelweld.matching.assignment import NEW, best_assignment
from modelweld.priors.beta_bernoulli import Prior
from modelweld.shards.shard import Summary

LARGEST_BLOCK = 4_000_000
"""Elements of the largest temporary (atoms of a shard x atoms x statistics): 32 MB."""


class Book:
    """The atoms of all shards and their places among the centre's.

    Parameters
    ----------
    summaries : list of Summary
        What the shards sent.
    turn : int array
        The shards in an order that depends on their content alone: sums are added in it.
    family, prior : Gaussian, Prior
        The hyperparameters of all shards.
    sizes : int array (J,)
        Numbers of values of all sites.
    varying : bool
        Whether values have their own variance: rows then depend on the family, which `learn` leaves alone.
    """

    def __init__(
        self,
        summaries: Sequence[Summary],
        turn: Index,
        family: Gaussian,
        prior: Prior,
        sizes: Index,
        varying: bool = False,
    ) -> None:
        self.own_counts, self.own_rows = [s.counts for s in summaries], [s.rows for s in summaries]
        self.turn, self.family, self.sizes, self.varying = turn, family, sizes, varying
        self._believe(prior)
        ends = np.cumsum([len(self.own_counts[s]) for s in turn])
        self.places = [np.arange(0)] * len(summaries)
        for s, end in zip(turn, ends, strict=True):
            self.places[s] = np.arange(end - len(self.own_counts[s]), end)
        self.tabulate()

    def _believe(self, prior: Prior) -> None:
        self.prior = prior
        self.log_rate = np.concatenate([[0.0], np.cumsum(prior.steps(len(self.sizes)))])

    def tabulate(self) -> None:
        """Atoms numbered without gaps, their counts and sums added anew."""
        atoms, numbers = np.unique(np.concatenate([self.places[s] for s in self.turn]), return_inverse=True)
        numbers = numbers - int(len(atoms) > 0 and atoms[0] == NEW)
        K = len(atoms) - int(len(atoms) > 0 and atoms[0] == NEW)
        ends = np.cumsum([len(self.places[s]) for s in self.turn])
        self.counts, self.rows = np.zeros(K, dtype=np.int64), np.zeros((K, self.own_rows[0].shape[1]))
        for s, place in zip(self.turn, np.split(numbers, ends[:-1]), strict=True):
            self.places[s] = place
            if (place != NEW).all():
                self._shift(s, place, +1)

    def _shift(self, s: int, place: Index, sign: int) -> None:
        """Add a shard's sums to these atoms, or take them away."""
        self.counts[place] += sign * self.own_counts[s]
        self.rows[place] += sign * self.own_rows[s]

    @property
    def evidence(self) -> float:
        """Log evidence of all values, with the log prior of hyperparameters that have one."""
        return float(self.family.log_evidence(self.rows).sum()) + self.family.log_prior()

    def objective(self) -> float:
        """The objective of `fuse`, from sums alone."""
        return self.prior.log_prob(self.counts, self.sizes) + self.evidence

    def learn(self) -> None:
        """The prior's parameters from counts, and hyperparameters from sums where these do not depend on them."""
        self._believe(self.prior.learned(self.counts, self.sizes))
        if not self.varying:
            self.family = self.family.update(self.rows)

    def release(self) -> None:
        """Take all shards out; the next sweep places them as if for the first time."""
        self.places = [np.full_like(place, NEW) for place in self.places]
        self.tabulate()

    def sweep(self, order: Index) -> int:
        """Give the atoms of each shard in turn their best places; returns how many shards changed.

        From nothing, this never ends below the objective of shards that share no atom: staying new is one choice.
        """
        changed = sum(self._step(int(self.turn[i])) for i in order)
        if changed:
            self.tabulate()
        return changed

    def _step(self, s: int) -> bool:
        """Best places of one shard's atoms given all other shards; whether that raised the objective."""
        old, first_time = self.places[s], bool((self.places[s] == NEW).any())
        if not first_time:
            before = self.counts[old], self.rows[old]
            self._shift(s, old, -1)
        atoms = np.flatnonzero(self.counts)
        scores = self._scores(s, atoms)
        L = len(scores)
        choice = best_assignment(scores, np.zeros(L), L)
        if not first_time:
            column = np.full(len(self.counts), NEW)
            column[atoms] = np.arange(len(atoms))
            if _worth(scores, choice) - _worth(scores, column[old]) <= SMALLEST_RISE:
                self.counts[old], self.rows[old] = before
                return False
        place = np.full(L, NEW)
        place[choice != NEW] = atoms[choice[choice != NEW]]
        self.places[s] = self._opened(place, place == NEW)
        self._shift(s, self.places[s], +1)
        return True

    def _scores(self, s: int, atoms: Index) -> Array:
        """Log score of each of a shard's atoms at each atom of the centre, minus that of staying apart."""
        n, own, sums = self.own_counts[s], self.own_rows[s], self.rows[atoms]
        m = self.counts[atoms]
        scores = self.log_rate[m + n[:, None]] - self.log_rate[m] - self.log_rate[n][:, None]
        scores -= self.family.log_evidence(own)[:, None]
        block = max(1, LARGEST_BLOCK // max(1, sums.size))
        for a in range(0, len(own), block):  # the subtraction trick itself: `Gaussian.gain` is for single values
            scores[a : a + block] += Family.gain(self.family, own[a : a + block], sums)
        return np.asarray(scores)

    def _opened(self, place: Index, new: NDArray[np.bool_]) -> Index:
        """Places with fresh, empty atoms where they are `new`."""
        number = int(new.sum())
        place = place.copy()
        place[new] = len(self.counts) + np.arange(number)
        self.counts = np.pad(self.counts, (0, number))
        self.rows = np.pad(self.rows, ((0, number), (0, 0)))
        return place

    def accept(self, s: int, proposal: Summary, known: int) -> bool:
        """Take a shard's proposal if it raises the objective as it stands now; whether it was taken.

        The shard saw `known` atoms; others may have been taken in since, and values have moved.
        """
        K, old = len(self.counts), self.places[s]
        place = self._opened(proposal.place, proposal.place >= known)
        touched = np.union1d(old, place)
        counts, rows = self.counts[touched], self.rows[touched]
        own = self.own_counts[s], self.own_rows[s]
        before = self._value(touched)
        self._shift(s, old, -1)
        self.own_counts[s], self.own_rows[s] = proposal.counts, proposal.rows
        self._shift(s, place, +1)
        empty = touched[self.counts[touched] == 0]
        self.rows[empty] = 0.0  # taking out leaves rounding behind
        if (self._value(touched) - before).sum() > SMALLEST_RISE:  # atom by atom, so that large numbers cancel first
            self.places[s] = place
            return True
        self.counts[touched], self.rows[touched] = counts, rows
        self.own_counts[s], self.own_rows[s] = own
        self.counts, self.rows = self.counts[:K], self.rows[:K]
        return False

    def _value(self, atoms: Index) -> Array:
        """What each of these atoms brings to the objective."""
        return np.asarray(self.log_rate[self.counts[atoms]] + self.family.log_evidence(self.rows[atoms]))

    def restated(self, family: Gaussian, rows: Sequence[Array]) -> None:
        """The same matching with another family and the rows made with it."""
        self.family, self.own_rows = family, list(rows)
        self.tabulate()


def _worth(scores: Array, choice: Index) -> float:
    """What a choice of columns (NEW: none) adds to the objective."""
    joined = np.flatnonzero(choice != NEW)
    return float(scores[joined, choice[joined]].sum())
