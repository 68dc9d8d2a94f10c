"""Fewer components for the same density: the union of the sites' mixtures, and Runnalls' greedy way down from it.

Merging components i and j into one of the same mean and covariance costs at most

    B(i, j) = 1/2 [(w_i + w_j) log|P_ij| - w_i log|P_i| - w_j log|P_j|]

nats of the data's log likelihood (w in points; Runnalls 2007). The cheapest pair is merged, again and again. It knows
no identities, no K and no confidence, but where only the density matters little beats it at equal K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.kinds.mixture_components import Components, merge_components
from modelweld.kinds.mixture_lacking import complete_models, stack_components
from modelweld.matching.result import matching_by_labels

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


SMALLEST_VARIANCE = np.finfo(float).tiny
"""Components that have collapsed to a point count as this wide: their logarithm is still a number."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """The whole way from the union down to one component.

    Attributes
    ----------
    fusion : Fusion
        Whose components are merged.
    pairs : list of (int, int)
        Components merged in each step: the second becomes part of the first.
    losses : array (N,)
        ``losses[K - 1]``: nats per point that the mixture of K components loses against the union, at most.
    """

    fusion: Fusion
    pairs: list[tuple[int, int]]
    losses: Array

    def labels(self, K: int) -> Index:
        """Which of K components each of the union's belongs to."""
        N = len(self.losses)
        if not 1 <= K <= N:
            raise InputError(f"the union has {N} components: K is between 1 and {N}; found {K}.")
        return _labels_after(self.pairs[: N - K], N)

    def at(self, K: int) -> Fusion:
        """The fusion with K components."""
        return relabel(self.fusion, self.labels(K), "reduction")


def reduction(fusion: Fusion) -> Reduction:
    """Merge the union of all sites' components pair by pair, always the cheapest."""
    means, spreads, counts = _union_of(fusion)
    pairs, losses = _way_down(means, spreads, counts, 1)
    return Reduction(fusion, pairs, losses / max(float(counts.sum()), SMALLEST_VARIANCE))


def reduce_to(means: Array, spreads: Array, counts: Array, K: int) -> Index:
    """Which of at most K components each of these belongs to.

    Examples
    --------
    >>> reduce_to(np.array([[0.0], [9.0], [1.0]]), np.ones((3, 1)), np.ones(3), 2).tolist()
    [0, 1, 0]
    """
    return _labels_after(_way_down(means, spreads, counts, K)[0], len(means))


def _labels_after(pairs: list[tuple[int, int]], N: int) -> Index:
    """Labels 0, 1, ... after these pairs of N components were merged."""
    labels = np.arange(N)
    for first, second in pairs:
        labels[labels == second] = first
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _way_down(means: Array, spreads: Array, counts: Array, K: int) -> tuple[list[tuple[int, int]], Array]:
    """Pairs merged until K components are left, and the loss in nats with 1, 2, ... of them."""
    means, spreads, counts = means.copy(), spreads.copy(), counts.copy()
    N = len(means)
    volumes = log_volumes(spreads)
    cost = np.full((N, N), np.inf)
    for i in range(N - 1):
        cost[i, i + 1 :] = _costs(means, spreads, counts, volumes, i, np.arange(i + 1, N))
    best = cost.argmin(axis=1)  # of each component, the cheapest among those after it
    lowest = cost[np.arange(N), best]
    alive = np.ones(N, dtype=bool)
    pairs, steps = [], np.zeros(N)
    for size in range(N, K, -1):
        i = int(lowest.argmin())
        j = int(best[i])
        steps[size - 2] = cost[i, j]
        pairs.append((i, j))
        two = np.array([i, j])
        (means[i],), (spreads[i],), (counts[i],) = merge_components(
            means[two], spreads[two], counts[two], np.zeros_like(two)
        )
        volumes[i] = log_volumes(spreads[[i]])[0]
        alive[j] = False
        cost[j], cost[:, j] = np.inf, np.inf
        others = np.flatnonzero(alive & (np.arange(N) != i))
        cost[np.minimum(i, others), np.maximum(i, others)] = _costs(means, spreads, counts, volumes, i, others)
        closer = (cost[:, i] < lowest) | ((cost[:, i] == lowest) & (i < best))
        again = np.flatnonzero(((best == i) | (best == j) | (np.arange(N) == i) | (np.arange(N) == j)) & ~closer)
        best[closer], lowest[closer] = i, cost[closer, i]
        best[again] = cost[again].argmin(axis=1)
        lowest[again] = cost[again, best[again]]
    return pairs, np.cumsum(steps[::-1])[::-1]


def union(fusion: Fusion) -> Fusion:
    """Every component of every site, each an atom of its own."""
    return relabel(fusion, np.arange(len(_union_of(fusion)[0])), "union")


def relabel(fusion: Fusion, labels: Index, engine: str) -> Fusion:
    """The same sites with another matching of their components, for its density alone."""
    ((name, matching),) = fusion.matchings.items()
    parts = _union_of(fusion)
    means, _, _ = merge_components(*parts, labels)
    found = matching_by_labels(labels, matching.offsets, "means", means, engine)
    return fusion.with_(given=complete_models(fusion.models, parts), matchings={name: found}, settings={})


def log_volumes(spreads: Array) -> Array:
    """Log determinants of covariances (..., D, D), or of the diagonal matrices of variances (..., D)."""
    if spreads.ndim == 2:
        return np.asarray(np.log(np.maximum(spreads, SMALLEST_VARIANCE)).sum(axis=-1))
    return np.asarray(np.maximum(np.linalg.slogdet(spreads)[1], np.log(SMALLEST_VARIANCE) * spreads.shape[-1]))


def _union_of(fusion: Fusion) -> Components:
    if fusion.models[0].kind != "mixture":
        raise InputError("union and reduce are for mixtures and k-means; these sites sent something else.")
    return stack_components(fusion)


def _costs(means: Array, spreads: Array, counts: Array, volumes: Array, i: int, others: Index) -> Array:
    """B(i, j) for all j of `others`."""
    both = counts[i] + counts[others]
    own = np.divide(counts[i], both, out=np.full(len(others), 0.5), where=both > 0)
    off = means[others] - means[i]
    if spreads.ndim == 2:
        pairs = (
            own[:, None] * spreads[i] + (1 - own)[:, None] * spreads[others] + (own * (1 - own))[:, None] * off * off
        )
    else:
        own = own[:, None, None]
        pairs = own * spreads[i] + (1 - own) * spreads[others] + own * (1 - own) * off[:, :, None] * off[:, None, :]
    return np.asarray(0.5 * (both * log_volumes(pairs) - counts[i] * volumes[i] - counts[others] * volumes[others]))
