"""How long does a thousand weeks take? Values of a hundred atoms at a time, in a hundred dimensions.

    python experiments/time/large.py               # 1,000 groups of about 80 values; three minutes of one core
    python experiments/time/large.py --smoke       # 12 groups in 10 dimensions; seconds

Where atoms move, static fusion of all of them takes a quarter of an hour: it is measured on the first quarter.
The first call on a machine compiles, which is not counted: a small job goes before.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: CPU seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import modelweld
from shared.simulate_time import Moving, moving_groups
from study import Table, asdict, versions, write_record

OURS, STATIC = "fuse(groups, times=times)", "fuse(groups)"
WARM = {"T": 80, "D": 100, "alive": 100.0, "life": 100.0}
"""A job just large enough to compile all that a larger one takes."""


def measure(drawn: Moving, fused: Callable[[Moving], modelweld.Fusion]) -> dict[str, float]:
    """CPU seconds, and how well values were told apart."""
    begun = time.process_time()
    fusion = fused(drawn)
    cpu = time.process_time() - begun
    ari = adjusted_rand_score(np.concatenate(drawn.labels), np.concatenate(fusion.labels))
    return {"cpu": cpu, "ari": ari, "K": fusion.K, "sweeps": fusion.diagnosis.sweeps}


def measure_stream(drawn: Moving, known: int, parts: int = 4) -> list[dict[str, float]]:
    """CPU milliseconds a group that is added to the fusion of the first ones, part by part of those that follow."""
    stream = modelweld.fuse(drawn.groups[:known], times=drawn.times[:known]).timeline.stream()
    found = []
    for part in np.array_split(np.arange(known, len(drawn.groups)), parts):
        begun = time.process_time()
        labels = [stream.add(drawn.groups[j], time=float(drawn.times[j])) for j in part]
        cpu = 1000 * (time.process_time() - begun) / len(part)
        ari = adjusted_rand_score(np.concatenate([drawn.labels[j] for j in part]), np.concatenate(labels))
        found.append({"from": int(part[0]), "to": int(part[-1]), "cpu": cpu, "ari": ari, "atoms": len(stream.atoms)})
    return found


def main() -> None:
    """Measure, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="12 groups in 10 dimensions: seconds")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("reproduced/time-large"), help="folder for the record")
    options, about, begun = parser.parse_args(), versions(modelweld), time.process_time()
    size: dict[str, Any] = {"T": 12, "D": 10, "alive": 10.0} if options.smoke else {"T": 1000, "D": 100, "alive": 100.0}
    methods: dict[str, Callable[[Moving], modelweld.Fusion]] = {
        OURS: lambda drawn: modelweld.fuse(drawn.groups, times=drawn.times),
        STATIC: lambda drawn: modelweld.fuse(drawn.groups),
    }
    cells: dict[str, dict[str, Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", modelweld.ModelweldWarning)
        if not options.smoke:
            for fused in methods.values():
                fused(moving_groups(options.seed + 1, **WARM))
        both, weeks = list(methods), size["T"]
        for drift, T, asked in ((0.0, weeks, both), (1.0, weeks, [OURS]), (1.0, weeks // 4, both)):
            drawn = moving_groups(options.seed, life=100.0, drift=drift, ahead=0, **(size | {"T": T}))
            about_it = {"values": sum(map(len, drawn.groups)), "atoms": len(np.unique(np.concatenate(drawn.labels)))}
            cells[f"drift {drift:g}, {T} weeks"] = about_it | {name: measure(drawn, methods[name]) for name in asked}
            if asked == [OURS]:
                streamed = measure_stream(drawn, T // 4)
    rows = [
        [
            what,
            cell["values"],
            cell["atoms"],
            name,
            f"{cell[name]['cpu']:.2f}",
            cell[name]["K"],
            f"{cell[name]['ari']:.3f}",
        ]
        for what, cell in cells.items()
        for name in methods
        if name in cell
    ]
    table = Table(f"{size}", ["drift / noise", "values", "atoms", "method", "CPU s", "K", "ARI"], rows)
    one_by_one = Table(
        "Weeks that are added one by one to the fusion of the first quarter, drift 1",
        ["weeks", "CPU ms a week", "atoms remembered", "ARI"],
        [[f"{x['from']} to {x['to']}", f"{x['cpu']:.1f}", x["atoms"], f"{x['ari']:.3f}"] for x in streamed],
    )
    record = {"title": "A thousand weeks", "versions": about, "seeds": [options.seed], "cells": cells}
    record |= {"streamed": streamed, "cpu": time.process_time() - begun, "claims": []}
    record |= {"tables": [asdict(table), asdict(one_by_one)]}
    print(write_record(options.out, record, f"Seed {options.seed}"))


if __name__ == "__main__":
    main()
