"""Gaussian processes: scikit-learn's GaussianProcessRegressor, GPyTorch's models, and modelweld's own SparseGP.

A GaussianProcessRegressor and a plain ExactGP keep their training data and are made sparse at the site: what leaves is
the posterior at inducing inputs near the training rows, none of which is such a row. Given these inputs q(u) is exact.

Of an ApproximateGP, and of an ExactGP with an InducingPointKernel (SGPR), variational means are stored whitened; q(u)
is therefore read through the model, as its posterior at inducing inputs. Fused processes are written as a SparseGP,
which predicts without torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import sklearn

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.gp_natural import SparseGP, process_of
from modelweld.kinds.sparse_gp import record, sparse_gp
from modelweld.libraries.networks import double as _double

SMOOTHNESS = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", float("inf"): "rbf"}
"""Matern's nu -> kernel."""


def read_sklearn(model: Any, *, points: int | None = None, features: Sequence[str] | None = None) -> LocalModel:
    """The posterior at inducing inputs, with kernel, noise and mean in the units of the responses.

    Parameters
    ----------
    model : fitted GaussianProcessRegressor, or SparseGP
        With a kernel of one RBF or Matern (nu 0.5, 1.5, 2.5), times constants, plus WhiteKernels. `alpha` is noise.
    points : int, optional
        At most so many inducing inputs; default 50, never more than a third of the different training rows.
    features : sequence of str, optional
        Names of the features.

    Examples
    --------
    >>> import modelweld
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> sites = []
    >>> for low in (0.0, 2.0):                                   # each has seen one half of a sine
    ...     X = np.linspace(low, low + 2.5, 40)[:, None]
    ...     kernel = RBF(1.0) + WhiteKernel(0.01)
    ...     sites.append(GaussianProcessRegressor(kernel, optimizer=None).fit(X, np.sin(2 * X[:, 0])))
    >>> fused = modelweld.fuse(sites).model()
    >>> bool(np.allclose(fused.predict([[1.0], [4.0]]), np.sin([2.0, 8.0]), atol=0.05))
    True
    """
    if isinstance(model, SparseGP):
        local = record(model)
        if features is None or "feature" in local.coordinates:
            return local
        axes = {"inputs": ("point", "feature"), "lengthscales": ("feature",)}
        return local.with_(axes={**local.axes, **axes}, coordinates={"feature": features})
    if not hasattr(model, "X_train_"):
        raise InputError("this GaussianProcessRegressor is not fitted: fit it first.")
    if np.ndim(model.y_train_) > 1 and np.shape(model.y_train_)[1] > 1:
        raise InputError("a GaussianProcessRegressor with several outputs cannot be read: fit one per output.")
    X, y = np.asarray(model.X_train_, dtype=np.float64), np.ravel(model.y_train_)
    shape, outputscale, white = _kernel(model.kernel_)
    lengthscales = np.broadcast_to(np.asarray(shape.length_scale, dtype=np.float64), X.shape[1:])
    unit = float(np.ravel(model._y_train_std)[0]) ** 2  # what normalize_y divided by
    Z = inducing_inputs(X, y, lengthscales, points)
    values, covariance = model.predict(Z, return_cov=True)
    return sparse_gp(
        Z,
        np.ravel(values),
        covariance - white * unit * np.eye(len(Z)),
        lengthscales=lengthscales,
        outputscale=outputscale * unit,
        noise=(white + float(np.mean(model.alpha))) * unit,
        mean=float(np.ravel(model._y_train_mean)[0]),
        kernel=_name(shape),
        features=features,
    )


def _kernel(kernel: Any) -> tuple[Any, float, float]:
    """The one RBF or Matern in a kernel, its factor, and the level of white noise."""
    terms = _terms(kernel)
    white = sum(factor * leaf.noise_level for factor, leaf in terms if type(leaf).__name__ == "WhiteKernel")
    smooth = [(leaf, factor) for factor, leaf in terms if type(leaf).__name__ in ("RBF", "Matern")]
    if len(smooth) != 1 or any(leaf is None for _, leaf in terms):
        raise InputError(f"{SUPPORTED} Found {kernel}.")
    _name(smooth[0][0])
    return *smooth[0], float(white)


