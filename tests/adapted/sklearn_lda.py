"""LatentDirichletAllocation, and the documents that all topic models are tried on."""

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from adapted import ROWS, Adapted

WORDS = [f"w{i:02d}" for i in range(24)]
LENGTH = 50
"""Words of a document."""


def planted():
    """Three topics that each have words of their own, and a few in common."""
    topics = np.full((3, len(WORDS)), 0.1)
    for k in range(3):
        topics[k, 7 * k : 7 * k + 7] = np.arange(1, 8)
    topics[:, 21:] = 2.0
    return topics / topics.sum(axis=1, keepdims=True)


class Topics(Adapted):
    named = ""
    scales = False
    itself = None  # copies add evidence: the law is in test_topics.py

    def data(self, rng, rows=ROWS):
        """Documents x words."""
        mixed = rng.dirichlet(rng.dirichlet([3.0] * 3), rows) @ planted()
        return np.array([rng.multinomial(LENGTH, p / p.sum()) for p in mixed], dtype=np.float64)


class Sklearn(Topics):
    def fit(self, X, size=3):
        return LatentDirichletAllocation(size, random_state=0, max_iter=8).fit(X)

    def answers(self, model, X):
        """Probabilities of words in each document: of topics there, times of words in topics."""
        return model.transform(X) @ (model.components_ / model.components_.sum(axis=1, keepdims=True))


ADAPTED = {"LatentDirichletAllocation": Sklearn()}
