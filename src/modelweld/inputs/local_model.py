"""What leaves a site: named arrays of local parameters, whose axes are sets or fixed coordinates.

The members of a *set* (components, states, topics, units) are interchangeable and are what is matched; coordinates are
the same everywhere. Everything that enters modelweld is checked here, once; inside, it is trusted.

What was handed to a model's fields: of the type they take, else it is said so; masked entries as weights of zero.

How many points stand behind each member of a set, or cell of a table, where a site knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.values import LARGEST_VALUE, Array
from modelweld.errors import InputError, OutOfRangeError, first_repeated
from modelweld.inputs.clock import as_time

Axes = tuple[str | None, ...]

SMALLEST_BESIDE = 1e-200
"""Of positive variances and weights: what is smaller cannot be divided by. Squares of differences of 1e-100."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalModel:
    """The parameters one site sends.

    Parameters
    ----------
    arrays : mapping of str to array
        The parameters by name. Masked entries of a masked array were not seen: their weight is zero.
    axes : mapping of str to tuple
        For each array one entry per axis: the name of a *set*, whose order means nothing (components,
        states, topics, hidden units); ``None`` for a fixed coordinate; or the name of a coordinate that is spelt out
        in `coordinates` (features, words, classes).
    variance, weight : mapping of str to array or float, optional
        How well the values of an array are known: `variance` is added to the noise (a squared standard
        error), `weight` divides it (a sample count, a Fisher information). Each has the array's own shape,
        or the shape of its leading axes, or is one number. **A weight of zero means: not seen.**
    auxiliary : sequence of str, optional
        Arrays that do not decide the matching but are carried through it (counts, transition counts).
        Arrays that carry no set, or one set twice, always ride.
    site : str, optional
        A name for messages and tables; it never influences the result.
    coordinates : mapping of str to sequence of str, optional
        Names of the entries along fixed coordinates, ``{"feature": ["age", "pressure"]}``. Sites are aligned by these
        names before anything else: see `modelweld.inputs.sets`.
    partial : sequence of str, optional
        Coordinates of which a site may lack entries (words, classes): it then has weight zero there. Others must have
        the same names everywhere.
    kind : str, optional
        What the arrays are the parameters of ("mixture", "hmm", ...), for those who write models: `modelweld.kinds`.
    facts : mapping, optional
        Whatever else must travel to write a model again: numbers, words, lists and dicts of these.
    time : number or date, optional
        When the parameters were trained: see `modelweld.fuse`. Dates may be written, ``"2024-03-31"``.

    Attributes
    ----------
    sizes : dict of str to int
        How many members each set has.
    along : dict of str to tuple
        For each array and axis the name of its spelt-out coordinate, or None. In `axes` these are None.

    Examples
    --------
    >>> import numpy as np
    >>> site = LocalModel(
    ...     arrays={"means": np.array([[0.0, 1.0], [5.0, 5.0]]), "counts": np.array([40.0, 60.0])},
    ...     axes={"means": ("component", None), "counts": ("component",)},
    ...     auxiliary=["counts"],
    ...     site="north",
    ... )
    >>> site.sizes
    {'component': 2}
    """

    arrays: Mapping[str, ArrayLike]
    axes: Mapping[str, Sequence[str | None]]
    variance: Mapping[str, ArrayLike] = field(default_factory=dict)
    weight: Mapping[str, ArrayLike] = field(default_factory=dict)
    auxiliary: Sequence[str] = ()
    site: str = ""
    coordinates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    partial: Sequence[str] = ()
    kind: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    time: Any = None

    def __post_init__(self) -> None:
        check_fields(self)
        where = f"site {self.site!r}" if self.site else "local model"
        self._check_names(where)
        open_arrays, seen = without_masks(self.arrays)
        arrays = {name: check_values(values, f"{where}, array {name!r}") for name, values in open_arrays.items()}
        coordinates = _check_names(self.coordinates, self.partial, where)
        named = {name: tuple(axes) for name, axes in self.axes.items()}
        sizes = _check_sizes(arrays, named, coordinates, where)
        checked: dict[str, object] = {
            "arrays": arrays,
            "axes": {name: tuple(None if a in coordinates else a for a in axes) for name, axes in named.items()},
            "along": {name: tuple(a if a in coordinates else None for a in axes) for name, axes in named.items()},
            "variance": {
                name: _beside(v, arrays[name], f"{where}, variance of {name!r}") for name, v in self.variance.items()
            },
            "weight": with_masks(
                {name: _beside(w, arrays[name], f"{where}, weight of {name!r}") for name, w in self.weight.items()},
                seen,
            ),
            "auxiliary": tuple(self.auxiliary),
            "coordinates": coordinates,
            "partial": tuple(self.partial),
            "sizes": {name: size for name, size in sizes.items() if name not in coordinates},
            "time": None if self.time is None else as_time(self.time, where),
        }
        for attribute, value in checked.items():
            object.__setattr__(self, attribute, value)

    def _check_names(self, where: str) -> None:
        """Arrays and axes, and what else names arrays, must speak of the same ones."""
        if set(self.arrays) != set(self.axes):
            odd = sorted(set(self.arrays) ^ set(self.axes))
            raise InputError(f"{where}: every array needs its axes and the reverse; {odd} has only one of the two.")
        unknown = sorted((set(self.variance) | set(self.weight) | set(self.auxiliary)) - set(self.arrays))
        if unknown:
            raise InputError(
                f"{where}: variance, weight and auxiliary name arrays of the model, but there is no {unknown}; "
                f"it has {sorted(self.arrays)}."
            )

    sizes: dict[str, int] = field(init=False, repr=False)
    along: dict[str, Axes] = field(init=False, repr=False)

    def __repr__(self) -> str:
        parts = []
        for name, values in self.arrays.items():
            named = zip(np.shape(values), self.axes[name], self.along[name], strict=True)
            parts.append(f"{name} ({', '.join(f'{n} {a or c}s' if a or c else str(n) for n, a, c in named)})")
        what = "LocalModel" + (f" of {self.site!r}" if self.site else "") + (f", {self.kind}" if self.kind else "")
        return f"<{what}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from modelweld.inputs.notebook import html_table

        rows = []
        for name, values in self.arrays.items():
            named = zip(np.shape(values), self.axes[name], self.along[name], strict=True)
            beside = [what for what in ("variance", "weight") if name in getattr(self, what)]
            beside += ["is auxiliary"] if name in self.auxiliary else []
            rows.append([name, " x ".join(f"{n} {a or c or ''}".strip() for n, a, c in named), ", ".join(beside)])
        return html_table(repr(self).strip("<>").split(":")[0], ["array", "entries", ""], rows)

    def with_(self, **changes: Any) -> LocalModel:
        """The same model with other fields; arrays, variances and weights that are not named stay.

        Examples
        --------
        >>> model = LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, site="a")
        >>> model.with_(site="b").site
        'b'
        """
        if changes.keys() <= {"site", "kind", "facts"}:  # arrays were checked
            other = derive(self, **changes)
            check_fields(other)
            return other
        mine = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        mine["axes"] = {
            name: tuple(c or a for c, a in zip(self.along[name], named, strict=True))
            for name, named in self.axes.items()
        }
        return LocalModel(**{**mine, **changes})


