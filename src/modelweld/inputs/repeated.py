"""Names that come twice, found in one pass: a stranger may send a hundred thousand."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


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
