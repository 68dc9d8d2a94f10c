"""One group given the rest: the best of all assignments of its values to atoms or to new ones."""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

NEW = -1
"""The choice of a value that becomes a new atom."""


def best_assignment(scores: Array, surcharge: Array, most_new: int) -> Index:
    """Column of each row of `scores` (L, K), at most one row per column, or NEW.

    Scores are match minus new, so a new atom scores zero less its `surcharge` (the k-th new one pays the k-th).
    Without surcharges, clipping at zero does away with columns for new atoms.
    """
    from scipy.optimize import linear_sum_assignment

    L, K = scores.shape
    choice = np.full(L, NEW, dtype=np.int64)
    if most_new >= L and not surcharge.any():
        rows, columns = linear_sum_assignment(np.maximum(scores, 0.0), maximize=True)
        choice[rows] = np.where(scores[rows, columns] > 0, columns, NEW)
        return choice
    dummies = max(most_new, L - K)
    padded = np.hstack([scores, np.broadcast_to(-surcharge[:dummies], (L, dummies))])
    _, columns = linear_sum_assignment(padded, maximize=True)
    return np.where(columns < K, columns, NEW)
