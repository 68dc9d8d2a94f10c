"""Fewer components for the same density: the union of the sites' mixtures, and Runnalls' greedy way down from it.

Merging components i and j into one of the same mean and covariance costs at most

    B(i, j) = 1/2 [(w_i + w_j) log|P_ij| - w_i log|P_i| - w_j log|P_j|]

nats of the data's log likelihood (w in points; Runnalls 2007). The cheapest pair is merged, again and again. It knows
no identities, no K and no confidence, but where only the density matters little beats it at equal K.

What a mixture of few components costs as a density, in nats per point against the union of all sites' mixtures.

The price of a mixture f is KL(U || f) = E_U [log U - log f], U the union: by so many nats is a new point less probable
on average. It is a mean over points drawn from U, the same for every f, so that prices compare.

Not all of it is lost. The union has estimation errors that a merged component averages out: N components of p
parameters each, fitted to n points, are nearer to their own points than K by (N - K) p / 2n nats per point if all that
tells them apart is chance (Wilks 1938). So a price is high where it exceeds this by more than HIGH_PRICE.

Fused components of mixtures, in the ways that `fusion.model(how=...)` offers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import modelweld
from modelweld.core.values import Array, Index, group_of_values
from modelweld.errors import DensityWarning, InputError, warn_user
from modelweld.families.hyperparameters import SMALLEST_POSITIVE
from modelweld.kinds.fused_parts import fuse_parameters
from modelweld.kinds.mixture_completion import complete_models, merge_components, squares, stack_components
from modelweld.kinds.mixture_components import NOMINAL_POINTS, Components, parameters
from modelweld.kinds.mixture_density import (
    draw_points,
    log_densities,
    nearest,
    number_by_groups,
    order_like,
    points_per_component,
    warn_of_moved,
)
from modelweld.results.fit_result import FitResult, matching_by_labels


@dataclass(frozen=True, eq=False)
class Reduction:
    """The whole way from the union down to one component.

    Attributes
    ----------
    pairs : list of (int, int)
        Components merged in each step: the second becomes part of the first.
    losses : array (N,)
        ``losses[K - 1]``: nats per point that the mixture of K components loses against the union, at most.
    make : callable
        Makes a fusion of labels.
    """

    pairs: list[tuple[int, int]]
    losses: Array
    make: Callable[[Index], modelweld.Fusion]

    def labels(self, K: int) -> Index:
        """Which of K components each of the union's belongs to."""
        N = len(self.losses)
        if not 1 <= K <= N:
            raise InputError(f"the union has {N} components: K is between 1 and {N}; found {K}.")
        return _labels_after(self.pairs[: N - K], N)

    def at(self, K: int) -> modelweld.Fusion:
        """The fusion with K components."""
        return self.make(self.labels(K))


