"""Networks of images whose sites saw different classes, fused from weights and class counts: see README.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import resource
import time
import warnings

import numpy as np
import torch
from others import at_random, git_rebasin, n_way, naive, transported
from sites import ROWS, Setting, drawn, network, trained

from modelweld import fuse, read
from modelweld.errors import ModelweldWarning
from modelweld.files.manifest import site_bytes
from modelweld.kinds.distillation import Ensemble, compare, distil, logits_of
from paired import paired
from provenance import keep, kept

HERE = Path(__file__).parent
STEPS = (100, 1000)
"""Of teaching: what the start is worth shows in the first, the last is the default."""

CELLS = [Setting(data, J, share) for data in ("digits", "mnist") for J in (2, 5, 10) for share in (0.5, 0.1)] + [
    Setting("mnist", 5, 0.5, "batch norm"),
    Setting("mnist", 5, 0.5, "residual"),
]
SMOKE = [Setting("digits", 2, 0.5), Setting("digits", 2, 0.5, "residual")]
ENSEMBLE = "class-weighted ensemble, probabilities"
OURS, TOLD, WHITE = "ours, distil", "ours, distil, moments sent", "ours, distil, white noise"
RANDOM = "random start, distil"
COMPARED = Setting("mnist", 5, 0.1)
"""The cell of MNIST in which starts and kinds of noise are compared to the end; of digits all are."""


def white(models):
    """The same networks, whose sites send that pixels are independent."""
    return [
        m.with_(arrays={**m.arrays, "spectrum": np.ones(14)}, axes={**_named(m), "spectrum": (None,)}) for m in models
    ]


def _named(model):
    return {n: tuple(c or a for c, a in zip(model.along[n], axes, strict=True)) for n, axes in model.axes.items()}


def measured(setting, seed, mnist=None, smoke=False):
    """Accuracy of every method in one run, and what it took."""
    parts, (X, y) = drawn(setting, seed, mnist, smoke)
    rows, epochs = torch.from_numpy(X).float(), ROWS[setting.data][2] // (10 if smoke else 1) + smoke
    began = time.process_time()
    nets = [trained(network(setting, 100 * seed + j), *part, epochs, j) for j, part in enumerate(parts)]
    took = {"training one local network": (time.process_time() - began) / setting.J}

    def score(net):
        with torch.no_grad():
            return float(np.mean(net(rows).argmax(dim=1).numpy() == y))

    local = [score(net) for net in nets]
    found = {"mean local": float(np.mean(local)), "best local": max(local)}
    shape = X.shape[1:]
    sent = [read(net, y=labels, shape=shape) for net, (_, labels) in zip(nets, parts, strict=True)]
    told = [read(net, y=labels, X=images) for net, (images, labels) in zip(nets, parts, strict=True)]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        fusion = fuse(sent)
    took["matching"] = time.process_time() - began
    models, start = fusion._fit.models, fusion.parameters("mean")
    rivals = {"naive average": naive, "Git Re-Basin": git_rebasin, "n-way matching": n_way, "OT fusion": transported}
    for name, rival in rivals.items():
        found[name] = score(logits_of(rival(models)))
    found["ours, mean"] = score(logits_of(start))
    steps = (2, 4) if smoke else STEPS
    random = at_random(start, seed)
    runs = [
        (f"random start, distil, {steps[0]} steps", models, random, steps[0]),
        (f"{OURS}, {steps[0]} steps", models, start, steps[0]),
        (TOLD, told, start, steps[-1]),
        (OURS, models, start, steps[-1]),
    ]
    if setting.data == "digits" or setting == COMPARED:
        runs = [(RANDOM, models, random, steps[-1]), (WHITE, white(models), start, steps[-1]), *runs]
    for name, given, first, n in runs:
        began = time.process_time()
        taught = distil(given, first, steps=n)
        took[name] = time.process_time() - began
        found[name] = score(logits_of(taught))
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
        "agreement": round(compare(models, taught).agreement, 3),
        "widths": {name: [max(m.sizes[name] for m in models), n] for name, n in start.sizes.items()},
        "bytes": [len(site_bytes(sent[0])), len(site_bytes(told[0]))],
        "most memory, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def table(results):
    """Markdown: a table of all cells, and what was asked of them."""
    lines = ["| | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    runs = {name: list(entry.values()) for name, entry in results.items()}
    for method in next(iter(runs.values()))[0]["accuracy"]:
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
    lines += [
        "",
        "Asked of `distil`: within .02 of the ensemble in the mean, ahead of the best local network in every run.",
        "",
    ]
    for name, of in runs.items():
        ours, best, wanted = ([run["accuracy"][method] for run in of] for method in (OURS, "best local", ENSEMBLE))
        gap = np.mean(ours) - np.mean(wanted)
        wins = sum(a > b for a, b in zip(ours, best, strict=True))
        said = f"{'held' if gap >= -0.02 else '**missed**'}; ahead of the best local in {wins} of {len(of)}"
        lines.append(f"- {name}: {gap:+.3f} of the ensemble, {said}")
    pairs = [(a, b) for a in (OURS, TOLD) for b in (RANDOM, WHITE, ENSEMBLE)]
    lines += ["", "Differences over all runs that have both, 95 % intervals:", ""]
    every = [run["accuracy"] for of in runs.values() for run in of]
    for ours, theirs in [*pairs, (f"{OURS}, {STEPS[0]} steps", f"random start, distil, {STEPS[0]} steps")]:
        both = [(run[ours], run[theirs]) for run in every if ours in run and theirs in run]
        if len(both) > 1:
            lines.append(f"- {ours} less {theirs}: {paired(*zip(*both, strict=True))}")
    return "\n".join(lines) + "\n"


def main():
    """Run, keep every cell as soon as it is there, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mnist", help="mnist.npz with x_train, y_train, x_test, y_test; without it, digits only")
    parser.add_argument("--only", default="", help="cells whose name begins so")
    parser.add_argument("--seeds", type=int, nargs="*", default=[9101, 9102, 9103, 9104, 9105])
    parser.add_argument("--smoke", action="store_true", help="two tiny cells, one seed")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = options.out / "results.json"
    results = {} if options.smoke else kept(path)
    for seed in options.seeds[:1] if options.smoke else options.seeds:
        for setting in SMOKE if options.smoke else CELLS:
            done = str(seed) in results.get(setting.name, {})
            if done or not setting.name.startswith(options.only) or (setting.data == "mnist" and not options.mnist):
                continue
            began = time.process_time()
            results.setdefault(setting.name, {})[str(seed)] = measured(setting, seed, options.mnist, options.smoke)
            accuracy = results[setting.name][str(seed)]["accuracy"]
            print(f"{setting.name}, {seed}: {accuracy} ({time.process_time() - began:.0f} s)", flush=True)
            keep(path, results, {"seeds": options.seeds})
            (options.out / "tables.md").write_text(table(results))


if __name__ == "__main__":
    main()
