"""A sweep along time, group by group: pasts and futures are linked again, then the group is matched to both.

Going through the groups in the order of time, what is known of every atom has two parts: its past, the values it was
given on the way, and its future, those it had before the sweep. Between two groups pasts and futures are linked again
by one optimal assignment, which exchanges tails of atoms, joins atoms that follow each other and
parts them; then the group is matched to what both say of its time, by one more. Either step is the best one there is
given all else, and is taken only where the objective rises.

An atom whose values are cut in two is as probable as its past and its future, linked. The gain of linking past a to
future b, against leaving a dead and b newborn, is a log density ratio, that a's place is where b's values come from and
not anywhere, and what the prior pays for an end and a beginning. Which links are best together is a linear assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelweld.core.algorithm1 import NEW, SMALLEST_RISE, best_assignment
from modelweld.core.values import Index
from modelweld.inputs.local_model import Array
from modelweld.time.motion import State

if TYPE_CHECKING:
    from modelweld.time.timeline import Timeline


def link(walk: Walk, j: int) -> int:
    """Give pasts and futures their best links before group j; returns whether that raised the objective."""
    board, way = walk.board, walk.way
    pasts, futures = np.flatnonzero(walk.last >= 0), np.flatnonzero(walk.ahead >= 0)
    if len(pasts) == 0 or len(futures) == 0:
        return 0
    ends = way.closing[board.slot[walk.last[pasts]]]
    starts = way.opening[board.slot[board.group[walk.ahead[futures]]]]
    gains = link_gains(walk, j, pasts, futures, ends, starts)
    choice = best_links(gains)
    linked = choice != NEW
    at = np.full(len(walk.ahead), NEW)
    at[futures] = np.arange(len(futures))
    now = at[pasts]
    both = now != NEW
    rise = gains[linked, choice[linked]].sum() - gains[both, now[both]].sum()
    if rise <= SMALLEST_RISE:
        return 0
    relink(walk, pasts[linked], futures[choice[linked]], np.delete(futures, choice[linked]))
    return 1


def best_links(gains: Array) -> Index:
    """The best future of each past (A,), given gains (A, B), or NEW; most have few that are worth a thought."""
    worth = gains > 0
    a, b = np.flatnonzero(worth.any(1)), np.flatnonzero(worth.any(0))
    choice, found = np.full(len(gains), NEW), best_assignment(gains[np.ix_(a, b)], np.zeros(len(a)), len(a))
    choice[a[found != NEW]] = b[found[found != NEW]]
    return choice


def link_gains(walk: Walk, j: int, pasts: Index, futures: Index, ends: Array, starts: Array) -> Array:
    """What the objective gains by each link (A, B), both sides brought to the time of group j.

    Less what the prior gives for the `ends` of pasts and the `starts` of futures.
    """
    _, at, own = np.intersect1d(pasts, futures, return_indices=True)
    return walk.board.motion.links(walk.expected(pasts, j), walk.told(futures, j), ends, starts, (at, own))


def relink(walk: Walk, pasts: Index, futures: Index, apart: Index) -> None:
    """Make these futures those of these pasts; futures that are `apart` become atoms of their own."""
    number = np.arange(len(walk.ahead))
    number[futures] = pasts
    own = apart[walk.last[apart] >= 0]  # their number belongs to a past
    ahead, K = walk.ahead, len(walk.ahead)
    number[own] = walk.open(len(own))
    walk.ahead[:] = -1
    walk.ahead[number[futures]], walk.ahead[number[apart]] = ahead[futures], ahead[apart]
    still = walk.name < K
    walk.name[still] = number[walk.name[still]]


class Way(NamedTuple):
    """A direction through time: groups in order, what beginnings and ends are worth by slot, and the values after."""

    groups: Index
    opening: Array
    closing: Array
    after: Index


class Walk:
    """One sweep on its way: the past of every atom, and the first value of its future.

    Attributes
    ----------
    past : State
        What is known of atoms as of when they were last seen on the way; of atoms without a past, nothing.
    last : int array
        The group in which that was; -1: no past.
    ahead : int array
        First value that is still ahead; -1: no future.
    name : int array
        Atom, by its present number, of each label that values ahead have.
    """

    def __init__(self, board: Timeline) -> None:
        self.board, self.way = board, board.way()
        self.future = board.futures(self.way)
        K = int(board.labels.max(initial=-1)) + 1
        self.past = board.motion.nothing(K)
        self.last, self.ahead, self.name = np.full(K, -1), np.full(K, -1), np.arange(K)
        placed = np.flatnonzero(board.labels != NEW)
        position = -board.group if board.backwards else board.group
        first = placed[np.lexsort((position[placed], board.labels[placed]))]
        atoms, at = np.unique(board.labels[first], return_index=True)
        self.ahead[atoms] = first[at]

    def step(self, j: int) -> int:
        """Link pasts to futures before group j, then match it."""
        linked = link(self, j)
        return linked + self.match(j)

    def open(self, number: int) -> Index:
        """So many atoms more, without past and future."""
        K, more = len(self.last), self.board.motion.nothing(number)
        self.past = tuple(np.concatenate(x) for x in zip(self.past, more, strict=True))
        self.last, self.ahead = (np.concatenate([x, np.full(number, -1)]) for x in (self.last, self.ahead))
        return np.arange(K, K + number)

    def expected(self, atoms: Index, j: int) -> State:
        """What is known of atoms at the time of group j, by their past alone."""
        board = self.board
        last = self.last[atoms]
        elapsed = np.where(last >= 0, board.times[j] - board.times[last], 0.0)
        return board.motion.later(tuple(x[atoms] for x in self.past), elapsed)

    def told(self, atoms: Index, j: int) -> State:
        """What their futures say of that."""
        board, ahead = self.board, self.ahead[atoms]
        some = ahead >= 0
        own = tuple(np.where(some[:, None], x[ahead], 0.0) for x in self.future)
        elapsed = np.where(some, board.times[board.group[ahead]] - board.times[j], 0.0)
        return board.motion.earlier(own, elapsed)

    def scores(self, j: int, atoms: Index) -> Array:
        """Log score of each value of group j at each atom, minus that of a new one: (L, A)."""
        values = np.arange(self.board.offsets[j], self.board.offsets[j + 1])
        gain = self.board.motion.scores(values, self.expected(atoms, j), self.told(atoms, j))
        return np.asarray(gain + self.log_odds(j, atoms))

    def log_odds(self, j: int, atoms: Index) -> Array:
        """Log prior odds that group j holds these atoms, against an atom of its own."""
        board, way = self.board, self.way
        here, last, ahead = board.slot[j], self.last[atoms], self.ahead[atoms]
        before = np.where(last >= 0, way.opening[here], way.opening[board.slot[board.group[ahead]]])
        after = np.where(ahead >= 0, way.closing[here], way.closing[board.slot[last]])
        return np.asarray(-before - after)

    def match(self, j: int) -> int:
        """The best assignment of group j; one where it is new or raised the objective."""
        board, values = self.board, np.arange(self.board.offsets[j], self.board.offsets[j + 1])
        if len(values) == 0:
            return 0
        first_time = board.labels[values[0]] == NEW
        old = np.full(len(values), NEW) if first_time else self.name[board.labels[values]]
        if not first_time:
            self.ahead[old] = self.way.after[values]
        there = self._within_reach(j, values, old)
        scores = self.scores(j, there)
        choice = best_assignment(scores, np.zeros(len(values)), len(values))
        column = np.full(len(self.last) + 1, NEW)  # the last entry is that of NEW
        column[there] = np.arange(len(there))
        stay = column[old]  # an atom that is nowhere else is as good as new
        changed = first_time or self._value(scores, choice) > self._value(scores, stay) + SMALLEST_RISE
        chosen = choice if changed else stay
        atoms = np.append(there, NEW)[chosen]
        reused = (chosen == NEW) & (old != NEW) & (stay == NEW)
        atoms[reused] = old[reused]
        atoms[atoms == NEW] = self.open(int((atoms == NEW).sum()))
        board.labels[values] = atoms
        self._see(j, values, atoms)
        return int(changed)

    def _within_reach(self, j: int, values: Index, old: Index) -> Index:
        """Atoms that a group may hold: its own, and those for which the best value would make up for the prior odds."""
        there = np.flatnonzero((self.last >= 0) | (self.ahead >= 0))
        near = self.log_odds(j, there) + self.board.motion.most(values) >= 0
        return np.asarray(there[near | np.isin(there, old)])

    def pass_by(self, j: int) -> None:
        """Leave group j as it is."""
        values = np.arange(self.board.offsets[j], self.board.offsets[j + 1])
        atoms = self.name[self.board.labels[values]]
        self.ahead[atoms] = self.way.after[values]
        self.board.labels[values] = atoms
        self._see(j, values, atoms)

    @staticmethod
    def _value(scores: Array, choice: Index) -> float:
        return float(np.hstack([scores, np.zeros((len(scores), 1))])[np.arange(len(scores)), choice].sum())

    def _see(self, j: int, values: Index, atoms: Index) -> None:
        """The values of group j become part of the past."""
        known = self.board.motion.seeing(self.expected(atoms, j), values)
        for x, new in zip(self.past, known, strict=True):
            x[atoms] = new
        self.last[atoms] = j
