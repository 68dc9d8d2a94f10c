"""The board of groups that come in time: a matching is a set of chains, and a sweep goes along all of them at once.

The next sweep goes the other way: the model is the same in both. From nothing, where no atom has a future, a sweep is
the start by consecutive matching. `modelweld.time.timeline` has what a sweep does on its way.

Where moving atoms were, are and will be: given all their values, with the variance of that.

A sweep along time, group by group: pasts and futures are linked again, then the group is matched to both.

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

from typing import NamedTuple

import numpy as np

from modelweld.core import algorithm1
from modelweld.core.algorithm1 import NEW, SMALLEST_RISE, best_assignment
from modelweld.core.family import log_prior
from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.families.fading import Drift, Moving
from modelweld.fit.priors.birth_death import BirthDeath, Lifespans
from modelweld.progress import track
from modelweld.time.chains import Chains
from modelweld.time.motion import Fading, Kalman, Motion, Place, State


class Timeline:
    """The state of a matching in time, which improves itself sweep by sweep.

    Parameters
    ----------
    stack : Stack
        Values of one array, groups in the order of their times.
    times : array (J,)
        When the groups come; never falling.
    family : Moving
        With its hyperparameters.
    prior : Lives
        Of births, deaths and being held.
    labels : int array (N,), optional
        The matching to begin with; default: every value is NEW.
    """

    engine = "time"
    margin = 0.0
    delta = 0.0

    def __init__(
        self, stack: Stack, times: Array, family: Moving, prior: BirthDeath, labels: Index | None = None
    ) -> None:
        self.stack, self.times = stack, times
        self.prior: BirthDeath = prior.condition_on(times)
        self.offsets, self.sizes, self.group = stack.offsets, stack.sizes, group_of_values(stack.offsets)
        self.slot = np.unique(times, return_inverse=True)[1]
        self.labels = np.full(len(self.group), NEW) if labels is None else labels
        self.backwards = False
        self.motion: Motion = motion_of(stack, family)

    @property
    def family(self) -> Moving:
        """With its present hyperparameters."""
        family: Moving = self.motion.family
        return family

    @property
    def families(self) -> list[Moving]:
        """The one family."""
        return [self.family]

    @property
    def counts(self) -> Index:
        """Number of groups at each atom."""
        return np.bincount(self.labels[self.labels >= 0])

    def values_of(self, j: int) -> slice:
        """Where the values of group j stand."""
        return slice(self.offsets[j], self.offsets[j + 1])

    def way(self) -> Way:
        """The direction of the next sweep."""
        ends = self.prior.ends()
        J = len(self.sizes)
        opening, closing = (ends.closing, ends.opening) if self.backwards else (ends.opening, ends.closing)
        return Way(np.arange(J)[:: -1 if self.backwards else 1], opening, closing, self._values_after())

    def _values_after(self) -> Index:
        """The next value of each value's atom in the direction of the sweep; -1 at the last one."""
        position = -self.group if self.backwards else self.group
        order = np.lexsort((position, self.labels))
        order = order[self.labels[order] != NEW]
        after = np.full(len(self.labels), -1)
        same = self.labels[order[1:]] == self.labels[order[:-1]]
        after[order[:-1][same]] = order[1:][same]
        return after

    def futures(self, way: Way) -> State:
        """What each value and those after it in its chain say of the atom at its time: (N, ...)."""
        futures = self.motion.information()
        for j in way.groups[::-1]:
            own = np.arange(self.offsets[j], self.offsets[j + 1])
            own = own[way.after[own] >= 0]
            if len(own) == 0:
                continue
            next_ = way.after[own]
            elapsed = self.times[self.group[next_]] - self.times[j]
            for x, more in zip(futures, self.motion.earlier(tuple(x[next_] for x in futures), elapsed), strict=True):
                x[own] += more
        return futures

    def sweep(self, order: Index) -> int:
        """Link and match along all groups, forwards and backwards in turn; returns how often that changed something."""
        del order  # time has one of its own
        if self.motion.exact or (self.labels == NEW).any():
            return self._walk()
        before, height = self.labels.copy(), self.objective()
        for _ in range(2):  # scores are approximate: a walk that led down is taken back, and another goes the other way
            changed = self._walk()
            if changed and self.objective() > height + SMALLEST_RISE:
                return changed
            self.labels = before.copy()
        return 0

    def _walk(self) -> int:
        """One walk along all groups."""
        walk = Walk(self)
        changed = sum(walk.step(int(j)) for j in track(walk.way.groups, "matching groups", len(walk.way.groups)))
        self.labels = np.unique(self.labels, return_inverse=True)[1]
        self.backwards = not self.backwards
        return changed

    def place_new(self) -> None:
        """Match groups that have no atoms yet, and no others."""
        new = np.zeros(len(self.sizes), dtype=bool)
        new[self.group[self.labels == NEW]] = True
        walk = Walk(self)
        for j in walk.way.groups:
            walk.match(int(j)) if new[j] else walk.pass_by(int(j))
        self.labels = np.unique(self.labels, return_inverse=True)[1]

    def learn(self) -> None:
        """Rates of lives, and hyperparameters of the family, given the matching."""
        self.prior = self.prior.learn_in_time(self.lifespans())
        self.motion = motion_of(self.stack, self.motion.learn(self.chains()))

    def lifespans(self) -> Lifespans:
        """First and last slots and counts of atoms."""
        K, slot = int(self.labels.max(initial=-1)) + 1, self.slot[self.group]
        first, last = np.full(K, len(self.slot)), np.full(K, -1)
        np.minimum.at(first, self.labels, slot)
        np.maximum.at(last, self.labels, slot)
        return Lifespans(first, last, np.bincount(self.labels, minlength=K))

    def chains(self) -> Chains:
        """The present matching, atom by atom."""
        return Chains(self.labels, self.times[self.group])

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms, plus log priors of what was learned."""
        evidence = self.motion.log_evidence(self.chains())
        return evidence + self.prior.log_prob_in_time(self.lifespans(), self.sizes) + log_prior(self.family)

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching."""
        for j in groups:
            self.labels[self.values_of(j)] = NEW

    def state(self) -> algorithm1.State:
        """Labels, family and prior."""
        return algorithm1.State(self.labels.copy(), [self.family], self.prior, None)

    def restore(self, state: algorithm1.State) -> None:
        """Go back to an earlier state."""
        prior: Prior = state.prior
        family = state.families[0]
        assert isinstance(prior, BirthDeath)
        assert isinstance(family, Moving)
        self.labels, self.prior = state.labels, prior.condition_on(self.times)
        self.motion = motion_of(self.stack, family)

    def estimates(self) -> list[Array]:
        """Where each atom was when it was last seen, given all its values: (K, D)."""
        spans = self.lifespans()
        slots = np.unique(self.times)
        places = smooth(self, np.arange(len(spans.last)), slots[spans.last])
        return [places.mean]


