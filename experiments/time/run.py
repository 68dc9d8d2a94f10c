"""Do groups that come with a date find their moving atoms? Beside static fusion, chains and SDDM's rule.

    python experiments/time/run.py               # 6 drifts x 10 seeds; about ten minutes of one core
    python experiments/time/run.py --smoke       # one seed, two drifts, few groups; seconds

README.md says what is drawn and compared, and has what was found.
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
from typing import Any

import numpy as np
from rivals import Index, chain_seen, sddm
from sklearn.metrics import adjusted_rand_score

import modelweld
from modelweld.time.evolution import timeline_board
from modelweld.time.timeline import Timeline
from shared.simulate_time import Moving, moving_groups
from study import Table, asdict, versions, write_record

DRIFTS = (0.0, 0.3, 1.0, 2.0, 3.0, 5.0)
"""Drift per step, in units of the noise."""

NOISE, LIFE, HELD, ALIVE = 0.1, 20.0, 0.8, 12.0
FIRST_SEED, SEEDS = 1000, 10

METHODS = ("fuse(groups, times=times)", "fuse(groups)", "chain, threshold seen on the truth", "SDDM's rule, told all")
OURS = METHODS[0]
AHEAD, LEARNED_AT_TRUTH = 5, 4


def measure(drift: float, seed: int, T: int) -> dict[str, Any]:
    """All methods on one draw."""
    drawn = moving_groups(seed, T=T, drift=drift, noise=NOISE, life=LIFE, held=HELD, ahead=AHEAD)
    step = (drift * NOISE) ** 2
    found: dict[str, Any] = {"atoms": len(np.unique(np.concatenate(drawn.labels)))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", modelweld.ModelweldWarning)
        begun = time.process_time()
        timed = modelweld.fuse(drawn.groups, times=drawn.times)
        cpu = time.process_time() - begun
        begun = time.process_time()
        static = modelweld.fuse(drawn.groups)
        static_cpu = time.process_time() - begun
    forecasts = [timed.timeline.forecast(float(T - 1 + h)) for h in range(1, AHEAD + 1)]
    by_atom = [dict(zip(one.atoms.tolist(), range(len(one.atoms)), strict=True)) for one in forecasts]
    found[OURS] = scores(drawn, timed.labels, timed.K) | {"cpu": cpu, **learn(timed, drift)}
    found[OURS]["rmse"] = errors(
        drawn, timed.labels, lambda k, h: forecasts[h].values[by_atom[h][k]] if k in by_atom[h] else timed.atoms[k]
    )
    found[OURS]["inside"] = coverage(drawn, timed.labels, forecasts, by_atom)
    found[OURS]["rise"] = timed.objective - true_objective(timed, drawn)
    found[METHODS[1]] = scores(drawn, static.labels, static.K) | {"cpu": static_cpu}
    found[METHODS[1]]["rmse"] = errors(drawn, static.labels, lambda k, h: static.atoms[k])
    unit = NOISE * float(np.sqrt(2 + drift**2))
    for name, tracks in (
        (METHODS[2], chain_seen(drawn.groups, drawn.labels, unit)),
        (METHODS[3], sddm(drawn.groups, NOISE**2, step, 1.0)),
    ):
        found[name] = scores(drawn, tracks.labels, len(tracks.places))
        found[name]["rmse"] = errors(drawn, tracks.labels, lambda k, h, places=tracks.places: places[k])
    found["same labels"] = adjusted_rand_score(np.concatenate(static.labels), np.concatenate(timed.labels))
    return found


def scores(drawn: Moving, labels: list[Index], K: int) -> dict[str, float]:
    """How well values are told apart."""
    truth = np.concatenate(drawn.labels)
    return {"ari": adjusted_rand_score(truth, np.concatenate(labels)), "off": K - len(np.unique(truth))}


def true_objective(fusion: modelweld.Fusion, drawn: Moving) -> float:
    """The objective at the true labels, hyperparameters learned there: where it is lower, no search would do better."""
    found, order = timeline_board(fusion._fit, "atom")
    truth = np.unique(np.concatenate(drawn.labels), return_inverse=True)[1][order]
    board = Timeline(found.stack, found.times, found.family, found.prior, truth)
    for _ in range(LEARNED_AT_TRUTH):
        board.learn()
    return board.objective()


def last_labels(drawn: Moving, labels: list[Index]) -> dict[int, int]:
    """The found atom that has the last value of each true one."""
    return {
        int(a): int(k) for true, own in zip(drawn.labels, labels, strict=True) for a, k in zip(true, own, strict=True)
    }


def errors(drawn: Moving, labels: list[Index], predicted: Any) -> list[list[float]]:
    """Sum of squared errors and number, one to five steps ahead, of values of atoms that were seen before."""
    known, found = last_labels(drawn, labels), []
    for h, (values, atoms) in enumerate(drawn.later):
        seen = [i for i, a in enumerate(atoms) if int(a) in known]
        off = [np.square(values[i] - predicted(known[int(atoms[i])], h)) for i in seen]
        found.append([float(np.sum(off)), int(np.size(off))])
    return found


def coverage(drawn: Moving, labels: list[Index], forecasts: list[Any], by_atom: list[dict[int, int]]) -> list[int]:
    """How many numbers of values to come lie in their 90 % interval, and how many there are."""
    known, inside, number = last_labels(drawn, labels), 0, 0
    for h, (values, atoms) in enumerate(drawn.later):
        for value, a in zip(values, atoms, strict=True):
            i = by_atom[h].get(known.get(int(a), -1))
            if i is not None:
                inside += int(((forecasts[h].low[i] <= value) & (value <= forecasts[h].high[i])).sum())
                number += value.size
    return [inside, number]


def learn(fusion: modelweld.Fusion, drift: float) -> dict[str, float | None]:
    """What was learned, over what is true; memory of atoms that stand still is infinite."""
    at = fusion.diagnosis.hyperparameters
    memory = -1 / np.log(np.sqrt(1 - (drift * NOISE) ** 2)) if drift else np.inf
    ratio = None if drift == 0 or np.isinf(at["memory"]) else float(at["memory"] / memory)
    return {
        "memory": ratio,
        "still": float(np.isinf(at["memory"])),
        "held": float(at["held"] / HELD),
        "hazard": float(at["hazard"] * LIFE),
        "noise": float(np.sqrt(np.mean(at["noise"])) / NOISE),
    }


def rmse(rows: list[dict[str, Any]], name: str, steps: slice) -> float:
    """Over all seeds and these steps ahead."""
    parts = np.array([row[name]["rmse"] for row in rows])[:, steps]
    return float(np.sqrt(parts[..., 0].sum() / parts[..., 1].sum()))


def ranged(found: list[float]) -> str:
    """Mean and range."""
    return f"{np.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def table_of(cells: dict[str, list[dict[str, Any]]]) -> list[Table]:
    """Matching, forecasts and what was learned, one row per drift."""
    matched, ahead, rates = [], [], []
    for drift, rows in cells.items():
        for name in METHODS:
            ari = [row[name]["ari"] for row in rows]
            off = [row[name]["off"] for row in rows]
            cpu = np.mean([row[name]["cpu"] for row in rows]) if "cpu" in rows[0][name] else None
            matched.append(
                [
                    drift,
                    name,
                    f"{np.mean(ari):.3f}",
                    f"{min(ari):.3f}",
                    f"{np.mean(off):+.1f}",
                    f"{min(off)} to {max(off)}",
                    "" if cpu is None else f"{cpu:.2f}",
                ]
            )
            ahead.append(
                [
                    drift,
                    name,
                    *(f"{rmse(rows, name, slice(h, h + 1)):.3f}" for h in range(AHEAD)),
                    f"{rmse(rows, name, slice(None)):.3f}",
                ]
            )
        ours = [row[OURS] for row in rows]
        memory = [one["memory"] for one in ours if one["memory"] is not None]
        rises = [one["rise"] for one in ours]
        inside = np.sum([one["inside"] for one in ours], axis=0)
        rates.append(
            [
                drift,
                f"{np.exp(np.mean(np.log(memory))):.2f} ({min(memory):.2f} to {max(memory):.2f})"
                if memory
                else "infinite",
                f"{sum(one['still'] for one in ours):.0f} of {len(ours)}",
                *(ranged([one[name] for one in ours]) for name in ("held", "hazard", "noise")),
                f"{inside[0] / inside[1]:.3f}",
                f"{sum(x > -0.01 for x in rises)} of {len(rises)}; {min(rises):+.1f} to {max(rises):+.1f}",
            ]
        )
    return [
        Table("Values matched", ["drift / noise", "method", "ARI", "worst", "K off", "from", "CPU s"], matched),
        Table(
            "Forecasts: root mean squared error of values to come",
            ["drift / noise", "method", "1", "2", "3", "4", "5", "1-5"],
            ahead,
            "Steps ahead. Of values of atoms that were seen before; the noise alone is 0.1.",
        ),
        Table(
            "Learned, over what is true: mean over seeds (range); 90 % intervals",
            ["drift / noise", "memory", "infinite", "held", "hazard", "noise", "inside", "at least the truth"],
            rates,
            "`inside`: share of values to come within their 90 % interval, all steps and seeds. `at least the truth`: "
            "how often the objective found is not below that of the true labels, and how far above it is (nats).",
        ),
    ]


def main() -> None:
    """Measure, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one seed, two drifts, ten groups: seconds")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--drifts", type=float, nargs="+", default=DRIFTS)
    parser.add_argument("--out", type=Path, default=Path("reproduced/time"), help="folder for the record")
    options, about, begun = parser.parse_args(), versions(modelweld), time.process_time()
    seeds = range(options.first_seed, options.first_seed + (1 if options.smoke else options.seeds))
    drifts, T = ((0.0, 2.0), 10) if options.smoke else (options.drifts, 30)
    if not options.smoke:
        measure(drifts[-1], seeds[0] - 1, T)  # loads what is compiled: not counted
    cells = {f"{drift:g}": [measure(drift, seed, T) for seed in seeds] for drift in drifts}
    record = {"title": "Groups in time", "versions": about, "seeds": list(seeds), "cells": cells}
    record |= {"cpu": time.process_time() - begun, "claims": [], "tables": [asdict(table) for table in table_of(cells)]}
    print(write_record(options.out, record, f"Seeds {seeds[0]} to {seeds[-1]}"))


if __name__ == "__main__":
    main()
