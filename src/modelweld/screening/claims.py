"""What a site says its values are worth is bounded: no site decides alone because it claims a billion times more.

Weights divide the noise, so values of a weight far above all others pin their atoms, and beyond some 1e16 leave nothing
of the others' digits; counts decide what a fused model takes for frequent; a component that is wider than all that
others hold covers theirs in it. A claim is compared with those of the other sites: what sites agree on, of whatever
size, stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import OutlierWarning, warn_user
from modelweld.inputs.local_model import Array, LocalModel, is_count, is_spread
from modelweld.screening.site_medians import FEWEST_SITES_TO_COMPARE

HEAVIEST = 100.0
"""Times the largest weight of a typical site. A value a hundred times as precise as those it is matched with is its
atom already, to a tenth of their noise. Were it a thousand, two fifths of the sites could claim it falsely and
make the noise so wide that all atoms fall together; with a hundred they drag atoms along, no farther than they lie
themselves (experiments/hostile/poison.py)."""

MOST_COUNTED = 1_000.0
"""Times the largest count of a typical site: counts decide what is frequent, and hospitals are that unlike in size."""


WIDEST = 100.0
"""Times the widest variance of a typical site, feature by feature: ten times its deviation. Components of a site with
patients unlike all others' are a few times as wide."""


class Bounded(NamedTuple):
    """Sites whose claims are bounded, and what was said of those that claimed more."""

    sites: list[LocalModel]
    reasons: tuple[str, ...]


def bound_claims(sites: Sequence[LocalModel], names: Sequence[str]) -> Bounded:
    """The sites with no weight above `HEAVIEST`, and no count above `MOST_COUNTED`, times the typical site's largest.

    A warning names those that had some.

    Examples
    --------
    >>> sites = [LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, weight={"v": w}) for w in (2.0, 3.0, 2.5)]
    >>> [site.weight["v"].item() for site in bound_claims(sites, "abc").sites]
    [2.0, 3.0, 2.5]
    """
    result, reasons = list(sites), list[str]()
    for array in dict.fromkeys(name for site in sites for name in site.weight):
        weights = [site.weight.get(array) for site in sites]
        for j, most in _bounds(weights, HEAVIEST, f"weights of {array!r}", names, reasons).items():
            bounded = np.minimum(result[j].weight[array], most)
            result[j] = result[j].with_(weight={**result[j].weight, array: bounded})
    for array in dict.fromkeys(name for site in sites for name in site.riding if is_count(name)):
        counted = [site.arrays.get(array) if site.facts.get("counted", True) else None for site in sites]
        for j, most in _bounds(counted, MOST_COUNTED, f"{array!r}", names, reasons).items():
            scale = most / np.max(result[j].arrays[array])
            result[j] = result[j].with_(arrays={**result[j].arrays, array: scale * result[j].arrays[array]})
    return Bounded(result, tuple(reasons))


def _bounds(
    claims: Sequence[ArrayLike | None], times: float, what: str, names: Sequence[str], reasons: list[str]
) -> dict[int, float]:
    """Sites that claim too much -> what they may."""
    claimed = np.array([0.0 if claim is None else np.max(claim, initial=0.0) for claim in claims])
    positive = claimed[claimed > 0]
    if positive.size == 0:
        return {}
    typical = float(np.quantile(positive, 0.5, method="lower"))
    most = times * typical
    beyond = np.flatnonzero(claimed > most).tolist()
    for j in beyond:
        reasons.append(
            f"site {names[j]!r}: {what} up to {claimed[j]:.3g}, and {typical:.3g} at a typical site: they are counted "
            f"as {most:.3g} at most, so that no site decides alone. Ask its owner what they are; those of all sites "
            "must count the same thing."
        )
        warn_user(reasons[-1], OutlierWarning)
    return dict.fromkeys(beyond, most)


def bound_spreads(sites: Sequence[LocalModel], names: Sequence[str]) -> Bounded:
    """The sites with no component more than `WIDEST` times as wide as the widest of a typical site, in any feature.

    Asked last: how wide components are also tells in which units they are. Below four sites nobody is typical.

    Examples
    --------
    >>> axes = {"means": ("component", None), "variances": ("component", None)}
    >>> sites = [
    ...     LocalModel({"means": [[0.0]], "variances": [[v]]}, axes, riding=["variances"]) for v in (1.0, 2.0, 9.0, 3.0)
    ... ]
    >>> [site.arrays["variances"].item() for site in bound_spreads(sites, "abcd").sites]
    [1.0, 2.0, 9.0, 3.0]
    """
    result, reasons = list(sites), list[str]()
    for array in dict.fromkeys(name for site in sites for name in site.riding if is_spread(name)):
        widest = {
            j: _variances(site.arrays[array]).max(0) for j, site in enumerate(sites) if np.size(site.arrays[array])
        }
        if len(widest) < FEWEST_SITES_TO_COMPARE or len({len(own) for own in widest.values()}) > 1:
            continue
        typical = np.quantile(list(widest.values()), 0.5, axis=0, method="lower")
        most = WIDEST * np.where(typical > 0, typical, np.inf)
        for j, own in widest.items():
            if not (own > most).any():
                continue
            worst = int(np.argmax(own / most))
            reasons.append(
                f"site {names[j]!r}: {array!r} up to {own[worst]:.3g} in one feature, and {typical[worst]:.3g} at a "
                f"typical site: they are taken for {most[worst]:.3g} at most, so that no component covers all others'. "
                "Ask its owner in which units they are, and whether the model was fitted well."
            )
            warn_user(reasons[-1], OutlierWarning)
            result[j] = result[j].with_(arrays={**result[j].arrays, array: _narrowed(result[j].arrays[array], most)})
    return Bounded(result, tuple(reasons))


def _variances(spreads: ArrayLike) -> Array:
    """Of components (L, D), also where they have covariances (L, D, D)."""
    spreads = np.asarray(spreads, dtype=np.float64)
    return spreads if spreads.ndim == 2 else np.asarray(np.diagonal(spreads, axis1=-2, axis2=-1))


def _narrowed(spreads: ArrayLike, most: Array) -> Array:
    """Variances, or covariances with all correlations, of no more than this in any feature."""
    spreads = np.asarray(spreads, dtype=np.float64)
    own = _variances(spreads)
    scale = np.sqrt(np.minimum(1.0, most / np.where(own > 0, own, 1.0)))
    if spreads.ndim == 2:
        return spreads * scale * scale
    return spreads * scale[:, :, None] * scale[:, None, :]
