"""What takes long shows how far it is: time gone by, the present step, and how much time that has left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modelweld.progress import heard_by

if TYPE_CHECKING:
    from rich.progress import Progress

SHORTEST = 0.05
"""Seconds between two looks at the same step: the eye sees no more, and telling is then almost free."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal what is being done within; say nothing where standard error is a file or a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    left = TextColumn("{task.fields[left]}")
    with Progress(*columns, left, console=Console(stderr=True), transient=True) as display:
        display.add_task(what, total=None, left="")
        with heard_by(Steps(display)):
            yield


class Steps:
    """A second line for the step that a job is at."""

    def __init__(self, display: Progress) -> None:
        self.display, self.what, self.shown = display, "", 0.0
        self.line = display.add_task("", visible=False, left="")  # another for each step: a total is not taken back

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Hear how far a step has come."""
        now = time.monotonic()
        if what != self.what or done == 0:
            self.what, self.shown = what, now
            self.display.remove_task(self.line)
            self.line = self.display.add_task(f"  {what}", total=total, completed=done, left="")
        elif now - self.shown >= SHORTEST:
            self.shown = now
            self.display.update(self.line, completed=done, left=self._left())

    def _left(self) -> str:
        seconds = next(task.time_remaining for task in self.display.tasks if task.id == self.line)
        return "" if seconds is None else f"{int(seconds // 60)}:{int(seconds % 60):02d} left"
