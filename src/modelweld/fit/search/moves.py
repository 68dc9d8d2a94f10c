"""Algorithm 1 with moves of whole atoms, each kept only if the objective rises: unions and splits.

Sweeps stop where no single group can do better. Ways out, besides atoms that are dissolved (`fit.search.dissolution`):

- `merge` joins the two atoms whose union raises the objective most, again and again; with fragments (over-segmentation)
  also atoms that share groups: their values become fragments of one atom;
- `split` parts an atom in two (`fit.search.partings`), where its members are at hand and fragments are not pooled;
- `join_common_splits` joins, at the end, two atoms that are one which sites split alike.

Where all sites are given the same number of components too many, all cut the same wide component in the same way. The
fragments match across sites as if they were two atoms. As fragments of one atom each site would have a contrast of its
own (`families.math.fragments`); here the sites that hold both have one in common, drawn once:

    x_j ~ N(d, noise + e_j),  d ~ N(0, 2 tau W)    instead of    x_j ~ N(0, 2 tau W + e_j).

An atom is split so with the odds of one more fragment, delta / (1 - delta), by a share of its sites of which nothing is
known: n of N have probability B(n + 1, N - n + 1). A site that does not split it holds the mean of the fragments, up to
noise, and neither of them: neighbours that are held alone stay two atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from modelweld.core.algorithm1 import CLEAR, COMPILED, SMALLEST_RISE, Run, alternate, best_run
from modelweld.core.board import Board
from modelweld.core.family import Unites, is_signless, log_evidence_of_unions, log_predictive, pools, sum_by_atom
from modelweld.core.match import MOST_SWEEPS
from modelweld.core.prior import Fragments
from modelweld.core.tally import Tally
from modelweld.core.values import Array, Index, blocks
from modelweld.families.math import fragments
from modelweld.families.real_values import Gaussian
from modelweld.fit.engines.sparse_board import SparseBoard, join_sparsely
from modelweld.fit.engines.sweep_engines import Movable
from modelweld.fit.search.dissolution import dissolve
from modelweld.fit.search.partings import split
from modelweld.progress import report_progress

LARGEST_TABLE = 4_000_000
"""Pairs of atoms, or of atoms and groups, up to which atoms of a compiled board are joined, and of values up to which
fragments start from an agglomeration: 32 MB. A reference board with as many atoms is sparse, and has its own way
(`fit.engines.sparse_board`)."""

SINGLES_BLOCK = 256
"""Values that are compared with all that come after them at a time."""

HOPELESS = 20.0
"""Nats: what lowers the objective by more with either of two atoms is not scored again with their union, which is
more certain of its place than they were. (Where that is wrong, a later round of moves will see it.)"""


AnyBoardHere = TypeVar("AnyBoardHere", bound=Movable)


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    `moves` merges and splits; `max_sweeps` bounds each run of sweeps; small atoms are dissolved until so many were in
    vain (`patience`, zero: not at all).
    """

    moves: bool
    max_sweeps: int
    patience: float = 0


def search_from(
    boards: Sequence[AnyBoardHere], J: int, rng: np.random.Generator, effort: Effort
) -> tuple[AnyBoardHere, Run]:
    """Algorithm 1 from every start; the first of the best objectives, its atoms merged, split and dissolved."""
    board, progress = best_run(boards, J, rng, effort.max_sweeps, give_up=effort.moves)
    if effort.moves and board.margin < CLEAR:
        progress = merge_and_split(board, J, rng, progress, effort.max_sweeps)
        if effort.patience:
            progress = dissolve(board, J, rng, progress, effort.max_sweeps, effort.patience)
    return board, progress


def merge_and_split(board: Movable, J: int, rng: np.random.Generator, progress: Run, max_sweeps: int) -> Run:
    """Merge, split (see above) and sweep in turn until none of them raises the objective."""
    history, changes = list(progress.history), list(progress.changes)
    converged, cut_short = progress.converged, progress.cut_short
    for round in range(MOST_SWEEPS + 1):
        if merge(board) + (split(board) if isinstance(board, Board) and board.statistics is None else 0) == 0:
            break
        cut_short |= round == MOST_SWEEPS
        board.learn()
        history.append(board.objective())
        after = alternate(board, J, rng, max_sweeps)
        history += after.history
        changes += after.changes
        converged = after.converged
    return Run(history, changes, converged, cut_short=cut_short)


