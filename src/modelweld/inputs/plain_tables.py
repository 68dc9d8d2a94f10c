"""Plain values that say more than an array does: tables with named columns, and arrays of which entries are masked.

A table is what has `columns` and `to_numpy()`, as those of pandas and polars have, or `column_names` and `columns`, as
those of pyarrow; none is imported. Its columns are names of features, by which sites are aligned, unless they are mere
numbers. Masked entries were not seen: weight zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.values import Array
from modelweld.errors import InputError, some
from modelweld.inputs.clock import number_of, times_by_site
from modelweld.inputs.local_model import LocalModel, check_values


def is_plain(given: object) -> bool:
    """Whether these are values and no model."""
    return type(given) in (list, tuple) or hasattr(given, "__array__") or table_of(given) is not None


def take_names(given: Sequence[object]) -> list[object]:
    """What sites sent: plain values as they are, or, where some have names of columns or masks, all as LocalModels.

    Examples
    --------
    >>> masked = np.ma.masked_values([[1.0, -9.0]], -9.0)
    >>> [site.weight.get("values", "all") for site in take_names([masked, [[1.0, 2.0]]])]
    [array([[1., 0.]]), 'all']
    """
    if any(_names(site) is not None or isinstance(site, np.ma.MaskedArray) for site in given):
        named = enumerate(given)
        return [m if isinstance(m, LocalModel) else as_model(m, where=f"site {j}") for j, m in named]
    return [site if (table := table_of(site)) is None else table.to_numpy() for site in given]


def check_centres(rows: int, centres: bool, how: str = "centres=True, or how many: counts=[...]") -> None:
    """Refuse rows of which nothing says that they are parameters: they may be people's, and would leave as they are.

    Parameters
    ----------
    rows : int
        How many there are.
    centres : bool
        Whether the user says that each stands for many points, or something beside them does.
    how : str
        How the user says so.
    """
    if not centres:
        raise InputError(
            f"{rows} rows, and nothing says that they are parameters: rows of people would leave as they are. Train a "
            "model at the site and send that: modelweld.export(GaussianMixture(5).fit(X), 'site.safetensors', X=X). "
            f"If each row stands for many points (centres of groups), say so: {how}."
        )


def as_model(
    given: object,
    features: Sequence[str] | None = None,
    *,
    counts: ArrayLike | None = None,
    where: str = "local model",
    time: object = None,
) -> LocalModel:
    """Plain values of one site as a LocalModel; their columns are called as the table does, or `features`."""
    names, table = _names(given) if features is None else list(map(str, features)), table_of(given)
    values = given if table is None else _numbers(table, where)
    weight = {}
    if isinstance(values, np.ma.MaskedArray):
        weight["values"] = 1.0 - np.ma.getmaskarray(values)
        values = values.filled(0.0)
    feature = None if names is None else "feature"
    coordinates = {} if names is None else {"feature": names}
    counted = {} if counts is None else {"counts": counts}
    return LocalModel(
        {"values": check_values(values, f"{where}, array 'values'"), **counted},
        {"values": ("atom", feature), **dict.fromkeys(counted, ("atom",))},
        weight=weight,
        auxiliary=list(counted),
        coordinates=coordinates,
        time=time,
    )


def set_times(
    given: Sequence[object], times: Sequence[object] | Mapping[str, object], names: Sequence[str]
) -> list[LocalModel]:
    """What sites sent, as LocalModels that say when."""
    moments = times_by_site(times, names)
    return [
        model.with_(time=time) if isinstance(model, LocalModel) else as_model(model, where=f"site {name}", time=time)
        for model, name, time in zip(given, names, moments, strict=True)
    ]


def times_of(models: Sequence[LocalModel], names: Sequence[str]) -> Array | None:
    """When models were trained (J,), dates as days since 1970; None if none says so, refused if some do not."""
    times = [model.time for model in models]
    without = [name for time, name in zip(times, names, strict=True) if time is None]
    if len(without) == len(times):
        return None
    if without:
        raise InputError(f"some sites have a time, but not {some(without)}. Give all of them one: times=[...].")
    dated = [isinstance(time, np.datetime64) for time in times]
    if any(dated) and not all(dated):
        date, number = names[dated.index(True)], names[dated.index(False)]
        raise InputError(f"times are all numbers or all dates; site {date!r} has a date and site {number!r} a number.")
    return np.array([number_of(time) for time in times if time is not None])


def take_columns(model: object, facts: dict[str, object]) -> tuple[list[str] | None, dict[str, object]]:
    """Names of features of a model that was fitted without: those of its data `X`, if that is a table with as many.

    The data are then handed on without them, as they were to the fit.
    """
    names, table = _names(facts.get("X")), table_of(facts.get("X"))
    if table is None or names is None:
        return None, facts
    fits = getattr(model, "n_features_in_", getattr(model, "n_features", None)) == len(names)
    return names if fits else None, {**facts, "X": table.to_numpy()}


class Table(NamedTuple):
    """What tables of pandas, polars and pyarrow have: names of columns, and numbers when they are asked for."""

    columns: Sequence[object]
    to_numpy: Callable[[], NDArray[np.generic]]


def table_of(given: Any) -> Table | None:
    """A table as one that has columns and gives its numbers; None if it is none."""
    if hasattr(given, "column_names") and hasattr(given, "columns"):
        return Table(given.column_names, lambda: np.column_stack([np.asarray(column) for column in given.columns]))
    has_columns = hasattr(given, "columns") and callable(getattr(given, "to_numpy", None))
    return Table(list(given.columns), given.to_numpy) if has_columns else None


def _numbers(given: Table, where: str) -> NDArray[np.generic]:
    """A table's values, or an error that names a column which has others than numbers."""
    values = given.to_numpy()
    if values.dtype.kind == "O":
        for name, column in zip(given.columns, values.T, strict=True):
            odd = next((value for value in column if not isinstance(value, (int, float, np.number))), None)
            if odd is not None:
                raise InputError(f"{where}: column {name!r} is not of numbers: found {odd!r}. Leave it out.")
        values = values.astype(np.float64)
    return values


def _names(given: object) -> list[str] | None:
    """Names of a table's columns; None if there are none, or only numbers."""
    table = table_of(given)
    named = table is not None and any(isinstance(name, str) for name in table.columns)
    return [str(name) for name in table.columns] if table is not None and named else None
