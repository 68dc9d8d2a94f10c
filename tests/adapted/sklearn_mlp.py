"""MLPClassifier, with two and with more classes, and MLPRegressor."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from adapted import Adapted


def standardised(X):
    """Columns in an order that depends on their content alone, so that networks do not depend on the order given."""
    columns = [(x - x.mean()) / x.std() for x in map(np.ascontiguousarray, X.T)]
    order = np.argsort([(z**3).mean() for z in columns])
    return np.stack([columns[i] for i in order], axis=1), order


def shuffled_layers(W, b, rng):
    """The same layers with hidden units in another order."""
    W, b = [w.copy() for w in W], [v.copy() for v in b]
    for i in range(len(W) - 1):
        order = rng.permutation(W[i].shape[1])
        W[i], b[i], W[i + 1] = W[i][:, order], b[i][order], W[i + 1][order]
    return W, b


@dataclass(frozen=True)
class Network(Adapted):
    cls: type
    hidden: tuple = ()
    activation: str = "tanh"
    classes: int = 3
    how = "mean"

    def targets(self, X):
        Z, _ = standardised(X)
        if self.cls is MLPRegressor:
            return np.sin(Z[:, 0]) + np.tanh(2 * Z[:, 1]) - Z[:, 2]
        return np.array(list("rgb"))[Z[:, : self.classes].argmax(axis=1)]

    def fit(self, X, size=3):
        _, order = standardised(X)
        model = self.cls(
            hidden_layer_sizes=(*self.hidden, size),
            activation=self.activation,
            solver="lbfgs",
            alpha=0.1,
            random_state=1,
            max_iter=2000,
        )
        model.fit(np.ascontiguousarray(X[:, order]), self.targets(X))
        model.coefs_[0] = model.coefs_[0][np.argsort(order)]
        return model

    def told(self, X):
        return {"n": len(X)} if self.cls is MLPRegressor else {"y": self.targets(X)}

    def shuffled(self, model, rng):
        other = deepcopy(model)
        other.coefs_, other.intercepts_ = shuffled_layers(model.coefs_, model.intercepts_, rng)
        return other

    def answers(self, model, X):
        return model.predict(X) if self.cls is MLPRegressor else model.predict_proba(X)

    def in_data_units(self, written, X, pipeline, jacobian):
        return self.answers(written, X), self.answers(pipeline, X)


ADAPTED = {
    "MLPClassifier": Network(MLPClassifier),
    "MLPClassifier, two classes": Network(MLPClassifier, classes=2, activation="logistic"),
    "MLPClassifier, two hidden layers": Network(MLPClassifier, hidden=(4,), activation="relu"),
    "MLPRegressor": Network(MLPRegressor),
}