def merge(board: Movable) -> int:
    """Join pairs of atoms, the best first, as long as the objective rises; returns how many were joined."""
    K = len(board.counts)
    if K < 2 or (board.engine == COMPILED and K * max(K, len(board.sizes)) > LARGEST_TABLE):
        return 0
    if isinstance(board, SparseBoard):
        return join_sparsely(board)
    pairs = Pairs(board, board.fragments)
    joined = pairs.join_all()
    if joined:
        board.labels = pairs.tally.labels
        board.recount()
    return joined


class Pairs:
    """By how much joining each two atoms of a board would raise the objective, were they held in `fragments` like
    these.

    The union has the evidence of both atoms' values and the prior's score for the groups that hold either; where both
    hold a group, r + s fragments stand in place of r and s, which is one factor delta more and one (1 - delta) less
    (without fragments such atoms cannot be joined), and are pooled where the family does so.

    Attributes
    ----------
    rises : array (K, K)
        Minus infinity where two atoms may not be joined, and on the diagonal.
    """

    def __init__(self, board: Movable, fragments: Fragments | None) -> None:
        self.tally, self.fragments = board.tally(), fragments
        K, J = len(self.tally.counts), len(board.sizes)
        self.families, self.sums, self.counts = self.tally.families, self.tally.sums, self.tally.counts
        self.evidence = sum((f.log_evidence(s) for f, s in zip(self.families, self.sums, strict=True)), np.zeros(K))
        self.held_fragments = np.zeros((K, J), dtype=np.int64)
        np.add.at(self.held_fragments, (self.tally.labels, self.tally.group), 1)
        self.log_ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, 2 * board.sizes.max(initial=0) + 1)))])
        self.held = (self.held_fragments > 0).astype(np.float64)
        self.cells = None if self.tally.statistics is None else Cells(self.tally, self.held_fragments > 0)
        self.log_rate = np.concatenate([[0.0], np.cumsum(board.increments)])
        self.rises = self._all_rises(single=len(board.labels) == K)
        self.best = self.rises.argmax(1)
        self.highest = self.rises[np.arange(K), self.best]

    def _all_rises(self, single: bool) -> Array:
        """The rises of all pairs; where every atom is a `single` value, the family's `log_predictive` is the quicker
        way.
        """
        rises = self._prior_of_all()
        np.fill_diagonal(rises, -np.inf)
        if single:
            return self._with_singles(rises)
        if self.cells is None and (tables := self._evidence_of_all()):
            return np.asarray(sum(tables, rises) - self.evidence[:, None] - self.evidence)
        a, b = np.nonzero(np.triu(rises > -np.inf))  # where two may be joined at all
        for part in blocks(len(a), sum(s.shape[1] for s in self.sums)):
            report_progress("comparing atoms", part.start, len(a))
            one, other = a[part], b[part]
            rises[one, other] += self._evidence_with(one, other)
            rises[other, one] = rises[one, other]
        return rises

    def _evidence_of_all(self) -> list[Array]:
        """Of the unions of any two atoms, a table for each family; nothing where one has no quicker way than pairs."""
        tables = list[Array]()
        for family, sums in zip(self.families, self.sums, strict=True):
            if not isinstance(family, Unites) or is_signless(family):
                return []
            table = family.log_evidence_of_all_unions(sums)
            if table is None:
                return []
            tables.append(table)
        return tables

    def _with_singles(self, rises: Array) -> Array:
        """These rises, with what the evidence gains from any two values: half of the table, then its mirror image."""
        group = self.held.argmax(1)
        a, b = np.nonzero(np.triu(group[:, None] == group, 1))
        together = rises[a, b] + self._evidence_with(a, b)
        for start in range(0, len(rises), SINGLES_BLOCK):
            part, rest = slice(start, start + SINGLES_BLOCK), slice(start, None)
            gain = sum(
                (log_predictive(f, s[part], s[rest]) for f, s in zip(self.families, self.sums, strict=True)),
                np.zeros(()),
            )
            rises[part, rest] += gain - self.evidence[part, None]
            rises[rest, part] = rises[part, rest].T
        rises[a, b] = rises[b, a] = together
        return rises

    def _prior_of_all(self) -> Array:
        """`_prior_with` of all pairs."""
        shared = self.held @ self.held.T
        union = (self.counts[:, None] + self.counts - shared).astype(np.int64)
        gain = self.log_rate[union] - self.log_rate[self.counts][:, None] - self.log_rate[self.counts]
        if self.fragments is None:
            return np.asarray(np.where(shared > 0, -np.inf, gain))
        gain += shared * np.log(self.fragments.delta / (1 - self.fragments.delta))
        if self.held_fragments.max() == 1:
            return np.asarray(gain + shared * self.log_ways[2])
        for r in self.held_fragments.T:
            here = np.flatnonzero(r)
            r = r[here]
            gain[np.ix_(here, here)] += self.log_ways[r[:, None] + r] - self.log_ways[r][:, None] - self.log_ways[r]
        return np.asarray(gain)

    def _evidence_with(self, a: Index, b: Index) -> Array:
        """What the evidence gains when each of some atoms is joined with another."""
        gain = -self.evidence[a] - self.evidence[b]
        for family, sums in zip(self.families, self.sums, strict=True):
            gain += log_evidence_of_unions(family, sums, a, b)
        if self.cells is not None:
            i, pooled = self.cells.union_rows(a, b)
            [family], [sums] = self.families, self.sums
            a, b = a[i], b[i]
            gain[i] = family.log_evidence(sums[a] + sums[b] + pooled) - self.evidence[a] - self.evidence[b]
        return np.asarray(gain)

    def _prior_with(self, k: int, others: Index) -> Array:
        """What the log probability of the matching gains when atom k is joined with `others`."""
        shared = self.held[others] @ self.held[k]
        union = (self.counts[k] + self.counts[others] - shared).astype(np.int64)
        gain = self.log_rate[union] - self.log_rate[self.counts[k]] - self.log_rate[self.counts[others]]
        both = shared.nonzero()[0]
        if self.fragments is None:
            gain[both] = -np.inf
        elif len(both):
            gain[both] += shared[both] * np.log(self.fragments.delta / (1 - self.fragments.delta))
            groups = self.held[k].nonzero()[0]
            r, s = self.held_fragments[k, groups], self.held_fragments[np.ix_(others[both], groups)]
            ways = self.log_ways[r + s] - self.log_ways[r] - self.log_ways[s]  # zero where s is zero
            gain[both] += ways.sum(1)
        return np.asarray(gain)

    def join_all(self) -> int:
        """Join the best pairs until none raises the objective; returns how many were joined."""
        joined = 0
        while self.join_best():
            joined += 1
            report_progress("merging atoms", joined)
        return joined

    def join_best(self) -> bool:
        """Join the best pair, if that raises the objective."""
        a = int(self.highest.argmax())
        b = int(self.best[a])
        if self.highest[a] <= SMALLEST_RISE:
            return False
        a, b = min(a, b), max(a, b)
        self.held_fragments[a] += self.held_fragments[b]
        self.held[a] = self.held_fragments[a] > 0
        self.tally.join(a, b, int(self.held[a].sum()))
        if self.cells is not None:
            self.sums[0][a] += self.cells.join(a, b)
        row = np.maximum(self.rises[a], self.rises[b])
        row[[a, b]] = self.rises[b] = self.rises[:, b] = -np.inf
        near = (row > -HOPELESS).nonzero()[0]
        self.evidence[a] = sum(f.log_evidence(s[a : a + 1])[0] for f, s in zip(self.families, self.sums, strict=True))
        row[near] = self._evidence_with(np.full(len(near), a), near) + self._prior_with(a, near)
        self.rises[a] = self.rises[:, a] = row
        self._look_again(a, b)
        return True

    def _look_again(self, a: int, b: int) -> None:
        """Every atom's best partner, after only those with a and b have changed."""
        better = self.rises[a] > self.highest
        lost = ((self.best == a) | (self.best == b)) & ~better
        self.best[better], self.highest[better] = a, self.rises[a, better]
        lost[[a, b]] = True
        again = lost.nonzero()[0]
        self.best[again] = self.rises[again].argmax(1)
        self.highest[again] = self.rises[again, self.best[again]]


