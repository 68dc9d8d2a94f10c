"""Where moving atoms were, are and will be: given all their values, with the variance of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.time.motion import Place, State

if TYPE_CHECKING:
    from modelweld.time.timeline import Timeline


def smooth(board: Timeline, atoms: Index, times: Array) -> Place:
    """Place of each of these atoms (A,) at a time of its own (A,), in the coordinates of the values.

    What the last value at or before that time and those before it say, and what the first one after it and those after
    that say, brought to the time and put together.
    """
    backwards, board.backwards = board.backwards, False
    way = board.way()
    board.backwards = backwards
    known, told = pasts(board), board.futures(way)
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
    future = tuple(np.where(has_future[:, None], x[next_], 0.0) for x in told)
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
        for x, new in zip(found, motion.seeing(past, index), strict=True):
            x[index] = new
    return found
