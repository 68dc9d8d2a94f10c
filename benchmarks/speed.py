"""Speed of `fuse` against the textbook version of the paper's Algorithm 1, side by side in one run.

Both run on one thread, in turn, and CPU time is measured (machines are shared: only ratios mean something). `fuse` is
timed end to end, from a list of arrays to a Fusion, after the compiler has warmed up; the textbook does its first
pass and ten sweeps. Settings are the paper's: L = 50 atoms, D = 50, each site holds each atom with a probability of
its own.

    python benchmarks/speed.py            # the whole table, about five minutes
    python benchmarks/speed.py --smoke    # a few seconds: does it run, and do the answers agree?
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import modelweld
from modelweld import BetaBernoulli, ConvergenceWarning, Gaussian
from modelweld.studies import simulate
from modelweld.studies.metrics import adjusted_rand
from modelweld.studies.textbook import textbook
from modelweld.threads import blas_threads

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


def cpu_seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


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
        with blas_threads(1):
            slow = cpu_seconds(lambda: textbook(data.values, **authors))
            theirs = textbook(data.values, sweeps=0) if len(data.values) > 500 else textbook(data.values, **authors)
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
        "sweeps": fusion.sweeps,
    }


def ratios(rows: list[tuple[int, float, str]], repeats: int, console: Console) -> None:
    table = Table(title="CPU time, one thread: textbook (11 passes) against fuse, end to end")
    heads = ["J", "sd", "mode", "N", "textbook s", "ms/parameter", "fuse ms", "ratio", "K", "true", "textbook", "ARI"]
    for head in [*heads, "sweeps"]:
        table.add_column(head, justify="left" if head == "mode" else "right")
    for J, sd, mode in rows:
        r = compare(simulate.paper_figure(J, sd, seed=1), mode, repeats)
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


def exponents(sizes: dict[str, list[tuple[int, int, int]]], console: Console) -> None:
    """How CPU time of fuse grows: slope of log time in log N, L and D, the others held fixed."""
    table = Table(title="fuse, isotropic, sd 1: growth of CPU time")
    for head in ("varied", "J, L, D", "ms", "exponent"):
        table.add_column(head, justify="left" if head == "varied" else "right")
    for varied, settings in sizes.items():
        x, y = [], []
        for J, L, D in settings:
            values = simulate.sparse(L, J, D, 1.0, np.sqrt(50), 1, 1, mean=2.0, seed=1).values

            def job(values: list[np.ndarray] = values) -> object:
                return modelweld.fuse(
                    values, Gaussian(shape="scalar"), BetaBernoulli(), search="plain", engine="compiled"
                )

            job()
            y.append(median(cpu_seconds(job) for _ in range(5)))
            x.append({"N (through J)": sum(map(len, values)), "L": L, "D": D}[varied])
        slope = np.polyfit(np.log(x), np.log(y), 1)[0]
        for i, setting in enumerate(settings):
            last = f"{slope:.2f}" if i + 1 == len(settings) else ""
            table.add_row(varied if i == 0 else "", ", ".join(map(str, setting)), f"{1e3 * y[i]:.1f}", last)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small version")
    smoke = parser.parse_args().smoke
    console = Console(width=140)
    if smoke:
        ratios([(10, 1.0, "isotropic"), (10, 1.0, "authors")], 1, console)
        return
    ratios(
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
    exponents(
        {
            "N (through J)": [(J, 50, 50) for J in (100, 300, 1000, 3000)],
            "L": [(200, L, 50) for L in (50, 100, 200, 400)],
            "D": [(200, 100, D) for D in (25, 50, 100, 200, 400)],
        },
        console,
    )


if __name__ == "__main__":
    main()
