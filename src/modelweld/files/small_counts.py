"""How many points stand behind each member of a set, or cell of a table, where a site knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modelweld.inputs.local_model import Array, LocalModel, is_count


def counts_behind(model: LocalModel) -> dict[str, Array]:
    """Arrays that count points, without members that were not seen; none if counts are but shares.

    Such arrays are called `counts`, or something that ends so. A member of a set was not seen if all its values have
    weight zero; a class was not, if its count is zero.

    Examples
    --------
    >>> from modelweld.kinds.mixture import mixture
    >>> counts_behind(mixture([[0.0], [5.0]], [[1.0], [4.0]], [10.0, 40.0], counted=True))
    {'counts': array([10., 40.])}
    """
    if not model.facts.get("counted", True):
        return {}
    found = {}
    for name, values in model.arrays.items():
        if not is_count(name) or np.ndim(values) == 0:
            continue
        counts, first = np.asarray(values, dtype=np.float64), model.axes[name][0]
        seen = counts > 0 if first is None else _seen(model, first)
        found[name] = counts[seen]
    return found


TABLES = ("moves", "starts")
"""Riding arrays whose cells count something else than members: transitions and beginnings of sequences."""


def cells_behind(model: LocalModel) -> dict[str, Array]:
    """Tables that count events, cell by cell, but for cells of which nothing was seen; none if counts are but shares.

    Expected numbers are never quite zero: what rounds to zero was not seen.

    Examples
    --------
    >>> moves = LocalModel({"moves": [[9.0, 0.2], [3.0, 7.0]]}, {"moves": ("state", "state")})
    >>> cells_behind(moves)
    {'moves': array([9., 3., 7.])}
    """
    if not model.facts.get("counted", True):
        return {}
    tables = {name: np.asarray(model.arrays[name]).ravel() for name in TABLES if name in model.arrays}
    return {name: cells[cells.round() > 0] for name, cells in tables.items()}


def _seen(model: LocalModel, set_name: str) -> NDArray[np.bool_]:
    """Which members of a set have a value of weight above zero in some array that has weights, or there is none."""
    seen = np.zeros(model.sizes[set_name], dtype=bool)
    weighted = [name for name in model.weight if set_name in model.axes[name]]
    for name in weighted:
        rows = np.moveaxis(np.asarray(model.weight[name]), model.axes[name].index(set_name), 0)
        seen |= (rows > 0).any(axis=tuple(range(1, rows.ndim)))
    return seen if weighted else ~seen
