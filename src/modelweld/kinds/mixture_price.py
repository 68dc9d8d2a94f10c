"""What a mixture of few components costs as a density, in nats per point against the union of all sites' mixtures.

The price of a mixture f is KL(U || f) = E_U [log U - log f], U the union: by so many nats is a new point less probable
on average. It is a mean over points drawn from U, the same for every f, so that prices compare.

Not all of it is lost. The union has estimation errors that a merged component averages out: N components of p
parameters each, fitted to n points, are nearer to their own points than K by (N - K) p / 2n nats per point if all that
tells them apart is chance (Wilks 1938). So a price is high where it exceeds this by more than HIGH_PRICE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import DensityWarning, InputError, warn_user
from modelweld.inputs.local_model import Array
from modelweld.kinds.mixture_components import NOMINAL_POINTS, Components, merge_components, parameters
from modelweld.kinds.mixture_density import draw_points, log_likelihood, points_per_component
from modelweld.kinds.mixture_lacking import stack_components

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

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
    assumed : str
        How their number was come by where sites did not send it, in words.
    points, weight : arrays (n, D), (n,)
        Drawn from it.
    height : float
        The mean log density of the union on them.
    """

    parts: Components
    size: int
    observed: float
    assumed: str
    points: Array
    weight: Array
    height: float

    def price(self, mixture: Components) -> float:
        """Nats per point that a mixture loses against the union."""
        return self.height - log_likelihood(mixture, self.points, self.weight)

    def chance(self, K: int) -> float:
        """Nats per point that K components would lose if the union's were estimates of as few."""
        D, full = int(self.parts[0].shape[1]), self.parts[1].ndim == 3
        each = 1 + D + (D * (D + 1) // 2 if full else D)
        return (self.size - K) * each / (2 * self.observed)

    def is_high(self, price: float, K: int) -> bool:
        """Whether K components cost more than chance and HIGH_PRICE together."""
        return price > self.chance(K) + HIGH_PRICE


def gauge(fusion: Fusion) -> Gauge:
    """The gauge of a fusion's sites; the same whatever their order."""
    means, spreads, counts = stack_components(fusion)
    held = np.flatnonzero(counts > 0)
    if not len(held):
        raise InputError("no component of any site stands for points: their union is no density.")
    order = held[np.lexsort((counts[held], *means[held].T[::-1]))]
    parts = means[order], spreads[order], counts[order]
    times = -(-FEWEST_DRAWN // (len(order) * points_per_component(means.shape[1])))
    try:
        points, weight = draw_points(parts, np.random.default_rng(0), times)
        height = log_likelihood(parts, points, weight)
    except np.linalg.LinAlgError:
        raise InputError(
            "some component has no volume, as one of a single point has none: the union of the sites' mixtures is no "
            "density, and nothing can be priced. Fit with a ridge (reg_covar), or fewer components."
        ) from None
    observed, assumed = _observed(fusion, counts)
    return Gauge(parts, len(means), observed, assumed, points, weight, height)


def _observed(fusion: Fusion, counts: Array) -> tuple[float, str]:
    if fusion.models[0].facts["counted"]:
        return float(counts.sum()), ""
    J = len(fusion.models)
    return (
        NOMINAL_POINTS * J,
        f" if each site has {NOMINAL_POINTS:g} points, which read(model, n=...) would say",
    )


def price(fusion: Fusion, how: str | None, K: int | None) -> float:
    """Nats per point that a fused mixture loses against the union of the sites' mixtures."""
    if fusion.models[0].kind != "mixture":
        raise InputError("a price is that of a mixture or k-means as a density; these sites sent something else.")
    if K is None and how == "atoms":
        return gauge(fusion).price(parameters(fusion.fused(how)))
    said = len(fusion.counts) if K is None else K  # so that nothing is warned of
    return gauge(fusion).price(parameters(fusion.fused(how, K=said)))


def warn_of_price(fusion: Fusion, mixture: Components) -> None:
    """Say so if a mixture of as many components as there are atoms costs much, and which number of them does not."""
    try:
        by = gauge(fusion)
    except InputError:  # no density: nothing to compare with
        return
    K, cost = len(mixture[0]), by.price(mixture)
    if not by.is_high(cost, K):
        return
    enough, little = cheap_size(fusion, by)
    warn_user(
        f"as a density, the fused mixture of {K} components, one per atom, loses {cost:.2f} nats per point against the "
        f"{by.size} components of all {len(fusion.models)} sites side by side: a new point is {np.exp(cost):.1f} times "
        f"less probable on average. Errors of estimation explain {by.chance(K):.2f} of it{by.assumed}. For the "
        f"density, fusion.model(K={enough}) loses {little:.2f} or less, fusion.union().model() nothing; for the "
        "groups, fusion.model(how='moments') has one component each. fusion.price(K=...) prices any other number.",
        DensityWarning,
    )


def cheap_size(fusion: Fusion, by: Gauge) -> tuple[int, float]:
    """The least number of components, on the greedy way down from the union, whose price is not high; and the price.

    By bisection: prices fall with the number of components, but for the noise of drawn points. Softened mixtures
    (`how="density"`) of as many cost less.
    """
    path, parts = fusion.reduction(), stack_components(fusion)
    low, high, found = 0, by.size, 0.0
    while high - low > 1:
        K = (low + high) // 2
        cost = by.price(merge_components(*parts, path.labels(K)))
        if by.is_high(cost, K):
            low = K
        else:
            high, found = K, cost
    return high, found
