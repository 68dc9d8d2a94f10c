"""scikit-learn's GaussianProcessRegressor, made sparse at the site, and modelweld's own SparseGP.

The regressor keeps its training data; what leaves is its posterior at inducing inputs that are not among them, in which
its data said all that they said of these values: q(u) is exact, and no more is lost than inducing inputs lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.gp_predictors import Committee, SparseGP
from modelweld.kinds.sparse_gp import predictor, record, sparse_gp
from modelweld.libraries.inducing import inducing_inputs

if TYPE_CHECKING:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, Matern
    from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

SMOOTHNESS = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", float("inf"): "rbf"}
"""Matern's nu -> kernel."""


def read(
    model: GaussianProcessRegressor | SparseGP, *, points: int | None = None, features: Sequence[str] | None = None
) -> LocalModel:
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
        return _own(model, features)
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


def _own(model: SparseGP, features: Sequence[str] | None) -> LocalModel:
    """Parameters of modelweld's own predictor."""
    local = record(model)
    if features is None or "feature" in local.coordinates:
        return local
    axes = {"inputs": ("point", "feature"), "lengthscales": ("feature",)}
    return local.with_(axes={**local.axes, **axes}, coordinates={"feature": features})


def _kernel(kernel: SklearnKernel) -> tuple[RBF | Matern, float, float]:
    """The one RBF or Matern in a kernel, its factor, and the level of white noise."""
    terms = _terms(kernel)
    white = sum(factor * leaf.noise_level for factor, leaf in terms if type(leaf).__name__ == "WhiteKernel")
    smooth = [(factor, leaf) for factor, leaf in terms if type(leaf).__name__ in ("RBF", "Matern")]
    constant = [leaf for _, leaf in terms if _is_constant(leaf)]
    if len(smooth) != 1 or constant:
        raise InputError(f"{SUPPORTED} Found {kernel}.")
    _name(smooth[0][1])
    return smooth[0][1], smooth[0][0], float(white)


SUPPORTED = (
    "the kernel of a GaussianProcessRegressor must be one RBF or Matern (nu 0.5, 1.5 or 2.5), times constants, plus "
    "WhiteKernels; others have no single set of lengthscales to share."
)


def _terms(kernel: SklearnKernel) -> list[tuple[float, SklearnKernel]]:
    """A kernel multiplied out: factors, and the RBF, Matern or WhiteKernel each belongs to, or a constant."""
    kind = type(kernel).__name__
    if _is_constant(kernel):
        return [(float(kernel.constant_value), kernel)]
    if kind in ("RBF", "Matern", "WhiteKernel"):
        return [(1.0, kernel)]
    if kind == "Sum":
        return _terms(kernel.k1) + _terms(kernel.k2)
    if kind == "Product":
        pairs = [(a * b, p, q) for a, p in _terms(kernel.k1) for b, q in _terms(kernel.k2)]
        if all(_is_constant(p) or _is_constant(q) for _, p, q in pairs):
            return [(factor, q if _is_constant(p) else p) for factor, p, q in pairs]
    raise InputError(f"{SUPPORTED} Found {kernel}.")


def _is_constant(kernel: SklearnKernel) -> bool:
    return type(kernel).__name__ == "ConstantKernel"


def _name(shape: RBF | Matern) -> str:
    """Our name of an RBF or Matern."""
    nu = float(getattr(shape, "nu", float("inf")))
    if nu not in SMOOTHNESS:
        raise InputError(f"{SUPPORTED} Found {shape}.")
    return SMOOTHNESS[nu]


def write(local: LocalModel, like: str) -> SparseGP | Committee:
    """A SparseGP, or with ``how="rbcm"`` a Committee of such: both predict like scikit-learn's regressors."""
    return predictor(local)
