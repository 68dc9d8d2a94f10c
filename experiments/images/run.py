"""Networks of images whose sites saw different classes, fused from weights and class counts: see README.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import fcntl
import resource
import warnings
from dataclasses import asdict
from functools import partial
from unittest.mock import patch

import numpy as np
import torch
from others import at_random, git_rebasin, n_way, naive, transported
from sites import ROWS, Setting, drawn, network, trained

from modelweld import fuse, read
from modelweld.errors import ModelweldWarning
from modelweld.files.manifest import site_bytes
from modelweld.kinds import drawn_inputs
from modelweld.kinds.distillation import Ensemble, compare, distil, logits_of
from paired import paired
from provenance import ROOT, keep, resumed
from study import TASK_FOLDER, Claim, asked, timed

HERE = Path(__file__).parent
STEPS = (100, 1000)
"""Of teaching: what the start is worth shows in the first, the last is the default."""

CELLS = [Setting(data, J, share) for data in ("digits", "mnist") for J in (2, 5, 10) for share in (0.5, 0.1)] + [
    Setting("mnist", 5, 0.5, "batch norm"),
    Setting("mnist", 5, 0.5, "residual"),
]
SMOKE = [Setting("digits", 5, 0.1), Setting("digits", 2, 0.5, "residual")]
ENSEMBLE = "class-weighted ensemble, probabilities"
OURS, TOLD, WHITE = "ours, distil", "ours, distil, moments sent", "ours, distil, white noise"
RANDOM = "random start, distil"
COMPARED = [Setting("digits", 5, 0.1), Setting("mnist", 5, 0.1)]
"""Cells in which starts and kinds of noise are compared."""
NEAR = 0.02
"""How far behind the ensemble a mean may be."""


def measured(setting, seed, mnist=None, smoke=False):
    """Accuracy of every method in one run, and what it took."""
    parts, (X, y) = drawn(setting, seed, mnist, smoke)
    rows, epochs = torch.from_numpy(X).float(), ROWS[setting.data][2] // (10 if smoke else 1) + smoke
    nets, seconds = timed(
        lambda: [trained(network(setting, 100 * seed + j), *part, epochs, j) for j, part in enumerate(parts)]
    )
    took = {"training one local network": seconds / setting.J}

    def score(net):
        with torch.no_grad():
            return float(np.mean(net(rows).argmax(dim=1).numpy() == y))

    local = [score(net) for net in nets]
    found = {"mean local": float(np.mean(local)), "best local": max(local)}
    shape = X.shape[1:]
    sent = [read(net, y=labels, shape=shape) for net, (_, labels) in zip(nets, parts, strict=True)]
    told = [read(net, y=labels, X=images) for net, (images, labels) in zip(nets, parts, strict=True)]
    with warnings.catch_warnings(action="ignore", category=ModelweldWarning):
        fusion, took["matching"] = timed(fuse, sent)
    models, start = fusion._fit.models, fusion.parameters("mean")
    rivals = {"naive average": naive, "Git Re-Basin": git_rebasin, "n-way matching": n_way, "OT fusion": transported}
    for name, rival in rivals.items():
        found[name] = score(logits_of(rival(models)))
    found["ours, mean"] = score(logits_of(start))
    steps = (2, 4) if smoke else STEPS
    runs = [(TOLD, told, start, steps[-1]), (OURS, models, start, steps[-1])]
    if setting in COMPARED:
        random, few = at_random(start, seed), steps[0]
        runs += [
            (f"{RANDOM}, {few} steps", models, random, few),
            (f"{OURS}, {few} steps", models, start, few),
            (RANDOM, models, random, steps[-1]),
            (WHITE, models, start, steps[-1]),
        ]
    taught = {}
    for name, given, first, n in runs:
        with patch.object(drawn_inputs, "BLURS", (0.0,) if name == WHITE else drawn_inputs.BLURS):
            taught[name], took[name] = timed(partial(distil, steps=n), given, first)
        found[name] = score(logits_of(taught[name]))
    ensemble = Ensemble(models)
    with torch.no_grad():
        logits = sum(p * net(rows) for p, net in zip(ensemble.shares, ensemble.nets, strict=True))
    found["class-weighted ensemble, logits"] = float(np.mean(logits.argmax(dim=1).numpy() == y))
    found[ENSEMBLE] = score(ensemble)
    together = [np.concatenate(column) for column in zip(*parts, strict=True)]
    found["pooled (sees the data)"] = score(trained(network(setting, 100 * seed), *together, epochs, seed))
    return {
        "accuracy": {name: round(value, 4) for name, value in found.items()},
        "seconds": {name: round(value, 1) for name, value in took.items()},
        "agreement": round(compare(models, taught[OURS]).agreement, 3),
        "widths": {name: [max(m.sizes[name] for m in models), n] for name, n in start.sizes.items()},
        "bytes": [len(site_bytes(sent[0])), len(site_bytes(told[0]))],
        "most memory, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def by_cell(results, ours):
    """Of every cell, its name and what ours, the best local network and the ensemble reach, seed by seed."""
    methods = (ours, "best local", ENSEMBLE)
    for name, of in results.items():
        yield name, *(np.array([r["accuracy"][method] for r in of.values()]) for method in methods)


def claims(results):
    """What was asked, of what sites send: weights, class counts and a shape, or moments of pixels too."""
    said = []
    for ours, sent in ((OURS, "weights, class counts and shape"), (TOLD, "moments of pixels too")):
        gaps = {name: own.mean() - wanted.mean() for name, own, _, wanted in by_cell(results, ours)}
        wins = {name: int((own > best).sum()) for name, own, best, _ in by_cell(results, ours)}
        n = f"{len(gaps)} cells, {max(len(of) for of in results.values())} seeds"
        behind = [name for name, gap in gaps.items() if gap < -NEAR]
        lost = [name for name in wins if wins[name] < len(results[name])]
        worst = min(gaps, key=gaps.get)
        text = f"Distilled ({sent}): within {NEAR:g} of the class-weighted ensemble in the mean in every cell"
        near = f"{len(gaps) - len(behind)} of {len(gaps)} cells; worst {gaps[worst]:+.3f} ({worst})"
        said.append(Claim(text, near, not behind, n))
        text = f"Distilled ({sent}): ahead of the best local network in every run"
        runs = f"{sum(wins.values())} of {sum(map(len, results.values()))} runs"
        said.append(Claim(text, runs + (f"; not in {', '.join(lost)}" if lost else ""), not lost, n))
    return said


def table(results):
    """Markdown: a table of all cells, and what was asked of them."""
    lines = ["| | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    runs = {name: list(entry.values()) for name, entry in results.items()}
    every = [run["accuracy"] for of in runs.values() for run in of]
    for method in dict.fromkeys(method for accuracy in every for method in accuracy):
        found = [[run["accuracy"][method] for run in of if method in run["accuracy"]] for of in runs.values()]
        lines.append(f"| {method} | " + " | ".join(f"{np.mean(x):.3f}" if x else "" for x in found) + " |")
    lines.append("| seeds | " + " | ".join(str(len(of)) for of in runs.values()) + " |")
    for what, value in (
        ("channels, a site's and fused", lambda run: " ".join(f"{a}:{b}" for a, b in run["widths"].values())),
        ("agreement on drawn images", lambda run: f"{run['agreement']:.3f}"),
        ("seconds: training one local network", lambda run: run["seconds"]["training one local network"]),
        ("seconds: matching", lambda run: run["seconds"]["matching"]),
        ("seconds: distil", lambda run: run["seconds"][OURS]),
        ("bytes sent; with moments of pixels", lambda run: "; ".join(f"{n:,}" for n in run["bytes"])),
    ):
        lines.append(f"| {what} (first seed) | " + " | ".join(str(value(of[0])) for of in runs.values()) + " |")
    lines += ["", "What was asked:", ""]
    lines += [f"- {said.text}: {'**yes**' if said.holds else '**no**'}, {said.found}" for said in claims(results)]
    lines += ["", "Less the ensemble in the mean, and runs ahead of the best local network:", ""]
    cells = {ours: {name: rest for name, *rest in by_cell(results, ours)} for ours in (OURS, TOLD)}
    for name in results:
        said = []
        for ours, of in cells.items():
            own, best, wanted = of[name]
            said.append(f"{ours} {np.mean(own - wanted):+.3f}, {(own > best).sum()} of {len(own)}")
        lines.append(f"- {name}: {'; '.join(said)}")
    few = f", {STEPS[0]} steps"
    pairs = [(a, b) for a in (OURS, TOLD) for b in (ENSEMBLE, RANDOM, WHITE)]
    lines += ["", "Differences over all runs that have both, 95 % intervals:", ""]
    for ours, theirs in [(TOLD, OURS), *pairs, (OURS + few, RANDOM + few)]:
        both = [(run[ours], run[theirs]) for run in every if ours in run and theirs in run]
        if len(both) > 1:
            lines.append(f"- {ours} less {theirs}: {paired(*zip(*both, strict=True))}")
    return "\n".join(lines) + "\n"


def merge(out, tasks):
    """One record of the runs of all seeds that are there, of whatever process, by today's code."""
    with (tasks / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = {path.stem: resumed(path) for path in sorted(tasks.glob("*.json"))}
        done = {seed: runs for seed, runs in done.items() if runs}
        names = [s.name for s in [*CELLS, *SMOKE[1:]]]
        results = {n: {seed: runs[n] for seed, runs in done.items() if n in runs} for n in names}
        results = {name: of for name, of in results.items() if of}
        record = {
            "title": "Networks of images",
            "cells": results,
            "claims": [asdict(said) for said in claims(results)],
            "cpu": round(sum(run["cpu"] for of in results.values() for run in of.values())),
        }
        keep(out / "results.json", record, {"seeds": [int(seed) for seed in done]})
        (out / "tables.md").write_text(table(results), encoding="utf-8")


def main():
    """Run, keep every cell as soon as it is there, write the record of all seeds."""
    options = asked(
        __doc__,
        mnist=("", "mnist.npz with x_train, y_train, x_test, y_test; without it, digits only"),
        only=("", "cells whose name begins so"),
        seeds=({"type": int, "nargs": "*", "default": [9202, 9203, 9204, 9205, 9206]}, "of the runs"),
        smoke=(False, "two tiny cells, one seed"),
        out=({"type": Path}, "else the record is kept here, runs in reproduced/images/tasks"),
    )
    torch.set_num_threads(1)
    tasks = (options.out or ROOT / "reproduced" / "images") / TASK_FOLDER
    for seed in [8101] if options.smoke else options.seeds:
        path = tasks / f"{seed}.json"
        runs = resumed(path)
        for setting in SMOKE if options.smoke else CELLS:
            lacks = setting.data == "mnist" and not options.mnist
            if setting.name in runs or not setting.name.startswith(options.only) or lacks:
                continue
            run, seconds = timed(measured, setting, seed, options.mnist, options.smoke)
            runs[setting.name] = {**run, "cpu": round(seconds)}
            print(f"{setting.name}, {seed}: {runs[setting.name]}", flush=True)
            keep(path, runs, {"seeds": [seed]})
    merge(options.out or HERE, tasks)


if __name__ == "__main__":
    main()
