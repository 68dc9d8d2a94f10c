"""Progress of tasks, for who is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def shown(items: Iterator[tuple[str, T]], total: int) -> Iterator[tuple[str, T]]:
    """The same, with progress and time left where someone is watching, a line each where not."""
    if not sys.stderr.isatty():
        for k, (name, result) in enumerate(items, 1):
            print(f"{k}/{total} {name}", file=sys.stderr, flush=True)
            yield name, result
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("working", total=total)
        for name, result in items:
            progress.update(bar, advance=1, description=name)
            yield name, result
