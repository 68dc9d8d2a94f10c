"""Algorithm 1 of the paper: one-group assignments in turn with hyperparameters, all raising one objective.

    objective = log P(matching) + sum over atoms of the log evidence of the values matched to them

`alternate` is the algorithm; a *board* holds a matching and knows how to improve it group by group. `Board` is the
reference, for every family; `modelweld.matching.compiled.CompiledBoard` does the same for large Gaussian jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from modelweld.families.base import Family, summed
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, group_of_rows
from modelweld.matching.assignment import NEW, best_assignment
from modelweld.priors.beta_bernoulli import Prior
from modelweld.priors.pieces import Copies
from modelweld.progress import tell, told

SMALLEST_RISE = 1e-7
"""Nats by which a new assignment must beat the present one: ties and rounding are not improvements."""


class AnyBoard(Protocol):
    """A matching in the making: labels number the atoms, `counts` says how many groups hold each."""

    labels: Index
    prior: Prior

    @property
    def counts(self) -> Index:
        """Number of groups at each atom."""

    @property
    def families(self) -> Sequence[Family]:
        """The families with their present hyperparameters."""

    def sweep(self, order: Index) -> int:
        """Give each group in turn its best assignment; returns how many groups changed."""

    def learn(self) -> None:
        """Update the families' hyperparameters."""

    def objective(self) -> float:
        """The one number."""

    def estimates(self) -> list[Array]:
        """Global values (K, D) of each array."""

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching; the next sweep matches them as if for the first time."""

    def state(self) -> Any:
        """What `restore` needs to come back to the present matching and hyperparameters."""

    def restore(self, state: Any) -> None:
        """Go back to an earlier state."""


@dataclass
class Progress:
    """How a run went: the objective after every sweep and every update, and whether the last sweep was idle."""

    history: list[float] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    converged: bool = False

    @property
    def sweeps(self) -> int:
        """Number of sweeps so far."""
        return len(self.changes)


def alternate(board: AnyBoard, J: int, rng: np.random.Generator, max_sweeps: int) -> Progress:
    """Algorithm 1: until nothing changes, match every group given the others, then learn hyperparameters."""
    progress = Progress()
    while progress.sweeps < max_sweeps:
        progress.changes.append(board.sweep(rng.permutation(J)))
        progress.history.append(board.objective())
        if progress.changes[-1] == 0:
            progress.converged = True
            break
        tell(f"learning hyperparameters after sweep {progress.sweeps}", 0)
        board.learn()
        progress.history.append(board.objective())
    return progress


class Board:
    """The reference board: any families, plain numpy.

    Parameters
    ----------
    stacks, families : sequences of equal length
        The arrays of one set, side by side: their evidences add.
    prior : Prior
        How probable matchings are.
    copies : Copies, optional
        Whether a group may hold an atom in several pieces.
    """

    order: Index | None = None  # groups stand in canonical order

    def __init__(
        self, stacks: Sequence[Stack], families: Sequence[Family], prior: Prior, copies: Copies | None = None
    ) -> None:
        self.stacks, self.copies = list(stacks), copies
        self.families: list[Family] = [f.seeing(s) for f, s in zip(families, stacks, strict=True)]
        self.offsets = stacks[0].offsets
        self.sizes = stacks[0].sizes
        self.group = group_of_rows(self.offsets)
        self._believe(prior)
        self.labels = np.full(self.offsets[-1], NEW, dtype=np.int64)
        self._make_rows()
        self._tabulate()

    def _make_rows(self) -> None:
        """Rows of all values, and what each scores alone."""
        self.rows = [f.rows(s.values, s.variance, s.weight) for f, s in zip(self.families, self.stacks, strict=True)]
        self._score_alone()

    def _tabulate(self) -> None:
        """Labels, counts and sums of atoms, numbered without gaps."""
        placed = self.labels != NEW
        atoms, self.labels[placed] = np.unique(self.labels[placed], return_inverse=True)
        held = np.unique(np.stack([self.labels[placed], self.group[placed]]), axis=1)
        self.counts = np.bincount(held[0], minlength=len(atoms))
        self.sums = [summed(rows, self.labels, len(atoms)) for rows in self.rows]

    def _believe(self, prior: Prior) -> None:
        self.prior = prior
        self.steps = prior.steps(len(self.sizes))

    def _score_alone(self) -> None:
        self.alone = np.zeros(len(self.labels))
        for family, rows in zip(self.families, self.rows, strict=True):
            self.alone += family.log_evidence(rows)

    def sweep(self, order: Index) -> int:
        """Best assignment of every group given the others, in `order`."""
        changed = sum(self.step(int(j)) for j in told(order, "matching sites", len(order)))
        if changed:
            self._tabulate()
        return changed

    def step(self, j: int) -> bool:
        """Give group j its best assignment given all others; whether that raised the objective."""
        group = slice(self.offsets[j], self.offsets[j + 1])
        old = self.labels[group].copy()
        if len(old) == 0:
            return False
        first_time = bool(old[0] == NEW)
        if not first_time:
            saved = [sums[old] for sums in self.sums]
            self._shift(group, old, -1)
        slots = self._best_slots(group)
        if not first_time:
            vacated = self.counts[old] == 0
            pieces_apart = self.copies is not None and len(np.unique(old[vacated])) < vacated.sum()
            same = np.array_equal(slots, np.where(vacated, NEW, old)) and not pieces_apart
            if same or self.worth(group, slots) - self.worth(group, old) <= SMALLEST_RISE:
                self.counts[np.unique(old)] += 1
                for sums, before in zip(self.sums, saved, strict=True):
                    sums[old] = before
                return False
            # a value that was alone and is new again keeps its own slot: that is no change
            first_there = np.zeros(len(old), dtype=bool)
            first_there[np.unique(old, return_index=True)[1]] = True
            slots = np.where((slots == NEW) & vacated & first_there, old, slots)
        self._open(slots)
        self.labels[group] = slots
        self._shift(group, slots, +1)
        return True

    def _best_slots(self, group: slice) -> Index:
        """Where the values of a group that was taken out belong: the best of all assignments."""
        atoms = np.flatnonzero(self.counts)
        scores = self.scores(group, atoms)
        L, K = scores.shape
        if self.copies is not None:
            joining = self.steps[self.counts[atoms]]
            scores = self.copies.piece_scores(scores, scores - joining)
        choice = best_assignment(scores, self.prior.surcharge(L), self.prior.most_new(L, K))
        slots = np.full(L, NEW)
        slots[choice != NEW] = atoms[choice[choice != NEW] % max(K, 1)]
        return slots

    def scores(self, group: slice, atoms: Index) -> Array:
        """Log score of each value of a group at each atom, minus that of a new atom: (L, K)."""
        scores: Array = self.steps[self.counts[atoms]] - self.steps[0] - self.alone[group, None]
        for family, rows, sums in zip(self.families, self.rows, self.sums, strict=True):
            scores = scores + family.gain(rows[group], sums[atoms])
        return scores

    def worth(self, group: slice, slots: Index) -> float:
        """What the objective gains when a group that was taken out is put into these slots."""
        new = slots == NEW
        places = np.where(new, len(self.counts) + np.cumsum(new), slots)
        places, where = np.unique(places, return_inverse=True)
        pieces = np.bincount(where)
        known = places < len(self.counts)
        held = np.zeros(len(places), dtype=np.int64)
        held[known] = self.counts[places[known]]
        opened = int((held == 0).sum())
        value = float(self.steps[held].sum() - self.prior.surcharge(len(slots))[:opened].sum())
        for family, rows, sums in zip(self.families, self.rows, self.sums, strict=True):
            before = np.zeros((len(places), rows.shape[1]))
            before[held > 0] = sums[places[held > 0]]
            after = before.copy()
            np.add.at(after, where, rows[group])
            value += float((family.log_evidence(after) - family.log_evidence(before)).sum())
        return value if self.copies is None else value + self.copies.log_prob(pieces)

    def _open(self, slots: Index) -> None:
        """Replace NEW in `slots` by slots of new, empty atoms."""
        new = np.flatnonzero(slots == NEW)
        if len(new) == 0:
            return
        slots[new] = len(self.counts) + np.arange(len(new))
        self.counts = np.pad(self.counts, (0, len(new)))
        self.sums = [np.pad(sums, ((0, len(new)), (0, 0))) for sums in self.sums]

    def _shift(self, group: slice, slots: Index, sign: int) -> None:
        """Add a group's values to the atoms in `slots`, or take them away."""
        self.counts[np.unique(slots)] += sign
        for sums, rows in zip(self.sums, self.rows, strict=True):
            if self.copies is None:  # no slot comes twice
                sums[slots] += sign * rows[group]
            else:
                np.add.at(sums, slots, sign * rows[group])

    @property
    def pieces(self) -> Index:
        """In how many pieces each (group, atom) is held."""
        return np.unique(np.stack([self.labels, self.group]), axis=1, return_counts=True)[1]

    def learn(self) -> None:
        """Hyperparameters of every family, of the prior and of copies, given the matching."""
        self._believe(self.prior.learned(self.counts, self.sizes))
        if self.copies is not None:
            self.copies = self.copies.learned(self.pieces)
        self.families = [
            f.learn(s, self.labels, sums) for f, s, sums in zip(self.families, self.stacks, self.sums, strict=True)
        ]
        if any(f.rows_change(s) for f, s in zip(self.families, self.stacks, strict=True)):
            self._make_rows()
            self._tabulate()
        else:
            self._score_alone()

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms, plus log priors of what was learned."""
        held = self.counts > 0
        value = self.prior.log_prob(self.counts[held], self.sizes)
        value += 0.0 if self.copies is None else self.copies.log_prob(self.pieces)
        for family, sums in zip(self.families, self.sums, strict=True):
            value += float(family.log_evidence(sums[held]).sum()) + family.log_prior()
        return value

    def estimates(self) -> list[Array]:
        """Global values (K, D) of each array."""
        return [f.estimate(sums) for f, sums in zip(self.families, self.sums, strict=True)]

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching."""
        for j in groups:
            self.labels[self.offsets[j] : self.offsets[j + 1]] = NEW
        self._tabulate()

    def state(self) -> tuple[Index, list[Family], Prior, Copies | None]:
        """Labels, families, prior and copies."""
        return self.labels.copy(), list(self.families), self.prior, self.copies

    def restore(self, state: tuple[Index, list[Family], Prior, Copies | None]) -> None:
        """Go back to an earlier state."""
        self.labels, self.families, prior, self.copies = state
        self._believe(prior)
        self._make_rows()
        self._tabulate()
