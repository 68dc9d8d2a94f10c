"""What bad sites do to the others' fusion: breakdown curves of `fuse(sites)` beside other defences.

    python experiments/hostile/poison.py                             # all attacks, three seeds; six minutes of one core
    python experiments/hostile/poison.py --attacks sybils --sites 20 --seeds 8000 8001 --out /tmp/x
    python experiments/hostile/poison.py --smoke                         # three attacks, one seed; seconds

Writes results.json (every draw) and tables.md into --out; each cell is kept there as soon as it is done, and a run goes
on where another of the same library, seeds and folder stopped. See README.md for what is drawn and compared.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: CPU seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import argparse

from attacks import ATTACKS, drawn
from breakdown import claims, tables
from defences import BARE, measured

import modelweld
from study import RESULTS, TASK_FOLDER, Result, Task, asdict, carried_out, versions, write_record

SEEDS = range(9000, 9003)
"""Of the record: nothing was chosen on them (choices were made on 8000 and 8001)."""

SITES = (20, 50)
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45)
SMOKE_ATTACKS, SMOKE_SHARES = ("values x 1000", "sybils, jitter .1", "atoms in 40 pieces"), (0.0, 0.45)


def draw_and_measure(attack: str, J: int, share: float, seeds: list[int]) -> Result:
    """One cell: every seed's rows by method."""
    return {"seeds": {str(seed): measured(drawn(attack, J, share, seed)) for seed in seeds}}


def short(rows: dict[str, dict[str, Result]]) -> dict[str, dict[str, list[float | str | None]]]:
    """Method -> measure -> one number per seed, to four digits; who is named, of `fuse` alone."""
    kept: dict[str, dict[str, list[float | str | None]]] = {}
    for method, first in next(iter(rows.values())).items():
        for what in first:
            if method == BARE or "named" not in what:
                found = [row[method].get(what) for row in rows.values()]
                kept.setdefault(method, {})[what] = [float(f"{x:.4g}") if isinstance(x, float) else x for x in found]
    return kept


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="three attacks, one seed: seconds")
    parser.add_argument("--attacks", nargs="+", default=[""], help="beginnings of names")
    parser.add_argument("--sites", type=int, nargs="+", default=SITES)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=1, help="cells side by side")
    parser.add_argument("--out", type=Path, default=Path("reproduced/poisoning"), help="folder for the record")
    options = parser.parse_args()
    options.shares = SHARES
    if options.smoke:
        options.attacks, options.shares = list(SMOKE_ATTACKS), SMOKE_SHARES
        options.sites, options.seeds = SITES[:1], options.seeds[:1]
    return options


def main() -> None:
    """Measure, and write what came out."""
    options, about = arguments(), versions(modelweld)  # before the run: a checkout can change meanwhile
    chosen = [name for name in ATTACKS if any(name.startswith(wanted) for wanted in options.attacks)]
    # without bad sites plain values are the same whatever the attack, and sites with claims are not: all are run
    cells = [(name, J, share) for J in options.sites for name in chosen for share in options.shares]
    seeds = " ".join(map(str, options.seeds))
    tasks = {
        cell: Task("{}, {} sites, {:g} bad, seeds {}".format(*cell, seeds), draw_and_measure, (*cell, options.seeds))
        for cell in cells
    }
    results = carried_out(list(tasks.values()), options.out / TASK_FOLDER / about["commit"], options.jobs)
    found = {cell: results[task.name]["seeds"] for cell, task in tasks.items()}
    record = {
        "title": f"Breakdown under bad sites{' (smoke run)' if options.smoke else ''}",
        "versions": about,
        "seeds": options.seeds,
        "cpu": sum(result["cpu"] for result in results.values()),
        "tables": [asdict(table) for table in tables(found)],
        "claims": [asdict(claim) for claim in claims(found)],
        "cells": {f"{name} / {J} sites / {share:g}": short(rows) for (name, J, share), rows in found.items()},
    }
    print(write_record(options.out, record, f"Seeds {seeds}"))
    print(f"written: {options.out / RESULTS}")


if __name__ == "__main__":
    main()
