"""The reference board: the state of a matching of any families, which improves itself group by group, in plain numpy.

A value's score at an atom is a log posterior odds: that it belongs there rather than to an atom of its own. It is a
log prior odds (`increments`) plus a log predictive density less the log evidence of the value by itself (`singletons`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np

from modelweld.core.algorithm1 import NEW, SMALLEST_RISE, State, best_assignment
from modelweld.core.family import (
    Family,
    align_sign,
    condition_on,
    learn_from_values,
    log_prior,
    pools,
    rows_change,
    sum_by_atom,
)
from modelweld.core.prior import Fragments, Prior
from modelweld.core.tally import Held, Tally
from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.progress import track


class Board(Tally):
    """A tally that knows its values, its prior and how to do better.

    Parameters
    ----------
    stacks, families : sequences of equal length
        The arrays of one set, side by side: their evidences add.
    prior : Prior
        How probable matchings are.
    fragments : Fragments, optional
        Whether a group may hold an atom in several fragments.
    labels : int array (N,), optional
        The matching to begin with; default: every value is NEW.

    Attributes
    ----------
    steps : array (J,)
        Log prior odds of joining an atom that m other groups hold; at zero, of opening one.
    """

    engine = "numpy"
    margin = 0.0
    """By how much values are where they are is not known here."""
    _alone: Array | None = None

    def __init__(
        self,
        stacks: Sequence[Stack],
        families: Sequence[Family],
        prior: Prior,
        fragments: Fragments | None = None,
        labels: Index | None = None,
    ) -> None:
        self.stacks, self.fragments = list(stacks), fragments
        self.offsets, self.sizes = stacks[0].offsets, stacks[0].sizes
        self.set_prior(prior, len(self.sizes))
        bound = [condition_on(f, s) for f, s in zip(families, stacks, strict=True)]
        rows = [f.rows(s.values, s.variance, s.weight) for f, s in zip(bound, stacks, strict=True)]
        unplaced = np.full(self.offsets[-1], NEW, dtype=np.int64)
        pooled = [f for f in bound if fragments is not None and len(bound) == 1 and pools(f)]
        super().__init__(
            bound,
            rows,
            group_of_values(self.offsets),
            unplaced if labels is None else labels,
            may_repeat=fragments is not None,
            statistics=pooled[0].fragment_statistics(stacks[0]) if pooled else None,
        )
        self.score_alone()

    def set_prior(self, prior: Prior, J: int) -> None:
        """Score with this prior, as one of J groups."""
        self.prior, self.increments = prior, prior.increments(J)

    def at(self, labels: Index) -> Self:
        """Another board, at these labels."""
        other = copy(self)
        other.labels = labels
        other.recount()
        return other

    def without_fragments(self) -> Self:
        """Another board with the same matching, in which every group holds an atom once, as here it does."""
        other = self.at(self.labels.copy())
        other.fragments, other.may_repeat, other.statistics = None, False, None
        return other

    def make_rows(self) -> None:
        """Rows under the present hyperparameters."""
        self.rows = [f.rows(s.values, s.variance, s.weight) for f, s in zip(self.families, self.stacks, strict=True)]

    @property
    def singletons(self) -> Array:
        """Log evidence of each value by itself: found when it is first asked for."""
        if self._alone is None:
            found = [f.log_evidence(rows) for f, rows in zip(self.families, self.rows, strict=True)]
            self._alone = np.asarray(sum(found, np.zeros(len(self.labels))))
        return self._alone

    def score_alone(self) -> None:
        """Values by themselves score otherwise from here on."""
        self._alone = None

    @property
    def rows_change(self) -> bool:
        """Whether rows depend on what is learned."""
        return any(rows_change(f, s) for f, s in zip(self.families, self.stacks, strict=True))

    @property
    def delta(self) -> float:
        """Learned share of fragments beyond the first; zero where every group holds an atom once."""
        return 0.0 if self.fragments is None else self.fragments.delta

    def values_of(self, j: int) -> slice:
        """Where the values of group j stand."""
        return slice(self.offsets[j], self.offsets[j + 1])

    def sweep(self, order: Index) -> int:
        """Best assignment of every group given the others, in `order`."""
        changed = sum(self.step(int(j)) for j in track(order, "matching sites", len(order)))
        if changed:
            self.recount()
        return changed

    def place_new(self) -> None:
        """Sweep over the groups that have no atoms yet."""
        self.sweep(np.unique(self.group[self.labels == NEW]))

    def step(self, j: int) -> bool:
        """Give group j its best assignment given all others; whether that raised the objective."""
        group = self.values_of(j)
        if group.start == group.stop:
            return False
        first_time = self.labels[group.start] == NEW
        held = None if first_time else self.remember(group)
        if held is not None:
            self.take(group)
        atoms = self._choose(group, np.flatnonzero(self.counts), held)
        if atoms is None:
            assert held is not None
            self.put_back(held)
            return False
        self.put(group, self.open(atoms))
        return True

    def _choose(self, group: slice, there: Index, held: Held | None) -> Index | None:
        """The best of atoms that are `there`, or NEW, for a group that is in none; None: what it held is as good."""
        scores = self.scores(group, there)
        atoms = self.best_atoms(group, scores, there)
        if held is None:
            return atoms
        old, vacated = held.atoms, self.counts[held.atoms] == 0
        fragments_apart = self.fragments is not None and len(np.unique(old[vacated])) < vacated.sum()
        same = np.array_equal(atoms, np.where(vacated, NEW, old)) and not fragments_apart
        whole = self.fragments is not None or self.prior.surcharge(len(old)).any()  # else what stays gains nothing
        moved = np.flatnonzero(whole | (atoms != np.where(vacated, NEW, old)))
        gains = [0.0, 0.0] if same else [self.objective_gain(group.start + moved, x[moved]) for x in (atoms, old)]
        if gains[0] - gains[1] <= SMALLEST_RISE:
            return None
        # a value that was alone, or the first fragment that was, and is new again keeps its own slot: that is no change
        if self.fragments is not None:
            repeated = np.ones(len(old), dtype=bool)
            repeated[np.unique(old, return_index=True)[1]] = False
            vacated &= ~repeated
        return np.where((atoms == NEW) & vacated, old, atoms)

    def best_atoms(self, group: slice, scores: Array, atoms: Index) -> Index:
        """Where values that are in no atom belong, by their scores at these atoms: the best of all assignments."""
        L, K = scores.shape
        if self.fragments is not None:
            joining = self.increments[self.counts[atoms]]
            gain = scores - joining if self.statistics is None else self._contrasts(group, atoms)
            scores = self.fragments.fragment_scores(scores, gain)
        choice = best_assignment(scores, self.prior.surcharge(L), self.prior.most_new(L, K))
        best = np.full(L, NEW)
        best[choice != NEW] = atoms[choice[choice != NEW] % max(K, 1)]
        return best

    def _contrasts(self, group: slice, atoms: Index) -> Array:
        """About what each value of a group scores at each atom as a further fragment that is pooled."""
        own, sums = self.rows[0][group], self.sums[0][atoms]
        gain = self.pooling.log_contrast(own, sums)
        return np.asarray(gain - self.increments[0] - self.singletons[group, None])

    def scores(self, group: slice, atoms: Index) -> Array:
        """Log score of each value of a group at each atom, minus that of a new atom: (L, K)."""
        prior = self.increments[self.counts[atoms]] - self.increments[0] - self.singletons[group, None]
        return self.log_predictive(group, atoms, onto=prior)

    def objective_gain(self, group: Index, atoms: Index) -> float:
        """What the objective gains when values that are in no atom, all of one group, are put into these."""
        new = atoms == NEW
        places = np.where(new, len(self.counts) + np.cumsum(new), atoms)
        places, where = np.unique(places, return_inverse=True)
        fragments = np.bincount(where)
        known = places < len(self.counts)
        held = np.zeros(len(places), dtype=np.int64)
        held[known] = self.counts[places[known]]
        opened = int((held == 0).sum())
        value = float(self.increments[held].sum() - self.prior.surcharge(len(atoms))[:opened].sum())
        pooled = None if self.statistics is None else self.pool_rows(group, where, len(places))[0]
        for family, rows, sums in zip(self.families, self.rows, self.sums, strict=True):
            before = np.zeros((len(places), rows.shape[1]))
            before[held > 0] = sums[places[held > 0]]
            added = sum_by_atom(align_sign(family, rows[group], before[where]), where) if pooled is None else pooled
            after = before + added
            value += float((family.log_evidence(after) - family.log_evidence(before)).sum())
        return value if self.fragments is None else value + self.fragments.log_prob(fragments)

    def learn(self) -> None:
        """Hyperparameters of every family, of the prior and of fragments, given the matching."""
        self.set_prior(self.prior.learn(self.counts, self.sizes), len(self.sizes))
        if self.fragments is not None:
            self.fragments = self.fragments.learn(self.fragments_held())
        known = zip(self.families, self.stacks, self.sums, strict=True)
        self.families = [self._learn_family(*given) for given in known]
        if self.rows_change:
            self.make_rows()
            self.recount()
        self.score_alone()

    def _learn_family(self, family: Family, stack: Stack, sums: Array) -> Family:
        """Hyperparameters of a family given the matching: from means of fragments where these are pooled."""
        if self.statistics is None:
            return learn_from_values(family, stack, self.labels, sums)
        held, cell = np.unique(self.labels * len(self.sizes) + self.group, return_inverse=True)
        statistics = sum_by_atom(self.statistics, cell)
        pooling = self.pooling.learn_fragments(statistics)
        return learn_from_values(pooling, pooling.pool_stack(statistics, self.offsets), held // len(self.sizes), sums)

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms, plus log priors of what was learned."""
        held = self.counts > 0
        value = self.prior.log_prob(self.counts[held], self.sizes)
        value += 0.0 if self.fragments is None else self.fragments.log_prob(self.fragments_held())
        for family, sums in zip(self.families, self.sums, strict=True):
            value += float(family.log_evidence(sums[held]).sum()) + log_prior(family)
        return value

    def estimates(self) -> list[Array]:
        """Global values (K, D) of each array."""
        return [f.estimate(sums) for f, sums in zip(self.families, self.sums, strict=True)]

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching."""
        for group in map(self.values_of, groups):
            self.take(group)
            self.labels[group] = NEW

    def state(self) -> State:
        """Labels, families, prior and fragments."""
        return State(self.labels.copy(), list(self.families), self.prior, self.fragments)

    def restore(self, state: State) -> None:
        """Go back to an earlier state."""
        self.labels, self.families, prior, self.fragments = state
        self.set_prior(prior, len(self.sizes))
        if self.rows_change:
            self.make_rows()
        self.recount()
        self.score_alone()
