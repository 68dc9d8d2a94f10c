"""Components of Gaussian mixtures as three arrays: read off models, merged by their moments, and weighed at the centre.

A bare fitted model knows its components' covariances and shares, but forgot how many points it was fitted on. Without
standard errors its means would be taken for exact, and every fragment of a component that a site has split for an atom
of its own. So a share stands for so many of NOMINAL_POINTS points. That is made at the centre, never travels, and files
written without numbers of points profit too.

Fragments of a component that is cut in two lie about a component's width apart, in one direction, however little sites
differ. So two means are distinguished only if they differ by more than a share of the components' own width: noise is
at least `resolution`, a variance component beside what sites differ by.

K-means and spherical mixtures send one variance for all features. Where these have unlike scales it is that of the
largest, and far too much for the others: in each feature it counts for no more than the variance of all means there, or
what is the same share of that as overall, where components are wider than their means lie apart.

Components of all sites, stacked; where a site lacks a feature, completed from those that have it.

What a site has not measured has weight zero in the matching. But a density needs all features, so a component is
completed by what is known of the points of its atom: with mean and covariance (m, S) of the atom, features o seen and u
not,

    mean_u = m_u + B (mean_o - m_o),   cov_uo = B cov_oo,   cov_uu = S_uu - B S_ou + B cov_oo B',   B = S_uo S_oo^-1,

and (m, S) are the moments of the components so completed: expectation-maximisation for points with missing features,
whose fixed point is the likeliest Gaussian of the atom. Covariances stay covariances, which averages over those who
have both features need not. Of a feature that no site of an atom has measured, all points of all atoms say what there
is to say. Variances without covariances are the same with B = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.values import Array, Index
from modelweld.inputs.local_model import LocalModel, derive
from modelweld.kinds.kind import check_counted

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult


Flags = NDArray[np.bool_]

Components = tuple[Array, Array, Array]
"""Means (K, D), covariances (K, D, D) or variances (K, D), and counts (K,)."""

FEWEST_POINTS = 1.0
"""A component is worth a point at least when its standard error is computed: counts are expected numbers."""

NOMINAL_POINTS = 100.0
"""Points that a site without numbers is taken to have. Few: with a thousand, fragments of models of 400 frames became
atoms again."""

NARROWEST, WIDEST = 0.2, 0.5
"""Bounds of the resolution as a share of the components' variance. Between them it is one over the number of
dimensions: a cut moves two fragments by about .8 deviations in one direction, so it is the trace that counts. In two
dimensions a half is best, in six a fifth."""


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
    return np.asarray(diagonals(spreads) / np.maximum(points, FEWEST_POINTS)[:, None])


def merge_components(means: Array, spreads: Array, counts: Array, labels: Index) -> Components:
    """Components merged by label, each into one of the same mass, mean and covariance (within plus between).

    Examples
    --------
    >>> ones = np.ones((2, 1))
    >>> [x.tolist() for x in merge_components(np.array([[0.0], [4.0]]), ones, np.array([3.0, 1.0]), np.array([0, 0]))]
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
    parts = spreads + squares(means - centres[labels], spreads.ndim)
    np.add.at(total, labels, share.reshape(-1, *[1] * (spreads.ndim - 1)) * parts)
    return centres, total, mass


def squares(off: Array, ndim: int) -> Array:
    """Outer products of offsets, or their diagonals."""
    return off * off if ndim == 2 else off[:, :, None] * off[:, None, :]


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
    """Which features (N, D) of all components were measured."""
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
    overall = max(float(scatter.mean()), np.finfo(float).tiny)
    return np.asarray(np.minimum(spreads, scatter * np.maximum(1.0, spreads / overall)))


def resolution(models: Sequence[LocalModel]) -> Array:
    """Variance (D,) below which means of components are not distinguished: a share of the sites' mean within-variance.

    Examples
    --------
    >>> from modelweld.kinds.mixture import mixture
    >>> resolution([mixture([[0.0, 0.0], [9.0, 9.0]], [[1.0, 4.0], [3.0, 4.0]], [0.5, 0.5], counted=False)])
    array([1., 2.])
    """
    widths, sites, scatter = [], [], _scatter(models)
    for model in models:
        _, spreads, counts = parameters(model)
        if counts.sum() > 0:
            widths.append(counts @ _widths(spreads, scatter) / counts.sum())
            sites.append((np.asarray(model.weight.get("means", np.ones(spreads.shape[:2]))) > 0).any(axis=0))
    if not widths:
        return np.zeros(1)
    width = np.sum(widths, axis=0) / np.maximum(np.sum(sites, axis=0), 1)  # of sites that have measured it
    return np.asarray(np.clip(1 / len(width), NARROWEST, WIDEST) * width)


MOST_ROUNDS = 500
"""Rounds after which what is still missing stays as it is. Where one pattern lacks what all others have, the start is
the answer; else each round closes the gap by the share of what is known."""

CLOSE = 1e-9
"""Of a deviation: smaller changes of a mean are the end."""