class Cells:
    """What groups hold of atoms, in one fragment or several, where these are pooled.

    Attributes
    ----------
    at : int array (K, J)
        The cell of each atom and group; negative where there is none.
    statistics, rows : arrays (C, s), (C, k)
        Summed statistics of the fragments of each cell, and the row that they are pooled to.
    """

    def __init__(self, tally: Tally, held: NDArray[np.bool_]) -> None:
        assert tally.statistics is not None
        self.family = tally.pooling
        self.at = np.where(held, np.cumsum(held.ravel()).reshape(held.shape) - 1, -1)
        cell = self.at[tally.labels, tally.group]
        self.statistics = sum_by_atom(tally.statistics, cell)
        [self.rows] = tally.pool_rows(slice(None), cell, len(self.statistics))

    def union_rows(self, a: Index, b: Index) -> tuple[Index, Array]:
        """Which pairs of atoms a and b share groups, and what pooling their fragments there adds to their rows."""
        pair, group = np.nonzero((self.at[a] >= 0) & (self.at[b] >= 0))
        if not len(pair):
            return pair, self.rows[:0]
        one, other = self.at[a[pair], group], self.at[b[pair], group]
        pooled = (
            self.family.pool_fragments(self.statistics[one] + self.statistics[other])
            - self.rows[one]
            - self.rows[other]
        )
        first = np.flatnonzero(np.diff(pair, prepend=-1))
        return pair[first], np.add.reduceat(pooled, first, axis=0)

    def join(self, a: int, b: int) -> Array:
        """Make one atom, a, of two; what pooling adds to their rows."""
        mine, other = self.at[a].copy(), self.at[b].copy()
        both = np.flatnonzero((mine >= 0) & (other >= 0))
        self.at[a], self.at[b] = np.where(mine >= 0, mine, other), -1
        if not len(both):
            return np.zeros(self.rows.shape[1])
        before = self.rows[mine[both]] + self.rows[other[both]]
        self.statistics[mine[both]] += self.statistics[other[both]]
        self.rows[mine[both]] = self.family.pool_fragments(self.statistics[mine[both]])
        return np.asarray((self.rows[mine[both]] - before).sum(0))


