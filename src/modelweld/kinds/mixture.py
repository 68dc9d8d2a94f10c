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
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index
from modelweld.kinds import check_counted, shared_facts
from modelweld.kinds.layout import Layout, truth
from modelweld.kinds.mixture_density import nearest

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

HOWS = ("density", "moments", "atoms")
"""`density`: as many components as there are atoms, as near to the density of all sites' mixtures together as they get.
They know of the atoms only their number; each has the place of the atom with which it shares most points.
`moments` merges the components of an atom into one with their common mean and covariance. `atoms` has the atoms
themselves as means, which lean towards the others where sites are few. With ``K=...`` `density` gives any number of
components, and `moments` merges atoms, always the two that cost the density least, until K are left."""

LARGEST_SOFTENED = 1e8
"""Components x atoms x dimensions^3 (without covariances: x dimensions) from which `density` is no longer the default:
beyond this it takes more than some ten seconds."""

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
            full = spreads[:, None, :] * np.eye(spreads.shape[1])
            model = _again(model, means, full, counts).with_(variance=model.variance)
        result.append(model)
    return result


def default_how(fusion: Fusion) -> str:
    """`density`, unless most sites sent k-means, which is no density, or it would take minutes."""
    from collections import Counter

    N, D = np.concatenate([np.asarray(m.arrays["means"]) for m in fusion.models]).shape
    power = 3 if "covariances" in fusion.models[0].arrays else 1
    sent = Counter(str(m.facts.get("class", "")) for m in fusion.models).most_common(1)[0][0]
    large = N * len(fusion.counts) * D**power > LARGEST_SOFTENED
    return "moments" if sent.endswith("KMeans") or large else "density"


def layout(model: LocalModel) -> Layout:
    """What a mixture must look like."""
    return Layout(
        sets=("component",),
        arrays={
            "means": ("component", "feature"),
            "covariances": ("component", "feature", "feature"),
            "variances": ("component", "feature"),
            "counts": ("component",),
        },
        needed=("means", "covariances|variances", "counts"),
        not_negative=("variances", "counts"),
        spreads=("covariances",),
        facts={"counted": truth},
    )


def families(models: Sequence[LocalModel]) -> dict[str, Family]:
    """Matched by means."""
    return {"means": Gaussian()}


def fused(fusion: Fusion, how: str, K: int | None = None) -> LocalModel:
    """One component per atom, those set aside included; or K of them."""
    from modelweld.kinds.mixture_reduction import reduced

    parts, labels = stacked(fusion.models), fusion.matching.stacked_labels
    if K is not None:
        _check_size(K, how, atoms=len(fusion.counts), components=len(labels))
    if how == "density":
        means, spreads, counts = densest(*parts, labels, len(fusion.counts) if K is None else K)
    else:
        means, spreads, counts = merged(*parts, labels)
    if how == "moments" and K is not None:
        means, spreads, counts = merged(means, spreads, counts, reduced(means, spreads, counts, K))
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


def _check_size(K: int, how: str, atoms: int, components: int) -> None:
    if how == "atoms":
        raise InputError("how='atoms' has a component per atom; K goes with how='density' or 'moments'.")
    most, what = (components, "components") if how == "density" else (atoms, "atoms")
    if not 1 <= K <= most:
        raise InputError(f"there are {most} {what}: with how={how!r}, K is between 1 and {most}; found {K}.")


def densest(means: Array, spreads: Array, counts: Array, labels: Index, K: int) -> tuple[Array, Array, Array]:
    """K components as near as they get to the density of all; in the order of the atoms `labels` they are nearest to.

    Examples
    --------
    >>> ones = np.ones((3, 1))
    >>> densest(np.array([[9.0], [50.0], [51.0]]), ones, np.ones(3), np.array([1, 0, 0]), 2)[0].round(1).tolist()
    [[50.5], [9.0]]
    """
    from modelweld.kinds.mixture_reduction import reduced

    order = np.lexsort((counts, *means.T[::-1]))  # by content: the order of sites does not matter
    means, spreads, counts, labels = means[order], spreads[order], counts[order], labels[order]
    found = _numbered_like(labels, reduced(means, spreads, counts, K), counts)
    start = merged(means, spreads, counts, found)
    return start if len(means) == K else nearest((means, spreads, counts), start)


def _numbered_like(labels: Index, found: Index, counts: Array) -> Index:
    """Labels `found`, numbered like those `labels` with which they share most points; others come last."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros((found.max() + 1, labels.max() + 1))
    np.add.at(shared, (found, labels), counts)
    place = np.full(len(shared), shared.shape[1])
    rows, columns = linear_sum_assignment(shared, maximize=True)
    place[rows] = columns
    return np.asarray(np.argsort(np.argsort(place, kind="stable"))[found])


def stacked(models: Sequence[LocalModel]) -> tuple[Array, Array, Array]:
    """Means, covariances (or variances) and counts of all sites' components, one site below the other."""
    check_counted(
        models,
        "site {site} sends shares of its components, others numbers of points: they cannot be weighed against each "
        "other. Say how many points it has: read(model, n=...), counts=... or X=...",
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
    wide = spreads * (scale**2 if spreads.ndim == 2 else scale[:, None] * scale)
    return _again(model, means * scale + offset, wide, counts)


def _again(model: LocalModel, means: Array, spreads: Array, counts: Array) -> LocalModel:
    """The same mixture with other components."""
    return mixture(
        means,
        spreads,
        counts,
        counted=bool(model.facts["counted"]),
        features=model.coordinates.get("feature"),
        site=model.site,
        facts=dict(model.facts),
    )
