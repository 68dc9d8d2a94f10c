"""What was handed to a model's fields: of the type they take, else it is said so; masked entries as weights of zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.errors import InputError

if TYPE_CHECKING:
    from modelweld.inputs.local_model import LocalModel

DICTS = {
    "arrays": "arrays by name, arrays={'means': [[0.0, 1.0]]}",
    "axes": "axes by array, axes={'means': ('component', None)}",
    "variance": "variances by array, variance={'means': 0.5}",
    "weight": "weights by array, weight={'means': 3}",
    "coordinates": "names by coordinate, coordinates={'feature': ['age', 'pressure']}",
    "facts": "facts by name, facts={'units': 'mmHg'}",
}
LISTS = {"riding": "names of arrays, riding=['counts']", "partial": "names of coordinates, partial=['word']"}
WORDS = ("site", "kind")


def check_fields(model: LocalModel) -> None:
    """Refuse a field of another type, with what was found and how it is written.

    Examples
    --------
    >>> from modelweld import LocalModel
    >>> LocalModel({"means": [[0.0, 1.0]]}, {"means": ("component", None)}, weight=3)
    Traceback (most recent call last):
    modelweld.errors.InputError: local model: weight must be a dict of weights by array, weight={'means': 3}; found 3.
    """
    for name in WORDS:
        if not isinstance(getattr(model, name), str):
            raise InputError(f"local model: {name} must be a word; found {_shown(getattr(model, name))}.")
    where = f"site {model.site!r}" if model.site else "local model"
    for name, written in DICTS.items():
        given = getattr(model, name)
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: {name} must be a dict of {written}; found {_shown(given)}.")
        odd = next((key for key in given if not isinstance(key, str)), None)
        if odd is not None and name != "facts":  # those are asked when they are written to a file
            raise InputError(f"{where}: keys of {name} must be words, {written}; found {_shown(odd)}.")
    for name, written in LISTS.items():
        if not _is_list(getattr(model, name)):
            raise InputError(f"{where}: {name} must be a list of {written}; found {_shown(getattr(model, name))}.")
    for name in ("axes", "coordinates"):
        for key, entries in getattr(model, name).items():
            if not (
                _is_list(entries) or (name == "coordinates" and isinstance(entries, str))
            ):  # "xy": names of a letter
                raise InputError(
                    f"{where}: {name} of {key!r} must be a list of names, {DICTS[name].split(', ', 1)[1]}; "
                    f"found {_shown(entries)}."
                )


def _is_list(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, (str, bytes))


def _shown(given: object) -> str:
    """A word or number as it is, anything else by its type."""
    return repr(given)[:60] if isinstance(given, (str, int, float, type(None))) else f"a {type(given).__name__}"


def without_masks(arrays: Mapping[str, ArrayLike]) -> tuple[dict[str, ArrayLike], dict[str, NDArray[np.bool_]]]:
    """Arrays with zeros where they were masked, and of those that had such entries which were seen.

    Examples
    --------
    >>> arrays, seen = without_masks({"v": np.ma.masked_values([1.0, -9.0], -9.0), "w": [2.0]})
    >>> arrays["v"].tolist(), seen["v"].tolist(), list(seen)
    ([1.0, 0.0], [True, False], ['v'])
    """
    masked = {name: values for name, values in arrays.items() if isinstance(values, np.ma.MaskedArray)}
    seen = {name: ~np.ma.getmaskarray(values) for name, values in masked.items() if np.ma.is_masked(values)}
    return {**arrays, **{name: values.filled(0) for name, values in masked.items()}}, seen


def with_masks(
    weight: Mapping[str, NDArray[np.float64]], seen: Mapping[str, NDArray[np.bool_]]
) -> dict[str, NDArray[np.float64]]:
    """Weights, zero where an entry was masked."""
    return {**weight, **{name: np.where(there, weight.get(name, 1.0), 0.0) for name, there in seen.items()}}
