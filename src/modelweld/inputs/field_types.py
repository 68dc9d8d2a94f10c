"""Which types the fields of a LocalModel have, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from modelweld.errors import InputError

if TYPE_CHECKING:
    from modelweld.inputs.local_model import LocalModel

TYPES: dict[str, tuple[type, str]] = {
    "site": (str, "a word"),
    "kind": (str, "a word"),
    "arrays": (Mapping, "a dict of arrays by name, arrays={'means': [[0.0, 1.0]]}"),
    "axes": (Mapping, "a dict of axes by array, axes={'means': ('component', None)}"),
    "variance": (Mapping, "a dict of variances by array, variance={'means': 0.5}"),
    "weight": (Mapping, "a dict of weights by array, weight={'means': 3}"),
    "coordinates": (Mapping, "a dict of names by coordinate, coordinates={'feature': ['age', 'pressure']}"),
    "facts": (Mapping, "a dict of facts by name, facts={'units': 'mmHg'}"),
    "auxiliary": (Iterable, "a list of names of arrays, auxiliary=['counts']"),
    "partial": (Iterable, "a list of names of coordinates, partial=['word']"),
}


def check_types(model: LocalModel) -> None:
    """Refuse a field of another type, with what was found and how it is written.

    Examples
    --------
    >>> from modelweld import LocalModel
    >>> LocalModel({"means": [[0.0, 1.0]]}, {"means": ("component", None)}, weight=3)
    Traceback (most recent call last):
    modelweld.errors.InputError: local model: weight must be a dict of weights by array, weight={'means': 3}; found 3.
    """
    for name, (kind, written) in TYPES.items():
        given = getattr(model, name)
        where = f"site {model.site!r}" if model.site and name != "site" else "local model"
        if not isinstance(given, kind) or (kind is Iterable and isinstance(given, (str, bytes))):
            raise InputError(f"{where}: {name} must be {written}; found {_show(given)}.")
        if not isinstance(given, Mapping) or name == "facts":  # those are asked when they are written to a file
            continue
        what, _, example = written.removeprefix("a dict of ").partition(", ")
        for key, entries in given.items():
            if not isinstance(key, str):
                raise InputError(f"{where}: keys of {name} must be words, {what}, {example}; found {_show(key)}.")
            odd = not isinstance(entries, Iterable) or (name == "axes" and isinstance(entries, (str, bytes)))
            if odd and name in ("axes", "coordinates"):
                found = f"{name} of {key!r} must be a list of names, {example}; found {_show(entries)}."
                raise InputError(f"{where}: {found}")


def _show(given: object) -> str:
    """A word or number as it is, anything else by its type."""
    return repr(given)[:60] if isinstance(given, (str, int, float, type(None))) else f"a {type(given).__name__}"
