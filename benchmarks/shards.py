"""Shards on a Dask cluster beside the default call: agreement, growth with N, memory, bytes moved, a billion's price.

python benchmarks/shards.py                 # all parts, recorded in shards.json; needs the extra 'dask'
python benchmarks/shards.py scale           # that part alone (agreement, growth, scale); the others stay
python benchmarks/shards.py --table         # shards.md from the record
python benchmarks/shards.py --smoke         # a minute, nothing written
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import modelweld
from families import Sites
from modelweld import Counts, Directions, Family, Gaussian, LocalModel, simulate
from modelweld.demo.metrics import adjusted_rand
from modelweld.shards import OnDask, fuse_on_dask
from modelweld.shards.default_call import fuse_shards, group_sites, run
from recorded import record

RECORD = Path(__file__).with_suffix(".json")

D, ATOMS, HELD = 50, 100, 50  # every site holds half of a hundred atoms, as in benchmarks/scale.py
SHARD = 2_000  # sites of a large shard: 100,000 values, 40 MB
FEWEST_SHARDS = 4
FLAT_UP_TO = 2 * 10**6  # values whose fusion in one process takes 4 GB
SEEDS = (30, 31)
CORES, MACHINES, BILLION = 16, 100, 10**9
PRICE = 0.80
"""Dollars for an hour of a machine of so many cores: what clouds ask for one on demand, to the nearest tenth or two."""
FAMILY = Gaussian(shape="scalar")


def real(J: int, seed: int, sd: float = 1.0, width: int = D) -> list[np.ndarray]:
    """Plain values of fifty atoms."""
    return [np.asarray(v) for v in simulate.sparse(50, J, width, sd, np.sqrt(50), 1, 1, seed=seed).values]


def with_errors(J: int, seed: int, sd: float = 1.0) -> list[LocalModel]:
    """Values of twenty atoms in ten dimensions with standard errors, of which they hold half of their variance."""
    sites = simulate.sparse(20, J, 10, sd, np.sqrt(50), 1, 1, seed=seed).values
    errors = [{"v": np.full(v.shape, sd**2 / 2)} for v in sites]
    return [
        LocalModel({"v": v}, {"v": ("atom", None)}, variance=e, site=f"s{j}")
        for j, (v, e) in enumerate(zip(sites, errors, strict=True))
    ]


def counts(J: int, seed: int, share: float = 0.2) -> list[np.ndarray]:
    """Words of twenty topics."""
    return Sites(20, 40, J, seed).counts(share)


def directions(J: int, seed: int, width: int = 10) -> list[np.ndarray]:
    """Unit vectors about twenty atoms, of which sites agree more closely on those that lie farther out."""
    return Sites(20, width, J, seed).unit()


SETS: dict[str, tuple[Callable[[int, int], list[Any]], Family | None]] = {
    "plain, D=50, sd 1": (real, None),
    "plain, D=50, sd 5": (partial(real, sd=5.0), None),
    "plain, D=20, sd 5": (partial(real, sd=5.0, width=20), None),
    "plain, D=50, sd 10": (partial(real, sd=10.0), None),
    "standard errors, sd 1": (with_errors, None),
    "standard errors, sd 4": (partial(with_errors, sd=4.0), None),
    "counts": (counts, Counts()),
    "counts, all words": (partial(counts, share=1.0), Counts()),
    "directions, D=10": (directions, Directions()),
    "directions, D=4": (partial(directions, width=4), Directions()),
}
"""The same sites in shards and flat; of each kind sets that are easy to tell apart, and harder ones."""

GROWING = ("plain, D=20, sd 5", "standard errors, sd 1", "counts", "directions, D=10")
"""Sets of which the number of sites is doubled, in shards of 128."""


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


def peak() -> float:
    """The most memory this process has had, in GB."""
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / 1e9


def cluster(workers: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=40)


def on_dask(N: int, workers: int = 2) -> dict[str, Any]:
    """One row of the scale table: a cluster of its own, shards drawn anew on the workers at each step."""
    from distributed import Client

    with cluster(workers) as local, Client(local) as client:
        fuse_on_dask(client, sources(20_000), FAMILY, keep=False)  # loads compiled code
        busy = sum(client.run(time.process_time).values())
        own = time.process_time()
        began = time.perf_counter()
        engine = OnDask(client, sources(N), keep=False, family=FAMILY)
        fused = run(engine)
        return {
            "N": N,
            "wall_s": time.perf_counter() - began,
            "shards": engine.shards,
            "workers_s": sum(client.run(time.process_time).values()) - busy,
            "client_s": time.process_time() - own,
            "worker_GB": max(client.run(peak).values()),
            "client_GB": peak(),
            "up": fused.moved.up,
            "down": fused.moved.down,
            "K": fused.K,
            "objective": fused.objective,
            "changed": list(fused.changed),
            "converged": fused.converged,
        }


def flat(N: int) -> dict[str, Any]:
    """The same values in one process, by the default call."""
    modelweld.fuse(drawn(0, 400), FAMILY)  # loads compiled code
    sites = [site for source in sources(N) for site in source()]
    begin, began = time.process_time(), time.perf_counter()
    fusion = modelweld.fuse(sites, FAMILY)
    seconds = {"s": time.process_time() - begin, "wall_s": time.perf_counter() - began}
    return seconds | {"GB": peak(), "K": fusion.K, "objective": fusion.objective}


def agreement(J: int = 128, seeds: Sequence[int] = SEEDS) -> list[dict[str, Any]]:
    """The same sites flat by the default call, in shards here, by joblib, and on 2 Dask workers."""
    from distributed import Client

    rows = []
    with cluster(2) as two, Client(two) as client:
        for name, (draw, family) in SETS.items():
            for seed in seeds:
                shards = group_sites(draw(J, seed))
                here = fuse_shards(shards, family)
                same = True
                if seed == seeds[0]:
                    others = [fuse_shards(shards, family, n_jobs=2), fuse_on_dask(client, shards, family)]
                    same = all(x.trace == here.trace for x in others)
                fusion = here.to_fusion()
                whole = modelweld.fuse(fusion._fit.given, family)
                rows.append(
                    {
                        "set": name,
                        "seed": seed,
                        "N": int(here.sizes.sum()),
                        "K_flat": whole.K,
                        "K": here.K,
                        "ari": adjusted_rand(whole.labels, fusion.labels),
                        "gap": here.objective - whole.objective,
                        "falls": float(np.diff([value for _, value in here.trace]).min()),
                        "converged": here.converged,
                        "same_bits": same,
                    }
                )
                print(rows[-1], flush=True)
    return rows


def growth(sites: Sequence[int] = (256, 512, 1024)) -> list[dict[str, Any]]:
    """CPU time in one process as the number of sites is doubled, in shards of 128 sites."""
    rows = []
    for name in GROWING:
        draw, family = SETS[name]
        fuse_shards(group_sites(draw(128, 1), 64), family)  # loads what is needed
        for J in sites:
            shards = group_sites(draw(J, 1), 128)
            begin = time.process_time()
            fused = fuse_shards(shards, family)
            seconds = time.process_time() - begin
            rows.append({"set": name, "N": int(fused.sizes.sum()), "shards": len(shards), "s": seconds})
            rows[-1] |= {"K": fused.K, "sweeps": len(fused.changed)}
            print(rows[-1], flush=True)
    return rows


def alone(*arguments: str) -> dict[str, Any]:
    """A row measured in a process of its own, so that peaks of memory are its own."""
    command = [sys.executable, __file__, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(answer.splitlines()[-1]))


def scale(sizes: Sequence[int] = (10**6, 2 * 10**6, 10**7)) -> list[dict[str, Any]]:
    """Shards on two workers, and flat where that fits into this machine's memory."""
    rows = []
    for N in sizes:
        rows.append(alone("--row", str(N)) | ({"flat": alone("--flat", str(N))} if N <= FLAT_UP_TO else {}))
        print(rows[-1], flush=True)
    return rows


