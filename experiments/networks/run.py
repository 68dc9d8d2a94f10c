"""Networks of sites that saw different classes, fused from their weights: see README.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import time
import warnings

import numpy as np
from others import averaged, matched_weights, posterior_means, probabilities, units_of
from sites import Setting, drawn, trained

from modelweld import fuse, read
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.errors import ModelweldWarning
from modelweld.families import Gaussian
from modelweld.fusion import Fusion
from modelweld.inputs.sets import align
from modelweld.kinds.network import layers, like_sites, outputs, shares
from modelweld.results.fit_result import FitResult
from paired import paired
from provenance import keep, kept, resumed

HERE = Path(__file__).parent

DIGITS = [
    Setting("digits", J, share, start, hidden)
    for hidden, sites, starts in (((50,), (5, 10), ("different", "same")), ((50, 50), (10,), ("different",)))
    for J in sites
    for share in (np.inf, 0.5, 0.1)
    for start in starts
] + [Setting("digits", 10, 0.5, "same", (50, 50)), Setting("digits", 10, 0.5, "different", (20, 15))]
MNIST = [
    Setting("mnist", 10, 0.5, "different", (50,)),
    Setting("mnist", 10, 0.5, "different", (50, 50)),
    Setting("mnist", 10, np.inf, "different", (50,)),
    Setting("mnist", 10, 0.5, "same", (50,)),
    Setting("mnist", 10, 0.1, "different", (50,)),
    Setting("mnist", 5, 0.5, "different", (50,)),
]
SMOKE = [
    Setting("digits", 4, 0.5, "different", (8,)),
    Setting("digits", 4, np.inf, "same", (8, 6)),
]


def measured(setting, seed, mnist=None, smoke=False):
    """Accuracy and hidden units of every method in one run."""
    parts, (X, y) = drawn(setting, seed, mnist, smoke)
    starts = [100 * seed + (j if setting.start == "different" else 0) for j in range(setting.J)]
    nets = [trained(*part, setting, start, smoke) for part, start in zip(parts, starts, strict=True)]
    local = [net.score(X, y) for net in nets]
    size = sum(setting.hidden)
    result = {"mean local": (float(np.mean(local)), size), "best local": (max(local), size)}

    sent = [read(net, y=labels) for net, (_, labels) in zip(nets, parts, strict=True)]
    with_inputs = [read(net, y=labels, X=rows) for net, (rows, labels) in zip(nets, parts, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        fusion = fuse(sent)
        ones = Gaussian(mean=0.0, noise=1.0, spread=1.0, shape="scalar", learning="nothing")
        pfnm = fuse(sent, ones, BetaBernoulli(), search="plain")
    models = fusion._fit.models
    told = Fusion(FitResult(align(with_inputs), fusion.sites, fusion.matchings))
    classes = np.array([models[0].facts["labels"].get(c, int(c)) for c in models[0].coordinates["class"]])

    def scored(network):
        return float(np.mean(classes[outputs(network, X).argmax(axis=1)] == y)), units_of(network)

    pi = shares(models)
    has = np.array([m.arrays["counts"] for m in models]) > 0
    plain = has / np.maximum(has.sum(axis=0), 1)
    networks = [layers(m) for m in models]
    matched = matched_weights(networks)
    for name, one, weights in (
        ("naive average", networks, plain),
        ("weight matching", matched, plain),
        ("weight matching, class counts", matched, pi),
    ):
        result[name] = scored(like_sites(models, *averaged(one, weights)))
    result["PFNM (1, 1, 1)"] = scored(like_sites(models, *posterior_means(pfnm, pi)))
    for name, one, how in (
        ("ours, mean", fusion, "mean"),
        ("ours, refit", fusion, "refit"),
        ("ours, polish", fusion, "polish"),
        ("ours, refit, inputs sent", told, "refit"),
        ("ours, polish, inputs sent", told, "polish"),
        ("class-weighted logit ensemble", fusion, "union"),
    ):
        result[name] = scored(one.parameters(how))
    P = probabilities(models, X)
    for name, total in (
        ("probability ensemble", P.sum(axis=0)),
        ("class-weighted probability ensemble", (pi[:, None, :] * P).sum(axis=0)),
    ):
        result[name] = (float(np.mean(classes[total.argmax(axis=1)] == y)), size * setting.J)
    rows, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    result["pooled (sees the data)"] = (trained(rows, labels, setting, 100 * seed, smoke).score(X, y), size)
    return result


def summary(runs):
    """Mean accuracy, lowest and highest, mean units of every method."""
    return {
        method: {
            "accuracy": round(float(np.mean([run[method][0] for run in runs])), 4),
            "range": [round(float(f([run[method][0] for run in runs])), 4) for f in (np.min, np.max)],
            "units": round(float(np.mean([run[method][1] for run in runs])), 1),
        }
        for method in runs[0]
    }


def table(results):
    """Markdown: a table per setting."""
    lines = []
    for name, entry in results.items():
        lines += [f"## {name} ({len(entry['seeds'])} seeds)", "", "| method | accuracy | range | units |"]
        lines += ["|---|---|---|---|"]
        for method, row in entry["methods"].items():
            low, high = row["range"]
            lines.append(f"| {method} | {row['accuracy']:.3f} | {low:.3f} to {high:.3f} | {row['units']:.0f} |")
        runs = entry["runs"]
        wins = [sum(run[how][0] > run["best local"][0] for run in runs) for how in JUDGED]
        words = ", ".join(f"{how} in {win} of {len(runs)}" for how, win in zip(JUDGED, wins, strict=True))
        lines += ["", f"Better than the best local network: {words} runs. Differences, 95 % intervals over seeds:", ""]
        for ours, theirs in COMPARED:
            difference = paired([run[ours][0] for run in runs], [run[theirs][0] for run in runs])
            lines.append(f"- {ours} less {theirs}: {difference}")
        lines.append("")
    return "\n".join(lines)


JUDGED = ("ours, mean", "ours, refit", "ours, polish", "ours, refit, inputs sent", "ours, polish, inputs sent")
"""Compared with the best local network in every run."""

COMPARED = (
    ("ours, refit", "best local"),
    ("ours, refit", "class-weighted logit ensemble"),
    ("ours, mean", "PFNM (1, 1, 1)"),
)
"""Paired, seed by seed."""


def main():
    """Run, write tables and results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mnist", help="mnist.npz with x_train and y_train; without it, digits only")
    parser.add_argument("--only", default="", help="settings whose name begins so; the others stay as they were")
    parser.add_argument("--seeds", type=int, nargs="*", help="default 6 to 10 (MNIST: 3 and 4)")
    parser.add_argument("--smoke", action="store_true", help="two tiny settings, one seed")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--retell", action="store_true", help="make tables.md anew from results.json, nothing else")
    options = parser.parse_args()
    if options.retell:
        (options.out / "tables.md").write_text(table(kept(options.out / "results.json")))
        return
    settings = SMOKE if options.smoke else DIGITS + (MNIST if options.mnist else [])
    path = options.out / "results.json"
    results = {} if options.smoke else resumed(path)
    for setting in settings:
        if not setting.name.startswith(options.only):
            continue
        seeds = options.seeds or ([1] if options.smoke else [3, 4] if setting.data == "mnist" else [6, 7, 8, 9, 10])
        began = time.process_time()
        runs = [measured(setting, seed, options.mnist, options.smoke) for seed in seeds]
        results[setting.name] = {"seeds": seeds, "methods": summary(runs), "runs": runs}
        short = {method: row["accuracy"] for method, row in results[setting.name]["methods"].items()}
        print(f"{setting.name}: {short} ({time.process_time() - began:.0f} s)", flush=True)
        options.out.mkdir(parents=True, exist_ok=True)
        keep(path, results, {"seeds": {name: entry["seeds"] for name, entry in results.items()}})
        (options.out / "tables.md").write_text(table(results))


if __name__ == "__main__":
    main()
