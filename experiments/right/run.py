"""Is the bare call `fuse(models)` right on sites as people really have them? Error in K, ARI and CPU seconds.

See README.md for what is drawn and how to read it.

    python experiments/right/run.py                                  # everything, 20 seeds; hours
    python experiments/right/run.py --quick                          # two seeds, up to ten sites; minutes
    python experiments/right/run.py --quick --cases low hostile/twice --seeds 200 201 --out /tmp/x
    python experiments/right/run.py --smoke                          # a few cells, one seed; seconds

The code measured is the one that Python finds: PYTHONPATH=<other checkout>/src measures another.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: CPU seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import argparse
import json
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib import metadata

import estimated
import hostile
import real
from draws import Group
from methods import measured, warm_up
from study import RESULTS, TABLES, Result, Task, asdict, done, markdown, shown
from telling import TITLES, summary

import modelweld

HERE = Path(__file__).parent
SEEDS, QUICK_SEEDS = range(1000, 1020), (0, 1)
"""Of a full and of a quick run: settings of the library are chosen on seeds below 1,000."""

MOST_SITES, QUICK_SITES, LARGE_SEEDS = 50, 10, 5
"""Estimated sites of a full run, of a quick one, and how many seeds have more than a quick one's."""

SMOKE = ("low/D=2 told", "real/wine", "hostile/twice", "hostile/one value")
"""Groups of a smoke run."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "hmmlearn")


def groups(quick: bool, *, large: bool = False) -> list[Group]:
    """All groups of a run; of a full one, the first seeds have large numbers of sites too."""
    many = large and not quick
    return [
        *estimated.groups(MOST_SITES if many else QUICK_SITES),
        *real.groups(),
        *hostile.groups(400 if many else 50),
    ]


def smoke() -> list[Group]:
    """A few groups with three sites at most, and arrays."""
    every = [*estimated.groups(3), *real.groups((2,)), *hostile.groups(20)]
    return [group for group in every if group.path in SMOKE]


def draw_and_measure(group: Group, seed: int) -> Result:
    """All cells of a group at one seed."""
    warm_up()
    return {f"{group.path}/{cell}": measured(draw) for cell, draw in group.draws(seed)}


def tasks(options: argparse.Namespace) -> list[Task]:
    """One per group and seed."""
    chosen = []
    for i, seed in enumerate(options.seeds):
        every = smoke() if options.smoke else groups(options.quick, large=i < LARGE_SEEDS)
        wanted = [g for g in every if any(g.path.startswith(case) for case in options.cases)]
        chosen += [Task(f"{g.path}/{seed}", draw_and_measure, (g, seed)) for g in wanted]
    return chosen


def by_cell(results: dict[str, Result]) -> dict[str, dict[str, Result]]:
    """Cell -> seed -> methods, cells in the order of the first task that has them."""
    cells: dict[str, dict[str, Result]] = {}
    for task, found in results.items():
        for cell, rows in found.items():
            cells.setdefault(cell, {})[task.rsplit("/", 1)[1]] = rows
    order = list(dict.fromkeys(name.rsplit("/", 1)[0] for name in cells))
    return {cell: cells[cell] for group in order for cell in cells if cell.rsplit("/", 1)[0] == group}


def versions() -> dict[str, str]:
    """Of what was measured, the last commit that changed it among them, and of what it stands on."""
    home = Path(modelweld.__file__).parent

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], cwd=home, capture_output=True, text=True, check=False)
        return run.stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--", ".") else ""
    commit = git("log", "-1", "--format=%H", "--", ".") or "unknown"
    found = {"modelweld": modelweld.__version__, "commit": commit + changed}
    found["python"] = platform.python_version()
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "not installed"
    return found


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, up to ten sites: minutes")
    parser.add_argument("--smoke", action="store_true", help="a few cells, one seed: seconds")
    parser.add_argument("--cases", nargs="+", default=list(TITLES), help="beginnings of names: low, hostile/twice, ...")
    parser.add_argument("--seeds", type=int, nargs="+", help="draw anew with these")
    parser.add_argument("--out", type=Path, help="folder for results.json and tables.md")
    parser.add_argument("--jobs", type=int, default=1, help="groups drawn side by side")
    options = parser.parse_args(words)
    options.seeds = options.seeds or list(QUICK_SEEDS[:1] if options.smoke else QUICK_SEEDS if options.quick else SEEDS)
    kind = "smoke" if options.smoke else "quick" if options.quick else ""
    options.out = options.out or Path("reproduced", kind, "right")
    return options


def main() -> None:
    """Measure, and write what came out."""
    options = arguments()
    chosen = tasks(options)
    if not chosen:
        sys.exit(f"error: no case begins with {' or '.join(options.cases)}; there are {', '.join(TITLES)}.")
    began = time.perf_counter()
    results = dict(shown(done(chosen, options.jobs), len(chosen)))
    cpu = sum(result.pop("cpu") for result in results.values())
    cells = by_cell({task.name: results[task.name] for task in chosen})
    tables, claims = summary(cells)
    about = versions()
    title = f"Right by default ({'smoke' if options.smoke else 'quick' if options.quick else 'full'} run)"
    record = {
        "title": title,
        "versions": about,
        "seeds": options.seeds,
        "cases": options.cases,
        "seconds": {"wall": time.perf_counter() - began, "cpu": cpu},
        "tables": [asdict(table) for table in tables],
        "claims": [asdict(claim) for claim in claims],
        "cells": cells,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / RESULTS).write_text(json.dumps(record) + "\n")
    facts = ", ".join(f"{name} {version}" for name, version in about.items())
    skipped = (
        "" if about["hmmlearn"] != "not installed" else " Hidden Markov models are left out: hmmlearn is not installed."
    )
    text = markdown(record).split("\n", 1)
    foot = f"Seeds {' '.join(map(str, options.seeds))}; {facts}; {cpu:.0f} CPU s with local fits.{skipped}"
    (options.out / TABLES).write_text(f"{text[0]}\n\n{foot}\n{text[1]}")
    print((options.out / TABLES).read_text())


if __name__ == "__main__":
    main()