def motion_of(stack: Stack, family: Moving) -> Motion:
    """How atoms of such values move."""
    return Kalman(stack, family) if isinstance(family, Drift) else Fading(stack, family)


def smooth(board: Timeline, atoms: Index, times: Array) -> Place:
    """Place of each of these atoms (A,) at a time of its own (A,), in the coordinates of the values.

    What the last value at or before that time and those before it say, and what the first one after it and those after
    that say, brought to the time and put together.
    """
    backwards, board.backwards = board.backwards, False
    way = board.way()
    board.backwards = backwards
    known, futures = pasts(board), board.futures(way)
    seen_at = board.times[board.group]
    order = np.lexsort((seen_at, board.labels))
    label, when = board.labels[order], seen_at[order]
    start = np.searchsorted(label, atoms, side="left")
    before = np.empty(len(atoms), dtype=np.int64)
    for i, (k, t) in enumerate(zip(start, times, strict=True)):
        end = k + np.searchsorted(label[k:], atoms[i], side="right")
        before[i] = k + np.searchsorted(when[k:end], t, side="right") - 1
    has_past = before >= start
    last = order[np.maximum(before, 0)]
    next_ = np.where(has_past, way.after[last], order[np.minimum(start, len(order) - 1)])
    has_future = next_ >= 0
    motion = board.motion
    anywhere = motion.nothing(len(atoms))
    past = tuple(np.where(has_past[:, None], x[last], x0) for x, x0 in zip(known, anywhere, strict=True))
    past = motion.later(past, np.where(has_past, times - seen_at[last], 0.0))
    future = tuple(np.where(has_future[:, None], x[next_], 0.0) for x in futures)
    future = motion.earlier(future, np.where(has_future, seen_at[next_] - times, 0.0))
    return motion.place(past, future)


