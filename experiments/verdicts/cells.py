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
    rounds: dict[str, list[Task]] = {}  # all cells of a seed, then of the next: a run that is stopped left whole rounds
    for task in chosen:
        rounds.setdefault(task.name.rsplit("/", 1)[1], []).append(task)
    results: dict[str, Result] = {}
    for number, (last, own) in enumerate(rounds.items(), 1):
        results.update((name, found) for name, (found, _) in shown(done(own, jobs), len(own)))
        if number % EVERY == 0 or number == len(rounds):
            print(_write(title, results, options, about, summary, int(last)))


EVERY = 5
"""Seeds after which what is done so far is written."""


def _write(title, results: Mapping[str, Result], options, about, summary, last: int) -> str:
    cells = by_cell({name: {k: v for k, v in found.items() if k != "cpu"} for name, found in results.items()})
    tables, found = summary(cells)
    record = {
        "title": title,
        "versions": about,
        "seeds": [options.first, last],
        "cpu": sum(result["cpu"] for result in results.values()),
        "tables": [asdict(table) for table in tables],
        "claims": [asdict(claim) for claim in found],
        "cells": cells,
    }
    return write_record(options.out, record, f"Seeds {options.first} to {last}", ".")


def by_cell(results: Mapping[str, Result]) -> Cells:
    """Results of all seeds of a cell."""
    cells: Cells = {}
    for name, found in results.items():
        cells.setdefault(name.rsplit("/", 1)[0], []).append(found)
    return cells
