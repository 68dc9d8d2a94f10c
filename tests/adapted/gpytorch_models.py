"""GPyTorch: variational, SGPR and exact models; written as SparseGP."""

import warnings
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch deprecates what gpytorch uses
    import gpytorch
    from gpytorch.kernels import InducingPointKernel, MaternKernel, RBFKernel, ScaleKernel
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from adapted import Adapted
from adapted.sklearn_gp import POINTS, responses
from modelweld.libraries.processes import inducing_inputs

NOISE = 0.1


def where(X):
    rows = X[:75]
    return inducing_inputs(rows, responses(rows), 2.0, POINTS)


class ApproximateGP(gpytorch.models.ApproximateGP):
    def __init__(self, Z):
        super().__init__(VariationalStrategy(self, Z, CholeskyVariationalDistribution(len(Z)), False))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = ScaleKernel(RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class ExactGP(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood, Z=None):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=X.shape[1]))
        if Z is not None:
            self.covar_module = InducingPointKernel(self.covar_module, inducing_points=Z, likelihood=likelihood)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def whitening(model, Z):
    """The factor by which the strategy whitens values at Z."""
    K = model.covar_module(Z).to_dense() + model.variational_strategy.jitter_val * torch.eye(len(Z))
    return torch.linalg.cholesky(K)


def store(model, mean, covariance):
    """Give a model this whitened posterior."""
    stored = model.variational_strategy._variational_distribution
    stored.variational_mean.copy_(mean)
    stored.chol_variational_covar.copy_(torch.linalg.cholesky(covariance))
    model.variational_strategy.variational_params_initialized.fill_(1)


@dataclass(frozen=True)
class Process(Adapted):
    """Asked at the inducing inputs."""

    marker = "gp"
    how = "spahm"

    def answers(self, model, X):
        if not isinstance(model, torch.nn.Module):
            return model.predict(where(X))
        with torch.no_grad():
            return model(torch.as_tensor(where(X))).mean.numpy()

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        with torch.no_grad():
            there = model(torch.as_tensor(scaler.transform(written.inputs))).mean.numpy()
        return written.predict(written.inputs), there


@dataclass(frozen=True)
class Variational(Process):
    itself = 1e-5
    """The model adds 1e-6 to the diagonal before it whitens."""

    def fit(self, X, size=3):
        """At the optimum of the bound, which has a closed form: training would depend on the order of points."""
        rows, Z = X[: 25 * size], torch.as_tensor(where(X)[: 4 * size])
        X, y = torch.as_tensor(rows), torch.as_tensor(responses(rows))
        model = ApproximateGP(Z).double()
        model.covar_module.base_kernel.lengthscale = 2.0
        model.mean_module.constant = y.mean()
        with torch.no_grad():
            A = torch.linalg.solve_triangular(whitening(model, Z), model.covar_module(Z, X).to_dense(), upper=False)
            S = torch.linalg.inv(torch.eye(len(Z)) + A @ A.T / NOISE)
            store(model, S @ A @ (y - y.mean()) / NOISE, S)
        return model.eval()

    def told(self, X):
        return {"noise": NOISE}

    def shuffled(self, model, rng):
        """The same q(u), whitened again: the stored mean depends on the order of points."""
        other = deepcopy(model.train())
        Z = model.eval().variational_strategy.inducing_points
        order = torch.as_tensor(rng.permutation(len(Z)))
        with torch.no_grad():
            q = model(Z)
            L = whitening(model, Z[order])
            S = torch.linalg.solve_triangular(L, q.covariance_matrix[order][:, order], upper=False)
            S = torch.linalg.solve_triangular(L, S.T.contiguous(), upper=False)
            off = (q.mean - model.mean_module(Z))[order, None]
            store(other, torch.linalg.solve_triangular(L, off, upper=False)[:, 0], S)
            other.variational_strategy.inducing_points.copy_(Z[order])
        return other.eval()


@dataclass(frozen=True)
class Exact(Process):
    sparse: bool

    def fit(self, X, size=3):
        rows, Z = X[: 25 * size], torch.as_tensor(where(X)[: 4 * size])
        return self.made(rows, Z)

    def made(self, rows, Z):
        X, y = torch.as_tensor(rows), torch.as_tensor(responses(rows))
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        model = ExactGP(X, y, likelihood, Z if self.sparse else None).double()
        kernel = model.covar_module.base_kernel
        (kernel.base_kernel if self.sparse else kernel).lengthscale = 2.0
        likelihood.noise = NOISE
        return model.eval()

    def told(self, X):
        return {} if self.sparse else {"points": POINTS}

    def shuffled(self, model, rng):
        order = rng.permutation(len(model.train_targets))
        Z = rng.permutation(model.covar_module.inducing_points.detach().numpy()) if self.sparse else np.zeros((1, 1))
        return self.made(model.train_inputs[0].numpy()[order], torch.as_tensor(Z))


ADAPTED = {
    "ApproximateGP": Variational(),
    "ExactGP, inducing": Exact(True),
    "ExactGP": Exact(False),
}
