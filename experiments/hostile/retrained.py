"""Is a site named that sends its model again, trained on a few rows fewer under another name? And honest ones?

    python experiments/hostile/retrained.py               # five tables, 25 deals each; three minutes of one core
    python experiments/hostile/retrained.py --smoke       # wine, two deals; seconds

Rows of a table are dealt to five sites, which fit a mixture each and read it with their rows, as `export` does. A sixth
sends the first one's again: trained on all but two rows, 95 %, 80 % or half of them, or on all from another start.
Named is what a warning says of the two (`screening.duplicates`).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is
sys.path.insert(0, str(Path(__file__).parents[1] / "right"))

from study import Table, asdict, asked, versions, write_record  # isort: skip; first: it sets the threads

import time
import warnings
from collections.abc import Callable

import numpy as np
import real
from estimated import mixture

import modelweld
from modelweld import DuplicateWarning
from modelweld.core.values import Array

SEEDS = range(5000, 5025)
"""Of the record: nothing was chosen on them (choices were made on 0 to 5, and on draws of experiments/right)."""

SITES, RIDGE, STARTS = 5, 1e-3, 3
AGAIN = {"two rows fewer": 2, "95 % of its rows": 0.05, "80 %": 0.2, "half": 0.5, "all, another start": 0}
"""What is sent again -> rows that are left out, as a number or a share."""


def one_population(seed: int) -> tuple[Array, int, str]:
    """A thousand rows of six groups in four dimensions, N(0, 3^2) with variance one."""
    rng = np.random.default_rng([510, seed])
    return rng.normal(0, 3, (6, 4))[rng.integers(6, size=1000)] + rng.normal(size=(1000, 4)), 6, "diag"


def of_table(name: str) -> Callable[[int], tuple[Array, int, str]]:
    """Rows, number of groups and shape of covariances of a table of experiments/right."""
    X, y, shape = real.TABLES[name]()
    return lambda seed: (X, len(np.unique(y)), shape)


def named(models: list[modelweld.LocalModel]) -> list[str]:
    """What is said about sites that repeat each other."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        modelweld.fuse(models)
    return [str(w.message) for w in caught if issubclass(w.category, DuplicateWarning)]


def deal(drawn: Callable[[int], tuple[Array, int, str]], seed: int) -> dict[str, tuple[bool, bool]]:
    """For honest sites alone, and for each way to send again: whether the two are named, and whether anybody else."""
    X, K, shape = drawn(seed)
    rng = np.random.default_rng([511, seed])

    def sent(rows: Array, site: str, start: int = 0) -> modelweld.LocalModel:
        with warnings.catch_warnings(action="ignore"):
            return modelweld.read(mixture(rows, K, shape, STARTS, start, RIDGE), X=rows, site=site)

    parts = [X[rows] for rows in np.array_split(rng.permutation(len(X)), SITES)]
    honest = [sent(rows, f"s{j}") for j, rows in enumerate(parts)]
    found = {"nothing": (False, bool(named(honest)))}
    for what, fewer in AGAIN.items():
        rows = rng.permutation(parts[0])[fewer if isinstance(fewer, int) else int(fewer * len(parts[0])) :]
        said = named([*honest, sent(rows if fewer else parts[0], "again", 0 if fewer else 1)])
        right = [text.startswith("sites 's0' and 'again' ") for text in said]
        found[what] = any(right), not all(right)
    return found


def main() -> None:
    """Deal, and write what came out."""
    options = asked(
        __doc__,
        smoke=(False, "wine, two deals: seconds"),
        seeds=({"type": int, "nargs": "+", "default": list(SEEDS)}, "of the deals"),
        out=(Path("reproduced/retrained"), "folder for the record"),
    )
    about, began = versions(modelweld), time.process_time()
    seeds = options.seeds[:2] if options.smoke else options.seeds
    draws = {name: of_table(name) for name in (["wine"] if options.smoke else real.TABLES)}
    if not options.smoke:
        draws["one population"] = one_population
    cells = {name: [deal(drawn, seed) for seed in seeds] for name, drawn in draws.items()}
    ways = ["nothing", *AGAIN]
    rows = [
        [name, *(f"{sum(d[w][0] for d in deals)}; {sum(d[w][1] for d in deals)}" for w in ways)]
        for name, deals in cells.items()
    ]
    note = f"Of {len(seeds)} deals to {SITES} sites: in how many the two are named; in how many anybody else is."
    table = Table("A model that is sent again", ["table", *ways], rows, note)
    record = {"title": "Models trained again", "versions": about, "seeds": seeds, "tables": [asdict(table)]}
    record |= {"cpu": time.process_time() - began, "claims": [], "cells": cells}
    print(write_record(options.out, record, f"Seeds {seeds[0]} to {seeds[-1]}"))


if __name__ == "__main__":
    main()
