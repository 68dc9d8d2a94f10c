"""Directions merged as BERTopic merges models: one site after the other, by a threshold of their cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

THRESHOLD = 0.7
"""The default of BERTopic.merge_models."""


def first_wins(sites: Sequence[np.ndarray], threshold: float = THRESHOLD) -> np.ndarray:
    """Labels of all rows: a row of a later site joins the kept row that is most like it, if above the threshold.

    The rows of the first site are all kept; a row that is joined does not change the one it joins.

    >>> first_wins([np.eye(2), np.array([[1.0, 0.1], [1.0, -2.0]])]).tolist()
    [0, 1, 0, 2]
    """
    rows = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in sites]
    kept, labels = rows[0], list(range(len(rows[0])))
    for x in rows[1:]:
        alike = x @ kept.T
        new = alike.max(1) <= threshold
        labels += np.where(new, len(kept) + np.cumsum(new) - 1, alike.argmax(1)).tolist()
        kept = np.vstack([kept, x[new]])
    return np.array(labels)


def first_wins_told(sites: Sequence[np.ndarray], K: int) -> np.ndarray:
    """The same with a threshold that gives K groups, or as near as bisection comes."""
    low, high, best = -1.0, 1.0, first_wins(sites, 1.0)
    for _ in range(40):
        middle = (low + high) / 2
        labels = first_wins(sites, middle)
        if abs(labels.max() + 1 - K) < abs(best.max() + 1 - K):
            best = labels
        low, high = (middle, high) if labels.max() + 1 < K else (low, middle)
    return best


def added(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows added by label."""
    total = np.zeros((int(labels.max()) + 1, rows.shape[1]))
    np.add.at(total, labels, rows)
    return total
