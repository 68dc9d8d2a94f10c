"""The bare call, what else can be told, and rivals on the same values; and how near each comes to the truth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, TypedDict

import numpy as np
from draws import Draw, Index
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from modelweld import ModelweldWarning, fuse

BARE, COUNTED, WITHOUT = "fuse(models)", "fuse(read(X=X))", "without it"
TOLD, SILHOUETTE, UNMATCHED = "k-means told K", "k-means + silhouette", "no matching"
METHODS = (BARE, COUNTED, TOLD, SILHOUETTE, UNMATCHED, WITHOUT)
"""In the order of columns and rows; some draws lack `COUNTED` or `WITHOUT`."""

MOST_CLUSTERS, TOLD_STARTS, STARTS = 40, 10, 3
"""Clusters among which the silhouette chooses; starts of k-means told K, and of each number tried."""


class Answer(NamedTuple):
    """Labels of all components, one below the other, and how many atoms a method counts."""

    labels: Index
    K: int


class Row(TypedDict, total=False):
    """What is measured of an answer; `failed` says why there is none."""

    error: int
    ari: float
    cpu: float
    warnings: list[str]
    failed: str


def fused(sites: Sequence[object]) -> Answer:
    """Everything by default."""
    fusion = fuse(sites)
    return Answer(np.concatenate(fusion.labels), fusion.K)


def kmeans(draw: Draw, K: int, starts: int) -> Index:
    """Clusters of all means, whatever site they are of."""
    values = np.concatenate(draw.values)
    return KMeans(min(K, len(values)), n_init=starts, random_state=0).fit_predict(values)


def told(draw: Draw) -> Answer:
    """k-means, told how many atoms all components have, hostile ones among them."""
    K = len(np.unique(np.concatenate(draw.truth)))
    return Answer(kmeans(draw, K, TOLD_STARTS), K)


def silhouette(draw: Draw) -> Answer:
    """k-means, not told: the number of clusters of the highest silhouette."""
    values = np.concatenate(draw.values)
    tried = [kmeans(draw, K, STARTS) for K in range(2, min(MOST_CLUSTERS, len(values) - 1) + 1)]
    best = max(tried, key=lambda labels: silhouette_score(values, labels))
    return Answer(best, len(np.unique(best)))


def unmatched(draw: Draw) -> Answer:
    """Every component is its own atom."""
    N = sum(map(len, draw.values))
    return Answer(np.arange(N), N)


def methods_of(draw: Draw) -> dict[str, Callable[[], Answer]]:
    """What meets this draw."""
    counted, without = draw.counted, draw.without
    calls: dict[str, Callable[[], Answer]] = {BARE: lambda: fused(draw.sent)}
    if counted is not None:
        calls[COUNTED] = lambda: fused(counted)
    calls |= {TOLD: lambda: told(draw), SILHOUETTE: lambda: silhouette(draw), UNMATCHED: lambda: unmatched(draw)}
    if without is not None:
        calls[WITHOUT] = lambda: fused(without)
    return calls


def measured(draw: Draw) -> dict[str, Row]:
    """Every method's error in K, ARI and CPU seconds; a call that fails counts as no matching, and says why."""
    rows: dict[str, Row] = {}
    for name, call in methods_of(draw).items():
        failed = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            began = time.process_time()
            try:
                answer = call()
            except Exception as error:
                answer, failed = unmatched(draw), f"{type(error).__name__}: {error}"
            cpu = time.process_time() - began
        whole = len(answer.labels) == len(draw.judged)  # "without it" has the components that are judged alone
        labels = answer.labels[draw.judged] if whole else answer.labels
        rows[name] = {
            "error": answer.K - draw.K,
            "ari": round(float(adjusted_rand_score(draw.true_names, labels)), 4),
            "cpu": round(cpu, 4),
            "warnings": sorted({w.category.__name__ for w in caught if issubclass(w.category, ModelweldWarning)}),
        }
        if failed:
            rows[name]["failed"] = failed
    return rows


@cache
def warm_up() -> None:
    """Import before the clock runs, once in a process."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 9, (4, 3))
    sites = [atoms + rng.normal(0, 0.1, atoms.shape) for _ in range(5)]
    measured(Draw(sites, sites, [np.arange(4)] * 5))
