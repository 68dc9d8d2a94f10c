"""Coherence of topics: do their top words occur near each other in other books?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from topic_data import Corpus

TOP = 10
"""Words that stand for a topic, as in Newman et al. (2010)."""

SMALLEST = 1e-12
"""Probability added to that of a pair, as in the usual programs; an unseen pair of frequent words costs about -15."""


@dataclass(frozen=True)
class Table:
    """Windows of other books that hold each word and each pair of words; the first words of the vocabulary."""

    windows: np.ndarray
    pairs: np.ndarray
    total: float

    def __len__(self) -> int:
        return len(self.windows)


def coherence(tops: np.ndarray, table: Table) -> dict[str, float]:
    """UCI, NPMI and share of unseen pairs of rows of words: means over a row's pairs, then over rows.

    >>> table = Table(np.array([4.0, 4.0, 2.0]), np.array([[0, 2, 0], [2, 0, 0], [0, 0, 0.0]]), 8.0)
    >>> {name: round(value, 2) for name, value in coherence(np.array([[0, 1], [0, 2]]), table).items()}
    {'uci': -12.78, 'npmi': -0.5, 'unseen': 0.5}
    """
    left, right = np.triu_indices(tops.shape[1], 1)
    a, b = tops[:, left], tops[:, right]
    together = table.pairs[a, b].astype(float)
    joint = together / table.total
    pmi = np.log((joint + SMALLEST) * table.total**2 / (table.windows[a] * table.windows[b]))
    npmi = np.where(together > 0, pmi / -np.log(np.maximum(joint, SMALLEST)), -1.0)
    return {"uci": float(pmi.mean()), "npmi": float(npmi.mean()), "unseen": float((together == 0).mean())}


def top_words(values: np.ndarray, number: int = TOP) -> np.ndarray:
    """Columns with the largest values of each row, largest first."""
    return np.argsort(-values, axis=1, kind="stable")[:, :number]


def nearest(centres: np.ndarray, corpus: Corpus, number: int = TOP) -> np.ndarray:
    """The paper's rule: the words whose vectors are closest to the topic's centre (by cosine)."""
    return top_words(centres @ corpus.vectors[: len(corpus.table)].T, number)
