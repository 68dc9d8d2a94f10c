"""Do parameters that leave a site tell whose rows they were learned from? A likelihood-ratio attack with shadows.

    python experiments/hostile/membership.py               # three tables, 32 sites each; five CPU minutes
    python experiments/hostile/membership.py --smoke       # one table, 8 sites; seconds

The attacker has everything but the answer: all rows, how sites train, and that a site holds a random half of the rows.
It trains a model on many such halves itself. How well parameters fit a row is one number; over the models with and
without that row it has two Gaussians, whose ratio at the released parameters is the score (Carlini et al. 2022, with
every site the target once and the others its shadows). Private releases need opendp (extra `dp`); without it they are
left out, and the tables say so.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Result, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import csv
import math
import warnings
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import t
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPClassifier

import modelweld
from modelweld import InputError
from modelweld.core.values import Array, Flags
from modelweld.site.private import private_centres

Release = Callable[[Array, Array, int], Array]
"""Rows of a site, all rows and a seed -> how well what is released fits every row."""

SITES, SMOKE_SITES, PUBLIC = 32, 8, 0.2
"""Sites of each table, and the share of rows that is public: private releases take their centres from these alone."""

COMPONENTS, ROWS_EACH, NOISE, CLIP, DELTA = 5, 6, 0.5, 3.0, 1e-5
"""Components; rows per component of models that have too many; added noise and clipping length, in deviations of the
features; and delta."""
SEED = 1000


def tables() -> dict[str, Array]:
    """Standardised rows of three tables."""
    text = (files("modelweld.demo") / "data" / "heart_disease.csv").read_text(encoding="utf-8")
    columns = ("age", "trestbps", "thalach", "oldpeak")
    heart = [[row[c] for c in columns] for row in csv.DictReader(text.splitlines()) if all(row[c] for c in columns)]
    found = {"breast cancer": load_breast_cancer().data, "wine": load_wine().data, "heart": np.array(heart, float)}
    return {name: (X - X.mean(0)) / X.std(0) for name, X in found.items()}


def allowed(model: object, X: Array) -> bool:
    """Whether `export` lets it leave."""
    try:
        modelweld.export(model, None, X=X)
    except InputError:
        return False
    return True


def fitted(kind: type, K: int, X: Array, seed: int, threshold: bool) -> Any:
    """A model with K components, or fewer, until `export` lets it leave."""
    options = {"covariance_type": "diag", "reg_covar": 1e-3} if kind is GaussianMixture else {"n_init": 1}
    model = kind(K, random_state=seed, **options).fit(X)
    return model if not threshold or K == 1 or allowed(model, X) else fitted(kind, K - 1, X, seed, threshold)


def of_model(kind: type, per_row: bool, threshold: bool, noise: float = 0.0) -> Release:
    """A mixture or k-means, what `read` makes of it, with noise on its means as `export(noise=...)` adds."""

    def release(X: Array, everyone: Array, seed: int) -> Array:
        model = fitted(kind, len(X) // ROWS_EACH if per_row else COMPONENTS, X, seed, threshold)
        sent = modelweld.read(model, X=X).arrays
        means = sent["means"] + noise * np.random.default_rng(seed).normal(size=np.shape(sent["means"]))
        squares = np.square(everyone[:, None] - means)
        if kind is KMeans:
            return np.asarray(-np.sqrt(squares.sum(2).min(1)))
        shares, variances = np.asarray(sent["counts"]) / np.sum(sent["counts"]), np.asarray(sent["variances"])
        density = -0.5 * (squares / variances + np.log(variances)).sum(2) + np.log(np.maximum(shares, 1e-300))
        return np.asarray(logsumexp(density, axis=1))

    return release


def network(X: Array, everyone: Array, seed: int) -> Array:
    """A network of 16 units that tells the last column's sign from the others: how well it does for each row."""
    model = MLPClassifier((16,), max_iter=300, random_state=seed).fit(X[:, :-1], X[:, -1] > 0)
    right = everyone[:, -1] > 0
    p = np.clip(model.predict_proba(everyone[:, :-1])[np.arange(len(everyone)), right.astype(int)], 1e-9, 1 - 1e-9)
    return np.asarray(np.log(p) - np.log1p(-p))


def private(epsilon: float) -> Release:
    """Numbers and means near public centres, under differential privacy."""

    def release(X: Array, everyone: Array, seed: int) -> Array:
        public = everyone[: int(PUBLIC * len(everyone))]
        centres = KMeans(COMPONENTS, n_init=1, random_state=0).fit(public).cluster_centers_
        sent = private_centres(X, centres, clip=CLIP, epsilon=epsilon, delta=DELTA)
        means = np.asarray(sent.arrays["values"]) if len(sent.arrays["values"]) else np.zeros((1, X.shape[1]))
        return np.asarray(-np.sqrt(np.square(everyone[:, None] - means).sum(2).min(1)))

    return release


