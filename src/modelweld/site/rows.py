"""Parameters that are rows of the data: each would leave as it is, whatever form the data are in.

What parameters would give away of the rows they come from: refused where it is certain, reported where it is possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.files.manifest import counts_behind
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import table_of
from modelweld.kinds import kind_named
from modelweld.report.text import FEWEST_POINTS

SAME_ROW, CHANCE = 1e-6, 1e-3
"""Difference, in ranges of a feature, below which a parameter is a row of the data: rows may have been moved a bit. How
often a parameter may be so close to a row by chance: fewer features, or more rows, need a smaller difference."""

UNKNOWN = ("NoneType", "NAType", "NaTType")
"""Types of cells that hold nothing."""


def check_rows(local: LocalModel, X: Any) -> None:
    """Refuse parameters that are rows of the data, and data that cannot be compared with them.

    Texts of a topic model have no rows of numbers.
    """
    if X is None or ("word" in local.coordinates and table_of(X) is None and isinstance(next(iter(X), None), str)):
        return
    rows = _numbers(X, local.coordinates.get("feature"))
    names = [name for name, values in local.arrays.items() if np.ndim(values) > 1 and _width(values) == rows.shape[1]]
    kind = kind_named(local.kind)
    if not names and (kind is None or kind.stands_for_points):
        raise InputError(
            f"X has {rows.shape[1]} columns, and no array of the model has as many: whether rows of the data leave "
            "cannot be seen. Give X with the model's features, in their order."
        )
    for name in names:
        if rows.shape[0] and _has_row(np.asarray(local.arrays[name], dtype=np.float64), rows):
            raise InputError(
                f"array {name!r} has a row of the data among its values: that row would leave. Fit fewer "
                "components, learn places instead of choosing points (inducing inputs), or add noise."
            )


def _width(values: Any) -> int:
    return int(np.shape(values)[-1])


def _has_row(values: Array, rows: Any) -> bool:
    """Whether some parameter is a row: candidates by one weighted sum of the features, then feature by feature."""
    n, D = rows.shape
    sparse = hasattr(rows, "toarray")
    ends = (rows.min(axis=0), rows.max(axis=0)) if sparse else (np.fmin.reduce(rows), np.fmax.reduce(rows))
    low, high = (np.nan_to_num(end.toarray().ravel() if sparse else end) for end in ends)
    size = np.maximum(np.abs(low), np.abs(high))
    scale = np.where(high > low, high - low, np.where(size > 0, size, 1.0))
    precision = np.finfo(rows.dtype if rows.dtype.kind == "f" else np.float64).eps
    near = min(SAME_ROW, (CHANCE / n) ** (1 / D)) * scale + precision * size
    along = np.random.default_rng(0).uniform(0.5, 1.0, D) / scale
    sums = np.asarray(rows @ along, dtype=np.float64).ravel()
    order = np.argsort(sums)
    found = values.reshape(-1, D)
    found = found[found.any(axis=1)]  # all zero: not seen
    reach = float(along @ near)
    first, last = (np.searchsorted(sums, found @ along + side, sorter=order) for side in (-reach, reach))
    for i in np.flatnonzero(last > first):
        candidates = rows[order[first[i] : last[i]]]
        candidates = candidates.toarray() if sparse else candidates
        if (np.abs(candidates - found[i]) <= near).all(axis=1).any():
            return True
    return False


def _numbers(X: Any, features: Sequence[str] | None) -> Any:
    """The data as a matrix of numbers, in rows as sparse as they came; of a table, the model's features by name."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    table = table_of(X)
    if table is not None:
        names = [str(name) for name in table.columns]
        X = table.to_numpy()
        if features is not None and set(features) <= set(names):
            X = X[:, [names.index(name) for name in features]]
    try:
        rows = np.asarray(X)
        if rows.dtype.kind not in "biuf":
            rows = np.array([[_number(cell) for cell in row] for row in rows])
    except (TypeError, ValueError, OverflowError):
        rows = _concatenate(X)
    if rows.ndim == 3:
        rows = rows.reshape(-1, rows.shape[-1])
    if rows.ndim != 2:
        raise _refusal(X)
    return rows if rows.dtype.itemsize > 1 else rows.astype(np.float64)


def _concatenate(X: Any) -> Array:
    """Sequences of unequal lengths, one below the other."""
    try:
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in X])
    except (TypeError, ValueError):
        raise _refusal(X) from None


def _number(cell: Any) -> float:
    return float("nan") if type(cell).__name__ in UNKNOWN else float(cell)


def _refusal(X: object) -> InputError:
    return InputError(
        f"X ({type(X).__name__}) cannot be compared with the parameters, so that whether rows of the data leave cannot "
        "be seen. Give it as numbers: one row per point, one column per feature of the model."
    )


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


TABLES = ("moves", "starts")
"""Auxiliary arrays whose cells count something else than members: transitions and beginnings of sequences."""


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
