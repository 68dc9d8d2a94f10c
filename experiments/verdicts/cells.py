"""What the studies of verdicts share: tasks called cell/seed are run, gathered by cell, and written as one record."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from study import Claim, Result, Table, Task, asdict, done, shown, write_record

Cells = dict[str, list[Result]]
"""Cell -> results of all seeds."""


def measure(
    title: str,
    chosen: Sequence[Task],
    options: argparse.Namespace,
    about: Mapping[str, str],
    summary: Callable[[Cells], tuple[list[Table], list[Claim]]],
    jobs: int = 1,
) -> None:
    """Run tasks, write what came out to ``options.out``, and print it; `about` says of which versions."""
    results = dict(shown(done(chosen, jobs), len(chosen)))
    cpu = sum(result.pop("cpu") for result in results.values())
    cells = by_cell({task.name: results[task.name] for task in chosen})
    tables, found = summary(cells)
    last = options.first + options.sets - 1
    record = {
        "title": title,
        "versions": about,
        "seeds": [options.first, last],
        "cpu": cpu,
        "tables": [asdict(table) for table in tables],
        "claims": [asdict(claim) for claim in found],
        "cells": cells,
    }
    print(write_record(options.out, record, f"Seeds {options.first} to {last}", "."))


def by_cell(results: Mapping[str, Result]) -> Cells:
    """Results of all seeds of a cell."""
    cells: Cells = {}
    for name, found in results.items():
        cells.setdefault(name.rsplit("/", 1)[0], []).append(found)
    return cells
