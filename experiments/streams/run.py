"""Directions that stream in batches, von Mises-Fisher about topics that move: the special case that the paper names.

python experiments/streams/run.py            # three drifts x 10 seeds: a CPU minute or two
python experiments/streams/run.py --smoke    # one seed
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, by_cell, main, not_behind, timed  # isort: skip; first: it sets the threads

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, ive
from scipy.stats import vonmises_fisher
from sklearn.cluster import KMeans

from modelweld import Directions, fuse
from modelweld.demo.metrics import adjusted_rand
from paired import paired
from shared.first_wins import first_wins, first_wins_told

TOPICS, BATCHES, D, SHARE, CLOSE = 20, 6, 30, 0.7, 60.0
"""Topics, batches, dimensions, the share of topics that a batch has, and the concentration of values about topics."""
STEPS = {"still": np.inf, "slow": 200.0, "fast": 60.0}
"""Concentration of a topic about its place in the batch before."""
SEEDS, FEW = range(9000, 9010), 3
"""Settings were chosen on seed 8000; fusion with times takes a hundred times as long, and is asked on a few."""
OURS, TIMED = "fuse(batches, Directions())", "fuse(batches, Directions(), times=times)"
SDDM = "SDDM, told both concentrations"
KMEANS, MERGED = "spherical k-means told K", "merged by a cosine, told K"


class Stream(NamedTuple):
    """Unit vectors of every batch, and the topic of each."""

    batches: list[np.ndarray]
    truth: list[np.ndarray]


def drawn(step: float, seed: int) -> Stream:
    """Topics uniform on the sphere, each moved a step between batches; a batch has some of them."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(TOPICS, D))
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    batches, truth = [], []
    for _ in range(BATCHES):
        held = rng.permutation(np.flatnonzero(rng.random(TOPICS) < SHARE))
        batches.append(np.concatenate([about(places[k], CLOSE, rng) for k in held]))
        truth.append(held)
        if np.isfinite(step):
            places = np.concatenate([about(place, step, rng) for place in places])
    return Stream(batches, truth)


def about(place: np.ndarray, concentration: float, rng: np.random.Generator) -> np.ndarray:
    """One direction about a place."""
    return np.asarray(vonmises_fisher(place, concentration).rvs(1, random_state=rng))


def log_density(cosine: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    """Of a von Mises-Fisher law at directions of this cosine, relative to the uniform law."""
    v = D / 2 - 1
    scale = np.log(ive(v, concentration)) + concentration - v * np.log(concentration / 2) + gammaln(D / 2)
    return np.asarray(concentration * cosine - scale)


def sddm(batches: list[np.ndarray], close: float, step: float, gamma0: float = 1.0) -> np.ndarray:
    """Streams as SDDM matches them (Yurochkin et al., NeurIPS 2019): a forward pass, told both concentrations.

    A value joins a topic that was seen m times by its density about the topic's present place and log((1 + m) / (t -
    m)); a new one has the uniform density and log(gamma0 / t). What is seen moves a topic, what is not lets it fade.
    """
    places, known, seen, labels = np.zeros((0, D)), np.zeros(0), np.zeros(0), []
    for t, values in enumerate(batches, start=1):
        known = 1 / (1 / known + 1 / step)
        odds = np.log((1 + seen) / np.maximum(t - seen, 0.5)) - np.log(gamma0 / t)
        gain = np.maximum(log_density(values @ places.T, 1 / (1 / known + 1 / close)) + odds, 0.0)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        own = np.full(len(values), -1)
        good = gain[rows, columns] > 0
        own[rows[good]] = columns[good]
        new = own < 0
        own[new] = len(places) + np.arange(new.sum())
        places, known, seen = (np.concatenate([x, np.zeros((new.sum(), *x.shape[1:]))]) for x in (places, known, seen))
        moved = known[own][:, None] * places[own] + close * values
        known[own] = np.linalg.norm(moved, axis=1)
        places[own] = moved / known[own][:, None]
        seen[own] += 1
        labels.append(own)
    return np.concatenate(labels)


def measured(drift: str, seed: int) -> Result:
    """All methods on one stream."""
    warnings.simplefilter("ignore")
    (batches, truth), found = drawn(STEPS[drift], seed), {}
    whole, rows = np.concatenate(truth), np.concatenate(batches)
    K, times = len(np.unique(whole)), np.arange(float(len(batches)))
    methods: dict[str, Callable[[], np.ndarray]] = {
        OURS: lambda: np.concatenate(fuse(batches, Directions()).labels),
        KMEANS: lambda: KMeans(K, n_init=10, random_state=seed).fit_predict(rows),
        MERGED: lambda: first_wins_told(batches, K),
        "merged by a cosine of .7": lambda: first_wins(batches),
        SDDM: lambda: sddm(batches, CLOSE, STEPS[drift]),
    }
    if seed < SEEDS[FEW]:
        methods[TIMED] = lambda: np.concatenate(fuse(batches, Directions(own=False), times=times).labels)
    for name, method in methods.items():
        labels, seconds = timed(method)
        off = len(np.unique(labels)) - K
        found[name] = {"ari": float(adjusted_rand([whole], [labels])), "error in K": off, "seconds": seconds}
    return {"methods": found}


def tasks(quick: bool) -> list[Task]:
    """One per drift and seed."""
    seeds = SEEDS[: 1 if quick else None]
    return [Task(f"{drift}/{seed}", measured, (drift, seed)) for drift in STEPS for seed in seeds]


def summary(results: Results) -> Summary:
    """A row per drift and method; the bare call less its rivals."""
    rows, claims = [], list[Claim]()
    for drift, found in by_cell(results).items():
        draws = [r["methods"] for r in found]
        for method in draws[0]:
            own = [d for d in draws if method in d]
            ari, off, seconds = ([d[method][what] for d in own] for what in ("ari", "error in K", "seconds"))
            by = paired([d[OURS]["ari"] for d in own], ari)
            means = [f"{np.mean(ari):.3f}", f"{np.mean(off):+.1f}", f"{np.mean(seconds):.2f}"]
            rows.append([drift, method, *means, "" if method == OURS else str(by)])
            if method in (KMEANS, MERGED, SDDM):
                text = f"topics that stream, {drift}: ARI of `{OURS}` not behind {method}."
                claims.append(not_behind(text, by, f"{len(draws)} streams of {BATCHES} batches"))
    note = "Steps between batches: none, or von Mises-Fisher of concentration 200 and 60 in 30 dimensions; values: 60."
    columns = ["drift", "method", "ARI", "error in K", "CPU s", "ARI, the bare call less it"]
    return Summary([Table("Topics that stream", columns, rows, note)], claims)


TITLE = "Directions that stream"
QUESTION = (
    "Batches of unit vectors about topics that move, von Mises-Fisher: does the bare call tell topics apart, which "
    "knows no order of batches, beside rivals that are told the number of topics, or all concentrations?"
)

if __name__ == "__main__":
    main(Study("streams", TITLE, QUESTION, tasks, summary))
