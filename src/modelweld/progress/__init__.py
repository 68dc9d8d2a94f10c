"""How far a long job has come: algorithms report progress, to a callback if one is set; no result depends on it.

Internal: docs/public.md says what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from modelweld.errors import InputError
from modelweld.progress.bar import show_bar

Listener = Callable[[str, int, int | None], object]
"""Called with what is being done, how much of it is done, and out of how much (None: not known)."""

Progress = bool | Listener | None
"""What `progress=` takes everywhere: a listener; True for a bar on standard error if someone watches; or nothing."""

COMPILING = "compiling, once on this machine: about ten seconds"
"""What is reported while loops are compiled, the one step that a first call has and later ones have not."""

Thing = TypeVar("Thing")

_listener: ContextVar[Listener | None] = ContextVar("modelweld_progress", default=None)


@contextmanager
def progress_to(progress: Progress, what: str = "working") -> Iterator[None]:
    """Within, `tell` reaches who was asked for; with None or False, whoever listens already.

    Parameters
    ----------
    progress : callable, bool or None
        See `Progress`.
    what : str
        The job, for the bar's first line.

    Examples
    --------
    >>> with progress_to(lambda what, done, total: print(what, done, total)):
    ...     report_progress("sweep 1", 3, 10)
    sweep 1 3 10
    >>> report_progress("sweep 2", 3, 10)
    """
    if progress is True:
        with show_bar(what) as bar, progress_to(bar):
            yield
    elif not progress:
        yield
    elif not callable(progress):
        raise InputError(f"progress is True, False or a function of (what, done, total); found {progress!r}.")
    else:
        token = _listener.set(progress)
        try:
            yield
        finally:
            _listener.reset(token)


def is_heard() -> bool:
    """Whether anybody listens."""
    return _listener.get() is not None


def report_progress(what: str, done: int, total: int | None = None) -> None:
    """Say how far a job has come."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def track(things: Iterable[Thing], what: str, total: int | None = None) -> Iterator[Thing]:
    """The same things, telling before each one how many are done, and at the end that all are.

    Examples
    --------
    >>> with progress_to(lambda what, done, total: print(what, done, total)):
    ...     sum(track([5, 6], "adding", 2))
    adding 0 2
    adding 1 2
    adding 2 2
    11
    """
    done = 0
    for thing in things:
        report_progress(what, done, total)
        yield thing
        done += 1
    report_progress(what, done, total)
