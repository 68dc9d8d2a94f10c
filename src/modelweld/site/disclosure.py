"""What parameters would give away of the rows they come from: refused where it is certain, said where it may be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from modelweld.errors import InputError
from modelweld.files.small_counts import cells_behind, counts_behind
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.kinds import kind_named

FEWEST_POINTS = 5
"""Points a component must stand for: the usual smallest cell of statistical offices and data safe havens."""


def drop_small_cells(local: LocalModel) -> LocalModel:
    """The model with cells below the limit set to zero, and a fact that says so."""
    tables = {name: np.asarray(local.arrays[name]) for name in cells_behind(local)}
    dropped = {name: np.where(cells < FEWEST_POINTS, 0.0, cells) for name, cells in tables.items()}
    return local.with_(arrays={**local.arrays, **dropped}, facts={**local.facts, "dropped": list(dropped)})


def check_counts(local: LocalModel) -> None:
    """Refuse components and cells of tables that stand for few points."""
    _refuse_small(
        counts_behind(local),
        "numbers of points",
        "what stands for so few describes persons. Fit fewer components, so that they merge, drop the small ones, or",
    )
    _refuse_small(
        cells_behind(local),
        "cells that are not empty",
        "so few moves or starts may be one person's. Set them to zero with drop_small=True (--drop-small), fit fewer "
        "states, or",
    )


def _refuse_small(arrays: Mapping[str, Array], what: str, remedy: str) -> None:
    for name, numbers in arrays.items():
        small = int((numbers < FEWEST_POINTS).sum())
        if small:
            raise InputError(
                f"array {name!r}: {small} of {numbers.size} {what} are below {FEWEST_POINTS} (smallest: "
                f"{numbers.min():.3g}); {remedy} say allow_small=True (--allow-small) if that is no concern."
            )


def find_concerns(local: LocalModel, compared: bool) -> list[str]:
    """What may give away too much, but not for certain."""
    found = []
    counts, kind = counts_behind(local), kind_named(local.kind)
    if (kind is None or kind.stands_for_points) and not counts:
        found.append(
            f"how many points stand behind each {'row' if kind is None else 'component'} is not known, so small ones "
            f"cannot be refused. Say {'counts=' if kind is None else 'n=, counts= or X='}."
        )
    for name, values in local.arrays.items():
        if name.endswith("covariances") and counts:
            D = np.shape(values)[-1]
            smallest = min(float(n.min()) for n in counts.values() if n.size)
            if smallest <= D + 1:
                found.append(
                    f"full covariances of {D} features from {smallest:.3g} points span the rows they come from, and "
                    "with means may rebuild them. Fit diagonal covariances, or fewer components."
                )
    return found if kind is None else found + kind.concerns(local, fewest=FEWEST_POINTS, compared=compared)