SUPPORTED = "the kernel must be one RBF or Matern (nu 0.5, 1.5 or 2.5), times constants, plus WhiteKernels."


def _terms(kernel: Any) -> list[tuple[float, Any]]:
    """A kernel multiplied out: factors, and the RBF, Matern or WhiteKernel each belongs to; None: a constant."""
    kind = type(kernel).__name__
    if kind == "ConstantKernel":
        return [(float(kernel.constant_value), None)]
    if kind in ("RBF", "Matern", "WhiteKernel"):
        return [(1.0, kernel)]
    if kind == "Sum":
        return _terms(kernel.k1) + _terms(kernel.k2)
    if kind == "Product":
        pairs = [(a * b, p, q) for a, p in _terms(kernel.k1) for b, q in _terms(kernel.k2)]
        if all(p is None or q is None for _, p, q in pairs):
            return [(factor, q if p is None else p) for factor, p, q in pairs]
    raise InputError(f"{SUPPORTED} Found {kernel}.")


def _name(shape: Any) -> str:
    """Our name of an RBF or Matern."""
    nu = float(getattr(shape, "nu", float("inf")))
    if nu not in SMOOTHNESS:
        raise InputError(f"{SUPPORTED} Found {shape}.")
    return SMOOTHNESS[nu]


def write_sklearn(local: LocalModel, like: str) -> SparseGP:
    """A SparseGP, which predicts like scikit-learn's regressors."""
    return process_of(local)


