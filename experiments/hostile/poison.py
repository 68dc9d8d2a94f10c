"""What bad sites do to the others' fusion: breakdown curves of `fuse(sites)` beside medians.

    python experiments/hostile/poison.py --accept          # 13 attacks, 20 and 50 sites; seven CPU minutes
    python experiments/hostile/poison.py --only sybils     # those whose names begin so
    python experiments/hostile/poison.py --smoke           # three attacks, one seed; seconds

README.md says what is drawn and compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Result, Results, Study, Summary, Task, main  # isort: skip; first: it sets the threads

from attacks import ATTACKS, drawn
from breakdown import SEP, claims, tables
from defences import BARE, measured

SEEDS = range(9010, 9015)
"""Nothing was chosen on them: choices were made on 8000 to 8005."""

SITES, SHARES = (20, 50), (0.05, 0.1, 0.2, 0.3, 0.4, 0.45)
SMOKE_ATTACKS, SMOKE_SHARE = ("values x 1000", "sybils, jitter .1", "atoms in 8 pieces"), 0.45


def draw_and_measure(attack: str, J: int, share: float, seeds: list[int]) -> Result:
    """One cell: method -> measure -> one number per seed, to four digits; who is named, of `fuse` alone."""
    rows = [measured(drawn(attack, J, share, seed)) for seed in seeds]
    kept = {method: own if method == BARE else ["error"] for method, own in rows[0].items()}
    return {m: {what: [_short(row[m].get(what)) for row in rows] for what in own} for m, own in kept.items()}


def _short(x: object) -> object:
    return float(f"{x:.4g}") if isinstance(x, float) else x


def tasks(quick: bool) -> list[Task]:
    """One per attack, number of sites and share of bad ones."""
    attacks, sites, shares, seeds = ATTACKS, SITES, SHARES, list(SEEDS)
    if quick:
        attacks, sites = {name: ATTACKS[name] for name in SMOKE_ATTACKS}, SITES[:1]
        shares, seeds = (SMOKE_SHARE,), seeds[:1]
    cells = [(name, J, share) for J in sites for name in attacks for share in shares]
    return [Task(SEP.join(map(str, cell)), draw_and_measure, (*cell, seeds)) for cell in cells]


def summary(results: Results) -> Summary:
    """Curves, who is named, and whether medians of the members would have been nearer."""
    parts = {task: task.split(SEP) for task in results}
    cells = {(name, int(J), float(share)): results[task] for task, (name, J, share) in parts.items()}
    return Summary(list(tables(cells)), list(claims(cells)))


TITLE = "Breakdown under bad sites"
QUESTION = "What can a minority of sites do to the fusion of the others?"

if __name__ == "__main__":
    main(Study("hostile/poisoning", TITLE, QUESTION, tasks, summary))