def derive(model: LocalModel, **changes: Any) -> LocalModel:
    """The same model with other fields, computed from checked ones: values are checked once, where they are
    received.
    """
    other = copy(model)
    for name, value in changes.items():
        object.__setattr__(other, name, value)
    return other


def _check_sizes(
    arrays: Mapping[str, Array],
    axes: Mapping[str, Axes],
    coordinates: Mapping[str, Sequence[str]],
    where: str,
) -> dict[str, int]:
    """How many members each set, and names each coordinate, has: the same in all arrays."""
    sizes = {name: len(names) for name, names in coordinates.items()}
    for name, values in arrays.items():
        if values.ndim != len(axes[name]):
            raise InputError(
                f"{where}: array {name!r} has {values.ndim} axes but {axes[name]} names {len(axes[name])}."
            )
        for axis, size in zip(axes[name], values.shape, strict=True):
            if axis is not None and sizes.setdefault(axis, size) != size:
                spelt = axis in coordinates
                what = (
                    f"coordinate {axis!r} has {sizes[axis]} names"
                    if spelt
                    else f"set {axis!r} has {sizes[axis]} members elsewhere"
                )
                raise InputError(f"{where}: {what} but {size} in array {name!r}.")
    return sizes


def _check_names(
    coordinates: Mapping[str, Sequence[str]], partial: Sequence[str], where: str
) -> dict[str, tuple[str, ...]]:
    """Names along coordinates: words, each once."""
    result = {}
    for coordinate, names in coordinates.items():
        result[coordinate] = tuple(map(str, names))
        twice = first_repeated(result[coordinate])
        if twice is not None:
            raise InputError(f"{where}: names along {coordinate!r} must differ; {twice!r} comes more than once.")
    unknown = sorted(set(partial) - set(result))
    if unknown:
        raise InputError(f"{where}: partial names coordinates that are spelt out; {unknown} are not.")
    return result


def is_count(name: str) -> bool:
    """Whether an array counts points: it is called `counts`, or something that ends so."""
    return name == "counts" or name.endswith("_counts")


