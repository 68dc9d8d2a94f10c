"""Is the bare call `fuse(models)` right on sites as people really have them? Error in K, ARI and CPU seconds.

See README.md for what is drawn and how to read it.

    python experiments/right/run.py                                  # everything, five seeds; about half an hour
    python experiments/right/run.py --quick                          # two seeds, up to ten sites; minutes
    python experiments/right/run.py --cases low hostile/twice --seeds 8000 8001 --out /tmp/x
    python experiments/right/run.py --smoke                          # a few cells, one seed; seconds

The code measured is the one that Python finds: PYTHONPATH=<other checkout>/src measures another.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

from study import Result, Task, asdict, done, shown, versions, write_record  # isort: skip; first: it sets the threads

import argparse
from collections.abc import Sequence

import affine
import populations
import real
from draws import Group
from methods import BARE, METHODS, measured, warm_up
from telling import TITLES, summary

import hostile
import modelweld
from provenance import NOT_INSTALLED, code_of, loaded

SEEDS, QUICK_SEEDS = range(9000, 9005), (8000, 8001)
"""Of a full and of a quick run: settings of the library are chosen on seeds below 9,000."""

MOST_SITES, QUICK_SITES = (400, 400), (10, 50)
"""Sites that estimate models and sites that send values, of a full and of a quick run."""

SMOKE = ("low/D=2 given", "real/wine", "hostile/twice", "hostile/one value")
"""Groups of a smoke run."""


def groups(quick: bool) -> list[Group]:
    """All groups of a run."""
    estimating, sending = QUICK_SITES if quick else MOST_SITES
    return [*populations.groups(estimating), *real.groups(), *hostile.groups(sending), *affine.groups()]


def smoke() -> list[Group]:
    """A few groups with three sites at most, and arrays."""
    every = [*populations.groups(3), *real.groups((2,)), *hostile.groups(20)]
    return [group for group in every if group.path in SMOKE]


def draw_and_measure(group: Group, seed: int, methods: Sequence[str]) -> Result:
    """All cells of a group at one seed."""
    warm_up()
    return {f"{group.path}/{cell}": measured(draw, methods) for cell, draw in group.draws(seed)}


def tasks(options: argparse.Namespace) -> list[Task]:
    """One per group and seed."""
    every = smoke() if options.smoke else groups(options.quick)
    wanted = [g for g in every if any(g.path.startswith(case) for case in options.cases)]
    methods = [BARE] if options.bare else METHODS
    return [Task(f"{g.path}/{seed}", draw_and_measure, (g, seed, methods)) for seed in options.seeds for g in wanted]


def by_cell(results: dict[str, Result]) -> dict[str, dict[str, Result]]:
    """Cell -> seed -> methods."""
    cells: dict[str, dict[str, Result]] = {}
    for task, found in results.items():
        for cell, rows in found.items():
            cells.setdefault(cell, {})[task.rsplit("/", 1)[1]] = rows
    return cells


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, up to ten sites: minutes")
    parser.add_argument("--smoke", action="store_true", help="a few cells, one seed: seconds")
    parser.add_argument("--cases", nargs="+", default=list(TITLES), help="beginnings of names: low, hostile/twice, ...")
    parser.add_argument("--seeds", type=int, nargs="+", help="draw again with these")
    parser.add_argument("--bare", action="store_true", help="fuse(models) alone, without rivals")
    parser.add_argument("--out", type=Path, help="folder for results.json and tables.md")
    parser.add_argument("--jobs", type=int, default=1, help="groups drawn side by side")
    options = parser.parse_args(words)
    options.seeds = options.seeds or list(QUICK_SEEDS[:1] if options.smoke else QUICK_SEEDS if options.quick else SEEDS)
    kind = "smoke" if options.smoke else "quick" if options.quick else ""
    options.out = options.out or Path("reproduced", kind, "right")
    return options


def write(
    options: argparse.Namespace, about: dict[str, str], cells: dict[str, dict[str, Result]], cpu: float, used: set[str]
) -> str:
    """Write results and tables, and give back the tables."""
    tables, claims = summary(cells)
    quick = options.smoke or options.quick  # too few seeds to judge by: nothing is claimed
    record = {
        "title": f"Right by default ({'smoke' if options.smoke else 'quick' if options.quick else 'full'} run)",
        "quick": quick,
        "versions": about,
        "seeds": options.seeds,
        "cases": options.cases,
        "cpu": cpu,
        "tables": [asdict(table) for table in tables],
        "claims": [] if quick else [asdict(claim) for claim in claims],
        "cells": cells,
    }
    skipped = " Hidden Markov models were skipped." if about["hmmlearn"] == NOT_INSTALLED else ""
    seeds = f"Seeds {' '.join(map(str, options.seeds))}"
    done_with = {"commit": about["commit"], **code_of(used)}
    return write_record(options.out, record, seeds, f" with local fits.{skipped}", done_with)


def main() -> None:
    """Measure, and write what came out."""
    options, about = arguments(), versions(modelweld)  # before the run: a checkout can change meanwhile
    chosen = tasks(options)
    if not chosen:
        sys.exit(f"error: no case begins with {' or '.join(options.cases)}; there are {', '.join(TITLES)}.")
    results, used = dict[str, Result](), loaded()
    for name, (result, modules) in shown(done(chosen, options.jobs), len(chosen)):
        results[name] = result
        used |= modules
    cpu = sum(result.pop("cpu") for result in results.values())
    print(write(options, about, by_cell({task.name: results[task.name] for task in chosen}), cpu, used))


if __name__ == "__main__":
    main()
