"""Sites that train a small network of images each: rows of digits or MNIST, shared out by class."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

from shared.class_shares import shared_out

ROWS = {"digits": (1200, 597, 40), "mnist": (4000, 3000, 6)}
"""Training rows of all sites together, test rows, epochs."""

SEEN = 2000
"""Test rows of MNIST on which smooth noise was once chosen: the first ones, which are left out."""


@dataclass(frozen=True)
class Setting:
    """How rows are shared out and what is trained; `share` is Dirichlet's parameter."""

    data: str
    J: int
    share: float
    form: str = "plain"

    @property
    def name(self):
        """As it stands in the tables."""
        return f"{self.data} J={self.J} Dir {self.share:g}, {self.form}"


class Residual(nn.Module):
    """A stem, one residual block and a linear layer on means over places."""

    def __init__(self, width):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, width, 5, 2, 2, bias=False), nn.BatchNorm2d(width)
        self.one, self.two = nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.short, self.last = nn.Conv2d(width, width, 1, 2), nn.Linear(width * 4, 10)

    def forward(self, x):
        """Logits."""
        x = functional.relu(self.norm(self.stem(x)))
        x = functional.relu(self.short(x) + self.two(functional.relu(self.one(x))))
        return self.last(torch.flatten(functional.adaptive_avg_pool2d(x, 2), 1))


def network(setting, seed):
    """One with random weights: two convolutions and two linear layers."""
    torch.manual_seed(seed)
    if setting.form == "residual":
        return Residual(12)
    small = setting.data == "digits"
    kernel, places = (3, 4) if small else (5, 49)
    a, b, c = (8, 16, 32)
    norms = [nn.BatchNorm2d(n) if setting.form == "batch norm" else nn.Identity() for n in (a, b)]
    return nn.Sequential(
        *(nn.Conv2d(1, a, kernel, 2, kernel // 2), norms[0], nn.ReLU()),
        *(nn.Conv2d(a, b, kernel, 2, kernel // 2), norms[1], nn.ReLU()),
        *(nn.Flatten(), nn.Linear(b * places, c), nn.ReLU(), nn.Linear(c, 10)),
    )


def loaded(data, mnist):
    """Images (rows, 1, height, width) with labels: for training, for tests, and the largest value of a pixel."""
    if data == "digits":
        X, y = load_digits(return_X_y=True)
        return X.reshape(-1, 1, 8, 8), y, None, None, 16.0
    with np.load(mnist) as stored:
        parts = [stored[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    return parts[0][:, None], parts[1], parts[2][SEEN:, None], parts[3][SEEN:], 255.0


def drawn(setting, seed, mnist=None, smoke=False):
    """Training rows of every site, and test rows that no choice has seen; pixels between 0 and 1."""
    X, y, X_test, y_test, largest = loaded(setting.data, mnist)
    n_train, n_test, _ = ROWS[setting.data]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train = order[: n_train // (4 if smoke else 1)]
    if X_test is None:
        test = X[order[n_train:]] / largest, y[order[n_train:]]
    else:
        rows = rng.permutation(len(X_test))[:n_test]
        test = X_test[rows] / largest, y_test[rows]
    site = shared_out(y[train], setting.J, setting.share, rng)
    return [(X[train[site == j]] / largest, y[train[site == j]]) for j in range(setting.J)], test


def trained(net, X, y, epochs, seed):
    """The network after Adam on its rows, in evaluation mode."""
    X, y = torch.from_numpy(X).float(), torch.from_numpy(y.astype(np.int64))
    adam, source = torch.optim.Adam(net.train().parameters(), lr=2e-3), torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=source).split(32):
            if len(rows) > 1:  # batch norm needs two
                adam.zero_grad()
                functional.cross_entropy(net(X[rows]), y[rows]).backward()
                adam.step()
    return net.eval()
