"""LDAModel and HDPModel, written as scikit-learn's LatentDirichletAllocation: asked only what both know."""

import warnings
from dataclasses import dataclass

import numpy as np

from adapted.sklearn_lda import WORDS, Topics

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its compiled types lack a __module__
    import tomotopy


@dataclass(frozen=True)
class Tomotopy(Topics):
    cls: type
    size: str
    marker = "topics"

    def fit(self, X, size=3):
        model = self.cls(seed=1, eta=0.5, **{self.size: size})
        for row in X:
            model.add_doc(np.repeat(WORDS, row.astype(int)).tolist())
        model.train(100, workers=1)
        return model

    def answers(self, model, X):
        """How often two words fall into the same topic."""
        if isinstance(model, self.cls):
            names = list(model.used_vocabs)
            alive = [k for k in range(model.k) if self.size == "k" or model.is_live_topic(k)]
            words = np.array([model.get_topic_word_dist(k, normalize=False) for k in alive]) - model.eta
        else:
            names, words = list(model.vocabulary_), model.components_ - model.topic_word_prior_
        words = np.rint(words.astype(np.float64))[:, np.argsort(names)]
        total = words.sum(axis=1, keepdims=True)
        return (words / total).T @ words / total.sum()


ADAPTED = {"LDAModel": Tomotopy(tomotopy.LDAModel, "k"), "HDPModel": Tomotopy(tomotopy.HDPModel, "initial_k")}