class Density:
    """Fused mixtures as densities, ``fusion.density``: fewer components, and the loss in log density at K components.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.kinds.mixture import mixture
    >>> sites = [mixture([[m], [9.0]], [[1.0], [1.0]], [50, 50], counted=True) for m in (0.0, 0.1)]
    >>> modelweld.fuse(sites).density.union().K
    4
    """

    def __init__(self, fit: FitResult, make: Callable[[FitResult], modelweld.Fusion]) -> None:
        self._fit = fit
        self._make = make

    def union(self) -> modelweld.Fusion:
        """All components of all sites' mixtures, none matched: hard to beat as a density, but large."""
        fit = self._fit.drop_duplicates()
        return self._make(relabel(fit, np.arange(len(_union_of(fit)[0])), "union"))

    def reduction(self) -> Reduction:
        """The whole way from the union of the sites' mixtures to one component, with the loss at every K."""
        fit = self._fit.drop_duplicates()
        means, spreads, counts = _union_of(fit)
        pairs, losses = _way_down(means, spreads, counts, 1)
        losses = losses / max(float(counts.sum()), SMALLEST_POSITIVE)
        return Reduction(pairs, losses, lambda labels: self._make(relabel(fit, labels, "reduction")))

    def reduce(self, K: int) -> modelweld.Fusion:
        """The same mixtures with K components, for their density alone: see `reduction` for all K at once.

        Examples
        --------
        >>> import modelweld
        >>> from modelweld.kinds.mixture import mixture
        >>> ones = [[1.0], [1.0]]
        >>> sites = [mixture(means, ones, [5, 5], counted=True) for means in ([[0.0], [9.0]], [[0.5], [7.0]])]
        >>> fusion = modelweld.fuse(sites).density.reduce(2)
        >>> fusion.model(how="moments", like="GaussianMixture").means_.round(2).tolist()
        [[0.25], [8.0]]
        """
        return self.reduction().at(K)

    def loss(self, how: str | None = None, K: int | None = None) -> float:
        """Loss in log density, nats per point, of the fused mixture against the `union`, or of one of K components.

        An estimate on drawn points, the same each time: its error is some hundredths.

        Examples
        --------
        >>> import modelweld
        >>> from modelweld.kinds.mixture import mixture
        >>> sites = [mixture([[m], [9.0]], [[w], [1.0]], [50, 50], counted=True) for m, w in ((0.0, 1.0), (0.1, 100.0))]
        >>> fusion = modelweld.fuse(sites)
        >>> [round(fusion.density.loss(K=K), 1) for K in (1, 2)]
        [0.5, 0.2]
        """
        fit = self._fit
        if fit.models[0].kind != "mixture":
            raise InputError("density.loss is for mixtures and k-means; these sites sent other models.")
        if K is None and how == "atoms":
            return gauge(fit).price(parameters(fuse_parameters(fit, how)))
        said = len(fit.counts) if K is None else K  # so that nothing is warned of
        return gauge(fit).price(parameters(fuse_parameters(fit, how, K=said)))


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


def relabel(fusion: FitResult, labels: Index, engine: str) -> FitResult:
    """The same sites with another matching of their components, for its density alone."""
    ((name, matching),) = fusion.matchings.items()
    parts = _union_of(fusion)
    means, _, _ = merge_components(*parts, labels)
    found = matching_by_labels(labels, matching.offsets, "means", means, engine)
    return fusion.with_(given=complete_models(fusion.models, parts), matchings={name: found}, settings={})


def log_volumes(spreads: Array) -> Array:
    """Log determinants of covariances (..., D, D), or of the diagonal matrices of variances (..., D)."""
    if spreads.ndim == 2:
        return np.asarray(np.log(np.maximum(spreads, SMALLEST_POSITIVE)).sum(axis=-1))
    return np.asarray(np.maximum(np.linalg.slogdet(spreads)[1], np.log(SMALLEST_POSITIVE) * spreads.shape[-1]))


def _union_of(fusion: FitResult) -> Components:
    if fusion.models[0].kind != "mixture":
        raise InputError("union and reduce are for mixtures and k-means; these sites sent other models.")
    return stack_components(fusion)


def _costs(means: Array, spreads: Array, counts: Array, volumes: Array, i: int, others: Index) -> Array:
    """B(i, j) for all j of `others`."""
    both = counts[i] + counts[others]
    own = np.divide(counts[i], both, out=np.full(len(others), 0.5), where=both > 0)
    off = means[others] - means[i]
    own = own.reshape(-1, *[1] * (spreads.ndim - 1))
    pairs = own * spreads[i] + (1 - own) * spreads[others] + own * (1 - own) * squares(off, spreads.ndim)
    return np.asarray(0.5 * (both * log_volumes(pairs) - counts[i] * volumes[i] - counts[others] * volumes[others]))


HIGH_PRICE = 0.25
"""Nats per point beyond chance from which a price is worth a word: an average point is 1.28 times less probable.
Simulated sites whose fused mixture loses less than .1 on points held out stay below it (`experiments/right`, three
seeds), weather and people's movements begin at .3."""

FEWEST_DRAWN = 4000
"""Points on which prices are measured, at least: two sets of them agree within about .02 nats, and are as much too low,
for points of exact covariance have light tails."""


