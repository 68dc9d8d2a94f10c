"""How near an estimate comes to the truth: distances between atoms, agreement of labels.

`truth` and `labels` are true and estimated names of the same values: integers without order, given flat or as one array
per site. Every measure is unchanged when they are renamed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike

import modelweld
from modelweld.core.values import Index
from modelweld.errors import InputError

Labels: TypeAlias = Index | Sequence[int] | Sequence[ArrayLike]
"""Names of values, flat or site by site."""


def hausdorff(a: ArrayLike, b: ArrayLike) -> float:
    """Largest distance from an atom of either set to the nearest atom of the other.

    Parameters
    ----------
    a, b : arrays (K, D)
        Two sets of atoms; they need not be of one size.

    Examples
    --------
    >>> hausdorff([[0.0], [1.0]], [[0.0], [1.0], [5.0]])
    4.0
    """
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1] or 0 in left.shape + right.shape:
        found = f"found shapes {left.shape} and {right.shape}"
        raise InputError(f"hausdorff compares two non-empty sets of shapes (K, D) and (L, D); {found}.")
    distances = scipy.spatial.distance.cdist(left, right)
    return float(max(distances.min(axis=0).max(), distances.min(axis=1).max()))


def adjusted_rand(truth: Labels, labels: Labels) -> float:
    """Adjusted Rand index: 1 when two partitions are the same, about 0 when they are unrelated.

    Examples
    --------
    >>> adjusted_rand([[0, 1], [1, 2]], [[7, 8], [8, 9]])
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    with warnings.catch_warnings():
        # Some releases of scikit-learn take many names for a regression target; here they are atoms.
        warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        return float(adjusted_rand_score(*as_names(truth, labels)))


def as_names(truth: Labels, labels: Labels) -> tuple[Index, Index]:
    """Both labelings, flat, with names 0, 1, ... in use without gaps."""
    true, estimated = _per_site(truth), _per_site(labels)
    lengths = [len(site) for site in true], [len(site) for site in estimated]
    if lengths[0] != lengths[1] or sum(lengths[0]) == 0:
        found = f"found lengths {lengths[0]} and {lengths[1]} per site"
        raise InputError(f"truth and labels must name the same values, and at least one; {found}.")
    first, second = (np.unique(np.concatenate(sites), return_inverse=True)[1] for sites in (true, estimated))
    return first, second


def _per_site(labels: Labels) -> list[Index]:
    """One array per site; flat labels count as one site."""
    sites: list[ArrayLike] = list(labels)
    return [np.asarray(site) for site in sites] if sites and np.ndim(sites[0]) else [np.asarray(sites)]


def compare(a: modelweld.Fusion, b: modelweld.Fusion) -> dict[str, dict[str, Any]]:
    """Two fusions, set by set: both K, and how far they agree on sites that are in both (adjusted Rand index).

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
    result = {}
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
