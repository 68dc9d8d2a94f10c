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

from modelweld.core.values import Array
from modelweld.errors import Finding, OutlierWarning
from modelweld.fit.screening.bounds import between, describe_widths
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE
from modelweld.inputs.local_model import LocalModel, derive, is_count, is_spread

FAR_MORE = 100.0
"""Times the largest weight, and the variances, of a typical site. A value a hundred times as precise as those it is
matched with is its atom already, to a tenth of their noise. Were it a thousand, two fifths of the sites could claim it
falsely and make the noise so wide that all atoms fall together; with a hundred they drag atoms along, no farther than
they lie themselves (experiments/hostile/poison.py). Components of patients unlike all others' are a few times as wide,
not ten times."""

MOST_COUNTED = 1_000.0
"""Times the largest count of a typical site: counts decide what is frequent, and hospitals are that unlike in size."""


class Bounded(NamedTuple):
    """Sites whose claims are bounded, and what was said of those that claimed more."""

    sites: list[LocalModel]
    reasons: tuple[Finding, ...]


def clip_weights(sites: Sequence[LocalModel], names: Sequence[str]) -> Bounded:
    """The sites with no weight above `FAR_MORE`, and no count above `MOST_COUNTED`, times the typical site's largest.

    A warning names those that had some.

    Examples
    --------
    >>> sites = [LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, weight={"v": w}) for w in (2.0, 3.0, 2.5)]
    >>> [site.weight["v"].item() for site in clip_weights(sites, "abc").sites]
    [2.0, 3.0, 2.5]
    """
    result, reasons = list(sites), list[Finding]()
    for array in dict.fromkeys(name for site in sites for name in site.weight):
        weights = [site.weight.get(array) for site in sites]
        for j, most in _bounds(weights, FAR_MORE, f"weights of {array!r}", names, reasons).items():
            bounded = np.minimum(result[j].weight[array], most)
            result[j] = derive(result[j], weight={**result[j].weight, array: bounded})
    for array in dict.fromkeys(name for site in sites for name in site.auxiliary if is_count(name)):
        counted = [site.arrays.get(array) if site.facts.get("counted", True) else None for site in sites]
        for j, most in _bounds(counted, MOST_COUNTED, f"{array!r}", names, reasons).items():
            scale = most / np.max(result[j].arrays[array])
            result[j] = derive(result[j], arrays={**result[j].arrays, array: scale * result[j].arrays[array]})
    return Bounded(result, tuple(reasons))


def _bounds(
    claims: Sequence[ArrayLike | None], times: float, what: str, names: Sequence[str], reasons: list[Finding]
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
        text = (
            f": {what} up to {claimed[j]:.3g}, and {typical:.3g} at a typical site: they are counted as {most:.3g} at "
            "most, so that no site decides alone. Ask its owner what they are; those of all sites must count the same "
            "thing."
        )
        reasons.append(Finding(text, OutlierWarning, [names[j]]))
    return dict.fromkeys(beyond, most)


def clip_spreads(sites: Sequence[LocalModel], names: Sequence[str]) -> Bounded:
    """The sites with components neither far wider nor, most of them, far narrower than a typical site's.

    Where a site's widest variances are above `FAR_MORE` times a typical site's in more than half of the features, none
    is above that; where its median ones are below a typical site's over `FAR_MORE` in so many, none is below that. A
    single feature may well differ: one that is the same for most points has no variance at most sites. Asked last:
    how wide components are also tells in which units they are. Needs at least four sites.

    Examples
    --------
    >>> axes = {"means": ("component", None), "variances": ("component", None)}
    >>> arrays = [{"means": [[0.0]], "variances": [[v]]} for v in (1.0, 2.0, 9.0, 3.0)]
    >>> sites = [LocalModel(own, axes, auxiliary=["variances"]) for own in arrays]
    >>> [site.arrays["variances"].item() for site in clip_spreads(sites, "abcd").sites]
    [1.0, 2.0, 9.0, 3.0]
    """
    result, reasons = list(sites), list[Finding]()
    for array in dict.fromkeys(name for site in sites for name in site.auxiliary if is_spread(name)):
        widths = {j: _variances(site.arrays[array]) for j, site in enumerate(sites) if _has_spreads(site, array)}
        if len(widths) < FEWEST_SITES_TO_COMPARE or len({own.shape[1] for own in widths.values()}) > 1:
            continue
        widest, middle = ({j: of(own, axis=0) for j, own in widths.items()} for of in (np.max, np.median))
        wide, usual = (np.quantile(list(x.values()), 0.5, axis=0, method="lower") for x in (widest, middle))
        most, least = FAR_MORE * np.where(wide > 0, wide, np.inf), usual / FAR_MORE
        for j in widths:
            too_wide, too_narrow = np.flatnonzero(widest[j] > most), np.flatnonzero(middle[j] < least)
            if 2 * len(too_wide) > len(most):
                low, high, d = np.zeros_like(least), most, too_wide[0]
                reasons.append(describe_widths(names[j], array, widest[j][d], wide[d], most[d]))
            elif 2 * len(too_narrow) > len(least):
                low, high, d = least, np.full_like(most, np.inf), too_narrow[0]
                reasons.append(describe_widths(names[j], array, middle[j][d], usual[d], least[d]))
            else:
                continue
            bounded = between(result[j].arrays[array], _variances(result[j].arrays[array]), low, high)
            result[j] = derive(result[j], arrays={**result[j].arrays, array: bounded})
    return Bounded(result, tuple(reasons))


def _has_spreads(site: LocalModel, array: str) -> bool:
    """Whether a site has some variances (L, D) or covariances (L, D, D); others may call something else so."""
    shape = np.shape(site.arrays.get(array, ()))
    return 0 not in shape and (len(shape) == 2 or (len(shape) == 3 and shape[1] == shape[2]))


def _variances(spreads: ArrayLike) -> Array:
    """Of components (L, D), also where they have covariances (L, D, D)."""
    spreads = np.asarray(spreads, dtype=np.float64)
    return spreads if spreads.ndim == 2 else np.asarray(np.diagonal(spreads, axis1=-2, axis2=-1))
