"""GaussianNB: its classes have names, so that nothing is matched."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from sklearn.naive_bayes import GaussianNB

from adapted import Adapted


@dataclass(frozen=True)
class Classes(Adapted):
    def fit(self, X, size=3):
        rank = np.argsort(np.argsort(X[:, 0] - X[:, 1]))
        return GaussianNB().fit(X, np.array(list("cabd"))[rank * size // len(X)])

    def shuffled(self, model, rng):
        other, order = deepcopy(model), rng.permutation(len(model.classes_))
        for name in ("theta_", "var_", "class_count_", "class_prior_", "classes_"):
            setattr(other, name, getattr(model, name)[order])
        return other

    def answers(self, model, X):
        return np.array([list("abcd").index(label) for label in model.predict(X)])

    def in_data_units(self, written, X, pipeline, jacobian):
        return self.answers(written, X), self.answers(pipeline, X)


ADAPTED = {"GaussianNB": Classes()}