def read_gpytorch(
    model: Any,
    *,
    likelihood: Any = None,
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
        this cannot be checked; train them (``learn_inducing_locations``).
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
    shape, outputscale, of_kernel = _find_kernel(copy.covar_module)
    lengthscales = _double(shape.lengthscale).ravel()
    inputs = _choose_inputs(copy, of_kernel, lengthscales, points)
    values, covariance = _posterior(copy, inputs)
    return sparse_gp(
        inputs,
        values,
        covariance,
        lengthscales=lengthscales if lengthscales.size > 1 else float(lengthscales[0]),
        outputscale=outputscale,
        noise=_noise(copy, likelihood) if noise is None else float(noise),
        mean=_mean(copy.mean_module),
        kernel=SMOOTHNESS[float(getattr(shape, "nu", np.inf))],
        features=features,
    )


def _copy(model: Any) -> Any:
    """A copy in double precision, ready to predict; what is cached in the model cannot be copied, and is dropped."""
    for part in ("mean_module", "covar_module"):
        if not hasattr(model, part):
            raise InputError(f"a GPyTorch model is read by its {part!r}, which this one lacks; use sparse_gp(...).")
    was = model.training
    model.train()
    copy = deepcopy(model)
    model.train(was)
    return copy.double().eval()


def _choose_inputs(model: Any, of_kernel: Any, lengthscales: Array, points: int | None) -> Array:
    """The model's inducing inputs, or new ones for a process that has training data."""
    strategy = getattr(model, "variational_strategy", None)
    if strategy is not None:
        Z = _double(strategy.inducing_points)
        if Z.ndim != 2:
            raise InputError(f"a model of several outputs cannot be read: its inducing inputs have shape {Z.shape}.")
        return Z
    X, y = _double(model.train_inputs[0]), _double(model.train_targets)
    X = X[:, None] if X.ndim == 1 else X
    if y.ndim != 1:
        raise InputError("an ExactGP of several outputs cannot be read: train one per output.")
    if of_kernel is None or points is not None:
        return inducing_inputs(X, y, lengthscales, points)
    Z = _double(of_kernel).reshape(-1, X.shape[1])
    if (Z[:, None, :] == X).all(axis=-1).any():
        raise InputError("some inducing inputs are rows, which must not leave the site: read(model, points=50).")
    return Z


def _posterior(model: Any, inputs: Array) -> tuple[Array, Array]:
    """Mean and covariance of the function at the inputs."""
    import torch

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of jitter added, and of predicting without a likelihood
        there = model(torch.as_tensor(inputs))
        return _double(there.mean), _double(there.covariance_matrix)


def _find_kernel(kernel: Any) -> tuple[Any, float, Any]:
    """The RBF or Matern in a kernel, its factor, and the inducing inputs if the kernel has them."""
    scale, Z = 1.0, None
    while True:
        kind = type(kernel).__name__
        if kind == "ScaleKernel" and kernel.outputscale.numel() == 1:
            scale *= _double(kernel.outputscale).item()
        elif kind == "InducingPointKernel":
            Z = kernel.inducing_points
        elif kind in ("RBFKernel", "MaternKernel") and kernel.active_dims is None and not len(kernel.batch_shape):
            return kernel, scale, Z
        else:
            known = "one RBFKernel or MaternKernel on all features, possibly in ScaleKernels and an InducingPointKernel"
            raise InputError(f"the kernel of a GPyTorch model must be {known}; found a {kind}.")
        kernel = kernel.base_kernel


def _mean(module: Any) -> float:
    """The constant of a mean module."""
    kind = type(module).__name__
    if kind == "ZeroMean":
        return 0.0
    if kind == "ConstantMean" and module.constant.numel() == 1:
        return float(_double(module.constant).item())
    raise InputError(f"the mean of a GPyTorch model must be a ConstantMean or ZeroMean; found a {kind}.")


def _noise(model: Any, likelihood: Any) -> float:
    """Variance of responses, from a Gaussian likelihood."""
    found = getattr(getattr(model, "likelihood", None) if likelihood is None else likelihood, "noise", None)
    if found is None:
        remedy = "read(model, likelihood=likelihood) with a GaussianLikelihood, or read(model, noise=...)"
        raise InputError(f"an ApproximateGP does not hold the variance of responses: {remedy}.")
    return float(_double(found).mean())


MOST_POINTS = 50
"""Inducing inputs a site sends: as many as the paper's sites."""

FEWEST_ROWS = 3
"""Different training rows behind each inducing input: an average of three is no one's row."""

ASIDE = 0.3819660112501051
"""Share of the way to its farthest row that an average moves if it happens to be a row itself, as on a grid: the golden
section, so that it does not meet another row of the grid."""


def inducing_inputs(X: Array, y: Array, lengthscales: Array, points: int | None = None) -> Array:
    """Averages of neighbouring training rows, none of which is such a row.

    Rows are grouped by k-means in units of the lengthscales. This is no proof of privacy: averages of three rows tell
    something of the three.

    Parameters
    ----------
    X, y : arrays (N, D), (N,)
        Training rows and responses, which only decide the order in which rows are looked at.
    lengthscales : array (D,) or float
        Of the kernel.
    points : int, optional
        At most so many; default 50. Never more than a third of the different rows.

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> Z = inducing_inputs(X, np.sin(X[:, 0]), 1.0, points=4)
    >>> Z.shape, bool(np.isin(Z, X).any())
    ((4, 1), False)
    """
    # the same order whatever that of rows or features
    X = X[np.lexsort((*X.T, y))]
    _, first = np.unique(X, axis=0, return_index=True)
    X = X[np.sort(first)]
    if len(X) < FEWEST_ROWS:
        raise InputError(f"the process has {len(X)} different training rows; at least {FEWEST_ROWS} are needed.")
    if points is not None and points < 1:
        raise InputError(f"points must be at least 1; found {points}.")
    M = max(1, min(MOST_POINTS if points is None else points, len(X) // FEWEST_ROWS))
    scaled = X / lengthscales
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        centres = sklearn.cluster.KMeans(M, n_init=1, random_state=0).fit(scaled).cluster_centers_
    distances = np.square(scaled[:, None, :] - centres).sum(-1)
    nearest = distances.argmin(axis=1)
    found = []
    for k in range(M):
        own = np.flatnonzero(nearest == k)
        if len(own) < FEWEST_ROWS:
            own = np.sort(np.argsort(distances[:, k], kind="stable")[:FEWEST_ROWS])
        centre = X[own].mean(axis=0)
        if (centre == X).all(axis=1).any():
            far = X[own[np.square((X[own] - centre) / lengthscales).sum(-1).argmax()]]
            centre = centre + ASIDE * (far - centre)
        found.append(centre)
    inputs = np.unique(np.array(found), axis=0)
    return np.asarray(inputs[~(inputs[:, None, :] == X).all(-1).any(1)])
