"""What people do today: a dendrogram cut at a cosine."""

from __future__ import annotations

import numpy as np
from sets import Labels, Sets

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


def score(sets: Sets, labels: Labels) -> float:
    """Adjusted Rand index over all values."""
    return float(adjusted_rand([np.concatenate(sets.truth)], [labels]))
