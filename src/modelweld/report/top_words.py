"""The words by which a topic is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.kinds import kind_named

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

MOST_WORDS = 12
"""Words that are shown of a topic."""


def list_words(fusion: Fusion, set_name: str) -> list[list[list[str | float]]] | None:
    """Per atom its most probable words with their probabilities; None if they are known by none."""
    kind = kind_named(fusion.models[0].kind)
    known_by = None if kind is None else kind.words(fusion, set_name)
    if known_by is None:
        return None
    numbers, vocabulary = known_by
    shares = numbers / np.maximum(numbers.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_WORDS]
    return [
        [[str(vocabulary[v]), round(float(row[v]), 4)] for v in order if row[v] > 0]
        for row, order in zip(shares, best, strict=True)
    ]
