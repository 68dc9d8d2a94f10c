"""Components of Gaussian mixtures as three arrays: read off models, and weighed at the centre.

A bare fitted model knows its components' covariances and shares, but forgot how many points it was fitted on. Without
standard errors its means would be taken for exact, and every fragment of a component that a site has split for an atom
of its own. So a share stands for so many of NOMINAL_POINTS points. That is made at the centre, never travels, and files
written without numbers of points profit too.

Fragments of a component that is cut in two lie about a component's width apart, in one direction, however little sites
differ (`modelweld.families.math.fragments`): `mean_width` is what they are measured by.

K-means and spherical mixtures send one variance for all features. Where these have unlike scales it is that of the
largest, and far too much for the others: in each feature it counts for no more than the variance of all means there, or
what is the same share of that as overall, where components are wider than their means lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Flags
from modelweld.fit.screening.totals import Totals, total_components
from modelweld.inputs.local_model import LocalModel, derive

Components = tuple[Array, Array, Array]
"""Means (K, D), covariances (K, D, D) or variances (K, D), and counts (K,)."""

FEWEST_POINTS = 1.0
"""A component is worth a point at least when its standard error is computed: counts are expected numbers. Below
it, a variational fit has emptied a component, whose weight stays that of the prior."""

NOMINAL_POINTS = 100.0
"""Points that a site without numbers is taken to have. Few: with a thousand, fragments of models of 400 frames became
atoms again."""

BORROWED = 3.0
"""Points that a site's mean variance is worth beside that of a component which is narrower: one or two points have
hardly any, and would be taken as exact."""


def parameters(model: LocalModel) -> Components:
    """Means, covariances or variances, and counts of a mixture."""
    name = "covariances" if "covariances" in model.arrays else "variances"
    means, spreads, counts = (np.asarray(model.arrays[n]) for n in ("means", name, "counts"))
    return means, spreads, counts


def diagonals(spreads: Array) -> Array:
    """Variances of covariances or variances."""
    return spreads if spreads.ndim == 2 else np.diagonal(spreads, axis1=1, axis2=2)


def error_variances(spreads: Array, points: Array) -> Array:
    """Squared standard errors (K, D) of the means of components that so many points (K,) stand behind."""
    own, points = diagonals(spreads), np.maximum(points, FEWEST_POINTS)[:, None]
    lacking = np.maximum((points * own).sum(axis=0) / points.sum() - own, 0.0)
    return np.asarray((own + BORROWED / (points + BORROWED) * lacking) / points)


def seen_counts(model: LocalModel, counts: Array) -> tuple[Array, float | None]:
    """Counts (K, D) of what a site has measured, and how many points it has in all; None if it does not say."""
    seen = np.asarray(model.weight.get("means", np.ones(np.shape(model.arrays["means"])))) > 0
    return counts[:, None] * seen, float(counts.sum()) if model.facts.get("counted") else None


def total_points(model: LocalModel) -> Totals | None:
    """Mean and deviation of all points of a site, by the moments of its components."""
    means, spreads, counts = parameters(model)
    return total_components(means, diagonals(spreads), *seen_counts(model, counts))


def weight_pairs(weight: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Weights of a model whose variances become covariances: a pair of features was seen if both were.

    Examples
    --------
    >>> np.asarray(weight_pairs({"variances": [[1.0, 0.0]]})["covariances"]).tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    found = {name: values for name, values in weight.items() if name != "variances"}
    if "variances" in weight:
        own = np.asarray(weight["variances"])
        found["covariances"] = own[:, :, None] * own[:, None, :]
    return found


def feature_mask(models: Sequence[LocalModel]) -> Flags:
    """Which means (N, D) of all components count: those of a weight of zero were not measured, or were refuted."""
    return np.concatenate([np.asarray(m.weight.get("means", np.ones(np.shape(m.arrays["means"])))) > 0 for m in models])


def count_bare(models: Sequence[LocalModel]) -> list[LocalModel]:
    """The same models, with standard errors of means where they were sent without numbers of points.

    Where other sites do send numbers, shares become those of a site of typical size, so that both can be added.
    """
    totals, scatter = [float(np.sum(m.arrays["counts"])) for m in models if m.facts.get("counted")], _scatter(models)
    return [_weigh_model(m, totals, scatter) if "means" in m.arrays else m for m in models]


def _weigh_model(model: LocalModel, totals: Sequence[float], scatter: Array) -> LocalModel:
    _, spreads, counts = parameters(model)
    share = counts / max(float(counts.sum()), np.finfo(float).tiny)
    if model.facts.get("counted"):
        stated = np.asarray(model.variance.get("means", np.zeros_like(spreads)))
        if "means" not in model.variance or not (_is_spherical(spreads) and _is_spherical(stated)):
            return model  # also what was weighed before, when a site is added
        added = np.maximum(stated - error_variances(spreads, counts), 0.0)  # noise that the site says it added
        errors = np.minimum(stated, error_variances(_widths(spreads, scatter), counts) + added)
    else:
        errors = error_variances(_widths(spreads, scatter), NOMINAL_POINTS * share)
    model = derive(model, variance={**model.variance, "means": errors})
    if model.facts.get("counted") or not totals:
        return model
    arrays = {**model.arrays, "counts": share * float(np.median(totals))}
    return derive(model, arrays=arrays, facts={**model.facts, "counted": True, "nominal": True})


def _scatter(models: Sequence[LocalModel]) -> Array:
    """Variance (D,) of all sites' means in each feature, of those who have measured it."""
    models = [model for model in models if "means" in model.arrays]
    means, seen = np.concatenate([np.asarray(m.arrays["means"]) for m in models]), feature_mask(models)
    number = np.maximum(seen.sum(axis=0), 1)
    off = np.where(seen, means - np.sum(means, axis=0, where=seen) / number, 0.0)
    return np.asarray((off * off).sum(axis=0) / number)


def _is_spherical(spreads: Array) -> bool:
    """Whether components have one variance for all features that a site has measured."""
    return spreads.ndim == 2 and bool(((spreads == spreads.max(axis=1, keepdims=True)) | (spreads == 0)).all())


def _widths(spreads: Array, scatter: Array) -> Array:
    """Variances (K, D) of components whose means vary by `scatter` (D,)."""
    if not _is_spherical(spreads):
        return diagonals(spreads)
    overall = float(scatter.mean()) or 1.0  # where all means are one, its scatter says that components have no width
    return np.asarray(np.minimum(spreads, scatter * np.maximum(1.0, spreads / overall)))


def mean_width(models: Sequence[LocalModel]) -> Array:
    """Variance (D,) of points within components, the mean of all sites.

    Examples
    --------
    >>> from modelweld.kinds.mixture import mixture
    >>> mean_width([mixture([[0.0, 0.0], [9.0, 9.0]], [[1.0, 4.0], [3.0, 4.0]], [0.5, 0.5], counted=False)])
    array([2., 4.])
    """
    widths, sites, scatter = [], [], _scatter(models)
    for model in models:
        _, spreads, counts = parameters(model)
        if counts.sum() > 0:
            widths.append(counts @ _widths(spreads, scatter) / counts.sum())
            sites.append((np.asarray(model.weight.get("means", np.ones(spreads.shape[:2]))) > 0).any(axis=0))
    if not widths:
        return np.zeros(1)
    return np.asarray(np.sum(widths, axis=0) / np.maximum(np.sum(sites, axis=0), 1))  # of sites that have measured it
