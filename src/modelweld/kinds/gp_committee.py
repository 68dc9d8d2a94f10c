"""A committee of sparse Gaussian processes as one LocalModel: all members' points, a kernel per member."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from modelweld.gp.kernels import NAMES, Kernel
from modelweld.gp.model import SparseGP
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.stack import offsets_of
from modelweld.kinds.base import Facts
from modelweld.kinds.layout import whole


def committee(sites: Sequence[SparseGP], facts: Facts) -> LocalModel:
    """Members one below the other; `facts` has their kernels and how many points each has."""
    from scipy.linalg import block_diag

    names = sites[0].feature_names_in_
    feature = None if names is None else "feature"
    return LocalModel(
        {
            "inputs": np.concatenate([gp.inputs for gp in sites]),
            "values": np.concatenate([gp.values for gp in sites]),
            "covariance": block_diag(*(gp.covariance for gp in sites)),
            "lengthscales": np.stack([gp.kernel.lengthscales for gp in sites]),
            "outputscale": np.array([gp.kernel.outputscale for gp in sites]),
            "noise": np.array([gp.noise for gp in sites]),
            "mean": np.array([gp.mean for gp in sites]),
        },
        {
            "inputs": ("point", feature),
            "values": ("point",),
            "covariance": ("point", "point"),
            "lengthscales": (None, feature),
            **{name: (None,) for name in ("outputscale", "noise", "mean")},
        },
        riding=["covariance"],
        coordinates={} if names is None else {"feature": names},
        kind="sparse-gp",
        facts={**facts, "members": [len(gp.values) for gp in sites], "kernels": [gp.kernel.name for gp in sites]},
    )


def members(model: LocalModel) -> list[SparseGP]:
    """And back."""
    bounds = offsets_of(model.facts["members"])
    arrays = {name: np.asarray(array) for name, array in model.arrays.items()}
    result = []
    for j, name in enumerate(model.facts["kernels"]):
        own = slice(bounds[j], bounds[j + 1])
        result.append(
            SparseGP(
                arrays["inputs"][own],
                arrays["values"][own],
                arrays["covariance"][own, own],
                Kernel(arrays["lengthscales"][j], float(arrays["outputscale"][j]), name),
                mean=float(arrays["mean"][j]),
                noise=float(arrays["noise"][j]),
                feature_names_in_=feature_names(model),
            )
        )
    return result


def feature_names(model: LocalModel) -> tuple[str, ...] | None:
    """Names of the features, if the site spelt them out."""
    names = model.coordinates.get("feature")
    return None if names is None else tuple(names)


def committee_facts(model: LocalModel) -> dict[str, Callable[[object], bool]]:
    """What a committee must state, and how to tell whether it makes sense."""
    points, scales = model.sizes.get("point", 0), np.shape(model.arrays.get("outputscale", ()))
    given = model.facts["members"]

    def sizes(fact: object) -> bool:
        return isinstance(fact, (list, tuple)) and all(map(whole, fact)) and sum(fact) == points

    def kernels(fact: object) -> bool:
        if not isinstance(fact, (list, tuple)) or (len(fact),) != scales or len(fact) != len(given):
            return False
        return all(isinstance(name, str) and name in NAMES for name in fact)

    return {"members": sizes, "kernels": kernels}