def is_spread(name: str) -> bool:
    """Whether an array says how wide components are: it is called `variances` or `covariances`."""
    return name in ("variances", "covariances")


def check_values(values: Any, where: str) -> Array:
    """A float64 array of finite values, or an `InputError` that says where and what was found."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: must be an array of real numbers; found {_describe(values)}.") from None
    check_finite(array, where)
    return array


def check_finite(array: Array, where: str) -> None:
    """Refuse NaN, infinities and values whose squares would overflow."""
    # one pass without temporaries: a NaN or an infinity survives both reductions
    largest = max(abs(float(array.max())), abs(float(array.min()))) if array.size else 0.0
    if largest <= LARGEST_VALUE:
        return
    flat = array.ravel()
    bad = np.flatnonzero(~(np.abs(flat) <= LARGEST_VALUE))
    index = tuple(int(i) for i in np.unravel_index(bad[0], array.shape))
    raise OutOfRangeError(
        f"{where}: values must be finite and at most {LARGEST_VALUE:g} in size; found {flat[bad[0]]} at {index}"
        f" ({bad.size} such in all). Drop the parameter, mark it as not seen (numpy.ma.masked_invalid, or weight 0), "
        "or change the units."
    )


def _beside(given: Any, array: Array, where: str) -> Array:
    """Variance or weight, spread out to the shape of the array it stands beside."""
    value = check_values(given, where)
    if (value < 0).any():
        raise InputError(f"{where}: must not be negative; found {value.min():g}.")
    if ((value > 0) & (value < SMALLEST_BESIDE)).any():
        found = value[value > 0].min()
        raise InputError(
            f"{where}: must be zero or at least {SMALLEST_BESIDE:g}; found {found:g}. Say zero, or change units."
        )
    if value.shape != array.shape[: value.ndim]:
        raise InputError(
            f"{where}: must be a number or have the shape of the array, {array.shape}, or of its leading axes; "
            f"found {value.shape}."
        )
    return np.broadcast_to(value.reshape(value.shape + (1,) * (array.ndim - value.ndim)), array.shape)


def _describe(values: Any) -> str:
    dtype = getattr(values, "dtype", None)
    return f"{type(values).__name__}" + (f" of {dtype}" if dtype is not None else "")


DICTS = {
    "arrays": "arrays by name, arrays={'means': [[0.0, 1.0]]}",
    "axes": "axes by array, axes={'means': ('component', None)}",
    "variance": "variances by array, variance={'means': 0.5}",
    "weight": "weights by array, weight={'means': 3}",
    "coordinates": "names by coordinate, coordinates={'feature': ['age', 'pressure']}",
    "facts": "facts by name, facts={'units': 'mmHg'}",
}
LISTS = {"auxiliary": "names of arrays, auxiliary=['counts']", "partial": "names of coordinates, partial=['word']"}
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
            raise InputError(f"local model: {name} must be a word; found {_show(getattr(model, name))}.")
    where = f"site {model.site!r}" if model.site else "local model"
    for name, written in DICTS.items():
        given = getattr(model, name)
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: {name} must be a dict of {written}; found {_show(given)}.")
        odd = next((key for key in given if not isinstance(key, str)), None)
        if odd is not None and name != "facts":  # those are asked when they are written to a file
            raise InputError(f"{where}: keys of {name} must be words, {written}; found {_show(odd)}.")
    for name, written in LISTS.items():
        if not _is_list(getattr(model, name)):
            raise InputError(f"{where}: {name} must be a list of {written}; found {_show(getattr(model, name))}.")
    for name in ("axes", "coordinates"):
        for key, entries in getattr(model, name).items():
            if not (
                _is_list(entries) or (name == "coordinates" and isinstance(entries, str))
            ):  # "xy": names of a letter
                raise InputError(
                    f"{where}: {name} of {key!r} must be a list of names, {DICTS[name].split(', ', 1)[1]}; "
                    f"found {_show(entries)}."
                )


def _is_list(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, (str, bytes))


def _show(given: object) -> str:
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
        seen = counts > 0 if first is None else _find_seen(model, first)
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


def _find_seen(model: LocalModel, set_name: str) -> NDArray[np.bool_]:
    """Which members of a set have a value of weight above zero in some array that has weights, or there is none."""
    seen = np.zeros(model.sizes[set_name], dtype=bool)
    weighted = [name for name in model.weight if set_name in model.axes[name]]
    for name in weighted:
        rows = np.moveaxis(np.asarray(model.weight[name]), model.axes[name].index(set_name), 0)
        seen |= (rows > 0).any(axis=tuple(range(1, rows.ndim)))
    return seen if weighted else ~seen
