"""The state of a matching: the atom of every value, and of every atom the number of its groups and its sums of rows.

Rows are a family's sufficient statistics of a value; an atom's sums of them are all that its score needs. Whatever
moves a matching moves this: sweeps (`core.board`), unions of atoms (`fit.search.moves`), the sampler
(`results.posterior.sampler`), the centre of shards (`shards.centre`). What large Gaussian jobs keep instead is in
`fit.engines.compiled`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from modelweld.core.algorithm1 import NEW
from modelweld.core.family import Family, Pools, align_sign, gather, is_signless, log_predictive, sum_by_atom
from modelweld.core.values import Array, Index


class Held(NamedTuple):
    """Where values are, and what `Tally.put_back` needs to bring them back there to the last bit."""

    values: Index | slice
    atoms: Index
    counts: Index
    sums: list[Array]


class Tally:
    """Labels, counts and sums.

    Parameters
    ----------
    families : sequence of Family
        One per array of the set.
    rows : sequence of arrays (N, k)
        The values' rows under these families.
    group : int array (N,)
        The group of each value; a group counts once at an atom, in however many fragments it holds it.
    labels : int array (N,)
        The atom of each value, by any number; NEW where it has none yet.
    holds : int array (N,), optional
        How many groups each value stands for, where it is itself a sum of values (an atom of a shard); default one.
    may_repeat : bool
        Whether values that are put or taken together may share an atom, as fragments of it.
    statistics : array (N, s), optional
        Of fragments that are pooled (`core.family.Pools`), where there is one array; all fragments of a group are then
        put and taken together.
    room : bool
        Whether to keep a slot for every value, so that opening atoms fills vacant slots instead of making more.

    Attributes
    ----------
    counts : int array (K,)
        Number of groups at each atom; zero where a slot is vacant.
    sums : list of arrays (K, k)
        Sums of the rows of each atom's values.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> family = Gaussian(mean=0.0, noise=1.0, spread=9.0)
    >>> rows = family.rows(np.array([[1.0], [5.0], [1.5]]))
    >>> tally = Tally([family], [rows], np.array([0, 0, 1]), np.array([7, 3, 7]))
    >>> tally.labels, tally.counts
    (array([1, 0, 1]), array([1, 2]))
    >>> tally.take(slice(2, 3))
    >>> tally.counts, tally.log_predictive(slice(2, 3), np.array([0, 1])).round(1)
    (array([1, 1]), array([[-3.6, -1.3]]))
    """

    def __init__(
        self,
        families: Sequence[Family],
        rows: Sequence[Array],
        group: Index,
        labels: Index,
        *,
        holds: Index | None = None,
        may_repeat: bool = False,
        statistics: Array | None = None,
        room: bool = False,
    ) -> None:
        self.families, self.rows, self.statistics = list(families), list(rows), statistics
        self.group, self.holds, self.may_repeat, self.room = group, holds, may_repeat, room
        self.labels = labels
        self.recount()

    def recount(self) -> None:
        """Number the atoms without gaps and add everything again, which also rids the sums of rounding."""
        placed = np.flatnonzero(self.labels != NEW)
        atoms, numbers = np.unique(self.labels[placed], return_inverse=True)
        self.labels = np.full(len(self.labels), NEW, dtype=np.int64)
        self.labels[placed] = numbers
        slots = len(self.labels) if self.room else len(atoms)
        groups = int(self.group.max(initial=0)) + 1
        held, first, cell = np.unique(numbers * groups + self.group[placed], return_index=True, return_inverse=True)
        if self.holds is None:
            self.counts = np.bincount(held // groups, minlength=slots)
        else:
            self.counts = np.zeros(slots, dtype=np.int64)
            np.add.at(self.counts, held // groups, self.holds[placed[first]])
        if self.statistics is not None:
            self.sums = [sum_by_atom(self.pool_rows(placed, cell, len(held))[0], held // groups, slots)]
            return
        pairs = [gather(f, rows, self.labels, slots) for f, rows in zip(self.families, self.rows, strict=True)]
        self.rows, self.sums = [rows for rows, _ in pairs], [sums for _, sums in pairs]

    @property
    def pooling(self) -> Pools:
        """The family that pools fragments, where there are statistics of them."""
        return cast("Pools", self.families[0])

    def pool_rows(self, values: Index | slice, cell: Index, number: int) -> list[Array]:
        """Rows (C, k) of cells, each of the fragments that one group has of one atom; values are in these cells."""
        found = [sum_by_atom(rows[values], cell, number) for rows in self.rows]
        if self.statistics is not None and number < len(cell):
            several = np.flatnonzero(np.bincount(cell, minlength=number) > 1)
            pooled = sum_by_atom(self.statistics[values], cell, number)[several]
            found[0][several] = self.pooling.pool_fragments(pooled)
        return found

    def fragments_held(self) -> Index:
        """In how many fragments each (atom, group) is held, one number per pair."""
        groups = int(self.group.max(initial=0)) + 1
        return np.asarray(np.unique(self.labels * groups + self.group, return_counts=True)[1])

    def tally(self) -> Tally:
        """Another tally of the same values, to be moved apart from this one."""
        other = copy.copy(self)
        other.labels, other.counts = self.labels.copy(), self.counts.copy()
        other.sums = [sums.copy() for sums in self.sums]
        other.rows = [rows.copy() if is_signless(f) else rows for f, rows in zip(self.families, self.rows, strict=True)]
        return other

    def holders(self, atom: int) -> Index:
        """The groups that hold an atom."""
        return np.unique(self.group[self.labels == atom])

    def labels_by_content(self) -> Index:
        """The labels as they are: groups and values were put in order before."""
        return self.labels

    def remember(self, values: Index | slice) -> Held:
        """What it takes to undo `take` without a trace."""
        atoms = self.labels[values].copy()
        return Held(values, atoms, self.counts[atoms], [sums[atoms] for sums in self.sums])

    def take(self, values: Index | slice, *, counted: bool = True) -> None:
        """Take values out of their atoms; their labels stay until they are put elsewhere.

        Not `counted` are fragments of atoms that their group still holds in others.
        """
        atoms = self.labels[values]
        self._shift_cells(values, -1, counted)
        vacant = atoms[self.counts[atoms] == 0]
        for sums in self.sums:
            sums[vacant] = 0.0  # not even rounding is left

    def put(self, values: Index | slice, atoms: Index, *, counted: bool = True) -> None:
        """Add values that are in no atom to these; not `counted` as in `take`."""
        self.labels[values] = atoms
        for family, rows, sums in zip(self.families, self.rows, self.sums, strict=True):
            if is_signless(family):
                rows[values] = align_sign(family, rows[values], sums[atoms])
        self._shift_cells(values, +1, counted)

    def put_back(self, held: Held) -> None:
        """Undo `take` of values that were remembered before it."""
        self.labels[held.values] = held.atoms
        self.counts[held.atoms] = held.counts
        for sums, before in zip(self.sums, held.sums, strict=True):
            sums[held.atoms] = before

    def _shift_cells(self, values: Index | slice, sign: int, counted: bool) -> None:
        """Add values to their atoms or take them away, those of one atom together."""
        atoms, groups = self.labels[values], self._groups(values, counted)
        if not self.may_repeat:
            self.shift(atoms, [rows[values] for rows in self.rows], sign, groups)
            return
        distinct, first, where = np.unique(atoms, return_index=True, return_inverse=True)
        rows = self.pool_rows(values, where, len(distinct))
        self.shift(distinct, rows, sign, groups if isinstance(groups, int) else groups[first])

    def _groups(self, values: Index | slice, counted: bool) -> Index | int:
        """How many groups values stand for."""
        return 0 if not counted else 1 if self.holds is None else self.holds[values]

    def shift(self, atoms: Index, rows: Sequence[Array], sign: int, groups: Index | int = 1) -> None:
        """Add rows, of one group or of so many `groups` each, to different atoms, or take them away."""
        self.counts[atoms] += sign * groups
        for sums, own in zip(self.sums, rows, strict=True):
            sums[atoms] += sign * own

    def open(self, atoms: Index) -> Index:
        """These atoms with vacant slots where they are NEW; without `room`, slots vacated before stay as they are."""
        new = np.flatnonzero(atoms == NEW)
        opened = atoms.copy()
        if self.room:
            opened[new] = np.flatnonzero(self.counts == 0)[: len(new)]
        elif len(new):
            opened[new] = len(self.counts) + np.arange(len(new))
            self.counts = np.concatenate([self.counts, np.zeros(len(new), dtype=np.int64)])
            self.sums = [np.concatenate([sums, np.zeros((len(new), sums.shape[1]))]) for sums in self.sums]
        return opened

    def join(self, a: int, b: int, groups: int) -> None:
        """Make one atom, a, of two that so many `groups` hold together; slot b is vacant then."""
        self.labels[self.labels == b] = a
        self.counts[a], self.counts[b] = groups, 0
        for family, sums in zip(self.families, self.sums, strict=True):
            sums[a] += align_sign(family, sums[b : b + 1], sums[a : a + 1])[0]
            sums[b] = 0.0

    def log_predictive(self, values: Index | slice, atoms: Index, onto: Array | float = 0.0) -> Array:
        """What each value that is in no atom would add to each of these, over all arrays: (L, A); added to `onto`."""
        for family, rows, sums in zip(self.families, self.rows, self.sums, strict=True):
            onto = onto + log_predictive(family, rows[values], sums[atoms])
        return np.asarray(onto)

    def evidence(self, sums: Sequence[Array]) -> float:
        """Log evidence of atoms with these sums, over all arrays."""
        return float(sum(f.log_evidence(s).sum() for f, s in zip(self.families, sums, strict=True)))
