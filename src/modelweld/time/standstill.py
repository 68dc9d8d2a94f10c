"""Where atoms stand still, sums over their values are all there is to know, and no filter is needed."""

from __future__ import annotations

import numpy as np

from modelweld.families.base import sum_by_atom
from modelweld.families.math.random_effects import Effects, Hyperparameters, log_likelihood
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index


def effects_of(y: Array, weight: Array | None, labels: Index) -> Effects:
    """Of values (N, D) of these weights, none negative and zero where not seen, and their atoms (N,)."""
    if weight is None:
        return Effects.from_counts(np.bincount(labels), sum_by_atom(y, labels), np.einsum("nd,nd->d", y, y))
    seen = (weight > 0).astype(np.float64)
    parts = seen, weight, weight * y, weight * y * y, np.log(np.where(weight > 0, weight, 1.0))
    return Effects.from_sums(*(sum_by_atom(x, labels) for x in parts))


def log_evidence(effects: Effects, at: Hyperparameters) -> float:
    """Of all values."""
    return float(log_likelihood(effects, at).sum())