def places_of_values(board: Timeline, order: Index, time: float | None = None) -> Array:
    """Where each value's atom is at a time, or at the value's own: (N, D), in the order given."""
    times = board.times[board.group] if time is None else np.full(len(board.labels), time)
    found = smooth(board, board.labels, times).mean
    places = np.empty_like(found)
    places[order] = found
    return places


def pasts(board: Timeline) -> State:
    """What each value and those before it in its chain say of the atom at its time: (N, ...)."""
    motion, chains = board.motion, board.chains()
    found = motion.nothing(len(board.labels))
    for rank, index in enumerate(chains.ranks):
        past = motion.nothing(len(index))
        if rank:
            past = motion.later(tuple(x[chains.before[index]] for x in found), chains.gap[index])
        for x, new in zip(found, motion.update(past, index), strict=True):
            x[index] = new
    return found


def link(walk: Walk, j: int) -> int:
    """Give pasts and futures their best links before group j; returns whether that raised the objective."""
    board, way = walk.board, walk.way
    pasts, futures = np.flatnonzero(walk.last >= 0), np.flatnonzero(walk.ahead >= 0)
    if len(pasts) == 0 or len(futures) == 0:
        return 0
    ends = way.closing[board.slot[walk.last[pasts]]]
    starts = way.opening[board.slot[board.group[walk.ahead[futures]]]]
    _, with_past, own = np.intersect1d(pasts, futures, return_indices=True)
    known = walk.past_of(pasts, j), walk.future_of(futures, j)  # both brought to the time of group j
    gains = board.motion.links(*known, ends, starts, (with_past, own))
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

    def past_of(self, atoms: Index, j: int) -> State:
        """What is known of atoms at the time of group j, by their past alone."""
        board = self.board
        last = self.last[atoms]
        elapsed = np.where(last >= 0, board.times[j] - board.times[last], 0.0)
        return board.motion.later(tuple(x[atoms] for x in self.past), elapsed)

    def future_of(self, atoms: Index, j: int) -> State:
        """What their futures say of that."""
        board, ahead = self.board, self.ahead[atoms]
        some = ahead >= 0
        own = tuple(np.where(some[:, None], x[ahead], 0.0) for x in self.future)
        elapsed = np.where(some, board.times[board.group[ahead]] - board.times[j], 0.0)
        return board.motion.earlier(own, elapsed)

    def scores(self, j: int, atoms: Index) -> Array:
        """Log score of each value of group j at each atom, minus that of a new one: (L, A)."""
        values = np.arange(self.board.offsets[j], self.board.offsets[j + 1])
        gain = self.board.motion.scores(values, self.past_of(atoms, j), self.future_of(atoms, j))
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
        known = self.board.motion.update(self.past_of(atoms, j), values)
        for x, new in zip(self.past, known, strict=True):
            x[atoms] = new
        self.last[atoms] = j
