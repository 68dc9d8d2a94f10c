"""What is known of every atom at the newest time, without the groups it is known from: the next group costs the same.

Of an atom: its past (`modelweld.time.motion`) and the probability p that it lives. Of those that nobody has seen: how
many live, F, on average. In a gap dt, p falls by e^(-hazard dt) and F goes to `alive` by as much; a group that does not
hold an atom leaves p (1 - held) / (1 - p held) of it, and (1 - held) F. The log odds of an atom against a new one are
log p - log(1 - p held) - log F: those of `modelweld.time.lives`, where nothing comes after.
"""

from __future__ import annotations

import numpy as np

from modelweld.core.algorithm1 import NEW, best_assignment
from modelweld.core.values import Index, Stack
from modelweld.time.lives import BirthDeath
from modelweld.time.motion import Place, State
from modelweld.time.timeline import Timeline, motion_of, pasts

FORGOTTEN = 1e-9
"""Probability of living below which an atom is forgotten: an atom that comes back all the same gets a new number."""


class Filtered:
    """Atoms as of the newest time.

    Attributes
    ----------
    number : int array (A,)
        Numbers of atoms that are remembered.
    alive : array (A,)
        Probability that they live at the newest time.
    newest : float
        That time.
    numbers : int
        How many numbers were given away.
    """

    def __init__(self, board: Timeline) -> None:
        self.prior: BirthDeath = board.prior
        self.motion = motion_of(board.stack.take(np.arange(0), np.zeros(1, np.int64)), board.family)  # of no values
        self.newest = float(board.times[-1])
        spans = board.lifespans()
        last = np.full(len(spans.counts), -1)
        np.maximum.at(last, board.labels, np.arange(len(board.labels)))  # values stand in the order of time
        self.past: State = tuple(x[last] for x in pasts(board))
        self.seen = board.times[board.group[last]]
        self.alive = self.prior.living(spans, self.newest)
        self.number, self.numbers = np.arange(len(last)), len(last)
        slots, groups = self.prior.slots
        fresh = np.exp(self.prior.ends().opening[-1] - self.prior.hazard * (slots[-1] - slots[0]))
        before = np.log1p(-self.prior.held) * (groups.sum() - groups[-1])
        self.unseen = float(fresh * np.exp(before) * (1 - self.prior.held) ** groups[-1])

    def add(self, stack: Stack, time: float) -> Index:
        """Numbers of the atoms of a group that comes at a time not before the newest; all is known as of then."""
        prior, stays = self.prior, np.exp(-self.prior.hazard * (time - self.newest))
        alive, unseen = self.alive * stays, prior.alive * (1 - stays) + stays * self.unseen
        remembered = alive >= FORGOTTEN
        alive, self.number, self.seen = alive[remembered], self.number[remembered], self.seen[remembered]
        self.past = tuple(x[remembered] for x in self.past)
        motion, values = motion_of(stack, self.motion.family), np.arange(len(stack.values))
        past = motion.later(self.past, time - self.seen)
        odds = np.log(alive) - np.log1p(-alive * prior.held) - np.log(unseen)
        scores = motion.scores(values, past, motion.silence(len(alive))) + odds
        choice = best_assignment(scores, np.zeros(len(values)), len(values))
        born, old = np.flatnonzero(choice == NEW), np.flatnonzero(choice != NEW)
        self.alive = alive * (1 - prior.held) / (1 - alive * prior.held)
        known = motion.seeing(tuple(x[choice[old]] for x in past), old)
        for x, new in zip(self.past, known, strict=True):
            x[choice[old]] = new
        self.alive[choice[old]], self.seen[choice[old]] = 1.0, time
        first = motion.seeing(motion.nothing(len(born)), born)
        fresh = self.numbers + np.arange(len(born))
        self.past = tuple(np.concatenate(x) for x in zip(self.past, first, strict=True))
        self.seen = np.concatenate([self.seen, np.full(len(born), time)])
        self.alive = np.concatenate([self.alive, np.ones(len(born))])
        labels = np.empty(len(values), dtype=np.int64)
        labels[old], labels[born] = self.number[choice[old]], fresh
        self.number, self.numbers = np.concatenate([self.number, fresh]), self.numbers + len(born)
        self.newest, self.unseen = time, float((1 - prior.held) * unseen)
        return labels

    def places(self) -> Place:
        """Where remembered atoms are at the newest time, by what came up to it."""
        past = self.motion.later(self.past, self.newest - self.seen)
        return self.motion.place(past, self.motion.silence(len(self.number)))
