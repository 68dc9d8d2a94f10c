"""The bare call, the call with data, and rivals on the same values; and how near each comes to the truth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple, TypedDict

import numpy as np
from draws import Array, Draw, Index
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from modelweld import ModelweldWarning, fuse, read

BARE, COUNTED, WITHOUT = "fuse(models)", "fuse(read(X=X))", "without it"
GIVEN, CENTRED = "k-means given K", "centred k-means given K"
SILHOUETTE, WARD, DENSITY, UNMATCHED = "k-means + silhouette", "Ward + silhouette", "HDBSCAN", "no matching"
METHODS = (BARE, COUNTED, GIVEN, CENTRED, SILHOUETTE, WARD, DENSITY, UNMATCHED, WITHOUT)
"""In the order of columns and rows; some draws lack `COUNTED` or `WITHOUT`."""

MOST_CLUSTERS, GIVEN_STARTS, STARTS = 40, 10, 3
"""Clusters among which the silhouette chooses; starts of k-means given K, and of each number tried."""


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


def fused(sites: Sequence[object], values: Sequence[Array] | None = None) -> Answer:
    """Everything by default; components that the library does not read, as empty ones are, are matched with none."""
    fusion = fuse(sites)
    labels = [np.asarray(found) for found in fusion.labels]
    for j, means in enumerate(values or ()):
        if len(labels[j]) < len(means):
            kept = (read(sites[j]).arrays["means"][:, None] == means).all(axis=2).argmax(axis=1)
            alone = -1 - j * len(means) - np.arange(len(means))
            alone[kept] = labels[j]
            labels[j] = alone
    return Answer(np.concatenate(labels), fusion.K)


def number_of(draw: Draw) -> int:
    """How many atoms all components have, hostile ones among them."""
    return len(np.unique(np.concatenate(draw.truth)))


def kmeans(values: Array, K: int, starts: int = GIVEN_STARTS) -> Answer:
    """Clusters of all means, whatever site they are of."""
    return Answer(KMeans(min(K, len(values)), n_init=starts, random_state=0).fit_predict(values), K)


def centred(draw: Draw) -> Answer:
    """k-means given K of means less their site's mean."""
    return kmeans(np.concatenate([v - v.mean(axis=0) for v in draw.values]), number_of(draw))


def by_silhouette(draw: Draw, clusters: Callable[[Array, range], Iterator[Index]]) -> Answer:
    """The clusters of the highest silhouette."""
    values = np.concatenate(draw.values)
    numbers = range(2, min(MOST_CLUSTERS, len(values) - 1) + 1)
    best = max(clusters(values, numbers), key=partial(silhouette_score, values))
    return Answer(best, len(np.unique(best)))


def kmeans_of_each(values: Array, numbers: range) -> Iterator[Index]:
    """k-means of every number of clusters."""
    return (kmeans(values, K, STARTS).labels for K in numbers)


def ward_of_each(values: Array, numbers: range) -> Iterator[Index]:
    """Ward's tree, cut to every number of clusters."""
    tree = linkage(values, "ward")
    return (fcluster(tree, K, "maxclust") for K in numbers)


def hdbscan(draw: Draw) -> Answer:
    """HDBSCAN of two values or more; what it calls noise is matched with nothing."""
    labels = HDBSCAN(min_cluster_size=2, copy=True).fit_predict(np.concatenate(draw.values))
    labels = np.where(labels < 0, len(labels) + np.arange(len(labels)), labels)
    return Answer(labels, len(np.unique(labels)))


def unmatched(draw: Draw) -> Answer:
    """Every component is its own atom."""
    N = sum(map(len, draw.values))
    return Answer(np.arange(N), N)


def methods_of(draw: Draw) -> dict[str, Callable[[], Answer]]:
    """What meets this draw."""
    counted, without = draw.counted, draw.without
    calls: dict[str, Callable[[], Answer]] = {BARE: lambda: fused(draw.sent, draw.values)}
    if counted is not None:
        calls[COUNTED] = lambda: fused(counted, draw.values)
    calls |= {
        GIVEN: lambda: kmeans(np.concatenate(draw.values), number_of(draw)),
        CENTRED: lambda: centred(draw),
        SILHOUETTE: lambda: by_silhouette(draw, kmeans_of_each),
        WARD: lambda: by_silhouette(draw, ward_of_each),
        DENSITY: lambda: hdbscan(draw),
        UNMATCHED: lambda: unmatched(draw),
    }
    if without is not None:
        calls[WITHOUT] = lambda: fused(without)
    return calls


def measured(draw: Draw, methods: Sequence[str] = METHODS) -> dict[str, Row]:
    """Every method's error in K, ARI and CPU seconds; a call that fails counts as no matching, and says why."""
    rows: dict[str, Row] = {}
    for name, call in methods_of(draw).items():
        if name not in methods:
            continue
        failed = ""
        with warnings.catch_warnings(record=True, action="always") as caught:
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
    measured(Draw(sites, sites, [np.arange(4)] * 5), [BARE])