RELEASES: dict[str, Release] = {
    "mixture, 5 components": of_model(GaussianMixture, False, False),
    "mixture, a component for 6 rows": of_model(GaussianMixture, True, False),
    "the same, as export allows it": of_model(GaussianMixture, True, True),
    "k-means, 5 centres": of_model(KMeans, False, False),
    "k-means, a centre for 6 rows": of_model(KMeans, True, False),
    "the same centres, as export allows them": of_model(KMeans, True, True),
    "the same centres, noise .5": of_model(KMeans, True, True, NOISE),
    "network, 16 units": network,
    "private centres, epsilon 8": private(8.0),
    "private centres, epsilon 1": private(1.0),
}


def scores(fits: Array, held: Flags) -> Array:
    """Log ratio of two Gaussians, with and without the row, for every site and row; the other sites are the shadows."""
    found = np.empty(fits.shape)
    for target in range(len(fits)):
        others = np.arange(len(fits)) != target
        log_density = []
        for which in (held, ~held):
            x = np.where(which & others[:, None], fits, np.nan)
            deviation = np.nanstd(x, axis=0) + 1e-6 * np.nanstd(fits)
            log_density.append(-0.5 * ((fits[target] - np.nanmean(x, axis=0)) / deviation) ** 2 - np.log(deviation))
        found[target] = log_density[0] - log_density[1]
    return np.nan_to_num(found)


def attacked(table: str, release: str, sites: int, seed: int) -> Result:
    """AUC of every site, and the share of members that are told at one false alarm in a hundred, all sites together."""
    rng = np.random.default_rng(seed)
    X = tables()[table]
    X = X[rng.permutation(len(X))]
    private_rows = np.arange(len(X)) >= int(PUBLIC * len(X))
    held = (rng.random((sites, len(X))) < 0.5) & private_rows
    with warnings.catch_warnings(action="ignore"):
        fits = np.stack([RELEASES[release](X[one], X, int(rng.integers(2**31))) for one in held])
        found = scores(fits, held)[:, private_rows]
    member = held[:, private_rows]
    alarms, told, _ = roc_curve(member.ravel(), found.ravel())
    return {
        "auc": [float(roc_auc_score(m, s)) for m, s in zip(member, found, strict=True)],
        "told": float(np.interp(0.01, alarms, told)),
        "rows": int(held.sum(1).mean()),
    }


def shown(auc: list[float]) -> str:
    """Mean and Student's 95 % interval over sites."""
    return f"{np.mean(auc):.3f} ± {t.ppf(0.975, len(auc) - 1) * np.std(auc, ddof=1) / math.sqrt(len(auc)):.3f}"


def tasks(quick: bool) -> list[Task]:
    """One per table and release."""
    releases = [name for name in RELEASES if find_spec("opendp") or not name.startswith("private")]
    chosen, sites = (["wine"], SMOKE_SITES) if quick else (tables(), SITES)
    return [Task(f"{table} / {name}", attacked, (table, name, sites, SEED)) for table in chosen for name in releases]


def summary(results: Results) -> Summary:
    """A row per release, a column per table."""
    names = dict.fromkeys(task.split(" / ")[0] for task in results)
    releases = dict.fromkeys(task.split(" / ")[1] for task in results)
    rows = []
    for name in releases:
        found = [results[f"{table} / {name}"] for table in names]
        rows.append([name, *(f"{shown(one['auc'])}; {one['told']:.1%}" for one in found)])
    sites = len(next(iter(results.values()))["auc"])
    note = (
        f"{sites} sites per table, each of half of its rows; ± Student's 95 % interval over sites. A guess: 0.500; "
        "1.0%. No attack on a release with epsilon 1 and delta 1e-5 tells more than 2.7% at that rate. Private centres "
        "need opendp, without which they are left out."
    )
    heads = [f"{table}, {results[f'{table} / {next(iter(releases))}']['rows']} rows" for table in names]
    return Summary([Table("Who was there? AUC; members told at 1 % false alarms", ["released", *heads], rows, note)])


TITLE = "Membership inference"
QUESTION = "Do parameters that leave a site tell whose rows they were learned from?"

if __name__ == "__main__":
    main(Study("hostile/membership", TITLE, QUESTION, tasks, summary))