def exponent(rows: Sequence[dict[str, Any]], seconds: Callable[[dict[str, Any]], float]) -> float:
    """Slope of log time in log N over the last three sizes."""
    last = rows[-3:]
    return float(np.polyfit(np.log([x["N"] for x in last]), np.log([seconds(x) for x in last]), 1)[0])


def table(found: dict[str, Any]) -> str:
    """The record as a page."""
    parts, versions = found["rows"], ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    lines = [
        "# Shards beside the default call",
        "",
        f"Made by `python benchmarks/shards.py --table` from shards.json: commit {found['commit']}, {found['date']}, "
        f"{versions}, {found['processors']} processors that others used too (load {found['load']}). "
        f"Seconds are of CPU. {found.get('notes', '')}",
        "",
        "## The same sites in shards and flat",
        "",
        "128 sites in shards of 32; flat is `fuse(sites)`. Nats are of the whole objective, in which each side has its",
        "own weak prior of the noise, read off the values that it sees. Nothing was chosen on these seeds.",
        "",
        "| set | seed | N | K flat | K shards | ARI of both | nats: shards - flat | per value | bits by joblib, Dask |",
        "|---" * 9 + "|",
    ]
    for x in parts["agreement"]:
        bits = ("same" if x["same_bits"] else "DIFFERENT") if x["seed"] == SEEDS[0] else ""
        lines.append(
            f"| {x['set']} | {x['seed']} | {x['N']:,} | {x['K_flat']} | {x['K']} | {x['ari']:.4f} | {x['gap']:+.2f} "
            f"| {x['gap'] / x['N']:+.5f} | {bits} |"
        )
    worst = min(x["gap"] / x["N"] for x in parts["agreement"])
    falls = min(0.0, *(x["falls"] for x in parts["agreement"]))
    lines += [
        "",
        f"Lowest: {worst:+.4f} nats per value. Largest fall of the objective in any step: {falls:g}.",
        "",
        "## Growth, in one process, shards of 128 sites",
        "",
        "Numbers of sweeps differ from row to row, and with them seconds: an exponent of two rows says little.",
        "",
        "| set | N: seconds | exponent in N |",
        "|---|---|---|",
    ]
    for name in GROWING:
        rows = [x for x in parts["growth"] if x["set"] == name]
        if len(rows) < 2:
            lines.append(f"| {name} | not measured | |")
            continue
        times = ", ".join(f"{x['N']:,}: {x['s']:.1f}" for x in rows)
        lines.append(f"| {name} | {times} | {exponent(rows, lambda x: x['s']):.2f} |")
    rows = parts["scale"]
    lines += [
        "",
        f"## Scale (D = {D}, {ATOMS} atoms, {HELD} per site, noise 1, one noise for all dimensions)",
        "",
        "Two Dask workers, shards drawn again at each of four passes (`keep=False`): memory stays that of a shard.",
        "",
        "| N | shards | CPU of workers | CPU of client | wall | CPU of flat | wall of flat | GB per worker "
        "| GB of client | GB of flat | MB down | MB up | nats per value: shards - flat |",
        "|---" * 13 + "|",
    ]
    for x in rows:
        f, flat = x.get("flat"), ["", "", "", ""]
        if f is not None:
            flat = [f"{f['s']:.1f} s", f"{f['wall_s']:.1f} s", f"{f['GB']:.2f}"]
            flat.append(f"{(x['objective'] - f['objective']) / x['N']:+.1e}")
        lines.append(
            f"| {x['N']:,} | {x['shards']} | {x['workers_s']:.1f} s | {x['client_s']:.1f} s | {x['wall_s']:.1f} s "
            f"| {flat[0]} | {flat[1]} | {x['worker_GB']:.2f} | {x['client_GB']:.2f} | {flat[2]} "
            f"| {x['down'] / 1e6:.1f} | {x['up'] / 1e6:.1f} | {flat[3]} |"
        )
    return "\n".join([*lines, "", *billion(rows), ""])


