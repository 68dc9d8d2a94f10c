"""What the centre knows: the atoms of all shards as sums of sufficient statistics, which are one, and the objective.

An atom of a shard is like a local parameter that n sites hold already: joining it to an atom that m others hold scores

    R(m + n) - R(m) - R(n) + log evidence(both) - log evidence(one) - log evidence(other),

with R the prior's score of an atom by the number of its sites (`modelweld.core.prior`). Atoms of one shard
stay apart, so a shard given the rest is a linear assignment, as a site is, and Algorithm 1 merges shards as it matches
sites. In how many fragments sites hold atoms is each shard's to know; the centre adds up numbers of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelweld.core.algorithm1 import NEW, SMALLEST_RISE, best_assignment
from modelweld.core.family import Family, log_prior, subtract_evidence
from modelweld.core.prior import Fragments, Prior
from modelweld.core.tally import Tally
from modelweld.core.values import Array, Index, group_of_values, offsets_of
from modelweld.shards.shard import Atoms, Summary


class Centre(Tally):
    """A tally whose values are the atoms of shards and whose groups are the shards.

    Parameters
    ----------
    summaries : list of Summary
        What the shards sent.
    turn : int array
        The shards in an order that depends on their content alone: sums are added in it.
    family, prior : Family, Prior
        The hyperparameters of all shards.
    sizes : int array (J,)
        Numbers of values of all sites.
    fragments : Fragments, optional
        Whether sites may hold an atom in several fragments.
    changing : bool
        Whether rows depend on the family, which `learn` then leaves alone.

    Attributes
    ----------
    places : list of int arrays
        For each shard, the centre's number of each of its atoms.
    """

    def __init__(
        self,
        summaries: Sequence[Summary],
        turn: Index,
        family: Family,
        prior: Prior,
        sizes: Index,
        fragments: Fragments | None = None,
        changing: bool = False,
    ) -> None:
        self.own, self.turn, self.families, self.sizes = list(summaries), turn, [family], sizes
        self.fragments, self.changing = fragments, changing
        self._set_prior(prior)
        ends = np.cumsum([len(summaries[s].counts) for s in turn])
        self.places = [np.split(np.arange(ends[-1]), ends[:-1])[i] for i in np.argsort(turn)]
        self.gather()

    def gather(self) -> None:
        """Number the atoms without gaps and add everything again, from what the shards sent."""
        offsets = offsets_of([len(self.places[s]) for s in self.turn])
        self.spans = {int(s): slice(a, b) for s, a, b in zip(self.turn, offsets, offsets[1:], strict=False)}
        super().__init__(
            self.families,
            [np.concatenate([self.own[s].rows for s in self.turn])],
            group_of_values(offsets),
            np.concatenate([self.places[s] for s in self.turn]),
            holds=np.concatenate([self.own[s].counts for s in self.turn]),
        )
        self._spread()

    def _spread(self) -> None:
        """Tell each shard the numbers of its atoms."""
        for s, span in self.spans.items():
            self.places[s] = self.labels[span]

    def _set_prior(self, prior: Prior) -> None:
        self.prior, self.increments = prior, prior.increments(len(self.sizes))
        self.log_rate = np.concatenate([[0.0], np.cumsum(self.increments)])

    @property
    def family(self) -> Family:
        """The one family."""
        return self.families[0]

    @property
    def atoms(self) -> Atoms:
        """What shards must know to match their values again."""
        return Atoms(self.counts, self.sums[0], self.family, self.prior, self.fragments, len(self.sizes))

    def objective(self) -> float:
        """The objective of `fuse`, from sums alone."""
        evidence = float(self.family.log_evidence(self.sums[0]).sum()) + log_prior(self.family)
        return self.prior.log_prob(self.counts, self.sizes) + evidence + self._log_fragments(self.own)

    def _log_fragments(self, summaries: Sequence[Summary]) -> float:
        """Log probability of the numbers of fragments in which sites hold atoms."""
        if self.fragments is None:
            return 0.0
        held, values = (sum(int(x) for x in found) for found in _fragments_of(summaries))
        return self.fragments.log_prob_of_sums(held, values, sum(x.ways for x in summaries))

    def learn(self) -> None:
        """The prior's parameters from counts, and hyperparameters from sums where these do not depend on them."""
        self._set_prior(self.prior.learn(self.counts, self.sizes))
        if self.fragments is not None:
            self.fragments = self.fragments.learn_from_sums(*(sum(found) for found in _fragments_of(self.own)))
        if not self.changing:
            self.families = [self.family.update(self.sums[0])]

    def release(self) -> None:
        """Take all shards out; the next sweep places them as if for the first time."""
        self.labels[:] = NEW
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
        if span.start == span.stop:
            return False
        held = None if (self.labels[span] == NEW).any() else self.remember(span)
        if held is not None:
            self.take(span)
        there = np.flatnonzero(self.counts)
        scores = self._scores(s, there)
        L, K = scores.shape
        choice = best_assignment(scores, np.zeros(L), L)
        if held is not None:
            column = np.full(len(self.counts), NEW)
            column[there] = np.arange(K)
            present = column[held.atoms]
            if _worth(scores, choice) - _worth(scores, present) <= SMALLEST_RISE:
                self.put_back(held)
                return False
        best = np.full(L, NEW)
        best[choice != NEW] = there[choice[choice != NEW]]
        self.put(span, self.open(best))
        return True

    def _scores(self, s: int, atoms: Index) -> Array:
        """Log score of each of a shard's atoms at each atom of the centre, minus that of staying apart."""
        n, own, sums = self.own[s].counts, self.own[s].rows, self.sums[0][atoms]
        m = self.counts[atoms]
        scores = self.log_rate[m + n[:, None]] - self.log_rate[m] - self.log_rate[n][:, None]
        scores -= self.family.log_evidence(own)[:, None]
        return np.asarray(scores + subtract_evidence(self.family, own, sums))

    def accept(self, s: int, proposal: Summary, known: int) -> bool:
        """Take a shard's proposal if it raises the objective as it stands now; whether it was taken.

        The shard saw `known` atoms; others may have been taken in since, and values have moved. What is taken is in
        counts, sums and places at once, and in labels when `gather` is called.
        """
        K, old = len(self.counts), self.places[s]
        place = self.open(np.where(proposal.place >= known, NEW, proposal.place))
        touched = np.union1d(old, place)
        counts, sums = self.counts[touched], self.sums[0][touched]
        before = self.objective_gain(touched)
        self.shift(old, [self.own[s].rows], -1, self.own[s].counts)
        self.shift(place, [proposal.rows], +1, proposal.counts)
        empty = touched[self.counts[touched] == 0]
        self.sums[0][empty] = 0.0  # taking out leaves rounding behind
        rise = (self.objective_gain(touched) - before).sum()  # atom by atom, so that large numbers cancel first
        if rise + self._log_fragments([proposal]) - self._log_fragments([self.own[s]]) > SMALLEST_RISE:
            self.own[s], self.places[s] = proposal, place
            return True
        self.counts[touched], self.sums[0][touched] = counts, sums
        self.counts, self.sums = self.counts[:K], [self.sums[0][:K]]
        return False

    def objective_gain(self, atoms: Index) -> Array:
        """What each of these atoms brings to the objective."""
        return np.asarray(self.log_rate[self.counts[atoms]] + self.family.log_evidence(self.sums[0][atoms]))

    def restate(self, family: Family, rows: Sequence[Array]) -> None:
        """Keep the matching, with another family and the rows made with it."""
        self.families = [family]
        self.own = [replace(x, rows=own) for x, own in zip(self.own, rows, strict=True)]
        self.gather()


def _fragments_of(summaries: Sequence[Summary]) -> tuple[list[int], list[int]]:
    """Atoms that sites hold, and values in which they hold them, of each shard."""
    return [int(x.counts.sum()) for x in summaries], [x.values for x in summaries]


def _worth(scores: Array, choice: Index) -> float:
    """What a choice of columns (NEW: none) adds to the objective."""
    joined = np.flatnonzero(choice != NEW)
    return float(scores[joined, choice[joined]].sum())
