"""Fused components of mixtures, in the ways that `fusion.model(how=...)` offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.mixture_completion import merge_components, squares, stack_components
from modelweld.kinds.mixture_components import Components, parameters
from modelweld.kinds.mixture_density import nearest, number_by_groups, order_like, warn_of_moved
from modelweld.kinds.mixture_reduction import reduce_to, warn_of_price

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult

HOWS = {
    "density": (
        "as many components as there are atoms, as near to the density of all sites' mixtures together as "
        "they get: they know of the groups only their number, and each has the number of the group with which it "
        "shares most points, which need not be most of that group's: a warning says so; any number with K=..."
    ),
    "moments": (
        "the components of an atom merged into one with their common mean and covariance; with K=... also "
        "atoms, always the two that cost the density least, until K are left"
    ),
    "atoms": "the atoms themselves as means, which lean towards the others where sites are few",
}
"""Ways to make fused parameters, the default first."""


LARGEST_SOFTENED = 1e8
"""Components x atoms x dimensions^3 (without covariances: x dimensions) from which `density` is no longer the default:
beyond this it takes more than some ten seconds."""


def _check_size(K: int, how: str, atoms: int, components: int) -> None:
    if how == "atoms":
        raise InputError("how='atoms' has a component per atom; K goes with how='density' or 'moments'.")
    most, what = (components, "components") if how == "density" else (atoms, "atoms")
    if not 1 <= K <= most:
        raise InputError(f"there are {most} {what}: with how={how!r}, K is between 1 and {most}; found {K}.")


def densest(means: Array, spreads: Array, counts: Array, labels: Index, K: int) -> Components:
    """K components as near as they get to the density of all; in the order of the atoms `labels` they are nearest to.

    Examples
    --------
    >>> ones = np.ones((3, 1))
    >>> densest(np.array([[9.0], [50.0], [51.0]]), ones, np.ones(3), np.array([1, 0, 0]), 2)[0].round(1).tolist()
    [[50.5], [9.0]]
    """
    order = np.lexsort((counts, *means.T[::-1]))  # by content: the order of sites does not matter
    means, spreads, counts, labels = means[order], spreads[order], counts[order], labels[order]
    found = reduce_to(means, spreads, counts, K)
    shared = np.zeros((labels.max() + 1, K))
    np.add.at(shared, (labels, found), counts)
    parts, start = (means, spreads, counts), merge_components(means, spreads, counts, found)
    order = order_like(shared)
    start = start[0][order], start[1][order], start[2][order]
    return number_by_groups(start if len(means) == K else nearest(parts, start), parts, labels)


def default_how(fusion: FitResult) -> str:
    """`density`, unless most sites sent k-means or labels, which are no density, or it would take minutes."""
    N, D = np.concatenate([np.asarray(m.arrays["means"]) for m in fusion.models]).shape
    power = 3 if "covariances" in fusion.models[0].arrays else 1
    sent = [str(m.facts.get("class", "")).endswith("KMeans") or "labels" in m.facts for m in fusion.models]
    large = N * len(fusion.counts) * D**power > LARGEST_SOFTENED
    return "moments" if 2 * sum(sent) > len(sent) or large else "density"


def fuse_components(fusion: FitResult, how: str, K: int | None = None) -> Components:
    """One component per atom, those excluded included; or K of them."""
    parts, labels = stack_components(fusion), fusion.matching.stacked_labels
    if K is not None:
        _check_size(K, how, atoms=len(fusion.counts), components=len(labels))
    if how == "density":
        found = densest(*parts, labels, len(fusion.counts) if K is None else K)
        if K is None and fusion.matching.engine not in ("reduction", "draw"):  # asked for; not looked at
            warn_of_price(fusion, found)
            warn_of_moved(found, parts, labels, fusion.K)
        return found
    means, spreads, counts = merge_components(*parts, labels)
    if how == "atoms":
        atoms = fusion.array("means")
        return atoms, spreads + squares(means - atoms, spreads.ndim), counts
    return (
        (means, spreads, counts)
        if K is None
        else merge_components(means, spreads, counts, reduce_to(means, spreads, counts, K))
    )


def count_names(fusion: FitResult) -> tuple[Array, list[str]] | None:
    """Points (atoms, names) of what sites call their groups, and these names; None if they are mere numbers."""
    called = [
        (int(atom), float(points), str(name))
        for labels, model in zip(fusion.labels, fusion.models, strict=True)
        for atom, points, name in zip(labels, parameters(model)[2], _names(model), strict=False)
        if not str(name).isdigit()
    ]
    names = sorted({name for _, _, name in called})
    found = np.zeros((len(fusion.counts), len(names)))
    for atom, points, name in called:
        found[atom, names.index(name)] += points
    return (found, names) if names else None


def _names(model: LocalModel) -> Sequence[object]:
    """What a site calls its components; nothing if it does not say."""
    names = model.facts.get("labels")
    return names if isinstance(names, (list, tuple)) else ()
