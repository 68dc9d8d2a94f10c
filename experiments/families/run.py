"""Does every family recover its own atoms? ARI and error in K against Gaussian and k-means on the same values.

python experiments/families/run.py               # all families, 10 seeds: a few CPU minutes
python experiments/families/run.py --smoke       # one seed, few atoms
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, by_cell, main, timed  # isort: skip; first: it sets the threads

import warnings

import numpy as np
from sets import ATOMS, SETTINGS, SITES

from modelweld import fuse, metrics
from paired import paired
from shared.baselines import kmeans_matching

SEEDS = range(9000, 9010)  # sizes of the sets were chosen on seeds 0 to 3
FAMILY, PLAIN, TURNED, TOLD = "family", "Gaussian", "Gaussian, transformed", "k-means told K"


def judged(name: str, seed: int, K: int, J: int) -> Result:
    """ARI, error in K and CPU seconds of every method on one draw."""
    setting = SETTINGS[name]
    drawn, found = setting.simulate(seed, K, J), {}
    true = len(np.unique(np.concatenate(drawn.truth)))
    calls = {
        FAMILY: lambda: fuse(drawn.models, families=setting.families()),
        PLAIN: lambda: fuse(drawn.flat),
        TURNED: lambda: fuse(drawn.transformed),
        TOLD: lambda: kmeans_matching(drawn.transformed, true),
    }
    warnings.simplefilter("ignore")
    for method, call in calls.items():
        fusion, seconds = timed(call)
        ari = metrics.adjusted_rand(drawn.truth, fusion.labels)
        found[method] = {"ari": ari, "error in K": fusion.K - true, "seconds": seconds}
    return {"methods": found}


def tasks(quick: bool) -> list[Task]:
    """One per family and seed."""
    seeds, sizes = (SEEDS[:1], (6, 4)) if quick else (SEEDS, (ATOMS, SITES))
    return [Task(f"{name}/{seed}", judged, (name, seed, *sizes)) for name in SETTINGS for seed in seeds]


def summary(results: Results) -> Summary:
    """A row per family, and whether it was worth having."""
    rows, less = [], {}
    for name, found in by_cell(results).items():
        draws, cells = [r["methods"] for r in found], []
        for method in draws[0]:
            ari, off = ([d[method][what] for d in draws] for what in ("ari", "error in K"))
            cells.append(f"{np.mean(ari):.3f} ±{np.std(ari):.3f} {np.mean(off):+.1f}")
        rows.append([name, *cells, f"{np.mean([d[FAMILY]['seconds'] for d in draws]):.2f}"])
        less[name] = {m: paired(*([d[k]["ari"] for d in draws] for k in (FAMILY, m))) for m in draws[0] if m != FAMILY}
    claims = []
    for rival, worst in ((PLAIN, "ahead"), (TOLD, "ahead"), (TURNED, "not told apart")):
        by = {name: found[rival] for name, found in less.items() if name != "Gaussian"}
        good = [name for name, p in by.items() if p.verdict in ("ahead", worst)]
        least = min(by, key=lambda name: by[name].mean)
        words = "ahead of" if worst == "ahead" else "not behind"
        text = f"every family but Gaussian {words} {rival}, on its own values."
        found = f"{len(good)} of {len(by)}; least {least}: {by[least]}."
        claims.append(Claim(text, found, len(good) == len(by), f"{by[least].n} draws a family"))
    note = "ARI ± its spread over seeds, and mean error in K; CPU seconds of one fusion with the family."
    columns = ["set", *next(iter(results.values()))["methods"], "seconds"]
    return Summary([Table("Families", columns, rows, note)], claims)


TITLE = "Every family on values of its own kind"
QUESTION = "Does every family recover its own atoms, and is it worth having, against `Gaussian` on the same values?"

if __name__ == "__main__":
    main(Study("families", TITLE, QUESTION, tasks, summary))
