"""Two fusions side by side: the same sites and parameters, perhaps another matching."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from modelweld.errors import InputError
from modelweld.studies.metrics import adjusted_rand

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


class Agreement(TypedDict):
    """Both K, what both have, and the adjusted Rand index of their labels."""

    K: list[int]
    sites: int
    parameters: int
    ari: float


def compare(a: Fusion, b: Fusion) -> dict[str, Agreement]:
    """Per set: both K, and how far they agree on the parameters of sites that are in both (adjusted Rand index).

    Examples
    --------
    >>> import modelweld
    >>> sites = [[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]]
    >>> compare(modelweld.fuse(sites), modelweld.fuse(sites, preset="paper"))["atom"]["ari"]
    1.0
    """
    both = [name for name in a.sites if name in b.sites]
    sets = [name for name in a.matchings if name in b.matchings]
    if not both or not sets:
        raise InputError("these fusions have no site, or no set, in common: there is nothing to compare.")
    result: dict[str, Agreement] = {}
    for name in sets:
        labels = []
        for fusion in (a, b):
            own = fusion.matchings[name].labels
            labels.append([own[fusion.sites.index(site)] for site in both])
        for site, x, y in zip(both, *labels, strict=True):
            if len(x) != len(y):
                raise InputError(f"site {site!r} has {len(x)} {name}s in one fusion and {len(y)} in the other.")
        first, second = (np.concatenate(x) for x in labels)
        result[name] = {
            "K": [a.matchings[name].K, b.matchings[name].K],
            "sites": len(both),
            "parameters": len(first),
            "ari": float(adjusted_rand(first, second)),
        }
    return result