def join_common_splits(board: Board, progress: Run) -> tuple[Board, Run, int]:
    """The board with atoms joined that are rather one, split by sites in common: the best two first; and how many."""
    if len(board.families) != 1 or not pools(board.families[0]):
        return board, progress, 0
    whole = Board(board.stacks, board.families, board.prior, board.fragments or Fragments(), board.labels.copy())
    history = list(progress.history)
    while len(whole.counts) > 1 and len(whole.counts) * max(len(whole.counts), len(whole.sizes)) <= LARGEST_TABLE:
        a, b, gains = common_gains(whole)
        best = int(gains.argmax()) if len(gains) else -1
        if best < 0 or gains[best] <= SMALLEST_RISE:
            break
        history.append(history[-1] + float(gains[best]))
        whole.labels[whole.labels == b[best]] = a[best]
        whole.recount()
    joined = len(history) - len(progress.history)
    return (whole, replace(progress, history=history), joined) if joined else (board, progress, 0)


def common_gains(board: Board) -> tuple[Index, Index, Array]:
    """Pairs of atoms that sites hold together, and what the objective gains when they are one, split in common."""
    from scipy.special import betaln

    pairs = Pairs(board, board.fragments)
    cells, [family] = pairs.cells, board.families
    assert cells is not None
    assert isinstance(family, Gaussian)
    a, b = np.nonzero(np.triu(pairs.held @ pairs.held.T, 1))
    pair, group = np.nonzero((cells.at[a] >= 0) & (cells.at[b] >= 0))
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    one, other = (cells.statistics[cells.at[x[pair], group]] for x in (a, b))
    r, s = (pairs.held_fragments[x[pair], group] for x in (a, b))
    together, odds = np.bincount(pair), np.log(board.delta / (1 - board.delta))
    alone = pairs.held[a].sum(1) + pairs.held[b].sum(1) - 2 * together
    gains = pairs.rises[a, b] + betaln(together + 1, alone + 1) - (together - 1) * odds
    ways = pairs.log_ways[r + s] - pairs.log_ways[r] - pairs.log_ways[s]
    if len(a):
        gains += log_common_contrast(one, other, first, family) - np.add.reduceat(ways, first)
    return a, b, gains


def log_common_contrast(one: Array, other: Array, first: Index, family: Gaussian) -> Array:
    """Log odds that sites split an atom alike, beside each in its own way.

    `one` and `other` (C, 7 D) are statistics of the two parts at each site, those of one pair of atoms from `first` on.
    """
    (n, _, _, _, S, _, e), (m, _, _, _, R, _, f) = fragments.parts(one), fragments.parts(other)
    number, error = n * m / np.maximum(n + m, 1.0), (e + f) / np.maximum(n + m, 1.0)
    x = S / np.maximum(n, 1.0) - R / np.maximum(m, 1.0)
    own, common, v = family.fragment_variance + error, np.asarray(family.noise) + error, 2 * family.fragment_variance
    odds = np.where(number > 0, np.log(own / common) + number * x * x * (1 / own - 1 / common), 0.0)
    odds, P, X = (np.add.reduceat(y, first) for y in (odds, number / common, number * x / common))
    return np.asarray(0.5 * (odds - np.log1p(v * P) + v * X * X / (1 + v * P)).sum(1))
