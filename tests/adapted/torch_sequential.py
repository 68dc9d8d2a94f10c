"""PyTorch's Sequential, with and without batch normalisation and dropout."""

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier
from torch import nn

from adapted import sklearn_mlp
from modelweld.libraries import read, write


@dataclass(frozen=True)
class Sequential(sklearn_mlp.Network):
    library = "torch"
    marker = "torch"
    normalised: bool = False

    def targets(self, X):
        return np.searchsorted(["b", "g", "r"], super().targets(X))

    def fit(self, X, size=3):
        model = write(read(super().fit(X, size)), like="Sequential").double()
        if not self.normalised:
            return model
        first, activation, last = model
        rng = np.random.default_rng(0)
        before, after = nn.BatchNorm1d(X.shape[1]), nn.BatchNorm1d(size)
        for norm in (before, after):
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(norm, name).data = torch.from_numpy(rng.uniform(0.5, 1.5, norm.num_features)).float()
        order = sklearn_mlp.standardised(X)[1]  # so that the model does not depend on the order of features
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(before, name).data = getattr(before, name).data[np.argsort(order)]
        return nn.Sequential(nn.Flatten(), before, first, after, activation, nn.Dropout(0.5), last).double().eval()

    def shuffled(self, model, rng):
        other = deepcopy(model)
        linear = [m for m in other if isinstance(m, nn.Linear)]
        for one, two in pairwise(linear):
            order = rng.permutation(one.out_features)
            norms = [m for m in other if isinstance(m, nn.BatchNorm1d) and other[list(other).index(m) - 1] is one]
            with torch.no_grad():
                one.weight.copy_(one.weight[order].clone())
                one.bias.copy_(one.bias[order].clone())
                two.weight.copy_(two.weight[:, order].clone())
                for norm in norms:
                    for name in ("weight", "bias", "running_mean", "running_var"):
                        getattr(norm, name).data = getattr(norm, name).data[order]
        return other

    def answers(self, model, X):
        with torch.no_grad():
            return model(torch.from_numpy(np.ascontiguousarray(X))).softmax(1).numpy()

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return self.answers(written, X), self.answers(model, scaler.transform(X))


ADAPTED = {
    "Sequential": Sequential(MLPClassifier),
    "Sequential, two hidden layers": Sequential(MLPClassifier, hidden=(4,), activation="relu"),
    "Sequential, normalised": Sequential(MLPClassifier, normalised=True),
}
