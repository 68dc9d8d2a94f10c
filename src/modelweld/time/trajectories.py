"""What is asked of groups in time: paths of atoms, what is to come, who lives when; all with how sure that is.

Matching and hyperparameters are taken as they were found: intervals are those of paths and values given both.

What is known of every atom at the newest time, without the groups it is known from: the next group costs the same.

Of an atom: its past (`modelweld.time.motion`) and the probability p that it lives. Of those not seen yet: how
many live, F, on average. In a gap dt, p falls by e^(-hazard dt) and F goes to `alive` by as much; a group that does not
hold an atom leaves p (1 - held) / (1 - p held) of it, and (1 - held) F. The log odds of an atom against a new one are
log p - log(1 - p held) - log F: those of `modelweld.fit.priors.birth_death`, where nothing comes after.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.algorithm1 import NEW, best_assignment
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.inputs.clock import Time, like, spell
from modelweld.time.motion import Place, State
from modelweld.time.timeline import Timeline, motion_of, pasts, smooth


class Path(NamedTuple):
    """Where one atom is at several times.

    Attributes
    ----------
    times : list of float or of dates
        When.
    values, low, high : arrays (T, D)
        Its place then, given all its values, and an interval for it.
    alive : array (T,)
        Probability that it lives then: one from when it is first seen to when it is last seen.
    """

    times: list[Time]
    values: Array
    low: Array
    high: Array
    alive: Array


class Forecast(NamedTuple):
    """What sites would send at a time.

    Attributes
    ----------
    time : float or date
        When.
    atoms : int array (A,)
        Atoms that may live then, the most probable first.
    values, low, high : arrays (A, D)
        What a site that holds them would send, with an interval for that: noise included.
    alive, held : arrays (A,)
        Probability that an atom lives then, and that a site sends it.
    newborn : float
        How many atoms live then, on average, that no site has sent yet.
    """

    time: Time
    atoms: Index
    values: Array
    low: Array
    high: Array
    alive: Array
    held: Array
    newborn: float


class Lifetimes(NamedTuple):
    """When atoms live.

    Attributes
    ----------
    first, last : lists of float or of dates
        When each was seen first and last.
    counts : int array (K,)
        How many groups hold it.
    alive : array (K,)
        Probability that it still lives at the newest time.
    newest : float or date
        That time.
    """

    first: list[Time]
    last: list[Time]
    counts: Index
    alive: Array
    newest: Time

    def __str__(self) -> str:
        head = f"{'atom':>5}  {'first':>12}  {'last':>12}  {'groups':>6}  alive at {spell(self.newest)}"
        rows = zip(self.first, self.last, self.counts, self.alive, strict=True)
        lines = (f"{k:>5}  {spell(a):>12}  {spell(b):>12}  {n:>6}  {p:.2f}" for k, (a, b, n, p) in enumerate(rows))
        return "\n".join([head, *lines])


LEAST_ALIVE = 0.01
"""Probability of being alive below which an atom is not forecast."""


def path(board: Timeline, atom: int, times: Array, level: float, example: Time) -> Path:
    """The path of one atom."""
    place = smooth(board, np.full(len(times), atom), times)
    low, high = interval(board, place, level)
    spans = board.lifespans()
    alive = np.array([board.prior.living(spans, float(t))[atom] for t in times])
    return Path([like(t, example) for t in times], place.mean, low, high, alive)


def forecast(board: Timeline, time: float, level: float, example: Time) -> Forecast:
    """What a site of that time would send."""
    alive = board.prior.living(board.lifespans(), time)
    atoms = np.flatnonzero(alive >= LEAST_ALIVE)
    atoms = atoms[np.argsort(-alive[atoms], kind="stable")]
    place = smooth(board, atoms, np.full(len(atoms), time))
    sent = board.motion.predict(place)
    low, high = interval(board, sent, level)
    newborn = max(float(board.prior.alive - alive.sum()), 0.0)
    return Forecast(
        like(time, example), atoms, sent.mean, low, high, alive[atoms], alive[atoms] * board.prior.held, newborn
    )


def lifetimes(board: Timeline, example: Time) -> Lifetimes:
    """When atoms live."""
    spans, slots = board.lifespans(), np.unique(board.times)
    alive = board.prior.living(spans, float(slots[-1]))
    first, last = ([like(t, example) for t in slots[x]] for x in (spans.first, spans.last))
    return Lifetimes(first, last, spans.counts, alive, like(slots[-1], example))


def living_at(board: Timeline, time: float) -> NDArray[np.bool_]:
    """Atoms that probably live at a time."""
    return np.asarray(board.prior.living(board.lifespans(), time) > 0.5)


def interval(board: Timeline, place: Place, level: float) -> tuple[Array, Array]:
    """Where a place is with this probability, in each dimension."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; found {level!r}.")
    return board.motion.interval(place, level)


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
        known = motion.update(tuple(x[choice[old]] for x in past), old)
        for x, new in zip(self.past, known, strict=True):
            x[choice[old]] = new
        self.alive[choice[old]], self.seen[choice[old]] = 1.0, time
        first = motion.update(motion.nothing(len(born)), born)
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
