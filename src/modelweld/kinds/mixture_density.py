"""K components as near as possible to the density of all sites' mixtures: `fusion.model(how="density")`.

Near is meant as for data: points of the union U of all sites' mixtures are to be as probable as possible, E_U log f.
Runnalls' reduction (`mixture_reduction`) merges whole components; where K is small, a wide component belongs to several
of the K in parts. So, from the reduction on, points decide: expectation-maximisation on points drawn from the union,

    s <- (1 - g) s + g (statistics of new points, shared among the K by responsibility),
    g = (2 + rounds after the first STEADY)^-STEP

(stochastic approximation; Delyon, Lavielle & Moulines 1999). Every round has points of its own, so that nothing is
fitted to draws, and the points of a component have exactly its mean and covariance: what goes to one of the K as a
whole arrives there without noise. Unless the result is better on fresh points, the start stays.

Components of `how="density"` under the numbers of the groups whose points they take.

The nearest density of K components knows of the groups only their number. So that `predict` and `fusion.labels` speak
of the same groups, each component has the number of the group with which it shares most points, and where a group's
points go elsewhere that is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from modelweld.core.values import Array, Index, block_size
from modelweld.errors import SHOWN, DensityWarning, warn_user
from modelweld.kinds.mixture_completion import merge_components, squares
from modelweld.kinds.mixture_components import Components

STEADY, ROUNDS, STEP = 20, 40, 0.6
"""Rounds with steps of the first size, to get there, and all rounds; and the power by which steps fall then. On the
sets of experiments/mixtures they gain up to .03 nats per held-out row on 30 rounds whose steps fall from the first.
Between 1/2 and 1 steps add up to infinity, their squares do not: the maximum is reached, noise averaged out."""

FEWEST_POINTS, POINTS_PER_DIMENSION, FRESH = 24, 4, 4
"""Of a component in a round. Half of them mirror the others; D of these are needed to have a given covariance. Times as
many, fresh ones, choose between start and result."""


def nearest(parts: Components, start: Components) -> Components:
    """The start softened, if points of the union `parts` are then more probable; else the start.

    Examples
    --------
    >>> parts = np.array([[0.0], [3.0], [99.0]]), np.array([[1.0], [9.0], [1.0]]), np.ones(3)
    >>> start = np.array([[1.5], [90.0]]), np.array([[7.0], [1.0]]), np.array([2.0, 1.0])
    >>> nearest(parts, start)[0].round(1).tolist()
    [[1.5], [99.0]]
    """
    held = parts[2] > 0
    if not held.any():
        return start
    parts = parts[0][held], parts[1][held], parts[2][held]
    rng = np.random.default_rng(0)
    try:
        soft = soften(parts, start, rng)
        points, weight = draw_points(parts, rng, FRESH)
        gain = log_likelihood(soft, points, weight) - log_likelihood(start, points, weight)
        return soft if gain > 0 else start
    except np.linalg.LinAlgError:  # a component without volume: there is no density to come near to
        return start


def soften(parts: Components, start: Components, rng: np.random.Generator) -> Components:
    """The mixture after ROUNDS rounds from `start`; components without mass stay as they are."""
    origin = np.average(parts[0], axis=0, weights=parts[2])
    parts = parts[0] - origin, parts[1], parts[2] / parts[2].sum()
    means, spreads, mass = start[0] - origin, start[1], start[2] / start[2].sum()
    sums = [mass, mass[:, None] * means, _times(mass, spreads + squares(means, spreads.ndim))]
    for t in range(ROUNDS):
        step = (2 + max(t - STEADY, 0)) ** -STEP
        new = statistics((means, spreads, mass), *draw_points(parts, rng))
        sums = [(1 - step) * old + step * fresh for old, fresh in zip(sums, new, strict=True)]
        mass, held = sums[0], sums[0] > 0
        safe = np.where(held, mass, 1.0)
        means = np.where(held[:, None], sums[1] / safe[:, None], means)
        found = _times(1 / safe, sums[2]) - squares(means, spreads.ndim)
        spreads = np.where(held.reshape(-1, *[1] * (spreads.ndim - 1)), found, spreads)
    return means + origin, spreads, mass * start[2].sum()


def points_per_component(D: int) -> int:
    """Points of a component in a round."""
    return max(FEWEST_POINTS, POINTS_PER_DIMENSION * D)


def draw_points(parts: Components, rng: np.random.Generator, times: int = 1) -> tuple[Array, Array]:
    """Points (n, D) of all components, each component's with exactly its mean and covariance, and their weights (n,).

    Examples
    --------
    >>> points, weight = draw_points((np.array([[5.0]]), np.array([[4.0]]), np.ones(1)), np.random.default_rng(0))
    >>> len(points), round(float(points.mean()), 9), round(float(points.var()), 9), round(float(weight.sum()), 9)
    (24, 5.0, 4.0, 1.0)
    """
    means, spreads, counts = parts
    N, D = means.shape
    half = times * points_per_component(D) // 2
    z = rng.standard_normal((N, half, D))
    z = z @ np.swapaxes(np.linalg.inv(np.linalg.cholesky(np.swapaxes(z, 1, 2) @ z / half)), 1, 2)
    roots, z = _roots(spreads), np.concatenate([z, -z], axis=1)
    off = z * roots[:, None] if roots.ndim == 2 else z @ np.swapaxes(roots, 1, 2)
    return (means[:, None] + off).reshape(-1, D), np.repeat(counts / counts.sum() / (2 * half), 2 * half)


def statistics(mixture: Components, points: Array, weight: Array) -> list[Array]:
    """Mass, first and second moments of the points that fall to each component."""
    means, spreads, mass = mixture
    sums = [np.zeros_like(mass), np.zeros_like(means), np.zeros_like(spreads)]
    for block, share in responsibilities(mixture, points):
        share = share * weight[block]
        x = points[block]
        sums[0] += share.sum(axis=1)
        sums[1] += share @ x
        if spreads.ndim == 2:
            sums[2] += share @ (x * x)
        else:
            for k, own in enumerate(share):
                sums[2][k] += (own[:, None] * x).T @ x
    return sums


def responsibilities(mixture: Components, points: Array) -> Iterator[tuple[slice, Array]]:
    """Shares (K, n) of the components in the points, block by block."""
    for block, logs in _blocks(mixture, points):
        yield block, np.exp(logs - _log_sum(logs))


def log_likelihood(mixture: Components, points: Array, weight: Array) -> float:
    """Mean log density of weighted points.

    Examples
    --------
    >>> one = np.zeros((1, 2)), np.eye(2)[None], np.array([7.0])
    >>> round(log_likelihood(one, np.zeros((1, 2)), np.ones(1)), 3)  # -log 2 pi
    -1.838
    """
    return float(log_densities(mixture, points) @ weight)


def log_densities(mixture: Components, points: Array) -> Array:
    """Of each of the points (n,)."""
    return np.concatenate([_log_sum(logs) for _, logs in _blocks(mixture, points)])


def _blocks(mixture: Components, points: Array) -> Iterator[tuple[slice, Array]]:
    """Log densities (K, n) of the points, weights included, so many at a time that they fit."""
    means, spreads, mass = mixture
    roots = _roots(spreads)
    whiten = 1 / roots if roots.ndim == 2 else np.linalg.inv(roots)
    with np.errstate(divide="ignore"):  # components without mass
        heights = np.log(mass / mass.sum()) - means.shape[1] / 2 * np.log(2 * np.pi)
    heights += np.log(whiten if whiten.ndim == 2 else np.diagonal(whiten, axis1=1, axis2=2)).sum(axis=1)
    size = block_size(len(mass))
    for a in range(0, len(points), size):
        block = slice(a, a + size)
        logs = np.empty((len(mass), len(points[block])))
        for k, (mean, W) in enumerate(zip(means, whiten, strict=True)):
            off = points[block] - mean
            y = off * W if W.ndim == 1 else off @ W.T
            logs[k] = heights[k] - 0.5 * np.einsum("nd,nd->n", y, y)
        yield block, logs


def _log_sum(logs: Array) -> Array:
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))


def _roots(spreads: Array) -> Array:
    """Deviations (K, D), or lower triangular matrices (K, D, D) whose squares are the covariances."""
    if spreads.ndim == 3:
        return np.asarray(np.linalg.cholesky(spreads))
    if not (spreads > 0).all():
        raise np.linalg.LinAlgError
    return np.sqrt(spreads)


def _times(mass: Array, values: Array) -> Array:
    return np.asarray(mass.reshape(-1, *[1] * (values.ndim - 1)) * values)


def number_by_groups(mixture: Components, parts: Components, labels: Index) -> Components:
    """The same components, in the order of the groups `labels` of the parts with which they share most points.

    Components that take no group's points come last, with the numbers that are left.

    Examples
    --------
    >>> parts = np.array([[0.0], [9.0]]), np.ones((2, 1)), np.ones(2)
    >>> mixture = np.array([[9.1], [0.1]]), np.ones((2, 1)), np.ones(2)
    >>> number_by_groups(mixture, parts, np.array([0, 1]))[0].tolist()
    [[0.1], [9.1]]
    """
    shared = _count_shared(mixture, parts, labels)
    if shared is None:
        return mixture
    order = order_like(shared)
    return mixture[0][order], mixture[1][order], mixture[2][order]


def order_like(shared: Array) -> Index:
    """Components in the order of the groups with which they share most points (groups, components), one to one."""
    place = np.full(shared.shape[1], shared.shape[0])
    groups, components = scipy.optimize.linear_sum_assignment(shared, maximize=True)
    place[components] = groups
    return np.asarray(np.argsort(place, kind="stable"))


def warn_of_moved(mixture: Components, parts: Components, labels: Index, K: int) -> None:
    """Say so if most points of some of the first K groups go to components of other numbers, and need not."""
    own, merged = (_count_shared(m, parts, labels) for m in (mixture, merge_components(*parts, labels)))
    if own is None or merged is None:
        return
    number = np.arange(len(own))
    moved = np.flatnonzero((own.argmax(1) != number) & (merged.argmax(1) == number) & (number < K))
    if len(moved):
        more = f" and {len(moved) - SHOWN} more" if len(moved) > SHOWN else ""
        warn_user(
            f"most points of group {', '.join(map(str, moved[:SHOWN]))}{more} go to another component of the fused "
            "mixture, whose predict differs from fusion.labels there: use fusion.model(how='moments') for groups.",
            DensityWarning,
        )


def _count_shared(mixture: Components, parts: Components, labels: Index) -> Array | None:
    """Points (groups, components) that each component takes of each group; None for what is no density."""
    held = parts[2] > 0
    if not held.any():
        return None
    drawn = parts[0][held], parts[1][held], parts[2][held]
    shared = np.zeros((int(labels.max()) + 1, len(mixture[0])))
    try:
        points, weight = draw_points(drawn, np.random.default_rng(0))
        group = np.repeat(labels[held], len(points) // len(drawn[0]))
        for block, share in responsibilities(mixture, points):
            np.add.at(shared, group[block], (share * weight[block]).T)
    except np.linalg.LinAlgError:  # a component without volume
        return None
    return shared
