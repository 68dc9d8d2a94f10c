"""What is asked of groups in time: paths of atoms, what is to come, who lives when; all with how sure that is.

Matching and hyperparameters are taken as they were found: intervals are those of paths and values given both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Index
from modelweld.errors import InputError
from modelweld.inputs.clock import Time, like, spell
from modelweld.inputs.local_model import Array
from modelweld.time.motion import Place
from modelweld.time.timeline import Timeline, smooth


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
        How many atoms live then, on average, that nobody has seen yet.
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
    sent = board.motion.sent(place)
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
