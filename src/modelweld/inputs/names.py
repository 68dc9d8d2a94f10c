"""Names: which comes twice, found in one pass (a stranger may send a hundred thousand); and a few of many in words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)

SHOWN = 5
"""Names, or sentences about them, in a message before it says "and so many more"."""


def first_repeated(names: Iterable[Name]) -> Name | None:
    """The first name that was there already; None if all differ.

    Examples
    --------
    >>> first_repeated(["a", "b", "c", "b", "a"])
    'b'
    """
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def some(names: Iterable[str]) -> str:
    """A few names, in order, and how many more there are.

    Examples
    --------
    >>> some("gfedcba")
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    ranked = sorted(names)
    more = f" and {len(ranked) - SHOWN} more" if len(ranked) > SHOWN else ""
    return (", ".join(map(repr, ranked[:SHOWN])) + more) if ranked else "nothing"
