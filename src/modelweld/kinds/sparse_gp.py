"""Sparse Gaussian processes: inducing inputs, what is known of the function there, and a kernel.

Arrays: `inputs (point, feature)`, `values (point)` and `covariance (point, point)`, mean and covariance of the function
at the inputs; `lengthscales (feature)`, `outputscale`, `noise` (the responses' variance) and `mean` of the process,
which belong to no set. Points are matched by inputs and values side by side; all else is auxiliary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Key
from modelweld.errors import InputError, check_choice
from modelweld.families import Family, Gaussian
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import gp_natural
from modelweld.kinds.fused_parts import Points, common_facts, concatenate, keep_arrays
from modelweld.kinds.gp_natural import NAMES, Kernel, SparseGP
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout
from modelweld.results.fit_result import FitResult

HOWS = {
    "natural": "the likelihood of each site's data on one prior, and the posterior at the fused inputs",
    "spahm": "fused inputs and values as observations, whose noise is the scatter of matched values over their number",
}
"""Ways to make fused parameters, the default first."""

ARRAYS = {
    "inputs": ("point", "feature"),
    "values": ("point",),
    "covariance": ("point", "point"),
    "lengthscales": ("feature",),
    **dict.fromkeys(("outputscale", "noise", "mean"), ()),
}
"""Axes of all arrays."""

WRITTEN = "modelweld.SparseGP"
"""What fused processes are written as: libraries' own classes hold training data, or a certain way to learn."""


def sparse_gp(
    inputs: ArrayLike,
    values: ArrayLike,
    covariance: ArrayLike | None = None,
    *,
    lengthscales: ArrayLike,
    outputscale: float,
    noise: float,
    mean: float = 0.0,
    kernel: str = "rbf",
    features: Sequence[str] | None = None,
    site: str = "",
    facts: Facts | None = None,
) -> LocalModel:
    """A sparse Gaussian process as it leaves a site; also for libraries without an adapter.

    Parameters
    ----------
    inputs : array (M, D)
        Inducing inputs. They leave the site: they should not be rows of its data.
    values, covariance : arrays (M,), (M, M)
        Mean and covariance of the function at the inputs, q(u), *not* whitened: what GPflow's
        ``model.predict_f(Z, full_cov=True)`` and GPy's ``model.predict_noiseless(Z, full_cov=True)`` return, without
        their axis of outputs. Without the covariance only ``how="spahm"`` is left.
    lengthscales : array (D,) or float
        Of the kernel.
    outputscale, noise, mean : float
        Variance of the function, of responses about it, and its constant mean.
    kernel : {"rbf", "matern12", "matern32", "matern52"}
        The covariance function.
    features : sequence of str, optional
        Names of the features.
    site : str, optional
        Name of the site.
    facts : mapping, optional
        What else is to travel.

    Examples
    --------
    >>> model = sparse_gp([[0.0], [2.0]], [1.0, -1.0], 0.1 * np.eye(2), lengthscales=1.0, outputscale=2.0, noise=0.5)
    >>> gp_natural.process_of(model).predict([[0.0], [2.0]]).round(6).tolist()
    [1.0, -1.0]
    """
    Z, u = np.asarray(inputs, dtype=np.float64), np.asarray(values, dtype=np.float64)
    S = None if covariance is None else np.asarray(covariance, dtype=np.float64)
    where = f"site {site!r}" if site else "sparse_gp"
    if Z.ndim != 2 or u.shape != Z.shape[:1]:
        raise InputError(f"{where}: inputs are (M, D) and values (M,); found {Z.shape} and {u.shape}.")
    if S is not None and S.shape != (len(u), len(u)):
        raise InputError(f"{where}: the covariance of {len(u)} values is ({len(u)}, {len(u)}); found {S.shape}.")
    scales = np.broadcast_to(np.asarray(lengthscales, dtype=np.float64), Z.shape[1:])
    if not ((scales > 0).all() and outputscale > 0 and noise >= 0):
        raise InputError(f"{where}: lengthscales and outputscale must be positive, noise not negative.")
    check_choice(f"{where}: a kernel", kernel, NAMES)
    known = {} if S is None else {"covariance": (S + S.T) / 2}
    kernels = {"lengthscales": scales, "outputscale": outputscale, "noise": noise, "mean": mean}
    arrays = {"inputs": Z, "values": u, **known, **kernels}
    return LocalModel(
        **lay_out(arrays, ARRAYS, ("inputs", "values"), "point", feature=features),
        site=site,
        kind="sparse-gp",
        facts={"class": WRITTEN, **(facts or {}), "kernel": kernel},
    )


