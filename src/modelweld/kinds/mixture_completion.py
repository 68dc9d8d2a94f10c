"""Components of all sites: stacked, merged by their moments, completed where a site lacks a feature.

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

from collections.abc import Sequence

import numpy as np

from modelweld.core.values import Array, Flags, Index
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.fused_parts import check_counted
from modelweld.kinds.mixture_components import Components, diagonals, feature_mask, parameters
from modelweld.results.fit_result import FitResult

MOST_ROUNDS = 500
"""Rounds after which what is still missing stays as it is. Where one pattern lacks what all others have, the start is
the answer; else each round closes the gap by the share of what is known."""


CLOSE = 1e-9
"""Of a deviation: smaller changes of a mean are the end."""


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
    return complete((means, spreads, counts), measured(models), fusion.matching.stacked_labels)


def measured(models: Sequence[LocalModel]) -> Flags:
    """Which features (N, D) of all components were measured: their means count, or count for nothing and have a width.

    Examples
    --------
    >>> from modelweld.kinds.mixture import mixture
    >>> site = mixture([[0.0, 99.0]], [[1.0, 4.0]], [5.0], counted=True)
    >>> refuted = site.with_(weight={"means": [[1.0, 0.0]]})
    >>> lacking = site.with_(weight={"means": [[1.0, 0.0]], "variances": [[1.0, 0.0]]})
    >>> measured([refuted, lacking]).tolist()
    [[True, True], [True, False]]
    """
    return np.asarray(feature_mask(models) | np.concatenate([_have_width(model) for model in models]))


def _have_width(model: LocalModel) -> Flags:
    _, spreads, _ = parameters(model)
    widths = model.weight.get("covariances", model.weight.get("variances", spreads))
    return np.asarray(diagonals(np.broadcast_to(widths, spreads.shape)) > 0)


def complete_models(models: Sequence[LocalModel], parts: Components) -> list[LocalModel]:
    """The sites' models with components so completed."""
    if measured(models).all():
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
