"""Gaussian mixtures, and k-means as a mixture with one variance.

Arrays: `means (component, feature)`; `covariances (component, feature, feature)` or, where features are independent,
`variances (component, feature)`; `counts (component)`: how many points each component stands for. Matched by means,
whose squared standard errors are variances over counts where counts are known; the others are auxiliary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Key
from modelweld.errors import Finding
from modelweld.families import Family, Gaussian
from modelweld.fit.screening.totals import Totals
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import mixture_components
from modelweld.kinds.fused_parts import Ellipses, common_facts
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout, truth
from modelweld.kinds.mixture_columns import name_columns
from modelweld.kinds.mixture_completion import merge_components, stack_components
from modelweld.kinds.mixture_reduction import HOWS, count_names, default_how, fuse_components
from modelweld.results.fit_result import FitResult

ARRAYS = {
    "means": ("component", "feature"),
    "covariances": ("component", "feature", "feature"),
    "variances": ("component", "feature"),
    "counts": ("component",),
}
"""Axes of all arrays."""


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
    >>> model.variance["means"].round(3).tolist()
    [[0.155], [0.1]]
    """
    means, spreads, counts = (np.asarray(x, dtype=np.float64) for x in (means, spreads, counts))
    arrays = {"means": means, "covariances" if spreads.ndim == 3 else "variances": spreads, "counts": counts}
    return LocalModel(
        **lay_out(arrays, ARRAYS, ["means"], "component", feature=features),
        variance={"means": mixture_components.error_variances(spreads, counts)} if counted else {},
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
            means, spreads, counts = mixture_components.parameters(model)
            if spreads.ndim == 2:
                full = spreads[:, None, :] * np.eye(spreads.shape[1])
                weight = mixture_components.weight_pairs(model.weight)
                model = _again(model, means, full, counts).with_(variance=model.variance, weight=weight)
            result.append(model)
        return result

    def may_lack(self, models: Sequence[LocalModel]) -> tuple[str, ...]:
        """Features: what a site lacks is completed from those with whom it shares atoms."""
        return ("feature",)

    def doubts(self, models: Sequence[LocalModel], arranged: Sequence[LocalModel]) -> list[Finding]:
        """Also columns that are no measurements, where sites say how many points they have."""
        counted = any(model.facts.get("counted") for model in arranged)
        return [*super().doubts(models, arranged), *(name_columns(arranged) if counted else ())]

    def weigh(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """Standard errors for those who forgot how many points they have."""
        return mixture_components.count_bare(models)

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Matched by means, distinguished as finely as the components' own widths allow."""
        return {"means": Gaussian(width=mixture_components.mean_width(models))}

    def default_how(self, fusion: FitResult) -> str:
        """`density`, or `moments`."""
        return default_how(fusion)

    def fuse(self, fusion: FitResult, how: str, K: int | None = None) -> LocalModel:
        """One component per atom, those excluded included; or K of them."""
        parts = fuse_components(fusion, how, K)
        facts = {name: fact for name, fact in common_facts(fusion.models).items() if name != "labels"}
        return _again(fusion.models[0].with_(site=""), *parts, facts)

    def has_places(self, model: LocalModel) -> bool:
        """Means lie in the space of features."""
        return True

    def totals(self, model: LocalModel) -> Totals | None:
        """By the components' moments."""
        return mixture_components.total_points(model)

    def words(self, fusion: FitResult, set_name: str) -> tuple[Array, Sequence[str]] | None:
        """What sites call their groups, by numbers of points, where names are no mere numbers."""
        return count_names(fusion)

    def picture(self, fusion: FitResult) -> Ellipses:
        """Components of atoms, merged by moments, beside all sites' own."""
        parts = stack_components(fusion)
        return Ellipses(merge_components(*parts, fusion.matching.stacked_labels), parts)


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
