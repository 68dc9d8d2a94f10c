"""Coherence of topics: do their top words occur near each other in other books?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from topic_data import Corpus
    from topic_models import Topics

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


def coherence(tops: np.ndarray, table: Table) -> dict[str, np.ndarray]:
    """UCI, NPMI and share of unseen pairs of every row of words: means over the row's pairs.

    >>> table = Table(np.array([4.0, 4.0, 2.0]), np.array([[0, 2, 0], [2, 0, 0], [0, 0, 0.0]]), 8.0)
    >>> {name: value.round(2).tolist() for name, value in coherence(np.array([[0, 1], [0, 2]]), table).items()}
    {'uci': [0.0, -25.55], 'npmi': [0.0, -1.0], 'unseen': [0.0, 1.0]}
    """
    left, right = np.triu_indices(tops.shape[1], 1)
    a, b = tops[:, left], tops[:, right]
    together = table.pairs[a, b].astype(float)
    joint = together / table.total
    pmi = np.log((joint + SMALLEST) * table.total**2 / (table.windows[a] * table.windows[b]))
    npmi = np.where(together > 0, pmi / -np.log(np.maximum(joint, SMALLEST)), -1.0)
    return {"uci": pmi.mean(1), "npmi": npmi.mean(1), "unseen": (together == 0).mean(1)}


def top_words(values: np.ndarray, number: int = TOP) -> np.ndarray:
    """Columns with the largest values of each row, largest first."""
    return np.argsort(-values, axis=1, kind="stable")[:, :number]


def nearest(centres: np.ndarray, corpus: Corpus, number: int = TOP) -> np.ndarray:
    """The paper's rule: the words whose vectors are closest to the topic's centre (by cosine)."""
    return top_words(centres @ corpus.vectors[: len(corpus.table)].T, number)


def most_frequent(tokens: np.ndarray, corpus: Corpus, number: int = TOP) -> np.ndarray:
    """LDA's rule: the words of which most tokens belong to the topic."""
    return top_words(tokens[:, : len(corpus.table)], number)


RULES = ("nearest", "tokens")


def scores(topics: Topics, corpus: Corpus, keep: int | None = None) -> dict[str, Any]:
    """Mean scores over all topics, and over the `keep` ones that most books hold, by both rules for top words."""
    best = np.argsort(-topics.support, kind="stable")[: topics.shared if keep is None else keep]
    result: dict[str, Any] = {"K": len(topics.support), "kept": len(best), "shared": topics.shared}
    for rule in RULES:
        tops = nearest(topics.centres, corpus) if rule == "nearest" else most_frequent(topics.tokens, corpus)
        measured = coherence(tops, corpus.table)
        for name, part in (("all", np.arange(len(tops))), ("filtered", best)):
            lists = np.sort(tops[part], axis=1)
            result[f"{rule}/{name}"] = {
                **{measure: float(values[part].mean()) for measure, values in measured.items()},
                "distinct": len(np.unique(lists, axis=0)) / len(lists),
                "words": len(np.unique(lists)) / lists.size,
            }
    return result
