"""Do groups that come with a date find their moving atoms? Beside static fusion, chains and SDDM's rule.

python experiments/time/run.py               # 5 drifts x 10 seeds; a CPU minute
python experiments/time/run.py --smoke       # one seed, two drifts, few groups; seconds
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, by_cell, main, not_behind, timed  # isort: skip; first: it sets the threads

import warnings
from typing import Any

import numpy as np
from rivals import Array, Index, chain_seen, sddm
from sklearn.metrics import adjusted_rand_score

from modelweld import fuse
from paired import paired
from shared.simulate_time import Moving, moving_groups

DRIFTS = (0.0, 0.3, 1.0, 2.0, 3.0, 5.0)
"""Drift per step, in units of the noise."""

NOISE, LIFE, HELD = 0.1, 20.0, 0.8
SEEDS = range(9000, 9010)  # starts and constants were chosen on seeds 0 to 7
OURS, STATIC = "fuse(groups, times=times)", "fuse(groups)"
CHAIN, SDDM = "chain, threshold seen on the truth", "SDDM's rule, told all"
AHEAD = 5
MOVING = "2"
"""The drift at which claims are made: static fusion falls apart, and the atoms can still be told."""


def measured(drift: float, seed: int, T: int) -> Result:
    """All methods on one draw."""
    warnings.simplefilter("ignore")
    drawn = moving_groups(seed, T=T, drift=drift, noise=NOISE, life=LIFE, held=HELD, ahead=AHEAD)
    moving, seconds = timed(lambda: fuse(drawn.groups, times=drawn.times))
    static = fuse(drawn.groups)
    forecasts = [moving.timeline.forecast(float(T - 1 + h)) for h in range(1, AHEAD + 1)]
    by_atom = [dict(zip(one.atoms.tolist(), range(len(one.atoms)), strict=True)) for one in forecasts]

    def predicted(k: int, h: int) -> Array:
        return forecasts[h].values[by_atom[h][k]] if k in by_atom[h] else moving.atoms[k]

    found = {
        OURS: scores(drawn, moving.labels, moving.K, predicted),
        STATIC: scores(drawn, static.labels, static.K, lambda k, _: static.atoms[k]),
    }
    tracked = chain_seen(drawn.groups, drawn.labels, NOISE * float(np.sqrt(2 + drift**2)))
    told = sddm(drawn.groups, NOISE**2, (drift * NOISE) ** 2, 1.0)
    for name, tracks in ((CHAIN, tracked), (SDDM, told)):
        found[name] = scores(drawn, tracks.labels, len(tracks.places), lambda k, _, at=tracks.places: at[k])
    learned = moving.diagnosis.hyperparameters
    endless = drift == 0 or np.isinf(learned["memory"])
    memory = None if endless else float(-learned["memory"] * np.log(np.sqrt(1 - (drift * NOISE) ** 2)))
    rates = {"memory": memory, "held": float(learned["held"] / HELD), "hazard": float(learned["hazard"] * LIFE)}
    inside = coverage(drawn, moving.labels, forecasts, by_atom)
    return {"methods": found, "learned": rates, "inside": inside, "seconds": seconds}


def scores(drawn: Moving, labels: list[Index], K: int, predicted: Any) -> dict[str, Any]:
    """How well values are told apart; squared errors and numbers, 1 to 5 steps ahead, of atoms seen before."""
    truth, known, errors = np.concatenate(drawn.labels), last_labels(drawn, labels), []
    for h, (values, atoms) in enumerate(drawn.later):
        both = ((v, int(a)) for v, a in zip(values, atoms, strict=True))
        off = [np.square(v - predicted(known[a], h)) for v, a in both if a in known]
        errors.append([float(np.sum(off)), int(np.size(off))])
    found = {"ari": float(adjusted_rand_score(truth, np.concatenate(labels))), "off": K - len(np.unique(truth))}
    return {**found, "errors": errors}


def last_labels(drawn: Moving, labels: list[Index]) -> dict[int, int]:
    """The found atom that has the last value of each true one."""
    both = zip(np.concatenate(drawn.labels), np.concatenate(labels), strict=True)
    return {int(true): int(own) for true, own in both}


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


def tasks(quick: bool) -> list[Task]:
    """One per drift and seed."""
    drifts, seeds, T = ((0.0, 2.0), SEEDS[:1], 10) if quick else (DRIFTS, SEEDS, 30)
    return [Task(f"{drift:g}/{seed}", measured, (drift, seed, T)) for drift in drifts for seed in seeds]


def rmse(draws: list[Result], method: str) -> float:
    """Over all draws and steps ahead."""
    squares, numbers = np.sum([d["methods"][method]["errors"] for d in draws], axis=(0, 1))
    return float(np.sqrt(squares / numbers))


def summary(results: Results) -> Summary:
    """Matching, forecasts and what was learned, a column per drift."""
    cells, rows = by_cell(results), []
    for method in (OURS, STATIC, CHAIN, SDDM):
        ari = (np.mean([d["methods"][method]["ari"] for d in c]) for c in cells.values())
        rows.append([f"ARI, {method}", *(f"{x:.3f}" for x in ari)])
    off = ([d["methods"][OURS]["off"] for d in c] for c in cells.values())
    rows.append([f"K off (range), {OURS}", *(f"{np.mean(x):+.1f} ({min(x)} to {max(x)})" for x in off)])
    for method in (OURS, STATIC, CHAIN, SDDM):
        rows.append([f"forecast error, {method}", *(f"{rmse(c, method):.3f}" for c in cells.values())])
    inside = [np.sum([d["inside"] for d in c], axis=0) for c in cells.values()]
    rows.append(["90 % intervals of values to come hold", *(f"{a / n:.3f}" for a, n in inside)])
    for what in ("memory", "held", "hazard"):
        learned = ([d["learned"][what] for d in c if d["learned"][what] is not None] for c in cells.values())
        means = (f"{np.exp(np.mean(np.log(x))):.2f}" if x else "infinite" for x in learned)
        rows.append([f"{what}, learned / true", *means])
    rows.append([f"CPU s, {OURS}", *(f"{np.mean([d['seconds'] for d in c]):.2f}" for c in cells.values())])
    note = (
        f"Means over {len(next(iter(cells.values())))} draws. Forecasts: root mean squared error, 1 to 5 steps ahead, "
        f"of values of atoms that were seen before; the noise alone is {NOISE}."
    )
    return Summary([Table("Drift per step, in units of the noise", ["", *cells], rows, note)], claims(cells))


def claims(cells: dict[str, list[Result]]) -> list[Claim]:
    """At a drift of twice the noise; intervals at all drifts."""
    draws, found = cells.get(MOVING, []), list[Claim]()
    if not draws:
        return found
    n = f"{len(draws)} draws"
    for rival in (STATIC, CHAIN, SDDM):
        by = paired(*([d["methods"][m]["ari"] for d in draws] for m in (OURS, rival)))
        found.append(not_behind(f"drift of twice the noise, ARI: `{OURS}` not behind {rival}.", by, n))
    shares = [float(a / b) for a, b in (np.sum([d["inside"] for d in c], axis=0) for c in cells.values())]
    text = "90 % intervals of values to come hold 88 to 92 % at every drift."
    found.append(Claim(text, f"{min(shares):.1%} to {max(shares):.1%}.", 0.88 <= min(shares) <= max(shares) <= 0.92, n))
    return found


TITLE = "Groups in time"
QUESTION = (
    "Does `fuse(groups, times=times)` find atoms that move, are born and die, beside `fuse(groups)` and what one does "
    "without?"
)

if __name__ == "__main__":
    main(Study("time", TITLE, QUESTION, tasks, summary))
