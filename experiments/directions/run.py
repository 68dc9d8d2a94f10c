"""Sets of directions, matched by modelweld and by what people do today, where the truth is known.

python experiments/directions/run.py --data FOLDER      # README.md names the files that it may have
python experiments/directions/run.py --only maps
python experiments/directions/run.py --smoke
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, main, not_behind, outside, timed  # isort: skip; first: it sets the threads

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rivals import best_cut, cut, score
from sets import Sets, maps, signatures

from modelweld import Directions, Family, fuse
from paired import paired

SEEDS = range(200, 210)  # settings were chosen on seeds 0 to 19
CATALOGUE = "COSMIC_v3.4_SBS_GRCh37.txt"
OURS, BEST = "fuse(sites, Directions())", "best cut, seen on the truth"
AXIAL = "fuse(sites, Directions(axial=True))"
Rows = Iterator[tuple[str, str, dict[str, Any]]]
"""Cell, method, and what it found."""


def fused(sets: Sets, family: Family) -> dict[str, Any]:
    """What `fuse` finds: how good, how many atoms, how long."""
    fusion, seconds = timed(fuse, sets.sites, family)
    shared = {"shared": int((fusion.counts > 1).sum()), "true_shared": sets.shared}
    found = {"ari": score(sets, fusion.matching.stacked_labels), "K": fusion.K, "true_K": sets.K}
    return {**found, **shared, "cpu": seconds}


def clustered(sets: Sets, labels: Any) -> dict[str, Any]:
    """What labels are worth."""
    held = np.split(np.asarray(labels), np.cumsum([len(own) for own in sets.truth])[:-1])
    shared = Sets(held, sets.sites).shared
    return {"ari": score(sets, labels), "K": len(np.unique(labels)), "true_K": sets.K, "shared": shared}


def of_signatures(seed: int, smoke: bool) -> Rows:
    """Signatures of cohorts."""
    for mutations in (500,) if smoke else (500, 150, 60):
        sets, cell = signatures(seed, outside(CATALOGUE), mutations, 4 if smoke else 12), f"{mutations} mutations"
        yield cell, OURS, fused(sets, Directions())
        yield cell, "one concentration, as before", fused(sets, Directions(own=False))
        for cosine in (0.8, 0.9):
            yield cell, f"cut at {cosine}", clustered(sets, cut(sets, cosine))
        yield cell, BEST, clustered(sets, best_cut(sets))


def of_maps(seed: int, smoke: bool) -> Rows:
    """Maps whose signs mean nothing."""
    for cosine in (0.95,) if smoke else (0.95, 0.85, 0.75):
        sets, cell = maps(seed, cosine, 5 if smoke else 16), f"cosine {cosine}"
        yield cell, AXIAL, fused(sets, Directions(axial=True))
        yield cell, "with signs taken at their word", fused(sets, Directions(own=False))
        yield cell, "best cut of abs. cosine, seen on the truth", clustered(sets, best_cut(sets, signless=True))


PARTS: dict[str, Callable[[int, bool], Rows]] = {"signatures": of_signatures, "maps": of_maps}


def part(name: str, seed: int, smoke: bool) -> Result:
    """All methods on one draw."""
    warnings.simplefilter("ignore")
    return {"rows": [{"cell": c, "method": m, **row} for c, m, row in PARTS[name](seed, smoke)]}


def tasks(quick: bool) -> list[Task]:
    """One per part and seed."""
    seeds = SEEDS[: 1 if quick else None]
    return [Task(f"{name}/{seed}", part, (name, seed, quick)) for name in PARTS for seed in seeds]


def column(results: Results, begins: str, cell: str, method: str, value: str) -> list[float]:
    """A figure of a method, seed by seed."""
    rows = [row for task, r in results.items() if task.startswith(begins) for row in r["rows"]]
    return [float(row[value]) for row in rows if (row["cell"], row["method"]) == (cell, method)]


def summary(results: Results) -> Summary:
    """Means over seeds, and the bare call's adjusted Rand index less that of every other method, draw by draw."""
    tables = []
    for name in dict.fromkeys(task.split("/")[0] for task in results):
        first = next(r for task, r in results.items() if task.startswith(name))["rows"]
        measures = list(dict.fromkeys(key for row in first for key in row if key not in ("cell", "method")))
        rows, bare = [], {row["cell"]: row["method"] for row in reversed(first)}
        for row in first:
            cell, method = row["cell"], row["method"]
            ours, theirs = (column(results, name, cell, m, "ari") for m in (bare[cell], method))
            less = "" if method == bare[cell] else str(paired(ours, theirs))
            means = (f"{np.mean(column(results, name, cell, method, m)):.3f}" if m in row else "" for m in measures)
            rows.append([cell, method, *means, less])
        note = f"Means over {len(column(results, name, first[0]['cell'], first[0]['method'], 'ari'))} seeds."
        tables.append(Table(name, ["", "", *measures, "ARI of the first less this"], rows, note))
    return Summary(tables, claims(results))


def claims(results: Results) -> list[Claim]:
    """What should hold of signatures and maps."""
    found = []
    for cell in (f"{depth} mutations" for depth in (500, 150, 60)):
        ours = {v: column(results, "signatures", cell, OURS, v) for v in ("K", "true_K", "ari")}
        if len(ours["K"]) > 1:
            by, n = paired(ours["K"], ours["true_K"]), f"{len(ours['K'])} draws"
            found.append(Claim(f"signatures, {cell}: K within one.", str(by), abs(by.mean) <= 1, n))
            gain = paired(ours["ari"], column(results, "signatures", cell, BEST, "ari"))
            found.append(not_behind("... ARI as good as that of the cosine cut that sees the truth.", gain, n))
    for cosine, aim in ((0.95, 0.99), (0.85, 0.95), (0.75, 0.85)):
        ari = column(results, "maps", f"cosine {cosine}", AXIAL, "ari")
        if ari:
            text = f"maps without signs at cosine {cosine}: ARI at least {aim}."
            found.append(Claim(text, f"{np.mean(ari):.3f}", bool(np.mean(ari) >= aim), f"{len(ari)} draws"))
    return found


TITLE = "Sets of directions"
QUESTION = (
    "Signatures and maps whose sign means nothing are directions: are they matched as well as by what people do "
    "today, where the truth is known?"
)

if __name__ == "__main__":
    main(Study("directions", TITLE, QUESTION, tasks, summary))
