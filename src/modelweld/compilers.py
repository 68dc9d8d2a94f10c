"""How loops are compiled by numba: one place for the settings, for where the machine code is kept, and for saying so.

Compiling takes ten seconds, once per machine. Numba keeps the code beside the sources, or in the user's cache. Where
neither may be written (read-only installs, containers, another user's environment) it gives up with an error; here the
code goes into a temporary directory of the user's own instead, and if there is none either, each process compiles
again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event

from modelweld.errors import warn_user
from modelweld.progress import COMPILING, is_heard, report_progress

Function = Callable[..., Any]
"""A function of numbers and arrays, compiled or not: numba's have no types of their own."""


def compiled(fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """A decorator that compiles at the first call, and keeps the code where that is possible at all."""

    def decorate(function: Function) -> Function:
        try:
            return _compile(function, fastmath, keep=True)
        except RuntimeError:  # numba found no directory that it may write to
            with _own_folder() as found:
                return _compile(function, fastmath, keep=found)

    return decorate


def _compile(function: Function, fastmath: bool | set[str], *, keep: bool) -> Function:
    options: dict[str, Any] = {"cache": keep, "fastmath": fastmath, "no_cfunc_wrapper": True}  # no way in from C
    done: Function = njit(nogil=True, error_model="numpy", **options)(function)
    return done


@contextmanager
def _own_folder() -> Iterator[bool]:
    """Within, numba keeps code in a temporary directory that no other user can write to; False if there is none."""
    settings, folder = vars(config), temporary_folder()
    before = settings["CACHE_DIR"]
    settings["CACHE_DIR"] = folder or before
    try:
        yield bool(folder)
    finally:
        settings["CACHE_DIR"] = before


@cache
def temporary_folder() -> str:
    """Where compiled code is kept if nowhere else: the user's own, because what is found there is run; else nothing."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"modelweld-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        tempfile.TemporaryFile(dir=folder).close()
        if hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o077):
            raise PermissionError(folder)
    except OSError:
        warn_user(
            "no directory can be written to, so that every process compiles, for half a minute. Set NUMBA_CACHE_DIR to "
            "a directory that can be written to, or use engine='numpy'."
        )
        return ""
    return str(folder)


class Saying(event.Listener):
    """Report to a callback that something is being compiled; without one, write a line to the log."""

    done = 0

    def on_start(self, event: event.Event) -> None:
        """Say so; the log's line comes once."""
        report_progress(COMPILING, self.done)
        if self.done == 0 and not is_heard():
            logging.getLogger(__package__).warning("modelweld: %s", COMPILING)
        self.done += 1

    def on_end(self, event: event.Event) -> None:
        """Nothing: what comes next says what it is."""


event.register("numba:compile", Saying())

exact = compiled(fastmath={"contract", "reassoc", "nsz"})
"""Sums may be added in another order and multiplications fused, so that loops run in vector registers; infinities and
NaN mean what they do in numpy, and so does a division by zero. Kept: compiled once per machine; without the interpreter
lock: threads run beside each other."""

loose = compiled(fastmath=True)
"""Besides, arguments are taken to be finite: for scores that a bound on rounding guards anyway."""
