"""GPyTorch: ApproximateGP, ExactGP with an InducingPointKernel (SGPR), and plain ExactGP, made sparse at the site.

Variational means are stored whitened; q(u) is therefore read through the model, as its posterior at inducing inputs.
Fused processes are written as a SparseGP, which predicts without torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.sparse_gp import sparse_gp
from modelweld.libraries.gaussian_process import SMOOTHNESS
from modelweld.libraries.inducing import inducing_inputs

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel
    from gpytorch.likelihoods import Likelihood
    from gpytorch.means import Mean
    from gpytorch.models import GP, ApproximateGP, ExactGP
    from torch import Tensor


def read(
    model: ApproximateGP | ExactGP,
    *,
    likelihood: Likelihood | None = None,
    noise: float | None = None,
    points: int | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """The posterior at the model's inducing inputs, with kernel, noise and mean.

    Parameters
    ----------
    model : ApproximateGP or ExactGP
        Trained, of one output, with a constant or zero mean and a kernel of one RBF or Matern, scaled or not. Its own
        inducing inputs leave the site: an ApproximateGP's must not be rows of its data, which it does not hold, so that
        nobody can check; train them (``learn_inducing_locations``).
    likelihood : GaussianLikelihood, optional
        That an ApproximateGP was trained with, which the model does not hold: the noise is read from it.
    noise : float, optional
        Variance of responses, instead.
    points : int, optional
        For an ExactGP: make at most so many inducing inputs that are not rows of its data, instead of its own; default
        50 where it has none.
    features : sequence of str, optional
        Names of the features.
    """
    copy = _copy(model)
    found = _kernel(copy.covar_module)
    lengthscales = _numbers(found.shape.lengthscale).ravel()
    inputs = _inputs(copy, found.inputs, lengthscales, points)
    values, covariance = _posterior(copy, inputs)
    return sparse_gp(
        inputs,
        values,
        covariance,
        lengthscales=lengthscales if lengthscales.size > 1 else float(lengthscales[0]),
        outputscale=found.outputscale,
        noise=_noise(copy, likelihood) if noise is None else float(noise),
        mean=_mean(copy.mean_module),
        kernel=SMOOTHNESS[float(getattr(found.shape, "nu", np.inf))],
        features=features,
    )


def _copy(model: GP) -> GP:
    """A copy in double precision, ready to predict; what is cached in the model cannot be copied, and is dropped."""
    for part in ("mean_module", "covar_module"):
        if not hasattr(model, part):
            raise InputError(f"a GPyTorch model is read by its {part!r}, which this one lacks; use sparse_gp(...).")
    was = model.training
    model.train()
    copy = deepcopy(model)
    model.train(was)
    return copy.double().eval()


def _numbers(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _inputs(model: GP, of_kernel: Tensor | None, lengthscales: Array, points: int | None) -> Array:
    """The model's inducing inputs, or new ones for a process that has training data."""
    strategy = getattr(model, "variational_strategy", None)
    if strategy is not None:
        Z = _numbers(strategy.inducing_points)
        if Z.ndim != 2:
            raise InputError(f"a model of several outputs cannot be read: its inducing inputs have shape {Z.shape}.")
        return Z
    X, y = _numbers(model.train_inputs[0]), _numbers(model.train_targets)
    X = X[:, None] if X.ndim == 1 else X
    if y.ndim != 1:
        raise InputError("an ExactGP of several outputs cannot be read: train one per output.")
    if of_kernel is None or points is not None:
        return inducing_inputs(X, y, lengthscales, points)
    Z = _numbers(of_kernel).reshape(-1, X.shape[1])
    if (Z[:, None, :] == X).all(axis=-1).any():
        raise InputError(
            "some inducing inputs of this model are rows of its training data, which must not leave the site: train "
            "them, or have others made: read(model, points=50)."
        )
    return Z


def _posterior(model: GP, inputs: Array) -> tuple[Array, Array]:
    """Mean and covariance of the function at the inputs."""
    import torch

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of jitter added, and of predicting without a likelihood
        there = model(torch.as_tensor(inputs))
        return _numbers(there.mean), _numbers(there.covariance_matrix)


class _Found(NamedTuple):
    """The RBF or Matern in a kernel, its factor, and the inducing inputs if the kernel has them."""

    shape: Kernel
    outputscale: float
    inputs: Tensor | None


def _kernel(kernel: Kernel) -> _Found:
    """What is in a kernel."""
    scale, Z = 1.0, None
    while True:
        kind = type(kernel).__name__
        if kind == "ScaleKernel" and kernel.outputscale.numel() == 1:
            scale *= _numbers(kernel.outputscale).item()
        elif kind == "InducingPointKernel":
            Z = kernel.inducing_points
        elif kind in ("RBFKernel", "MaternKernel") and kernel.active_dims is None and not len(kernel.batch_shape):
            return _Found(kernel, scale, Z)
        else:
            raise InputError(
                "the kernel of a GPyTorch model must be one RBFKernel or MaternKernel on all features, in ScaleKernels "
                f"and an InducingPointKernel or not; found a {kind}, which shares no lengthscales with others."
            )
        kernel = kernel.base_kernel


def _mean(module: Mean) -> float:
    """The constant of a mean module."""
    kind = type(module).__name__
    if kind == "ZeroMean":
        return 0.0
    if kind == "ConstantMean" and module.constant.numel() == 1:
        return float(_numbers(module.constant).item())
    raise InputError(f"the mean of a GPyTorch model must be a ConstantMean or ZeroMean; found a {kind}.")


def _noise(model: GP, likelihood: Likelihood | None) -> float:
    """Variance of responses, from a Gaussian likelihood."""
    found = getattr(getattr(model, "likelihood", None) if likelihood is None else likelihood, "noise", None)
    if found is None:
        raise InputError(
            "the variance of responses is not known: an ApproximateGP does not hold it. Use read(model, "
            "likelihood=likelihood) with a GaussianLikelihood, or read(model, noise=...)."
        )
    return float(_numbers(found).mean())
