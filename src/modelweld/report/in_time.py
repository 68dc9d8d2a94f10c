"""When groups live and where they go, where sites have times: what the page draws as a timeline and as paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.clock import number_of, spell
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.report.coordinates import Values
from modelweld.report.limits import LEVEL
from modelweld.report.rounding import Content, exact, rounded, short
from modelweld.report.text import group_word, several
from modelweld.time.answers import interval
from modelweld.time.paths import smooth

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.time.timeline import Timeline

MOST_TIMES = 200
"""Times at which paths are drawn, evenly picked: more than a figure has room for."""

MOST_STEPS = 20_000
"""Times x columns of all paths, each with the two ends of its interval: half a megabyte."""


def is_timed(fusion: Fusion, name: str) -> bool:
    """Whether atoms of a set move."""
    return fusion.matchings[name].engine == "time" and fusion.times is not None


def tell_lives(fusion: Fusion, name: str, values: Values, ranked: Index, shown: Index) -> Content | None:
    """When atoms of a set live, and their paths in the columns that are `ranked` first; None where nothing has a time.

    Times of the sites that are `shown` are listed, as numbers (dates: days since 1970) and in words.
    """
    if not is_timed(fusion, name):
        return None
    times, K = fusion.times or [], fusion.matchings[name].K
    lives, (board, newest) = fusion.lives(name), fusion.timeline(name)
    steps = _steps(board, lives.alive, K)
    columns = ranked[: max(1, MOST_STEPS // max(sum(map(len, steps)), 1))]
    return {
        "dated": isinstance(newest, np.datetime64),
        "moments": [exact(number_of(times[j])) for j in shown],
        "names": [spell(times[j]) for j in shown],
        "first": [spell(time) for time in lives.first[:K]],
        "last": [spell(time) for time in lives.last[:K]],
        "span": [[number_of(a), number_of(b)] for a, b in zip(lives.first[:K], lives.last[:K], strict=True)],
        "alive": [rounded(p, 4) for p in lives.alive[:K]],
        "newest": spell(newest),
        "sentence": (
            f"Between {spell(min(times))} and {spell(newest)} there were {several(K, group_word(name))}, of which "
            f"{(lives.alive[:K] > 0.5).sum():,} probably live at the end."
        ),
        "columns": [values.columns[d] for d in columns],
        "level": LEVEL,
        "paths": _paths(board, steps, columns),
    }


def _steps(board: Timeline, alive: Array, K: int) -> list[Array]:
    """Times at which the path of each atom is drawn: from first to last, and on to the newest if it probably lives."""
    slots, spans = np.unique(board.times), board.lifespans()
    ends = np.where(alive > 0.5, len(slots) - 1, spans.last)
    most = min(MOST_TIMES, max(2, int(MOST_STEPS * len(slots) / max((ends - spans.first + 1)[:K].sum(), 1))))
    picked = np.unique(np.linspace(0, len(slots) - 1, most).round().astype(np.int64))
    found = []
    for k in range(K):
        first, end = int(spans.first[k]), int(ends[k])
        inside = picked[(picked > first) & (picked < end)]
        found.append(slots[np.unique(np.concatenate([[first], inside, [end]]))])
    return found


def _paths(board: Timeline, steps: list[Array], columns: Index) -> list[Content]:
    """Places of atoms at their steps, with intervals, in these columns."""
    atoms = np.repeat(np.arange(len(steps)), [len(own) for own in steps])
    place = smooth(board, atoms, np.concatenate([np.zeros(0), *steps]))
    low, high = interval(board, place, LEVEL)
    ends = np.cumsum([len(own) for own in steps])[:-1]
    parts = [np.split(x[:, columns], ends) for x in (place.mean, low, high)]
    return [
        {"times": [exact(t) for t in own], "values": short(a, 4), "low": short(b, 4), "high": short(c, 4)}
        for own, a, b, c in zip(steps, *parts, strict=True)
    ]


def places_last_seen(fusion: Fusion, name: str) -> tuple[Array, Array]:
    """Where atoms were when they were last seen, those set aside among them, and standard errors of that."""
    board, _ = fusion.timeline(name)
    last = board.lifespans().last
    place = smooth(board, np.arange(len(last)), np.unique(board.times)[last])
    return place.mean, np.sqrt(place.variance)


def order_by_time(found: Content, number: int) -> tuple[Index, Index]:
    """Sites by their times, and atoms, so many, by when they are seen first and last; those set aside come last."""
    span = np.array(found["span"]).reshape(-1, 2)
    atoms = np.concatenate([np.lexsort((span[:, 1], span[:, 0])), np.arange(len(span), number)])
    return np.argsort(np.array(found["moments"], dtype=np.float64), kind="stable"), atoms