def billion(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What a billion values would cost on a hundred machines, by the exponents measured."""
    x = rows[-1]
    work, centre = (exponent(rows, lambda r, k=k: r[k]) for k in ("workers_s", "client_s"))
    moved = exponent(rows, lambda r: r["up"] + r["down"])
    times = BILLION / x["N"]
    workers, client = x["workers_s"] * times ** max(work, 1.0), x["client_s"] * times ** max(centre, 1.0)
    shards, J = BILLION // (SHARD * HELD), BILLION // HELD
    sums = shards * ATOMS * 5 * D * 8 / 1e9
    gigabytes = (x["up"] + x["down"]) * times ** max(moved, 1.0) / 1e9
    hours = workers / MACHINES / CORES / 3600 + client / 3600
    return [
        f"## 10^9 local parameters on {MACHINES} machines of {CORES} cores, from the exponents measured",
        "",
        f"Exponents in N over the last three rows: workers {work:.2f}, client {centre:.2f}, bytes moved {moved:.2f} "
        "(below one where start-up and the fewest shards weigh; one is used in place of what is less).",
        "",
        f"- workers: {x['workers_s']:.0f} s x {times:,.0f}^{max(work, 1.0):.2f} = {workers / 3600:.1f} CPU hours, "
        f"{workers / MACHINES / CORES:.0f} s on {MACHINES * CORES:,} cores",
        f"- centre: {x['client_s']:.1f} s x {times:,.0f}^{max(centre, 1.0):.2f} = {client / 3600:.1f} hours, one "
        "process; shards ten times as large make it a tenth",
        f"- messages: {gigabytes:.1f} GB through one scheduler, {gigabytes * 8 / 10:.0f} s at 10 Gbit/s",
        f"- **together {hours:.1f} hours**, workers and centre in turn: {MACHINES * hours:.0f} machine hours, "
        f"${PRICE * MACHINES * hours:.0f} at ${PRICE:.2f} each if all are kept till the end, "
        f"${PRICE * (workers / CORES + client) / 3600:.2f} if workers are let go when they are done",
        f"- memory: {x['worker_GB']:.2f} GB per worker process, {BILLION * D * 8 / MACHINES / 1e9:.0f} GB of values "
        f"per machine if they are kept; at the centre {sums:.1f} GB of sums, {16 * J / 1e9:.1f} GB of sizes and marks "
        f"of {J:,} sites; in every worker process a table by number of sites, {3 * J * 8 / 1e9:.1f} GB with one noise "
        f"for all dimensions, {2 * J * 8 * D / 1e9:.0f} GB with one for each (too much: it would have to be cut to "
        "counts that occur)",
        "",
        f"Assumptions: cores as fast as these and free; {ATOMS} atoms, {HELD} per site, noise 1 about atoms of "
        "variance 50, so that one polishing sweep changes nothing (each further one is a pass more); reading costs "
        f"what drawing costs here; no worker is lost. An extrapolation by a factor of {times:,.0f}: nothing above "
        f"N = {x['N']:,} was run for this record.",
    ]


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {"agreement": agreement, "growth": growth, "scale": scale}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; default: all")
    parser.add_argument("--smoke", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--table", action="store_true", help="write shards.md from the record")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--flat", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", modelweld.ModelweldWarning)
    if asked.row or asked.flat:
        print(json.dumps(on_dask(asked.row) if asked.row else flat(asked.flat)))
    elif asked.smoke:
        agreement(64, SEEDS[:1])
        growth((128, 256, 512))
        scale([10_000])
    elif asked.table:
        RECORD.with_suffix(".md").write_text(table(json.loads(RECORD.read_text())))
    else:
        for part in asked.parts or PARTS:
            rows = PARTS[part]()
            known = json.loads(RECORD.read_text())["rows"] if RECORD.exists() else {}
            what = f"shards beside fuse(sites); dask {version('dask')}"
            record(RECORD, what, known | {part: rows})


if __name__ == "__main__":
    main()
