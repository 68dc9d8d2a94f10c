"""Networks of sites that saw different classes, fused from their weights: see README.md.

python experiments/networks/run.py --data FOLDER    # digits; with mnist.npz in the folder MNIST, too
python experiments/networks/run.py --smoke          # two tiny settings, one seed: seconds
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, by_cell, main, outside  # isort: skip; first: it sets the threads

import warnings

import numpy as np
from others import averaged, matched_weights, posterior_means, units_of
from sites import Setting, drawn, trained

from modelweld import fuse, read
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.errors import ModelweldWarning
from modelweld.families import Gaussian
from modelweld.kinds.network import layers, like_sites, outputs, shares
from paired import Paired, paired

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
SMOKE = [Setting("digits", 4, 0.5, "different", (8,)), Setting("digits", 4, np.inf, "same", (8, 6))]
SEEDS = {"digits": range(6, 11), "mnist": range(3, 5)}
REFIT, MEAN, BEST, PFNM = "ours, refit", "ours, mean", "best local", "PFNM (1, 1, 1)"
ENSEMBLE = "class-weighted logit ensemble"
HUNDRED = "digits J=10 Dir 0.5, different starts, 50/"


def measured(setting: Setting, seed: int, smoke: bool) -> Result:
    """Accuracy and hidden units of every method in one run."""
    parts, (X, y) = drawn(setting, seed, outside("mnist.npz"), smoke)
    starts = [100 * seed + (j if setting.start == "different" else 0) for j in range(setting.J)]
    nets = [trained(*part, setting, start, smoke) for part, start in zip(parts, starts, strict=True)]
    local, size = [net.score(X, y) for net in nets], sum(setting.hidden)
    sent = [read(net, y=labels) for net, (_, labels) in zip(nets, parts, strict=True)]
    with warnings.catch_warnings(action="ignore", category=ModelweldWarning):
        fusion = fuse(sent)
        ones = Gaussian(mean=0.0, noise=1.0, spread=1.0, shape="scalar", learning="nothing")
        pfnm = fuse(sent, ones, BetaBernoulli(), search="plain")
    models = fusion._fit.models
    classes = np.array([models[0].facts["labels"].get(c, int(c)) for c in models[0].coordinates["class"]])
    pi = shares(models)
    has = np.array([m.arrays["counts"] for m in models]) > 0
    plain, networks = has / np.maximum(has.sum(axis=0), 1), [layers(m) for m in models]
    made = {
        "naive average": like_sites(models, *averaged(networks, plain)),
        "weight matching": like_sites(models, *averaged(matched_weights(networks), plain)),
        PFNM: like_sites(models, *posterior_means(pfnm, pi)),
        **{f"ours, {how}": fusion.parameters(how) for how in ("mean", "refit", "polish")},
        ENSEMBLE: fusion.parameters("union"),
    }
    rows, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = {"mean local": (float(np.mean(local)), size), BEST: (max(local), size)}
    for name, network in made.items():
        right = classes[outputs(network, X).argmax(axis=1)] == y
        found[name] = (float(right.mean()), units_of(network))
    found["pooled (sees the data)"] = (trained(rows, labels, setting, 100 * seed, smoke).score(X, y), size)
    return {"methods": found}


def tasks(quick: bool) -> list[Task]:
    """One per setting and seed."""
    settings = SMOKE if quick else DIGITS + (MNIST if outside("mnist.npz") else [])
    seeds = {"digits": [1]} if quick else SEEDS
    return [Task(f"{s.name}/{seed}", measured, (s, seed, quick)) for s in settings for seed in seeds[s.data]]


def accuracies(results: Results, begins: str, method: str, hidden: int | None = None) -> list[list[float]]:
    """Of a method, run by run, in every setting whose name begins so (with so many hidden layers)."""
    return [
        [run["methods"][method][0] for run in runs]
        for setting, runs in by_cell(results).items()
        if setting.startswith(begins) and hidden in (None, 1 + setting.rsplit(", ", 1)[1].count("-"))
    ]


def by_setting(results: Results, begins: str, ours: str, theirs: str, hidden: int | None = None) -> Paired:
    """Means over the runs of a setting: settings are what differs, runs of one are alike."""
    return paired(*([np.mean(runs) for runs in accuracies(results, begins, m, hidden)] for m in (ours, theirs)))


def summary(results: Results) -> Summary:
    """A row per setting; what is claimed of digits and of MNIST."""
    methods = list(next(iter(results.values()))["methods"])
    rows, differences = [], []
    for name, found in by_cell(results).items():
        runs = [r["methods"] for r in found]
        wins = sum(run[REFIT][0] > run[BEST][0] for run in runs)
        units = np.mean([run[REFIT][1] for run in runs])
        means = (f"{np.mean([r[m][0] for r in runs]):.3f}" for m in methods)
        rows.append([name, *means, f"{units:.0f}", f"{wins} of {len(runs)}"])
        pairs = ((REFIT, BEST), (REFIT, ENSEMBLE), (MEAN, PFNM))
        differences.append([name, *(str(paired(*([r[m][0] for r in runs] for m in pair))) for pair in pairs)])
    note = "Mean accuracy; units: hidden units of the refitted network."
    columns = ["setting", "refit less best local", "refit less ensemble", "mean less PFNM"]
    tables = [
        Table("Accuracy", ["setting", *methods, "units", "refit beats best local"], rows, note),
        Table("Differences over seeds", columns, differences),
    ]
    return Summary(tables, [c for data in SEEDS for c in claims(results, data)])


def claims(results: Results, data: str) -> list[Claim]:
    """Of one set of data."""
    if not accuracies(results, data, REFIT, 1):
        return []
    gain, found = by_setting(results, data, REFIT, BEST), []
    refit, best = (np.concatenate(accuracies(results, data, m)) for m in (REFIT, BEST))
    wins = int((refit > best).sum())
    number = f"{gain.n} settings, {len(refit)} runs, better in {wins}"
    found.append(Claim(f"{data}: the refit beats the best local network.", str(gain), share(wins, len(refit)), number))
    hundred = [r["methods"][REFIT][1] for task, r in results.items() if task.startswith(HUNDRED)]
    if data == "digits" and hundred:
        about, text = float(np.mean(hundred)), "... with about 100 units: digits, 10 sites, Dirichlet .5."
        found.append(Claim(text, f"{about:.0f}", abs(about - 100) <= 15, f"{len(hundred)} runs"))
    gap = by_setting(results, data, REFIT, ENSEMBLE, 1)
    text = f"{data}, one hidden layer: the refit is within .01 of the ensemble in the mean."
    found.append(Claim(text, str(gap), gap.mean >= -0.01, f"{gap.n} settings"))
    means = [[np.mean(runs) for runs in accuracies(results, data, m)] for m in (MEAN, PFNM)]
    below = sum(a < b for a, b in zip(*means, strict=True))
    text = f'{data}: averaging alone (`how="mean"`) is not below PFNM.'
    number = f"{len(means[0])} settings, below in {below}"
    found.append(Claim(text, str(paired(*means)), share(len(means[0]) - below, len(means[0])), number))
    return found


def share(good: int, n: int) -> bool | str:
    """Whether something holds nearly always, in part, or hardly ever."""
    return True if good >= 0.95 * n else False if good <= n / 2 else "in part"


TITLE = "Networks of sites that saw different classes"
QUESTION = (
    "Sites train a network each, on different shares of the classes; weights and class counts are fused into one "
    "network. How good is it, and how large?"
)

if __name__ == "__main__":
    main(Study("networks", TITLE, QUESTION, tasks, summary))
