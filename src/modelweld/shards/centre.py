"""What the centre knows: the atoms of all shards as sums of sufficient statistics, which are one, and the objective.

An atom of a shard is like a local parameter that n sites hold already: joining it to an atom that m others hold scores

    R(m + n) - R(m) - R(n) + log evidence(both) - log evidence(one) - log evidence(other),

with R the prior's score of an atom by the number of its sites (`modelweld.priors.beta_bernoulli`). Atoms of one shard
stay apart, so a shard given the rest is a linear assignment, as a site is, and Algorithm 1 merges shards as it matches
sites.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.families import Gaussian
from modelweld.families.base import Family
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, group_of_values, offsets_of
from modelweld.matching.algorithm1 import NEW, SMALLEST_RISE, best_assignment
from modelweld.matching.tally import Tally
from modelweld.priors.beta_bernoulli import Prior
from modelweld.shards.shard import Summary

CENTRE_BLOCK = 4_000_000
"""Elements of the largest temporary (atoms of a shard x atoms x statistics): 32 MB."""


class Centre(Tally):
    """A tally whose values are the atoms of shards and whose groups are the shards.

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

    Attributes
    ----------
    places : list of int arrays
        For each shard, the centre's number of each of its atoms.
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
        self._set_prior(prior)
        offsets = offsets_of([len(summaries[s].counts) for s in turn])
        self.places = [np.arange(0)] * len(summaries)
        for s, first, last in zip(turn, offsets, offsets[1:], strict=False):
            self.places[s] = np.arange(first, last)
        self.gather()

    def gather(self) -> None:
        """Number the atoms without gaps and add everything anew, from what the shards sent."""
        offsets = offsets_of([len(self.places[s]) for s in self.turn])
        self.spans = {int(s): slice(a, b) for s, a, b in zip(self.turn, offsets, offsets[1:], strict=False)}
        super().__init__(
            [self.family],
            [np.concatenate([self.own_rows[s] for s in self.turn])],
            group_of_values(offsets),
            np.concatenate([self.places[s] for s in self.turn]),
            holds=np.concatenate([self.own_counts[s] for s in self.turn]),
        )
        self._spread()

    def _spread(self) -> None:
        """Tell each shard the numbers of its atoms."""
        for s, span in self.spans.items():
            self.places[s] = self.labels[span]

    def _set_prior(self, prior: Prior) -> None:
        self.prior = prior
        self.log_rate = np.concatenate([[0.0], np.cumsum(prior.steps(len(self.sizes)))])

    def objective(self) -> float:
        """The objective of `fuse`, from sums alone."""
        evidence = float(self.family.log_evidence(self.sums[0]).sum()) + self.family.log_prior()
        return self.prior.log_prob(self.counts, self.sizes) + evidence

    def learn(self) -> None:
        """The prior's parameters from counts, and hyperparameters from sums where these do not depend on them."""
        self._set_prior(self.prior.learned(self.counts, self.sizes))
        if not self.varying:
            self.family = self.family.update(self.sums[0])

    def release(self) -> None:
        """Take all shards out; the next sweep places them as if for the first time."""
        self.labels = np.full_like(self.labels, NEW)
        self.recount()
        self._spread()

    def sweep(self, order: Index) -> int:
        """Give the atoms of each shard in turn their best places; returns how many shards changed.

        From nothing, this never ends below the objective of shards that share no atom: staying new is one choice.
        """
        changed = sum(self._step(int(self.turn[i])) for i in order)
        if changed:
            self.recount()
            self._spread()
        return changed

    def _step(self, s: int) -> bool:
        """Best places of one shard's atoms given all other shards; whether that raised the objective."""
        span = self.spans[s]
        held = None if (self.labels[span] == NEW).any() else self.remember(span)
        if held is not None:
            self.take(span)
        atoms = np.flatnonzero(self.counts)
        scores = self._scores(s, atoms)
        L = len(scores)
        choice = best_assignment(scores, np.zeros(L), L)
        if held is not None:
            column = np.full(len(self.counts), NEW)
            column[atoms] = np.arange(len(atoms))
            if _worth(scores, choice) - _worth(scores, column[held.atoms]) <= SMALLEST_RISE:
                self.put_back(held)
                return False
        best = np.full(L, NEW)
        best[choice != NEW] = atoms[choice[choice != NEW]]
        self.put(span, self.open(best))
        return True

    def _scores(self, s: int, atoms: Index) -> Array:
        """Log score of each of a shard's atoms at each atom of the centre, minus that of staying apart."""
        n, own, sums = self.own_counts[s], self.own_rows[s], self.sums[0][atoms]
        m = self.counts[atoms]
        scores = self.log_rate[m + n[:, None]] - self.log_rate[m] - self.log_rate[n][:, None]
        scores -= self.family.log_evidence(own)[:, None]
        block = max(1, CENTRE_BLOCK // max(1, sums.size))
        for a in range(0, len(own), block):  # the subtraction trick itself: `Gaussian.gain` is for single values
            scores[a : a + block] += Family.gain(self.family, own[a : a + block], sums)
        return np.asarray(scores)

    def accept(self, s: int, proposal: Summary, known: int) -> bool:
        """Take a shard's proposal if it raises the objective as it stands now; whether it was taken.

        The shard saw `known` atoms; others may have been taken in since, and values have moved. What is taken is in
        counts, sums and places at once, and in labels when `gather` is called.
        """
        K, old = len(self.counts), self.places[s]
        place = self.open(np.where(proposal.place >= known, NEW, proposal.place))
        touched = np.union1d(old, place)
        counts, sums = self.counts[touched], self.sums[0][touched]
        before = self._value(touched)
        self.shift(old, [self.own_rows[s]], -1, self.own_counts[s])
        self.shift(place, [proposal.rows], +1, proposal.counts)
        empty = touched[self.counts[touched] == 0]
        self.sums[0][empty] = 0.0  # taking out leaves rounding behind
        if (self._value(touched) - before).sum() > SMALLEST_RISE:  # atom by atom, so that large numbers cancel first
            self.places[s], self.own_counts[s], self.own_rows[s] = place, proposal.counts, proposal.rows
            return True
        self.counts[touched], self.sums[0][touched] = counts, sums
        self.counts, self.sums = self.counts[:K], [self.sums[0][:K]]
        return False

    def _value(self, atoms: Index) -> Array:
        """What each of these atoms brings to the objective."""
        return np.asarray(self.log_rate[self.counts[atoms]] + self.family.log_evidence(self.sums[0][atoms]))

    def restate(self, family: Gaussian, rows: Sequence[Array]) -> None:
        """Keep the matching, with another family and the rows made with it."""
        self.family, self.own_rows = family, list(rows)
        self.gather()


def _worth(scores: Array, choice: Index) -> float:
    """What a choice of columns (NEW: none) adds to the objective."""
    joined = np.flatnonzero(choice != NEW)
    return float(scores[joined, choice[joined]].sum())
