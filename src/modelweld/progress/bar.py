"""A bar on a terminal: what is being done, and how far the step has come that it is at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Display


@contextmanager
def show_bar(what: str) -> Iterator[Steps | None]:
    """Who draws the bar within; None where standard error is a file or a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import console, progress

    words = progress.TextColumn("{task.description}", markup=False)
    parts = progress.BarColumn(24), progress.MofNCompleteColumn()
    times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    columns, to = (progress.SpinnerColumn(), words, *parts, *times), console.Console(stderr=True)
    with progress.Progress(*columns, console=to, transient=True) as display:
        display.add_task(what, total=None)
        yield Steps(display)


class Steps:
    """A listener: the bar's second line, for the step that a job is at."""

    def __init__(self, display: Display) -> None:
        self.display, self.what = display, ""
        self.line = display.add_task("", visible=False)  # another for each step: a total is not taken back

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Hear how far a step has come."""
        if what == self.what and done:
            self.display.update(self.line, completed=done)
            return
        self.what = what
        self.display.remove_task(self.line)
        self.line = self.display.add_task(f"  {what}", total=total, completed=done)