class SparseProcess(Kind):
    """Sparse Gaussian processes."""

    name = "sparse-gp"
    plural = "sparse Gaussian processes"
    hows = HOWS
    stands_for_points = False
    has_outliers = False
    """A region that one site alone covers is far from all others and no mistake."""
    marginal = False

    def layout(self, model: LocalModel) -> Layout:
        """What a process must look like."""
        return Layout(
            sets=("point",),
            arrays=ARRAYS,
            needed=tuple(name for name in ARRAYS if name != "covariance"),
            positive=("lengthscales", "outputscale"),
            not_negative=("noise",),
            divisors=("lengthscales", "outputscale"),
            spreads=("covariance",),
            facts={"kernel": lambda fact: fact in NAMES},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """Covariances only if all sites send them."""
        if len({"covariance" in m.arrays for m in models}) == 1:
            return list(models)
        return [keep_arrays(m, set(m.arrays) - {"covariance"}) for m in models]

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Matched by inputs and values side by side, every column with a noise of its own."""
        return {("inputs", "values"): Gaussian()}

    def default_how(self, fusion: FitResult) -> str:
        """Natural where covariances were sent."""
        return "natural" if "covariance" in fusion.models[0].arrays else "spahm"

    def fuse(self, fusion: FitResult, how: str, kernel: Literal["auto", "learned", "median"] = "auto") -> LocalModel:
        """The fused process.

        Parameters
        ----------
        fusion : FitResult
            Of sparse Gaussian processes.
        how : {"natural", "spahm"}
            See `HOWS`.
        kernel : {"auto", "learned", "median"}
            Learned from what the sites sent, or medians of the sites' own. ``"auto"`` learns it unless all sites have
            the same one, as they have if they agreed on it.
        """
        check_choice("kernel", kernel, ("auto", "learned", "median"))
        if how != "spahm" and "covariance" not in fusion.models[0].arrays:
            raise InputError(f"how={how!r} needs covariances, which not all sites sent; how='spahm' does without.")
        # in an order that does not depend on that of arrival, so that sums are the same to the last bit
        order = sorted(range(len(fusion.models)), key=lambda j: _content(fusion.models[j]))
        sites = [gp_natural.process_of(fusion.models[j]) for j in order]
        facts = {**common_facts(fusion.models), "class": WRITTEN, "version": ""}
        labels = np.concatenate([fusion.labels[j] for j in order])
        shared, mean = gp_natural.common(sites)
        inputs, values, number, scatter = gp_natural.averages(sites, labels)
        points = np.unique(np.concatenate([gp.inputs for gp in sites]), axis=0)
        if how == "spahm":
            scatter = max(scatter, gp_natural.SMALLEST_EIGENVALUE * shared.outputscale)  # if values coincide
            factors = informative = [gp_natural.observations(inputs, values, scatter / number)]
        else:
            factors, informative = (
                [gp_natural.factor_of(gp) for gp in sites],
                [gp_natural.factor_of(gp, gp_natural.LEAST_INFORMATIVE) for gp in sites],
            )
        if kernel == "learned" or (kernel == "auto" and not gp_natural.have_same_kernel(sites)):
            deviation = points.std(axis=0)
            wide = Kernel(np.where(deviation > 0, deviation, shared.lengthscales), shared.outputscale, shared.name)
            shared, mean = gp_natural.learn_kernel(informative, [(shared, mean), (wide, mean)])
        if how == "natural":
            inputs = gp_natural.complete(inputs, points, shared)
        found = gp_natural.project(factors, shared, mean, inputs)
        noise = float(np.mean([gp.noise for gp in sites]))
        return record(SparseGP(inputs, *found, shared, mean, noise, sites[0].feature_names_in_), facts)

    def move(self, model: LocalModel, arrays: Mapping[str, Array]) -> LocalModel:
        """Refused: inducing points are where a process was looked at."""
        raise InputError("no models of draws: the fused process states its own uncertainty (return_std=True).")

    def rescale(self, model: LocalModel, scale: Array, offset: Array) -> LocalModel:
        """The process of x = scale * y + offset, given that of y."""
        arrays = dict(model.arrays)
        arrays["inputs"] = np.asarray(arrays["inputs"]) * scale + offset
        arrays["lengthscales"] = np.asarray(arrays["lengthscales"]) * np.abs(scale)
        return model.with_(arrays=arrays)

    def picture(self, fusion: FitResult) -> Points:
        """Inducing inputs and values of atoms, beside all sites' own."""
        inputs, values = (concatenate(fusion.models, name) for name in ("inputs", "values"))
        return Points((fusion.array("inputs"), fusion.array("values")), (inputs, values))

    def concerns(self, model: LocalModel, *, fewest: int, compared: bool) -> list[str]:
        """Inducing inputs that may be rows."""
        if compared:
            return []
        return ["inducing inputs must not be rows of the site's data. Give X=, and they are compared."]


def record(gp: SparseGP, facts: Facts | None = None) -> LocalModel:
    """A process as it leaves a site."""
    return sparse_gp(
        gp.inputs,
        gp.values,
        gp.covariance,
        lengthscales=gp.kernel.lengthscales,
        outputscale=gp.kernel.outputscale,
        noise=gp.noise,
        mean=gp.mean,
        kernel=gp.kernel.name,
        features=gp.feature_names_in_,
        facts=facts,
    )


def _content(model: LocalModel) -> tuple[bytes, ...]:
    return tuple(np.asarray(array).tobytes() for array in model.arrays.values())
