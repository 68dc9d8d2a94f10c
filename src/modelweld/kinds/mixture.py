"""Gaussian mixtures, and k-means as a mixture with one variance.

Arrays: `means (component, feature)`; `covariances (component, feature, feature)` or, where features are independent,
`variances (component, feature)`; `counts (component)`: how many points each component stands for. Matched by means,
whose squared standard errors are variances over counts where counts are known; the others are auxiliary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index, Key
from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.fit.screening.units import Totals, totals_of
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.kind import Ellipses, Facts, Kind, Layout, common_facts, lay_out, truth
from modelweld.kinds.mixture_components import (
    Components,
    count_bare,
    diagonals,
    error_variances,
    merge_components,
    parameters,
    resolution,
    squares,
    stack_components,
    weight_pairs,
)
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

ARRAYS = {
    "means": ("component", "feature"),
    "covariances": ("component", "feature", "feature"),
    "variances": ("component", "feature"),
    "counts": ("component",),
}
"""Axes of all arrays."""

LARGEST_SOFTENED = 1e8
"""Components x atoms x dimensions^3 (without covariances: x dimensions) from which `density` is no longer the default:
beyond this it takes more than some ten seconds."""


def mixture(
    means: ArrayLike,
    spreads: ArrayLike,
    counts: ArrayLike,
    *,
    counted: bool,
    features: Sequence[str] | None = None,
    site: str = "",
    facts: Facts | None = None,
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
    facts : mapping, optional
        What is needed to write it again.

    Examples
    --------
    >>> model = mixture([[0.0], [5.0]], [[[1.0]], [[4.0]]], [10.0, 40.0], counted=True)
    >>> model.variance["means"].tolist()
    [[0.1], [0.1]]
    """
    means, spreads, counts = (np.asarray(x, dtype=np.float64) for x in (means, spreads, counts))
    arrays = {"means": means, "covariances" if spreads.ndim == 3 else "variances": spreads, "counts": counts}
    return LocalModel(
        **lay_out(arrays, ARRAYS, ["means"], "component", feature=features),
        variance={"means": error_variances(spreads, counts)} if counted else {},
        site=site,
        kind="mixture",
        facts={**(facts or {}), "counted": counted},
    )


class Mixture(Kind):
    """Gaussian mixtures, and k-means."""

    name = "mixture"
    plural = "mixtures"
    hows = HOWS
    shown = ("means",)

    def layout(self, model: LocalModel) -> Layout:
        """What a mixture must look like."""
        return Layout(
            sets=("component",),
            arrays=ARRAYS,
            needed=("means", "covariances|variances", "counts"),
            not_negative=("variances", "counts"),
            divisors=("variances", "counts"),
            spreads=("covariances",),
            facts={"counted": truth},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """Covariances for all, if one has them."""
        if len({"covariances" in m.arrays for m in models}) == 1:
            return list(models)
        result = []
        for model in models:
            means, spreads, counts = parameters(model)
            if spreads.ndim == 2:
                full = spreads[:, None, :] * np.eye(spreads.shape[1])
                weight = weight_pairs(model.weight)
                model = _again(model, means, full, counts).with_(variance=model.variance, weight=weight)
            result.append(model)
        return result

    def may_lack(self, models: Sequence[LocalModel]) -> tuple[str, ...]:
        """Features: what a site lacks is completed from those with whom it shares atoms."""
        return ("feature",)

    def weigh(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """Standard errors for those who forgot how many points they have."""
        return count_bare(models)

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Matched by means, distinguished as finely as the components' own widths allow."""
        return {"means": Gaussian(resolution=resolution(models))}

    def default_how(self, fusion: FitResult) -> str:
        """`density`, unless most sites sent k-means, which is no density, or it would take minutes."""
        N, D = np.concatenate([np.asarray(m.arrays["means"]) for m in fusion.models]).shape
        power = 3 if "covariances" in fusion.models[0].arrays else 1
        sent = Counter(str(m.facts.get("class", "")) for m in fusion.models).most_common(1)[0][0]
        large = N * len(fusion.counts) * D**power > LARGEST_SOFTENED
        return "moments" if sent.endswith("KMeans") or large else "density"

    def fuse(self, fusion: FitResult, how: str, K: int | None = None) -> LocalModel:
        """One component per atom, those excluded included; or K of them."""
        parts, labels = stack_components(fusion), fusion.matching.stacked_labels
        if K is not None:
            _check_size(K, how, atoms=len(fusion.counts), components=len(labels))
        if how == "density":
            means, spreads, counts = densest(*parts, labels, len(fusion.counts) if K is None else K)
            if K is None and fusion.matching.engine not in ("reduction", "draw"):  # asked for; not looked at
                warn_of_price(fusion, (means, spreads, counts))
                warn_of_moved((means, spreads, counts), parts, labels, fusion.K)
        else:
            means, spreads, counts = merge_components(*parts, labels)
        if how == "moments" and K is not None:
            means, spreads, counts = merge_components(means, spreads, counts, reduce_to(means, spreads, counts, K))
        if how == "atoms":
            off = means - fusion.array("means")
            means, spreads = fusion.array("means"), spreads + squares(off, spreads.ndim)
        first = fusion.models[0]
        return _again(first.with_(site=""), means, spreads, counts, common_facts(fusion.models))

    def rescale(self, model: LocalModel, scale: Array, offset: Array) -> LocalModel:
        """The mixture of x = scale * y + offset, given that of y."""
        means, spreads, counts = parameters(model)
        wide = spreads * (scale**2 if spreads.ndim == 2 else scale[:, None] * scale)
        return _again(model, means * scale + offset, wide, counts)

    def totals(self, model: LocalModel) -> Totals | None:
        """By the components' moments."""
        means, spreads, counts = parameters(model)
        return totals_of(model, means, diagonals(spreads), counts)

    def picture(self, fusion: FitResult) -> Ellipses:
        """Components of atoms, merged by moments, beside all sites' own."""
        parts = stack_components(fusion)
        return Ellipses(merge_components(*parts, fusion.matching.stacked_labels), parts)


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


def _again(model: LocalModel, means: Array, spreads: Array, counts: Array, facts: Facts | None = None) -> LocalModel:
    """The same mixture with other components, and other `facts` where they are given."""
    return mixture(
        means,
        spreads,
        counts,
        counted=bool(model.facts["counted"]),
        features=model.coordinates.get("feature"),
        site=model.site,
        facts=model.facts if facts is None else facts,
    )
