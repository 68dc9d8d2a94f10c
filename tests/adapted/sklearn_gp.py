"""GaussianProcessRegressor, made sparse, and the SparseGP that fused ones are written as."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from adapted import Adapted
from modelweld import read
from modelweld.kinds.gp_natural import SparseGP
from modelweld.libraries import write
from modelweld.libraries.processes import inducing_inputs

POINTS = 12


def responses(X):
    """A function that treats all features alike, so that their order does not matter."""
    return np.sin(X / 2).sum(axis=1) + 0.1 * np.cos(37 * X).sum(axis=1)


@dataclass(frozen=True)
class Process(Adapted):
    """Asked at the inducing inputs, where a sparse process knows all that the exact one does."""

    kernel: object
    options: tuple = ()
    how = "spahm"

    def fit(self, X, size=3):
        rows = X[: 25 * size]
        return GaussianProcessRegressor(self.kernel, optimizer=None, **dict(self.options)).fit(rows, responses(rows))

    def told(self, X):
        return {"points": POINTS}

    def shuffled(self, model, rng):
        rows = rng.permutation(model.X_train_)
        return deepcopy(model).fit(rows, responses(rows))

    def inputs(self, X):
        rows = X[:75]
        return inducing_inputs(rows, responses(rows), 2.0, POINTS)

    def answers(self, model, X):
        return model.predict(self.inputs(X))

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return written.predict(written.inputs), model.predict(scaler.transform(written.inputs))


@dataclass(frozen=True)
class Own(Process):
    def fit(self, X, size=3):
        return write(read(super().fit(X, size), points=POINTS))

    def told(self, X):
        return {}

    def shuffled(self, model, rng):
        order = rng.permutation(len(model.values))
        return SparseGP(
            model.inputs[order],
            model.values[order],
            model.covariance[np.ix_(order, order)],
            model.kernel,
            model.mean,
            model.noise,
        )


ADAPTED = {
    "GaussianProcessRegressor RBF": Process(4.0 * RBF(2.0) + WhiteKernel(0.1)),
    "GaussianProcessRegressor RBF per feature": Process(RBF([2.0, 2.0, 2.0]), (("alpha", 0.1),)),
    "GaussianProcessRegressor Matern": Process(
        WhiteKernel(0.1) + Matern(2.0, nu=1.5) * ConstantKernel(3.0), (("normalize_y", True),)
    ),
    "SparseGP": Own(4.0 * RBF(2.0) + WhiteKernel(0.1)),
}
