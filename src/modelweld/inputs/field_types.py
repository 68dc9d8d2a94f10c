"""What the fields of a LocalModel must be, and how they are written: said where something is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import InputError, first_repeated

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


def explain_fields(model: LocalModel) -> None:
    """Say what is wrong with the fields of a model: their types, their names, or how many entries they have."""
    _check_types(model)
    wrong = next(_complaints(model), None)
    if wrong is not None:
        raise InputError(f"{f'site {model.site!r}' if model.site else 'local model'}: {wrong}.")


def _complaints(model: LocalModel) -> Iterator[str]:
    """What does not fit together."""
    if odd := sorted(set(model.arrays) ^ set(model.axes)):
        yield f"every array needs its axes and the reverse; {odd} has only one of the two"
    if unknown := sorted({*model.variance, *model.weight, *model.auxiliary} - set(model.arrays)):
        held = sorted(model.arrays)
        yield f"variance, weight and auxiliary name arrays of the model, but there is no {unknown}; it has {held}"
    sizes = {coordinate: len(tuple(names)) for coordinate, names in model.coordinates.items()}
    for coordinate, names in model.coordinates.items():
        if (twice := first_repeated(map(str, names))) is not None:
            yield f"names along {coordinate!r} must differ; {twice!r} comes more than once"
    if unknown := sorted(set(model.partial) - set(sizes)):
        yield f"partial names coordinates that are spelt out; {unknown} are not"
    for name, values in model.arrays.items():
        axes, shape = tuple(model.axes[name]), np.shape(values)
        if len(axes) != len(shape):
            yield f"array {name!r} has {len(shape)} axes but {axes} names {len(axes)}"
        for axis, size in zip(axes, shape, strict=False):
            if axis is not None and sizes.setdefault(axis, size) != size:
                kind, other = ("coordinate", "names") if axis in model.coordinates else ("set", "members elsewhere")
                yield f"{kind} {axis!r} has {sizes[axis]} {other} but {size} in array {name!r}"


def _check_types(model: LocalModel) -> None:
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
