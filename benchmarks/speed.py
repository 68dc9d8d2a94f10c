"""Speed of `fuse`, side by side in one run with the textbook version of Algorithm 1, plain search and k-means.

All run on one thread, in turn, and CPU time is measured (machines are shared: only ratios mean something). `fuse` is
timed end to end, from a list of arrays to a Fusion, after the compiler has warmed up, with nothing remembered of
earlier calls; the textbook does its first pass and ten sweeps (of 2,000 sites one, counted ten times); k-means is
scikit-learn's, told the number of atoms, with ten starts. Settings are the paper's: L = 50 atoms, D = 50, and each site
holds each atom with a probability of its own.

The first table is the call that everybody makes, `fuse(sites)`. All are recorded in `results.json`, each as soon as it
is measured; README.md's tables are made from it by `benchmarks/tables.py`.

    python benchmarks/speed.py            # all tables, about ten minutes
    python benchmarks/speed.py --default  # the first one only, about three, and its record
    python benchmarks/speed.py --smoke    # a few seconds: does it run, and do the answers agree?
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import modelweld
from modelweld import BetaBernoulli, ConvergenceWarning, Gaussian, simulate
from modelweld.demo.metrics import adjusted_rand
from recorded import cpu_seconds, record

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from textbook import textbook

MODES = {
    "isotropic": {"families": Gaussian(shape="scalar"), "prior": BetaBernoulli(), "search": "plain"},
    "per dimension": {"families": Gaussian(), "prior": BetaBernoulli(), "search": "plain"},
    "authors": {"preset": "authors"},
    "isotropic, numpy": {
        "families": Gaussian(shape="scalar"),
        "prior": BetaBernoulli(),
        "search": "plain",
        "engine": "numpy",
    },
    "defaults": {},
}


RESULTS = Path(__file__).parent / "results.json"

SWEEPS = 10
"""Of the textbook after its first pass."""

TEXTBOOK_UP_TO = 500
"""Sites up to which the textbook does all its sweeps; beyond, one after its first pass, which is counted ten times."""


def compare(data: simulate.Simulated, mode: str, repeats: int) -> dict[str, object]:
    """Run both in turn: the textbook once, ours `repeats` times before and after it."""
    options = MODES[mode]
    authors = {"cut": 10, "cap": 700} if mode == "authors" else {}

    def ours() -> modelweld.Fusion:
        return modelweld.fuse(data.values, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fusion = ours()
        times = [cpu_seconds(ours) for _ in range(repeats)]
        slow, theirs = textbook_seconds(data, **authors)
        times += [cpu_seconds(ours) for _ in range(repeats)]
    N = sum(map(len, data.values))
    return {
        "N": N,
        "textbook": slow,
        "per parameter": 1e3 * slow / N,
        "ours": 1e3 * median(times),
        "ratio": slow / median(times),
        "K": fusion.K,
        "K true": data.K,
        "K textbook": len(theirs.counts),
        "ARI": adjusted_rand(data.truth, fusion.labels),
        "sweeps": fusion.diagnosis.sweeps,
    }


def textbook_seconds(data: simulate.Simulated, **authors: int) -> tuple[float, Any]:
    """CPU time of the textbook on one thread, and its answer; after one sweep where there are many sites."""
    found: list[Any] = []

    def seconds(sweeps: int) -> float:
        with threadpool_limits(1):
            return cpu_seconds(lambda: found.append(textbook(data.values, sweeps=sweeps, **authors)))

    if len(data.values) <= TEXTBOOK_UP_TO:
        return seconds(SWEEPS), found[-1]
    first = seconds(0)
    return first + SWEEPS * (seconds(1) - first), found[-1]


def kmeans(data: simulate.Simulated) -> object:
    """What one would do without modelweld, if somebody told the number of atoms."""
    from sklearn.cluster import KMeans

    return alone(KMeans(data.K, n_init=10, random_state=0).fit, np.concatenate(data.values))


def alone(job: Callable[..., object], *arguments: object) -> object:
    """On one thread, of BLAS and of OpenMP, which k-means uses."""
    with threadpool_limits(1):
        return job(*arguments)


def milliseconds(job: Callable[[], object], repeats: int) -> float:
    return round(1e3 * median(cpu_seconds(job) for _ in range(repeats)), 2)


def default_row(J: int, sd: float, repeats: int) -> dict[str, object]:
    """The default call beside plain search, the textbook and k-means, in turn."""
    data = simulate.paper_figure(J, sd, seed=1)
    plain = MODES["isotropic"]
    fusion = modelweld.fuse(data.values)
    modelweld.fuse(data.values, **plain)
    rivals: list[object] = []
    row: dict[str, object] = {
        "job": f"{J} sites, sd {sd:g}",
        "J": J,
        "sd": sd,
        "N": sum(map(len, data.values)),
        "default_ms": milliseconds(lambda: modelweld.fuse(data.values), repeats),
        "plain_ms": milliseconds(lambda: modelweld.fuse(data.values, **plain), repeats),
        "kmeans_ms": milliseconds(lambda: rivals.append(kmeans(data)), 1 if J > TEXTBOOK_UP_TO else min(repeats, 3)),
        "textbook_ms": round(1e3 * textbook_seconds(data)[0], 2),
        "K": fusion.K,
        "K_true": data.K,
        "ari": round(adjusted_rand(data.truth, fusion.labels), 4),
        "kmeans_ari": round(adjusted_rand(data.truth, _by_site(rivals[-1], data)), 4),
    }
    return row


def _by_site(fit: object, data: simulate.Simulated) -> list[np.ndarray]:
    return np.split(fit.labels_, np.cumsum([len(v) for v in data.values])[:-1])


def defaults(jobs: Sequence[tuple[int, float]], repeats: int, console: Console) -> list[dict[str, object]]:
    """The first table: the default call."""
    table = Table(title="CPU time, one thread: fuse(sites), and what else one could do")
    heads = [
        "job",
        "default ms",
        "plain ms",
        "k-means ms",
        "textbook ms",
        "to plain",
        "to k-means",
        "textbook to it",
        "ARI",
    ]
    for head in heads:
        table.add_column(head, justify="left" if head == "job" else "right")
    rows = []
    for J, sd in jobs:
        row = default_row(J, sd, repeats)
        rows.append(row)
        ms = {name: row[f"{name}_ms"] for name in ("default", "plain", "kmeans", "textbook")}
        table.add_row(
            str(row["job"]),
            *(f"{ms[name]:.1f}" for name in ("default", "plain", "kmeans")),
            f"{ms['textbook']:.0f}",
            f"{ms['default'] / ms['plain']:.1f}",
            f"{ms['default'] / ms['kmeans']:.2f}",
            f"{ms['textbook'] / ms['default']:.0f}x",
            f"{row['ari']:.3f}",
        )
    console.print(table)
    return rows


def ratios(rows: list[tuple[int, float, str]], repeats: int, console: Console) -> list[dict[str, object]]:
    """Settings beside the textbook."""
    found = []
    table = Table(title="CPU time, one thread: textbook (11 passes) against fuse, end to end")
    heads = ["J", "sd", "mode", "N", "textbook s", "ms/parameter", "fuse ms", "ratio", "K", "true", "textbook", "ARI"]
    for head in [*heads, "sweeps"]:
        table.add_column(head, justify="left" if head == "mode" else "right")
    for J, sd, mode in rows:
        r = compare(simulate.paper_figure(J, sd, seed=1), mode, repeats)
        found.append({"J": J, "sd": sd, "mode": mode} | {k: _rounded(x) for k, x in r.items()})
        table.add_row(
            f"{J}",
            f"{sd:g}",
            mode,
            f"{r['N']}",
            f"{r['textbook']:.2f}",
            f"{r['per parameter']:.2f}",
            f"{r['ours']:.2f}",
            f"{r['ratio']:.0f}x",
            f"{r['K']}",
            f"{r['K true']}",
            f"{r['K textbook']}",
            f"{r['ARI']:.3f}",
            f"{r['sweeps']}",
        )
    console.print(table)
    return found


def _rounded(x: object) -> object:
    return float(f"{x:.4g}") if isinstance(x, float) else x


def exponents(sizes: dict[str, list[tuple[int, int, int]]], console: Console) -> list[dict[str, object]]:
    """How CPU time of fuse grows: slope of log time in log N, L and D, the others held fixed."""
    found = []
    table = Table(title="fuse, isotropic, sd 1: growth of CPU time")
    for head in ("varied", "J, L, D", "ms", "exponent"):
        table.add_column(head, justify="left" if head == "varied" else "right")
    for varied, settings in sizes.items():
        x, y = [], []
        for J, L, D in settings:
            values = simulate.sparse(L, J, D, 1.0, np.sqrt(50), 1, 1, mean=2.0, seed=1).values

            def job(values: list[np.ndarray] = values) -> object:
                return modelweld.fuse(
                    values,
                    Gaussian(shape="scalar"),
                    BetaBernoulli(),
                    search=modelweld.Search("plain", engine="compiled"),
                )

            job()
            y.append(median(cpu_seconds(job) for _ in range(5)))
            x.append({"N (through J)": sum(map(len, values)), "L": L, "D": D}[varied])
        slope = np.polyfit(np.log(x), np.log(y), 1)[0]
        found.append({"varied": varied, "at": x, "ms": [round(1e3 * s, 2) for s in y], "exponent": round(slope, 2)})
        for i, setting in enumerate(settings):
            last = f"{slope:.2f}" if i + 1 == len(settings) else ""
            table.add_row(varied if i == 0 else "", ", ".join(map(str, setting)), f"{1e3 * y[i]:.1f}", last)
    console.print(table)
    return found


def keep(**tables: object) -> None:
    """Record tables; those that were not measured anew stay."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    rows = tables.pop("rows", known.get("rows", []))
    others = {name: known[name] for name in ("settings", "exponents") if name in known}
    record(
        RESULTS,
        "CPU milliseconds, one thread; textbook: Algorithm 1, eleven passes; plain: search='plain', one variance; "
        "kmeans: scikit-learn, told K, ten starts; settings: fuse ms beside the textbook's s",
        rows,
        **others | tables,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small version")
    parser.add_argument("--default", action="store_true", help="the default call only")
    asked = parser.parse_args()
    console = Console(width=140)
    if asked.smoke:
        defaults([(10, 1.0)], 1, console)
        ratios([(10, 1.0, "isotropic"), (10, 1.0, "authors")], 1, console)
        return
    rows = defaults([(J, sd) for J in (100, 10, 30, 2000) for sd in (1.0, 5.0, 10.0)], 5, console)
    keep(rows=rows)
    if asked.default:
        return
    found = ratios(
        [
            *[(100, 1.0, mode) for mode in MODES],
            (2000, 1.0, "isotropic"),
            (2000, 1.0, "per dimension"),
            *[(100, sd, "isotropic") for sd in (0.1, 0.5, 2.0, 3.0, 5.0, 7.0, 10.0)],
            (100, 10.0, "authors"),
        ],
        11,
        console,
    )
    keep(settings=found)
    grown = exponents(
        {
            "N (through J)": [(J, 50, 50) for J in (100, 300, 1000, 3000)],
            "L": [(200, L, 50) for L in (50, 100, 200, 400)],
            "D": [(200, 100, D) for D in (25, 50, 100, 200, 400)],
        },
        console,
    )
    keep(exponents=grown)


if __name__ == "__main__":
    main()
