"""What people do today: a dendrogram cut at a cosine, a first model that wins, k-means told K."""

from __future__ import annotations

import numpy as np
from sets import Labels, Sets, Values

from modelweld.demo.metrics import adjusted_rand

CUTS = np.round(np.arange(0.3, 0.995, 0.01), 2)


def cut(sets: Sets, cosine: float, signless: bool = False) -> Labels:
    """Average linkage of all values by cosine (or its absolute value), cut at one."""
    from scipy.cluster.hierarchy import fcluster, linkage

    values = np.concatenate(sets.sites)
    products = np.clip(values @ values.T, -1, 1)
    distances = 1 - (np.abs(products) if signless else products)
    tree = linkage(distances[np.triu_indices(len(values), 1)], "average")
    return np.asarray(fcluster(tree, 1 - cosine, "distance"), dtype=np.int64)


def best_cut(sets: Sets, signless: bool = False) -> Labels:
    """Of all cuts that with the best adjusted Rand index, seen on the truth."""
    cuts = (cut(sets, cosine, signless) for cosine in CUTS)
    return max(cuts, key=lambda labels: (score(sets, labels), len(np.unique(labels))))


def first_wins(sets: Sets, threshold: float, order: Labels) -> Labels:
    """Models in an order: a topic joins the nearest known one if its cosine is high enough, else it is known then."""
    known, names = np.zeros((0, sets.sites[0].shape[1])), np.zeros(0, dtype=np.int64)
    labels: list[Labels] = [np.zeros(0, dtype=np.int64)] * len(sets.sites)
    for j in order:
        values = sets.sites[j]
        cosines = values @ known.T
        nearest = cosines.argmax(1) if len(known) else np.zeros(len(values), dtype=np.int64)
        joins = cosines.max(1) > threshold if len(known) else np.zeros(len(values), dtype=bool)
        fresh = len(names) + np.arange(int((~joins).sum()))
        own = np.empty(len(values), dtype=np.int64)
        own[joins], own[~joins] = names[nearest[joins]], fresh
        labels[j] = own
        known, names = np.vstack([known, values[~joins]]), np.append(names, fresh)
    return np.concatenate(labels)


def kmeans_without_signs(sets: Sets, K: int, seed: int, rounds: int = 100) -> Labels:
    """Polarity-free k-means: centres are first principal axes of their members; the best of ten starts."""
    rng, values = np.random.default_rng(seed), np.concatenate(sets.sites)
    best, labels = -np.inf, np.zeros(len(values), dtype=np.int64)
    for _ in range(10):
        centres = values[rng.permutation(len(values))[:K]]
        for _ in range(rounds):
            agreement = np.abs(values @ centres.T)
            own = agreement.argmax(1)
            moved = np.array([axis(values[own == k], centres[k]) for k in range(K)])
            if np.allclose(np.abs((moved * centres).sum(1)), 1):
                break
            centres = moved
        if agreement.max(1).sum() > best:
            best, labels = float(agreement.max(1).sum()), own
    return labels


def axis(members: Values, otherwise: Values) -> Values:
    """First principal axis of some values."""
    return np.linalg.svd(members, full_matrices=False)[2][0] if len(members) else otherwise


def score(sets: Sets, labels: Labels) -> float:
    """Adjusted Rand index over all values."""
    return float(adjusted_rand([np.concatenate(sets.truth)], [labels]))
