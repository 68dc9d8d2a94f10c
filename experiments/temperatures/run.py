"""The paper's temperatures: one sparse Gaussian process per state, fused without data, beside rivals and pooled data.

See README.md for the data, who is compared and what came out.

    python experiments/temperatures/run.py            # 50 states, 10 splits: six CPU minutes
    python experiments/temperatures/run.py --quick    # 8 states, 50 points each, one repeat
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

from repeats import FULL, QUICK, large_local, repeat
from telling import summary

from study import Study, Task, main

SEEDS = range(100, 110)  # settings were chosen on splits below 100
LARGE_SEEDS, LARGE = SEEDS[:3], 300  # points of states' own processes, and on which splits


def tasks(quick: bool) -> list[Task]:
    """One task per split; processes with many points are tasks of their own."""
    if quick:
        return [Task("repeat/100", repeat, (100, QUICK)), Task("local/100", large_local, (100, QUICK, 100))]
    whole = [Task(f"repeat/{seed}", repeat, (seed, FULL)) for seed in SEEDS]
    return whole + [Task(f"local/{seed}", large_local, (seed, FULL, LARGE)) for seed in LARGE_SEEDS]


TITLE = "Daily temperatures of the 50 states: sparse Gaussian processes"
QUESTION = (
    "Every state trains a sparse Gaussian process on its own weather stations. How well does the process fused from "
    "their parameters predict the next day, at home and across the country, beside one trained on all data?"
)

if __name__ == "__main__":
    main(Study("temperatures", TITLE, QUESTION, tasks, summary))
