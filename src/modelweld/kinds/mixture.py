"""Gaussian mixtures, and k-means as a mixture with one variance.

Arrays: `means (component, feature)`; `covariances (component, feature, feature)` or, where features are independent,
`variances (component, feature)`; `counts (component)`: how many points each component stands for. Matched by means,
whose squared standard errors are variances over counts where counts are known; the others ride.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.kinds import shared_facts
from modelweld.local import Array, LocalModel
from modelweld.stack import Index, group_of_rows

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

HOWS = ("density", "moments", "atoms")
"""`moments` merges the components of an atom into one with their common mean and covariance. `density` first moves
components between atoms, K kept, where that raises the likelihood: labels of its own, for the density alone. `atoms`
has the atoms themselves as means, which lean towards the others where sites are few."""

FEWEST_POINTS = 1.0
"""A component is worth a point at least when its standard error is computed: counts are expected numbers."""


def mixture(
    means: ArrayLike,
    spreads: ArrayLike,
    counts: ArrayLike,
    *,
    counted: bool,
    features: Sequence[str] | None = None,
    site: str = "",
    facts: dict[str, Any] | None = None,
) -> LocalModel:
    """A mixture as it leaves a site.

    Parameters
    ----------
    means, counts : arrays (K, D), (K,)
        The components.
    spreads : array (K, D, D) or (K, D)
        Their covariances, or variances.
    counted : bool
        Whether counts are numbers of points; else they are shares, and say nothing of standard errors.
    features : sequence of str, optional
        Names of the features.
    site : str, optional
        Name of the site.
    facts : dict, optional
        What is needed to write it again.

    Examples
    --------
    >>> model = mixture([[0.0], [5.0]], [[[1.0]], [[4.0]]], [10.0, 40.0], counted=True)
    >>> model.variance["means"].tolist()
    [[0.1], [0.1]]
    """
    means, spreads, counts = (np.asarray(x, dtype=np.float64) for x in (means, spreads, counts))
    feature = None if features is None else "feature"
    name = "covariances" if spreads.ndim == 3 else "variances"
    return LocalModel(
        arrays={"means": means, name: spreads, "counts": counts},
        axes={
            "means": ("component", feature),
            name: ("component", *[feature] * (spreads.ndim - 1)),
            "counts": ("component",),
        },
        variance={"means": diagonals(spreads) / np.maximum(counts, FEWEST_POINTS)[:, None]} if counted else {},
        riding=[name, "counts"],
        site=site,
        coordinates={} if features is None else {"feature": features},
        kind="mixture",
        facts={**(facts or {}), "counted": counted},
    )


def parameters(model: LocalModel) -> tuple[Array, Array, Array]:
    """Means, covariances or variances, and counts of a mixture."""
    name = "covariances" if "covariances" in model.arrays else "variances"
    means, spreads, counts = (np.asarray(model.arrays[n]) for n in ("means", name, "counts"))
    return means, spreads, counts


def diagonals(spreads: Array) -> Array:
    """Variances of covariances or variances."""
    return spreads if spreads.ndim == 2 else np.diagonal(spreads, axis1=1, axis2=2)


def harmonised(models: Sequence[LocalModel]) -> list[LocalModel]:
    """Covariances for all, if one has them."""
    if len({"covariances" in m.arrays for m in models}) == 1:
        return list(models)
    result = []
    for model in models:
        means, spreads, counts = parameters(model)
        if spreads.ndim == 2:
            model = mixture(
                means,
                spreads[:, None, :] * np.eye(spreads.shape[1]),
                counts,
                counted=bool(model.facts["counted"]),
                features=model.coordinates.get("feature"),
                site=model.site,
                facts=dict(model.facts),
            )
        result.append(model)
    return result


def families(models: Sequence[LocalModel]) -> dict[str, Family]:
    """Matched by means."""
    return {"means": Gaussian()}


def fused(fusion: Fusion, how: str) -> LocalModel:
    """One component per atom, those set aside included."""
    from modelweld.exchange import exchanged

    parts, labels = stacked(fusion.models), fusion.matching.stacked_labels
    if how == "density":
        labels = exchanged(*parts, labels, group_of_rows(fusion.matching.offsets))
    means, spreads, counts = merged(*parts, labels)
    if how == "atoms":
        off = means - fusion.array("means")
        means, spreads = fusion.array("means"), spreads + _squares(off, spreads.ndim)
    first = fusion.models[0]
    return mixture(
        means,
        spreads,
        counts,
        counted=bool(first.facts["counted"]),
        features=first.coordinates.get("feature"),
        facts=shared_facts(fusion.models),
    )


def stacked(models: Sequence[LocalModel]) -> tuple[Array, Array, Array]:
    """Means, covariances (or variances) and counts of all sites' components, one site below the other."""
    if len({bool(m.facts.get("counted")) for m in models}) > 1:
        odd = next((m.site or str(j)) for j, m in enumerate(models) if not m.facts.get("counted"))
        raise InputError(
            f"site {odd} sends shares of its components, others numbers of points: they cannot be weighed against each "
            "other. Say how many points it has: read(model, n=...), counts=... or X=..."
        )
    means, spreads, counts = (np.concatenate(parts) for parts in zip(*map(parameters, models), strict=True))
    return means, spreads, counts


def merged(means: Array, spreads: Array, counts: Array, labels: Index) -> tuple[Array, Array, Array]:
    """Components merged by label, each into one of the same mass, mean and covariance (within plus between).

    Examples
    --------
    >>> ones = np.ones((2, 1))
    >>> [x.tolist() for x in merged(np.array([[0.0], [4.0]]), ones, np.array([3.0, 1.0]), np.array([0, 0]))]
    [[[1.0]], [[4.0]], [4.0]]
    """
    K = int(np.max(labels)) + 1
    mass: Array = np.bincount(labels, counts, K).astype(np.float64)
    # an atom all of whose components are empty is the plain average of these
    share = counts + (mass[labels] == 0)
    share = share / np.bincount(labels, share, K)[labels]
    centres = np.zeros((K, means.shape[1]))
    np.add.at(centres, labels, share[:, None] * means)
    total = np.zeros((K, *spreads.shape[1:]))
    parts = spreads + _squares(means - centres[labels], spreads.ndim)
    np.add.at(total, labels, share.reshape(-1, *[1] * (spreads.ndim - 1)) * parts)
    return centres, total, mass


def _squares(off: Array, ndim: int) -> Array:
    """Outer products of offsets, or their diagonals."""
    return off * off if ndim == 2 else off[:, :, None] * off[:, None, :]


def rescaled(model: LocalModel, scale: Array, offset: Array) -> LocalModel:
    """The mixture of x = scale * y + offset, given that of y."""
    means, spreads, counts = parameters(model)
    return mixture(
        means * scale + offset,
        spreads * (scale**2 if spreads.ndim == 2 else scale[:, None] * scale),
        counts,
        counted=bool(model.facts["counted"]),
        features=model.coordinates.get("feature"),
        site=model.site,
        facts=dict(model.facts),
    )
