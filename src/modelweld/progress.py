"""How far a long job has come: algorithms tell, nobody needs to listen, and no result depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it is done, and out of how much (None: nobody knows)."""

Thing = TypeVar("Thing")

_listener: ContextVar[Listener | None] = ContextVar("modelweld_progress", default=None)


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Within, `tell` reaches `listener`; with None, whoever listens already.

    Examples
    --------
    >>> with heard_by(lambda what, done, total: print(what, done, total)):
    ...     tell("sweep 1", 3, 10)
    sweep 1 3 10
    >>> tell("sweep 2", 3, 10)
    """
    if listener is None:
        yield
        return
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, total: int | None = None) -> None:
    """Say how far a job has come."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def told(things: Iterable[Thing], what: str, total: int | None = None) -> Iterator[Thing]:
    """The same things, telling before each one how many are done, and at the end that all are.

    Examples
    --------
    >>> with heard_by(lambda what, done, total: print(what, done, total)):
    ...     sum(told([5, 6], "adding", 2))
    adding 0 2
    adding 1 2
    adding 2 2
    11
    """
    done = 0
    for thing in things:
        tell(what, done, total)
        yield thing
        done += 1
    tell(what, done, total)
