"""What a site says its values are worth is bounded: no site decides alone because it claims a billion times more.

Weights divide the noise, so values of a weight far above all others pin their atoms, and beyond some 1e16 leave nothing
of the others' digits; counts decide what a fused model takes for frequent. A claim is compared with those of the other
sites: what sites agree on, of whatever size, stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import OutlierWarning, warn_user
from modelweld.inputs.local_model import LocalModel, is_count

HEAVIEST = 100.0
"""Times the largest weight of a typical site. A value a hundred times as precise as those it is matched with is its
atom already, to a tenth of their noise. Were it a thousand, two fifths of the sites could claim it falsely and
make the noise so wide that all atoms fall together; with a hundred they drag atoms along, no farther than they lie
themselves (experiments/hostile/poison.py)."""

MOST_COUNTED = 1_000.0
"""Times the largest count of a typical site: counts decide what is frequent, and hospitals are that unlike in size."""


def bound_claims(sites: Sequence[LocalModel], names: Sequence[str]) -> list[LocalModel]:
    """The sites with no weight above `HEAVIEST`, and no count above `MOST_COUNTED`, times the typical site's largest.

    A warning names those that had some.

    Examples
    --------
    >>> sites = [LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, weight={"v": w}) for w in (2.0, 3.0, 2.5)]
    >>> [site.weight["v"].item() for site in bound_claims(sites, "abc")]
    [2.0, 3.0, 2.5]
    """
    result = list(sites)
    for array in dict.fromkeys(name for site in sites for name in site.weight):
        weights = [site.weight.get(array) for site in sites]
        for j, most in _bounds(weights, HEAVIEST, f"weights of {array!r}", names).items():
            bounded = np.minimum(result[j].weight[array], most)
            result[j] = result[j].with_(weight={**result[j].weight, array: bounded})
    for array in dict.fromkeys(name for site in sites for name in site.riding if is_count(name)):
        counted = [site.arrays.get(array) if site.facts.get("counted", True) else None for site in sites]
        for j, most in _bounds(counted, MOST_COUNTED, f"{array!r}", names).items():
            scale = most / np.max(result[j].arrays[array])
            result[j] = result[j].with_(arrays={**result[j].arrays, array: scale * result[j].arrays[array]})
    return result


def _bounds(claims: Sequence[ArrayLike | None], times: float, what: str, names: Sequence[str]) -> dict[int, float]:
    """Sites that claim too much -> what they may."""
    claimed = np.array([0.0 if claim is None else np.max(claim, initial=0.0) for claim in claims])
    positive = claimed[claimed > 0]
    if positive.size == 0:
        return {}
    typical = float(np.quantile(positive, 0.5, method="lower"))
    most = times * typical
    beyond = np.flatnonzero(claimed > most).tolist()
    for j in beyond:
        warn_user(
            f"site {names[j]!r}: {what} up to {claimed[j]:.3g}, and {typical:.3g} at a typical site: they are counted "
            f"as {most:.3g} at most, so that no site decides alone. Ask its owner what they are; those of all sites "
            "must count the same thing.",
            OutlierWarning,
        )
    return dict.fromkeys(beyond, most)
