"""Sites that train a network each: rows of digits or MNIST, shared out by class."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from shared.class_shares import shared_out

ROWS = {"digits": (1297, 500, 60), "mnist": (10_000, 2_000, 12)}
"""Training rows of all sites together, test rows, epochs."""

RATE = {"digits": 0.005, "mnist": 0.001}
"""Learning rate: at .001 networks of a tenth of the digits are far from trained after 60 epochs (.86 instead of .91 on
equal shares)."""


@dataclass(frozen=True)
class Setting:
    """How rows are shared out and what is trained; `share` is Dirichlet's parameter, infinity for equal shares."""

    data: str
    J: int
    share: float
    start: str
    hidden: tuple

    @property
    def name(self):
        """As it stands in the tables."""
        shares = "iid" if np.isinf(self.share) else f"Dir {self.share:g}"
        return f"{self.data} J={self.J} {shares}, {self.start} starts, {'-'.join(map(str, self.hidden))}"


def loaded(data, mnist):
    """All rows and labels, features between 0 and 1."""
    if data == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16.0, y
    with np.load(mnist) as stored:
        return stored["x_train"].reshape(-1, 784) / 255.0, stored["y_train"]


def drawn(setting, seed, mnist=None, smoke=False):
    """Training rows of every site, and test rows."""
    X, y = loaded(setting.data, mnist)
    n_train, n_test, _ = ROWS[setting.data]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = order[: n_train // (4 if smoke else 1)], order[n_train : n_train + n_test]
    site = shared_out(y[train], setting.J, setting.share, rng)
    return [(X[train[site == j]], y[train[site == j]]) for j in range(setting.J)], (X[test], y[test])


def trained(rows, labels, setting, seed, smoke=False):
    """A network. With the same seed, first layers start from the same random weights, whatever the classes."""
    epochs, size, rate = 40 if smoke else ROWS[setting.data][2], min(32, len(rows)), RATE[setting.data]
    net = MLPClassifier(setting.hidden, max_iter=epochs, batch_size=size, learning_rate_init=rate, random_state=seed)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return net.fit(rows, labels)
