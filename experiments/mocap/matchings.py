"""Ways to say which states of several people's models are the same, and how good that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from visits import Visits

from data import Index, Person
from modelweld import Fusion, Search, fuse, read
from modelweld.demo.metrics import adjusted_rand
from modelweld.families import Moments
from shared.baselines import kmeans_matching
from shared.measures import hamming

ACTIVITIES = 12
"""What k-means is told."""


def sites(models: Sequence[Any], known: str, effective: str = "visits") -> list[Any]:
    """What leaves each person's model."""
    return [read(m, known=known, effective=effective, site=f"site {j}") for j, m in enumerate(models)]


def default(models: Sequence[Any]) -> Fusion:
    """What a user calls."""
    return fuse(list(models))


def authors(models: Sequence[Any]) -> Fusion:
    """The paper's method to the letter of its authors' program, on means."""
    return fuse(sites(models, "equally"), preset="authors")


def means(models: Sequence[Any]) -> Fusion:
    """Means alone, hyperparameters by maximum likelihood."""
    return fuse(sites(models, "equally"), search=Search(splits=False))


def errors(models: Sequence[Any]) -> Fusion:
    """Means with standard errors by visits; a person's states may be pieces of one. Not what `fuse(models)` does."""
    return fuse(sites(models, "variance"))


def both(models: Sequence[Any]) -> Fusion:
    """Means and covariances, worth as many points as the state has visits."""
    return fuse(sites(models, "weight"), {("means", "covariances"): Visits()})


def moments(models: Sequence[Any]) -> Fusion:
    """The same with the library's family, which learns a full prior scale."""
    return fuse(sites(models, "weight"), {("means", "covariances"): Moments()})


def kmeans(models: Sequence[Any]) -> Fusion:
    """K-means of all means, told the number of activities."""
    return kmeans_matching([m.means_ for m in models], ACTIVITIES, seed=0)


Method = Callable[[Sequence[Any]], Fusion]

FUSIONS: dict[str, Method] = {
    "fuse(models)": default,
    "SPAHM, authors' form": authors,
    "means": means,
    "means + errors + copies": errors,
    "means + covariances": both,
    "means + covariances, full prior": moments,
}
"""Told nothing."""

METHODS: dict[str, Method] = {**FUSIONS, "k-means, k=12": kmeans}


def relabelled(fusion: Fusion, paths: Sequence[Index]) -> Index:
    """Local paths in the numbers of global states."""
    return np.concatenate([np.asarray(fusion.labels[j])[path] for j, path in enumerate(paths)])


def disjoint(paths: Sequence[Index]) -> Index:
    """Local paths, no state shared."""
    first = np.cumsum([0, *(int(p.max()) + 1 for p in paths)])
    return np.concatenate([path + first[j] for j, path in enumerate(paths)])


def scores(activity: Index, path: Index) -> dict[str, float]:
    """Of a segmentation."""
    return {"hamming": hamming(activity, path), "ari": adjusted_rand(activity, path), "K": len(np.unique(path))}


def paths_of(models: Sequence[Any], people: Sequence[Person]) -> list[Index]:
    """Everyone's frames decoded by his own model."""
    return [m.predict(p.X, p.lengths) for m, p in zip(models, people, strict=True)]
