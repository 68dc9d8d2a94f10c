"""Shards on a Dask cluster against flat fusion: agreement, time, memory, bytes moved, and what a billion would cost.

python benchmarks/shards.py             # all tables, written to benchmarks/shards.md; needs the extra 'dask'
python benchmarks/shards.py --smoke     # a minute
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import modelweld
from modelweld import Gaussian
from modelweld.shards.dask import OnDask, fuse_on_dask
from modelweld.shards.fuse import fuse_shards, grouped, run
from modelweld.studies import simulate
from modelweld.studies.metrics import adjusted_rand

D, ATOMS, HELD = 50, 100, 50  # every site holds half of a hundred atoms, as in benchmarks/scale.py
SHARD = 2_000  # sites of a large shard: 100,000 values, 40 MB
FEWEST_SHARDS = 4
SEEDS = (20, 21)
CORES, MACHINES, BILLION = 16, 100, 10**9
FAMILY = Gaussian(shape="scalar")


def drawn(seed: int, sites: int) -> list[np.ndarray]:
    """Sites of a shard, drawn where they are needed: noise 1 about atoms of variance 50."""
    atoms = np.random.default_rng(0).normal(0, np.sqrt(50), (ATOMS, D))
    rng = np.random.default_rng([1, seed])
    return [atoms[rng.permutation(ATOMS)[:HELD]] + rng.normal(size=(HELD, D)) for _ in range(sites)]


def sources(N: int) -> list[partial]:
    """Functions that bring the shards of N values in all."""
    J = N // HELD
    number = max(FEWEST_SHARDS, J // SHARD)
    return [partial(drawn, s, J // number) for s in range(number)]


def gigabytes(file: str, name: str) -> float:
    """A number of /proc, in GB."""
    [line] = [x for x in Path(file).read_text().splitlines() if x.startswith(name)]
    return int(line.split()[1]) * 1024 / 1e9


def peak() -> float:
    """The most memory this process has had, in GB."""
    return gigabytes("/proc/self/status", "VmHWM")


def fits(N: int) -> bool:
    """Whether flat fusion may be tried: it takes two to three times the memory of the values."""
    return gigabytes("/proc/meminfo", "MemAvailable") > 3 * N * D * 8 / 1e9


def cluster(workers: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=40)


def on_dask(N: int, workers: int = 2) -> dict[str, Any]:
    """One row of the scale table: a cluster of its own, shards drawn anew on the workers at each step."""
    from distributed import Client

    with cluster(workers) as local, Client(local) as client:
        fuse_on_dask(client, sources(20_000), FAMILY, keep=False)  # loads compiled code
        busy = sum(client.run(time.process_time).values())
        wall, own = time.perf_counter(), time.process_time()
        engine = OnDask(client, sources(N), keep=False)
        fused = run(engine, FAMILY, "auto", seed=0, sweeps=3)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        between = client.run(lambda dask_worker: sum(x["total"] for x in dask_worker.transfer_incoming_log))
        return {
            "N": N,
            "shards": engine.shards,
            "wall": wall,
            "workers": sum(client.run(time.process_time).values()) - busy,
            "client": own,
            "worker_GB": max(client.run(peak).values()),
            "client_GB": peak(),
            "up": fused.moved.up,
            "down": fused.moved.down,
            "between": sum(between.values()),
            "K": fused.K,
            "objective": fused.objective,
            "changed": fused.changed,
        }


def flat(N: int) -> dict[str, Any]:
    """The same values in one process."""
    modelweld.fuse(drawn(0, 400), FAMILY, search="plain", engine="compiled")  # loads compiled code
    sites = [site for source in sources(N) for site in source()]
    begin = time.process_time()
    fusion = modelweld.fuse(sites, FAMILY, search="plain", copies=False, engine="compiled")
    seconds = time.process_time() - begin
    return {"N": N, "seconds": seconds, "GB": peak(), "K": fusion.K, "objective": fusion.objective}


def agreement(J: int, seeds: tuple[int, ...], settings: tuple[tuple[int, float], ...]) -> list[str]:
    """The same sites flat, in shards here, by joblib, and on 2 and 4 Dask workers."""
    from distributed import Client

    rows = [
        "| D | sd | seed | N | K flat | K shards | ARI of both | nats per value: shards - flat | joblib, Dask 2, 4 |",
        "|---" * 9 + "|",
    ]
    with cluster(2) as two, Client(two) as client2, cluster(4) as four, Client(four) as client4:
        for width, sd in settings:
            for seed in seeds:
                shards = grouped(simulate.sparse(50, J, width, sd, np.sqrt(50), 1, 1, seed=seed).values)
                here = fuse_shards(shards)
                others = [fuse_shards(shards, n_jobs=2), *(fuse_on_dask(c, shards) for c in (client2, client4))]
                same = "same bits" if all(x.trace == here.trace for x in others) else "DIFFERENT"
                fusion = here.to_fusion()
                whole = modelweld.fuse(fusion.given, search="plain", copies=False)
                N = int(here.sizes.sum())
                ari = adjusted_rand(whole.labels, fusion.labels)
                gap = (here.objective - whole.objective) / N
                gap = 0.0 if abs(gap) < 1e-9 else gap
                row = f"| {width} | {sd:g} | {seed} | {N} | {whole.K} | {here.K} | {ari:.4f} | {gap:+.5f} | {same} |"
                rows.append(row)
                print(rows[-1], flush=True)
    return rows


def alone(*arguments: str) -> dict[str, Any]:
    """A row measured in a process of its own, so that peaks of memory are its own."""
    command = [sys.executable, __file__, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(answer.splitlines()[-1]))


def scale(sizes: list[int]) -> tuple[list[str], dict[str, Any]]:
    """The scale table, and its largest row."""
    rows = [
        "| N | sites | shards | wall | CPU of 2 workers | CPU of client | CPU of flat | GB per worker | GB of client "
        "| GB of flat | MB down | MB up | MB between workers | nats per value: shards - flat |",
        "|---" * 14 + "|",
    ]
    found = []
    for N in sizes:
        x = alone("--row", str(N))
        found.append(x)
        f = alone("--flat", str(N)) if fits(N) else None
        gap = "" if f is None else f"{(x['objective'] - f['objective']) / N:+.1e}"
        flat_s, flat_gb = ("", "") if f is None else (f"{f['seconds']:.2f} s", f"{f['GB']:.2f}")
        rows.append(
            f"| {N:,} | {N // HELD:,} | {x['shards']} | {x['wall']:.0f} s | {x['workers']:.1f} s | {x['client']:.1f} s "
            f"| {flat_s} | {x['worker_GB']:.2f} | {x['client_GB']:.2f} | {flat_gb} | {x['down'] / 1e6:.1f} "
            f"| {x['up'] / 1e6:.1f} | {x['between'] / 1e6:.1f} | {gap} |"
        )
        print(rows[-1], f"K {x['K']}, changed {x['changed']}", flush=True)
    cpu = [x["workers"] + x["client"] for x in found]
    if len(found) > 1:
        decade = np.log(cpu[-1] / cpu[-2]) / np.log(found[-1]["N"] / found[-2]["N"])
        rows += ["", f"CPU time grows as N^{decade:.2f} from N = {found[-2]['N']:,} to N = {found[-1]['N']:,}; below,"]
        rows += ["start-up and the merge weigh most. Workers draw, sort and check their values anew at each of three"]
        rows += [
            "passes (`keep=False`), which flat fusion, given them in memory, does not: CPU time is the price of memory."
        ]
    return rows, found[-1]


def billion(x: dict[str, Any]) -> list[str]:
    """What a billion values would cost on a hundred machines, by the largest row measured."""
    shards, J = BILLION // (SHARD * HELD), BILLION // HELD
    rate, client = x["N"] / x["workers"], x["client"] / x["shards"]
    moved = (x["up"] + x["down"]) / x["shards"]
    sums = shards * ATOMS * 5 * D * 8 / 1e9
    return [
        f"Measured at N = {x['N']:,}: {rate:,.0f} values per CPU second of a worker (drawn anew at each of three",
        f"passes); per shard of {SHARD * HELD:,}, {client * 1e3:.0f} ms of the client and {moved / 1e6:.2f} MB moved.",
        "",
        f"- workers: 10^9 / ({rate:,.0f} x {MACHINES} x {CORES}) = {BILLION / rate / MACHINES / CORES:.0f} s",
        f"- centre: {shards:,} shards x {client * 1e3:.0f} ms = {shards * client:.0f} s, one process;",
        f"  with shards ten times as large (400 MB) {shards * client / 10:.0f} s",
        f"- messages: {shards:,} x {moved / 1e6:.2f} MB = {shards * moved / 1e9:.1f} GB through one scheduler,",
        f"  {shards * moved / 1.25e9:.0f} s at 10 Gbit/s",
        f"- memory: 4 GB of values per machine, if they are kept; {sums:.1f} GB of sums at the centre; in every worker",
        f"  process a table by number of sites, {3 * J * 8 / 1e9:.1f} GB with one noise for all dimensions,",
        f"  {2 * J * 8 * D / 1e9:.0f} GB with one for each (too much: it would have to be cut to counts that occur)",
        "",
        f"Assumptions: {CORES} cores per machine as fast as these and free; {ATOMS} atoms, {HELD} per site, noise 1",
        "about atoms of variance 50, so that one polishing sweep changes nothing (each further one is a pass more);",
        "reading costs what drawing costs here; workers and centre take turns; no worker is lost (one costs its shards",
        "again).",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--flat", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--largest", type=int, default=10**7, help="local parameters of the last row")
    asked = parser.parse_args()
    if asked.row or asked.flat:
        print(json.dumps(on_dask(asked.row) if asked.row else flat(asked.flat)))
        return
    if asked.smoke:
        agreement(64, SEEDS[:1], ((D, 1.0), (20, 5.0)))
        scale([10_000])
        return
    sizes = [N for N in (10**4, 10**5, 10**6, 10**7) if asked.largest >= N]
    table, largest = scale(sizes)
    same = agreement(128, SEEDS, ((D, 0.5), (D, 1.0), (D, 2.0), (D, 5.0), (20, 5.0), (D, 10.0)))
    text = [
        "# Shards against flat fusion",
        "",
        "Written by `python benchmarks/shards.py` on two cores that others used at the same time: walls say little.",
        "",
        "## The same sites, five ways",
        "",
        "`simulate.sparse(50, 128, D, sd, sqrt(50), 1, 1)`, shards of 32 sites, defaults, at most three polishing",
        "sweeps; flat is `fuse(sites, search='plain', copies=False)`.",
        "",
        *same,
        "",
        f"## Scale (D = {D}, {ATOMS} atoms, {HELD} per site, noise 1, one noise for all dimensions)",
        "",
        *table,
        "",
        "## A billion on a hundred machines, on paper",
        "",
        *billion(largest),
        "",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
