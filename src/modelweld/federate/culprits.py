"""The largest group of sites that works together, where all of them do not: so that one bad answer costs no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

Member = TypeVar("Member")


def largest_working(members: Sequence[Member], works: Callable[[Sequence[Member]], bool]) -> list[Member]:
    """As many members as work together, in the order given: halves are tried alone, joined, then filled up one by one.

    One culprit among J is found with about 4 log J trials, if it fails alone or with anyone; where only a combination
    fails, whoever completes it is left out. Largest is not proved: no single member can be added to what comes back.

    Parameters
    ----------
    members : sequence
        Who might work.
    works : function of some members
        Whether these do.

    Examples
    --------
    >>> largest_working([1, 2, -7, 3, 4], lambda some: min(some) > 0)
    [1, 2, 3, 4]
    """
    tried = cache(lambda some: works([members[i] for i in some]))
    chosen = _working(tuple(range(len(members))), tried)
    return [members[i] for i in chosen]


def _working(members: tuple[int, ...], works: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    if works(members):
        return members
    if len(members) == 1:
        return ()
    half = len(members) // 2
    first, second = _working(members[:half], works), _working(members[half:], works)
    if first and second and works(first + second):
        return first + second
    kept = max(first, second, key=len)
    for one in members:
        more = tuple(sorted({*kept, one}))
        kept = more if works(more) else kept
    return kept
