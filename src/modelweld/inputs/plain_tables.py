"""Plain values that say more than an array does: tables with named columns, and arrays of which entries are masked.

A table is what has `columns` and `to_numpy()`, as those of pandas and polars have; neither is imported. Its columns are
names of features, by which sites are aligned, unless they are mere numbers. Masked entries were not seen: weight zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel, check_values


def is_plain(given: object) -> bool:
    """Whether these are values and no model."""
    return type(given) in (list, tuple) or hasattr(given, "__array__") or _is_table(given)


def are_arrays(given: Iterable[object]) -> bool:
    """Whether all are arrays of numpy, as most sites send them: there is nothing to read, no name and no mask.

    Examples
    --------
    >>> are_arrays([np.zeros((2, 1))]), are_arrays([np.zeros((2, 1)), [[1.0]]])
    (True, False)
    """
    return set(map(type, given)) == {np.ndarray}


def take_names(given: Sequence[object]) -> list[object]:
    """What sites sent: plain values as they are, or, where some have names of columns or masks, all as LocalModels.

    Examples
    --------
    >>> masked = np.ma.masked_values([[1.0, -9.0]], -9.0)
    >>> [site.weight.get("values", "all") for site in take_names([masked, [[1.0, 2.0]]])]
    [array([[1., 0.]]), 'all']
    """
    if not any(_names(site) is not None or isinstance(site, np.ma.MaskedArray) for site in given):
        return [site.to_numpy() if _is_table(site) else site for site in given]
    return [
        site if isinstance(site, LocalModel) or not is_plain(site) else as_model(site, where=f"site {j}")
        for j, site in enumerate(given)
    ]


def as_model(
    given: object, features: Sequence[str] | None = None, *, where: str = "local model", time: object = None
) -> LocalModel:
    """Plain values of one site as a LocalModel; their columns are called as the table does, or `features`."""
    names = _names(given) if features is None else list(map(str, features))
    values = _numbers(given, where) if _is_table(given) else given
    weight = {}
    if isinstance(values, np.ma.MaskedArray):
        weight["values"] = 1.0 - np.ma.getmaskarray(values)
        values = values.filled(0.0)
    feature = None if names is None else "feature"
    coordinates = {} if names is None else {"feature": names}
    return LocalModel(
        {"values": check_values(values, f"{where}, array 'values'")},
        {"values": ("atom", feature)},
        weight=weight,
        coordinates=coordinates,
        time=time,
    )


def take_columns(model: object, facts: dict[str, object]) -> tuple[list[str] | None, dict[str, object]]:
    """Names of features of a model that was fitted without: those of its data `X`, if that is a table with as many.

    The data are then handed on without them, as they were to the fit.
    """
    X = facts.get("X")
    names = _names(X)
    if not _is_table(X) or names is None:
        return None, facts
    fits = getattr(model, "n_features_in_", getattr(model, "n_features", None)) == len(names)
    return names if fits else None, {**facts, "X": X.to_numpy()}


class _Table(Protocol):
    """What tables of pandas and polars have."""

    columns: Iterable[object]

    def to_numpy(self) -> NDArray[np.generic]: ...


def _numbers(given: _Table, where: str) -> NDArray[np.generic]:
    """A table's values, or an error that names a column which has others than numbers."""
    values = given.to_numpy()
    if values.dtype.kind == "O":
        for name, column in zip(given.columns, values.T, strict=True):
            odd = next((value for value in column if not isinstance(value, (int, float, np.number))), None)
            if odd is not None:
                raise InputError(f"{where}: column {name!r} is not of numbers: found {odd!r}. Leave it out.")
        values = values.astype(np.float64)
    return values


def _is_table(given: object) -> TypeGuard[_Table]:
    return hasattr(given, "columns") and callable(getattr(given, "to_numpy", None))


def _names(given: object) -> list[str] | None:
    """Names of a table's columns; None if there are none, or only numbers."""
    if not _is_table(given):
        return None
    names = list(given.columns)
    return [str(name) for name in names] if any(isinstance(name, str) for name in names) else None