@dataclass(frozen=True, eq=False)
class Gauge:
    """The union of all sites' mixtures, by which densities are priced.

    Attributes
    ----------
    parts : Components
        Of the union, those without points left out.
    size : int
        How many components it has, those without points included.
    observed : float
        Points behind it.
    points, weight : arrays (n, D), (n,)
        Drawn from it.
    height : array (n,)
        Log density of the union at each.
    site : array (N,)
        Whose the parts are.
    """

    parts: Components
    size: int
    observed: float
    points: Array
    weight: Array
    height: Array
    site: Index

    def price(self, mixture: Components) -> float:
        """Nats per point that a mixture loses against the union."""
        return float(self.prices(mixture) @ self._weights())

    def prices(self, mixture: Components) -> Array:
        """The same per point of each site (J,); zero for a site without points."""
        site = np.repeat(self.site, len(self.points) // len(self.site))
        lost = np.bincount(site, self.weight * (self.height - log_densities(mixture, self.points)))
        return np.asarray(lost / np.maximum(np.bincount(site, self.weight), SMALLEST_POSITIVE))

    def chance(self, K: int) -> float:
        """Nats per point that K components would lose if the union's were estimates of as few."""
        return float(self.chances(K) @ self._weights())

    def chances(self, K: int) -> Array:
        """The same per point of each site (J,), of whose components so many points are the estimates."""
        D, full = int(self.parts[0].shape[1]), self.parts[1].ndim == 3
        each = 1 + D + (D * (D + 1) // 2 if full else D)
        points = np.maximum(self.observed * self._weights(), SMALLEST_POSITIVE)
        return np.asarray((1 - K / self.size) * np.bincount(self.site) * each / (2 * points))

    def _weights(self) -> Array:
        """Share of each site in all points."""
        return np.asarray(np.bincount(self.site, self.parts[2]) / self.parts[2].sum())

    def is_high(self, price: float, K: int) -> bool:
        """Whether K components cost more than chance and HIGH_PRICE together."""
        return price > self.chance(K) + HIGH_PRICE


def gauge(fusion: FitResult) -> Gauge:
    """The gauge of a fusion's sites; the same whatever their order."""
    (means, spreads, counts), site = stack_components(fusion), group_of_values(fusion.matching.offsets)
    if not len(held := np.flatnonzero(counts > 0)):
        raise InputError("no component of any site stands for points: their union is no density.")
    order = held[np.lexsort((counts[held], *means[held].T[::-1]))]
    parts = means[order], spreads[order], counts[order]
    times = -(-FEWEST_DRAWN // (len(order) * points_per_component(means.shape[1])))
    try:
        points, weight = draw_points(parts, np.random.default_rng(0), times)
        height = log_densities(parts, points)
    except np.linalg.LinAlgError:
        raise InputError("some component has no volume: fit with a ridge (reg_covar), or fewer components.") from None
    counted = fusion.models[0].facts["counted"]
    observed = float(counts.sum()) if counted else NOMINAL_POINTS * len(fusion.models)
    return Gauge(parts, len(means), observed, points, weight, height, site[order])


def warn_of_price(fusion: FitResult, mixture: Components) -> None:
    """Say so if a mixture of as many components as there are atoms costs much, and which number of them does not."""
    try:
        by = gauge(fusion)
    except InputError:  # no density: nothing to compare with
        return
    K, cost = len(mixture[0]), by.price(mixture)
    if not by.is_high(cost, K):
        return _warn_of_site(fusion, by.prices(mixture), by.chances(K))
    enough, little = cheap_size(fusion, by)
    assumed = "" if fusion.models[0].facts["counted"] else f", if each site has {NOMINAL_POINTS:g} points"
    warn_user(
        f"as a density, the fused mixture of {K} components, one per atom, loses {cost:.2f} nats per point against the "
        f"union of all {len(fusion.models)} sites' {by.size} components; errors of estimation explain "
        f"{by.chance(K):.2f} of it{assumed}. fusion.model(K={enough}) loses {little:.2f} or less, "
        "fusion.density.union().model() nothing; fusion.model(how='moments') has one component per group.",
        DensityWarning,
    )


def _warn_of_site(fusion: FitResult, lost: Array, chance: Array) -> None:
    """Say whose density is lost, of sites that lose `lost` nats per row, where all together lose little."""
    j = int((lost - chance).argmax())
    if lost[j] > chance[j] + HIGH_PRICE:
        warn_user(
            f"the fused mixture fits rows of site {fusion.sites[j]!r} worse than the union of all sites' components, "
            f"by {lost[j]:.2f} nats per row (errors of estimation explain {chance[j]:.2f}). For the density take more "
            "components, fusion.model(K=...), or all, fusion.density.union().model().",
            DensityWarning,
        )


def cheap_size(fusion: FitResult, by: Gauge) -> tuple[int, float]:
    """The least number of components, on the greedy way down from the union, whose price is not high; and the price.

    By bisection: prices fall with the number of components, but for the noise of drawn points. Softened mixtures
    (`how="density"`) of as many cost less.
    """
    parts = stack_components(fusion)
    pairs, N = _way_down(*_union_of(fusion.drop_duplicates()), 1)[0], len(parts[0])
    low, high, found = 0, by.size, 0.0
    while high - low > 1:
        K = (low + high) // 2
        cost = by.price(merge_components(*parts, _labels_after(pairs[: N - K], N)))
        if by.is_high(cost, K):
            low = K
        else:
            high, found = K, cost
    return high, found


HOWS = {
    "density": "as many components as there are atoms (or K=...), as near as possible to the density of all sites' "
    "mixtures; each has the number of the group with which it shares most points, and a warning names groups most of "
    "whose points go elsewhere",
    "moments": "the components of an atom merged into one with their common mean and covariance; with K=... the two "
    "whose merger costs the density least are merged until K are left",
    "atoms": "the atoms themselves as means, which are shrunk towards the others where sites are few",
}
"""Ways to make fused parameters, the default first."""


LARGEST_SOFTENED = 1e8
"""Components x atoms x dimensions^3 (without covariances: x dimensions) from which `density` is no longer the default:
beyond this it takes more than some ten seconds."""


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
    most, what = (len(labels), "components") if how == "density" else (len(fusion.counts), "atoms")
    if K is not None and how == "atoms":
        raise InputError("how='atoms' has a component per atom; K goes with how='density' or 'moments'.")
    if K is not None and not 1 <= K <= most:
        raise InputError(f"there are {most} {what}: with how={how!r}, K is between 1 and {most}; found {K}.")
    if how == "density":
        found = densest(*parts, labels, len(fusion.counts) if K is None else K)
        if K is None and fusion.matching.engine not in ("reduction", "draw"):  # asked for; not looked at
            warn_of_price(fusion, found)
            warn_of_moved(found, parts, labels, fusion.K)
        return found
    merged = means, spreads, counts = merge_components(*parts, labels)
    if how == "atoms":
        atoms = fusion.array("means")
        return atoms, spreads + squares(means - atoms, spreads.ndim), counts
    return merged if K is None else merge_components(*merged, reduce_to(*merged, K))


def count_names(fusion: FitResult) -> tuple[Array, list[str]] | None:
    """Points (atoms, names) of what sites call their groups, and these names; None if they are mere numbers."""
    called = [
        (int(atom), float(points), str(name))
        for labels, model in zip(fusion.labels, fusion.models, strict=True)
        if isinstance(own := model.facts.get("labels"), (list, tuple))
        for atom, points, name in zip(labels, parameters(model)[2], own, strict=False)
        if not str(name).isdigit()
    ]
    names = sorted({name for _, _, name in called})
    found = np.zeros((len(fusion.counts), len(names)))
    for atom, points, name in called:
        found[atom, names.index(name)] += points
    return (found, names) if names else None
