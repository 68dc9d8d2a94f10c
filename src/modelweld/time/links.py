"""Between two groups, pasts and futures of atoms are linked anew: tails exchanged, atoms joined or parted, all at once.

An atom whose values are cut in two is as probable as its past and its future, linked. The gain of linking past a to
future b, against leaving a dead and b newborn, is a log density ratio, that a's place is where b's values come from and
not anywhere, and what the prior pays for an end and a beginning. Which links are best together is a linear assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import NEW, SMALLEST_RISE, best_assignment

if TYPE_CHECKING:
    from modelweld.time.walk import Walk


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
