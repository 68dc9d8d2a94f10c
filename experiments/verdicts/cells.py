"""What the studies of verdicts share: tasks called cell/seed are run, gathered by cell, and written as one record."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import modelweld
import study
from study import Claim, Result, Table, Task, asdict, by_cell, done, shown, versions, write_record

Cells = dict[str, list[Result]]
"""Cell -> results of all seeds."""


def asked(about: str, name: str, first: int, sets: int, few: int, **words: str) -> argparse.Namespace:
    """What was asked for: how many sets from which seed on, of a smoke run `few`; other options by name, and help."""
    options = study.asked(
        about,
        smoke=(False, "a few sets of small cells: seconds"),
        sets=(0, "of every cell, instead of what is said above"),
        first=(first, "the first seed"),
        cases=({"nargs": "+", "default": [""]}, "beginnings of names"),
        out=(Path("reproduced", "verdicts", name), "folder of the record"),
        jobs=(1, "sets side by side"),
        **{option: ("", said) for option, said in words.items()},
    )
    options.whole = not (options.sets or options.smoke)
    options.sets = options.sets or (few if options.smoke else sets)
    return options


def quietly(function, *given) -> Result:
    """A result without warnings about outliers and overlaps."""
    with warnings.catch_warnings(action="ignore"):
        return function(*given)


def measure(
    title: str,
    tasks: Callable[[argparse.Namespace], Iterable[Task]],
    options: argparse.Namespace,
    summary: Callable[[Cells], tuple[list[Table], list[Claim]]],
) -> None:
    """Run tasks, write what came out to ``options.out``, and print it."""
    about = versions(modelweld)  # before the run: a checkout can change meanwhile
    rounds: dict[str, list[Task]] = {}  # all cells of a seed, then of the next: a run that is stopped left whole rounds
    for task in tasks(options):
        if task.name.startswith(tuple(options.cases)):
            rounds.setdefault(task.name.rsplit("/", 1)[1], []).append(task)
    results: dict[str, Result] = {}
    for number, (last, own) in enumerate(rounds.items(), 1):
        results.update((name, found) for name, (found, _) in shown(done(own, options.jobs), len(own)))
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
