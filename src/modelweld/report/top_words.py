"""The words by which a topic is known."""

from __future__ import annotations

import numpy as np

from modelweld.fusion import Fusion

MOST_WORDS = 12
"""Words that are shown of a topic."""


def words_of(fusion: Fusion, set_name: str) -> list[list[list[str | float]]] | None:
    """Per atom its most probable words with their probabilities; None if this is no topic model."""
    first = fusion.models[0]
    if first.kind != "topics" or set_name != "topic":
        return None
    numbers = fusion.total("words")
    V = numbers.shape[1]
    vocabulary = first.coordinates.get("word") or [f"word {i}" for i in range(V)]
    shares = numbers / np.maximum(numbers.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_WORDS]
    return [
        [[str(vocabulary[v]), round(float(row[v]), 4)] for v in order if row[v] > 0]
        for row, order in zip(shares, best, strict=True)
    ]
