"""A board for thousands of values per group: only pairs that can beat a new atom are scored.

A family that can say which pairs these are (`Family.contenders`) makes all others cost one multiplication per
dimension; the assignment is done by connected components (`assign`). Labels are those of the reference.

Merging looks at fewer unions than the reference: at those of two atoms of which one has a member that would rather
belong to the other than be alone. Where every member would rather be alone, a union that raises the objective is
conceivable; in `tests/test_sparse.py` and `experiments/directions` there was none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.algorithm1 import NEW, SMALLEST_RISE, best_assignment
from modelweld.core.board import Board
from modelweld.core.family import align_sign, log_evidence_of_unions
from modelweld.core.tally import Held
from modelweld.core.values import Array, Index, blocks
from modelweld.families.capabilities import find_candidates


class Scored(NamedTuple):
    """Scores of some pairs of L rows and K columns; all others are below zero."""

    rows: Index
    columns: Index
    scores: Array
    shape: tuple[int, int]


def assign(scored: Scored) -> Index:
    """Column of each row, at most one row per column, or NEW: the assignment of `best_assignment`.

    Rows and columns that no pair of positive score connects do not concern each other.

    Examples
    --------
    >>> pairs = Scored(np.array([0, 1, 2]), np.array([4, 4, 0]), np.array([1.0, 2.0, 3.0]), (3, 5))
    >>> assign(pairs)
    array([-1,  4,  0])
    """
    L, K = scored.shape
    choice = np.full(L, NEW, dtype=np.int64)
    good = scored.scores > 0
    rows, columns, scores = scored.rows[good], scored.columns[good], scored.scores[good]
    if not len(rows):
        return choice
    graph = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, L + columns)), shape=(L + K, L + K))
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    order = np.argsort(component[rows], kind="stable")
    first = np.flatnonzero(np.diff(component[rows[order]], prepend=-1))
    for pairs in np.split(order, first[1:]):
        if len(pairs) == 1:
            choice[rows[pairs]] = columns[pairs]
            continue
        these, i = np.unique(rows[pairs], return_inverse=True)
        those, k = np.unique(columns[pairs], return_inverse=True)
        table = np.full((len(these), len(those)), -1.0)
        table[i, k] = scores[pairs]
        found = best_assignment(table, np.zeros(len(these)), len(these))
        choice[these] = np.where(found == NEW, NEW, those[found])
    return choice


class SparseBoard(Board):
    """A board of one array whose family names contenders."""

    engine = "sparse"
    _seen: dict[int, tuple[Index, Index]] | None = None
    """Of every group, the pairs of values and atoms that contended in the last sweep, if it left all as it was."""

    def sweep(self, order: Index) -> int:
        """As the reference sweeps; where nothing changes, what contended is kept for `unions`."""
        self._seen = {}
        changed = super().sweep(order)
        if changed:
            self._seen = None
        return changed

    def recount(self) -> None:
        """As the reference; what contended before is forgotten."""
        self._seen = None
        super().recount()

    def learn(self) -> None:
        """As the reference; what contended before is forgotten."""
        self._seen = None
        super().learn()

    def _choose(self, group: slice, there: Index, held: Held | None) -> Index | None:
        """As the reference chooses."""
        if held is None:
            return _atoms(assign(self.scored(group, there)), there)
        old = np.where(self.counts[held.atoms] == 0, NEW, held.atoms)
        scored = self.scored(group, there, old)
        new = _atoms(assign(scored), there)
        rise = self._worth(scored, there, new) - self._worth(scored, there, old)
        if np.array_equal(new, old) or rise <= SMALLEST_RISE:
            return None
        # a value that was alone and is new again keeps its own slot: that is no change
        return np.where((new == NEW) & (old == NEW), held.atoms, new)

    def scored(self, group: slice, there: Index, also: Index | None = None) -> Scored:
        """Scores of pairs that may be above zero, and of each value at the atom it is `also` asked about."""
        [family], [rows], [sums] = self.families, self.rows, self.sums
        odds, own, atoms = self.increments[self.counts[there]] - self.increments[0], rows[group], sums[there]
        contenders = find_candidates(family, own, atoms, odds)
        assert contenders is not None
        i, k = contenders
        if self._seen is not None:
            self._seen[int(self.group[group.start])] = group.start + i, there[k]
        if also is not None:
            at = np.full(len(self.counts), NEW)
            at[there] = np.arange(len(there))
            staying = np.flatnonzero(also != NEW)
            pairs = np.unique(np.append(i * len(there) + k, staying * len(there) + at[also[staying]]))
            i, k = pairs // max(len(there), 1), pairs % max(len(there), 1)
        together = np.empty(len(i))
        for part in blocks(len(i), own.shape[1]):
            these = atoms[k[part]]
            together[part] = family.log_evidence(align_sign(family, own[i[part]], these) + these)
        together -= family.log_evidence(atoms)[k]
        return Scored(i, k, together - self.singletons[group][i] + odds[k], (len(own), len(there)))

    def _worth(self, scored: Scored, there: Index, atoms: Index) -> float:
        """Sum of the scores of values at these atoms; as a new atom a value scores zero."""
        return float(scored.scores[atoms[scored.rows] == there[scored.columns]].sum())

    def unions(self) -> tuple[Index, Index]:
        """Pairs of atoms worth trying to join: one has a member that would rather be of the other than alone.

        After a sweep that changed nothing they are known: it had a group's own values out of its atoms, but two atoms
        of which both hold that group are not joined anyway.
        """
        K, pairs = len(self.counts), []
        for j in range(len(self.sizes)):
            values, other = self._find_contended(j)
            one = self.labels[values]
            pairs.append(np.unique(np.minimum(one, other) * K + np.maximum(one, other)))
        both = np.unique(np.concatenate(pairs))
        a, b = both // K, both % K
        return a[a != b], b[a != b]

    def _find_contended(self, j: int) -> tuple[Index, Index]:
        """Values of group j, and atoms, pair by pair, at which they may score above zero."""
        if self._seen is not None and j in self._seen:
            return self._seen[j]
        [family], [rows], [sums] = self.families, self.rows, self.sums
        group = self.values_of(j)
        odds = self.increments[np.minimum(self.counts, len(self.increments) - 1)] - self.increments[0]
        contenders = find_candidates(family, rows[group], sums, odds)
        assert contenders is not None
        return group.start + contenders[0], contenders[1]


def _atoms(choice: Index, there: Index) -> Index:
    """The atoms that columns stand for; NEW stays NEW."""
    found = np.full(len(choice), NEW, dtype=np.int64)
    found[choice != NEW] = there[choice[choice != NEW]]
    return found


def join_sparsely(board: SparseBoard) -> int:
    """Join pairs of atoms among `unions`, the best first, as long as the objective rises; returns how many."""
    a, b = board.unions()
    held = np.zeros((len(board.counts), len(board.sizes)), dtype=bool)
    held[board.labels, board.group] = True
    apart = ~(held[a] & held[b]).any(1)
    rises = _rises(board, a[apart], b[apart])
    joined, gone = 0, np.zeros(len(board.counts), dtype=bool)
    for i in np.argsort(-rises):
        one, other = int(a[apart][i]), int(b[apart][i])
        if rises[i] <= SMALLEST_RISE:
            break
        if gone[one] or gone[other]:
            continue  # what is left of them is looked at in the next round
        board.labels[board.labels == other] = one
        gone[[one, other]] = True
        joined += 1
    if joined:
        board.recount()
    return joined


def _rises(board: SparseBoard, a: Index, b: Index) -> Array:
    """By how much joining atoms that share no group would raise the objective."""
    [family], [sums] = board.families, board.sums
    rate = np.concatenate([[0.0], np.cumsum(board.increments)])
    prior = rate[board.counts[a] + board.counts[b]] - rate[board.counts[a]] - rate[board.counts[b]]
    evidence = family.log_evidence(sums)
    return np.asarray(prior + log_evidence_of_unions(family, sums, a, b) - evidence[a] - evidence[b])
