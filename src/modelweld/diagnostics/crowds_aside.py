"""Questions about a fusion that set a site aside for its number of values: asked without that site, as the fit was.

Ten thousand values of one site are ten thousand atoms of their own, and a table of all values and all atoms is theirs:
minutes and gigabytes for an answer that is known. Each is alone in every draw, as other gross outliers are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from modelweld.inputs.stack import group_of_values
from modelweld.screening.screens import find_oversized

if TYPE_CHECKING:
    from modelweld.diagnostics.matched import Matched
    from modelweld.fusion import Fusion
    from modelweld.inputs.local_model import Array
    from modelweld.posterior.answers import Intervals
    from modelweld.posterior.draws import Posterior

Found = TypeVar("Found", bound="Intervals")

OF_CROWDS = {"exists": 1.0, "probability": 0.0}
"""What is said of atoms that are crowds': they are there, and no other site has them. Where they are was not asked."""


def uncrowding(fusion: Matched) -> list[int]:
    """Sites that were not set aside for their number, with those that repeat them; all, where there are several sets.

    Sets depend on each other: without a site the atoms of one would be other columns of the next.
    """
    everybody = list(range(len(fusion.sites)))
    if len(fusion.matchings) != 1 or fusion.matching.kept is None:
        return everybody
    matching, twins = fusion.matching, fusion.matching.twins or {}
    fitted = np.bincount(group_of_values(matching.offsets)[matching.kept], minlength=len(everybody))
    gone = {j for j in find_oversized(np.diff(matching.offsets)).tolist() if fitted[j] == 0}
    return [j for j in everybody if j not in gone and twins.get(j) not in gone]


def staying_rows(fusion: Matched) -> NDArray[np.bool_]:
    """Which values of the one set (N,) are of sites that stay."""
    return np.isin(group_of_values(fusion.matching.offsets), uncrowding(fusion))


def with_crowds(shares: Array, fusion: Matched) -> Array:
    """What is said of values (N,) of a fusion, from what is said without crowds: that they are alone, for certain."""
    rows = staying_rows(fusion)
    found = np.ones(len(rows))
    found[rows] = shares
    return found


def draws_with_crowds(posterior: Posterior, fusion: Matched) -> Posterior:
    """Draws for all values of a fusion, from draws without crowds: each value of theirs is an atom of its own."""
    rows = staying_rows(fusion)
    names = 2 * len(rows) + np.arange(len(rows))  # beyond those in use
    labels = np.tile(names, (*posterior.labels.shape[:2], 1))
    labels[..., rows] = posterior.labels
    return replace(posterior, labels=labels, fusion=cast("Fusion", fusion))


def atoms_with_crowds(found: Found, fusion: Matched) -> Found:
    """What is said of all atoms (K,) of a fusion, from what is said of those without crowds."""
    labels, rows = fusion.matching.stacked_labels, staying_rows(fusion)
    atoms, K = np.unique(labels[rows]), len(fusion.matching.counts)
    parts: dict[str, Any] = {name: part for name, part in vars(found).items() if isinstance(part, np.ndarray)}
    for name, said in parts.items():
        parts[name] = np.full((K, *said.shape[1:]), OF_CROWDS.get(name, np.nan))
        parts[name][atoms] = said
    return replace(found, **parts)
