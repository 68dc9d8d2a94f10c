"""LdaModel."""

import numpy as np
from gensim.models import LdaModel

from adapted.sklearn_lda import WORDS, Topics


def bags(X):
    """Documents as gensim has them."""
    return [[(int(w), int(row[w])) for w in np.flatnonzero(row)] for row in X]


class Gensim(Topics):
    marker = "topics"

    def fit(self, X, size=3):
        return LdaModel(
            bags(X), size, dict(enumerate(WORDS)), passes=10, alpha="auto", eta="auto", random_state=0, dtype=np.float64
        )

    def answers(self, model, X):
        model.iterations, model.gamma_threshold = 10_000, 1e-13
        model.random_state = np.random.RandomState(0)
        gamma, _ = model.inference(bags(X))
        return gamma / gamma.sum(axis=1, keepdims=True) @ model.get_topics()


ADAPTED = {"LdaModel": Gensim()}
