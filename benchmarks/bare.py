"""Speed of the bare call, ``fuse(sites)``, beside the textbook and beside k-means given the true K: the README's table.

One thread, CPU time, medians, in turn in one run, after the compiler has warmed up (machines are shared: only ratios
mean something). Sites are those of `benchmarks/speed.py`: L = 50 atoms, D = 50, sd 1. The textbook is the paper's
Algorithm 1, its first pass and ten sweeps; k-means is scikit-learn's with its defaults, all values pooled, told the
true K.

    python benchmarks/bare.py             # measure (a few minutes), write bare.json and the table in README.md
    python benchmarks/bare.py --table     # write the table anew from bare.json
    python benchmarks/bare.py --smoke     # seconds: does it run?
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import modelweld
from modelweld import simulate
from modelweld.demo.metrics import adjusted_rand
from recorded import cpu_seconds, record

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from textbook import textbook

HERE = Path(__file__).parent
RECORD, README = HERE / "bare.json", HERE.parent / "README.md"
BEGIN, END = "<!-- speed: python benchmarks/bare.py --table -->\n", "<!-- /speed -->"
SITES = (10, 100, 2000)


def middle_seconds(job: Callable[[], object], repeats: int) -> float:
    """Median CPU time of a job."""
    return median(cpu_seconds(job) for _ in range(repeats))


def measure(J: int, repeats: int) -> dict[str, Any]:
    """Times and answers of all three on the same sites."""
    data = simulate.paper_figure(J, 1.0, seed=1)
    pooled, bounds = np.concatenate(data.values), np.cumsum([len(v) for v in data.values])[:-1]

    def kmeans() -> list[np.ndarray]:
        return np.split(KMeans(data.K, random_state=0).fit(pooled).labels_, bounds)

    fusion = modelweld.fuse(data.values)
    with threadpool_limits(1):  # of BLAS and of OpenMP, which k-means uses
        found = {
            "fuse": middle_seconds(lambda: modelweld.fuse(data.values), repeats),
            "textbook": middle_seconds(lambda: textbook(data.values), 1),
            "kmeans": middle_seconds(kmeans, repeats),
        }
        ari = {"fuse": adjusted_rand(data.truth, fusion.labels), "kmeans": adjusted_rand(data.truth, kmeans())}
    return {"J": J, "N": len(pooled), "K": data.K, "K found": fusion.K, "seconds": found, "ARI": ari}


def table(found: dict[str, Any]) -> str:
    """In Markdown, as the README has it."""
    lines = [
        "| one thread, CPU time | `fuse(sites)` | textbook Algorithm 1 | k-means given the true K |",
        "|---|---|---|---|",
    ]
    for row in found["rows"]:
        own, told = row["seconds"]["fuse"], row["ARI"]
        fuse = f"{spell(own)}, ARI {told['fuse']:.3f}"
        others = [f"{spell(s)} ({ratio(s / own)})" for s in (row["seconds"]["textbook"], row["seconds"]["kmeans"])]
        sites = f"{row['J']:,} sites, {row['N']:,} parameters"
        lines.append(f"| {sites} | {fuse} | {others[0]} | {others[1]}, ARI {told['kmeans']:.3f} |")
    return "\n".join(lines) + "\n"


def ratio(times: float) -> str:
    """A ratio with two digits.

    >>> ratio(148.3)
    '150 x'
    """
    return f"{float(format(times, '.2g')):g} x"


def spell(seconds: float) -> str:
    """With two digits, in a unit that suits."""
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s"


def write_table(found: dict[str, Any]) -> None:
    """Put the table where the README has its marks."""
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    README.write_text(before + BEGIN + table(found) + END + rest.split(END, 1)[1], encoding="utf-8")


def main() -> None:
    """Measure, or write the table anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="write the table from what was recorded")
    parser.add_argument("--smoke", action="store_true", help="a small version that writes nothing")
    asked = parser.parse_args()
    if asked.table:
        write_table(json.loads(RECORD.read_text(encoding="utf-8")))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", modelweld.ConvergenceWarning)
        rows = [measure(J, 1 if asked.smoke else 5) for J in (SITES[:1] if asked.smoke else SITES)]
    print(table({"rows": rows}))
    if not asked.smoke:
        record(RECORD, "CPU seconds, one thread, medians of five; textbook: once", rows)
        write_table({"rows": rows})


if __name__ == "__main__":
    main()