def stack_components(fusion: FitResult) -> Components:
    """Means, covariances (or variances) and counts of all sites' components, one site below the other.

    What a site has not measured is completed.
    """
    models = fusion.models
    check_counted(
        models,
        "site {site} sends shares of its components, others numbers of points: they cannot be weighed against each "
        "other. Say how many points it has: read(model, n=...), counts=... or X=...",
    )
    means, spreads, counts = (np.concatenate(parts) for parts in zip(*map(parameters, models), strict=True))
    return complete((means, spreads, counts), feature_mask(models), fusion.matching.stacked_labels)


def complete_models(models: Sequence[LocalModel], parts: Components) -> list[LocalModel]:
    """The sites' models with components so completed."""
    if feature_mask(models).all():
        return list(models)
    means, spreads, _ = parts
    ends = np.cumsum([len(np.asarray(m.arrays["counts"])) for m in models])[:-1]
    result = []
    for model, own_means, own_spreads in zip(models, np.split(means, ends), np.split(spreads, ends), strict=True):
        name = "covariances" if spreads.ndim == 3 else "variances"
        weight = {array: w for array, w in model.weight.items() if array not in ("means", name)}
        result.append(model.with_(arrays={**model.arrays, "means": own_means, name: own_spreads}, weight=weight))
    return result


def complete(parts: Components, seen: Flags, labels: Index) -> Components:
    """The components with what was not seen filled in.

    Examples
    --------
    >>> parts = np.array([[0.0, 4.0], [2.0, 0.0]]), np.array([[1.0, 9.0], [1.0, 0.0]]), np.ones(2)
    >>> means, spreads, _ = complete(parts, np.array([[True, True], [True, False]]), np.array([0, 0]))
    >>> means.tolist(), spreads.tolist()
    ([[0.0, 4.0], [2.0, 4.0]], [[1.0, 9.0], [1.0, 9.0]])
    """
    means, spreads, counts = parts
    if seen.all():
        return parts
    means, spreads = _fill(means, spreads, counts, seen)
    for k in range(int(labels.max()) + 1):
        own = np.flatnonzero(labels == k)
        known = seen[own] | ~seen[own].any(axis=0)  # not measured at any site of the atom: filled in already
        if not known.all():
            means[own], spreads[own] = _fill(means[own], spreads[own], counts[own], known)
    return means, spreads, counts


def _fill(means: Array, spreads: Array, counts: Array, seen: Flags) -> tuple[Array, Array]:
    """Components of one Gaussian, completed."""
    means, spreads = means.copy(), spreads.copy()
    patterns = [(np.flatnonzero((seen == own).all(axis=1)), own) for own in np.unique(seen, axis=0) if not own.all()]
    whole = seen.all(axis=1)
    together = np.zeros(len(means), dtype=np.int64)
    centre, spread = _available(means, spreads, counts, seen)
    if spreads.ndim == 3 and (counts[whole] > 0).any():  # regressions of those who have measured everything
        (centre,), (spread,), _ = merge_components(means[whole], spreads[whole], counts[whole], together[whole])
    for _ in range(MOST_ROUNDS if spreads.ndim == 3 else 1):
        before = means.copy()
        for rows, own in patterns:
            _condition(means, spreads, rows, own, centre, spread)
        (centre,), (spread,), _ = merge_components(means, spreads, counts, together)
        width = np.sqrt(diagonals(spread[None])[0])
        if (np.abs(means - before) <= CLOSE * width).all():
            break
    return means, spreads


def _available(means: Array, spreads: Array, counts: Array, seen: Flags) -> tuple[Array, Array]:
    """Mean and variance of every feature among those who have it, uncorrelated."""
    share = (counts + (counts.sum() == 0))[:, None] * seen
    share = share / np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    centre = (share * means).sum(axis=0)
    variance = (share * (diagonals(spreads) + (means - centre) ** 2)).sum(axis=0)
    return centre, variance if spreads.ndim == 2 else np.diag(variance)


def _condition(means: Array, spreads: Array, rows: Index, own: Flags, centre: Array, spread: Array) -> None:
    """Complete some components, which have seen the same features, given the Gaussian they belong to."""
    o, u = np.flatnonzero(own), np.flatnonzero(~own)
    if spreads.ndim == 2:
        means[np.ix_(rows, u)], spreads[np.ix_(rows, u)] = centre[u], spread[u]
        return
    B = spread[np.ix_(u, o)] @ np.linalg.pinv(spread[np.ix_(o, o)], hermitian=True)
    left = spread[np.ix_(u, u)] - B @ spread[np.ix_(o, u)]
    across = B @ spreads[np.ix_(rows, o, o)]
    means[np.ix_(rows, u)] = centre[u] + (means[np.ix_(rows, o)] - centre[o]) @ B.T
    spreads[np.ix_(rows, u, o)], spreads[np.ix_(rows, o, u)] = across, np.swapaxes(across, 1, 2)
    spreads[np.ix_(rows, u, u)] = left + across @ B.T
