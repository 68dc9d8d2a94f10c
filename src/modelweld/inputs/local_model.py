"""What leaves a site: named arrays of local parameters, whose axes are sets or fixed coordinates.

The members of a *set* (components, states, topics, units) are interchangeable and are what is matched; coordinates are
the same everywhere. Everything that enters modelweld is checked here, once; inside, it is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import LARGEST_VALUE, Array
from modelweld.errors import InputError, OutOfRangeError
from modelweld.inputs.clock import as_time
from modelweld.inputs.field_types import explain_fields
from modelweld.inputs.notebook import html_table, list_arrays, title_of

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
        Arrays that carry no set, or one set twice, are always auxiliary.
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
        try:
            self._check_words()
            checked = self._check()
        except InputError:
            raise  # of values
        except (AttributeError, KeyError, TypeError, ValueError):
            explain_fields(self)
            raise
        for attribute, value in checked.items():
            object.__setattr__(self, attribute, value)

    def _check_words(self) -> None:
        """What nothing else would stumble over: names must be words, and facts have some."""
        words = (self.site, self.kind, *self.arrays, *self.coordinates)
        if not all(isinstance(word, str) for word in words) or not isinstance(self.facts, Mapping):
            explain_fields(self)

    def _check(self) -> dict[str, object]:
        """All fields as they are kept, or an error, also where they do not fit each other."""
        where = f"site {self.site!r}" if self.site else "local model"
        arrays = {
            name: check_values(np.ma.filled(x, 0) if np.ma.isMaskedArray(x) else x, f"{where}, array {name!r}")
            for name, x in self.arrays.items()
        }
        variance, weight = (
            {name: _beside(x, arrays[name], f"{where}, {role} of {name!r}") for name, x in getattr(self, role).items()}
            for role in ("variance", "weight")
        )
        for name, x in self.arrays.items():
            if np.ma.is_masked(x):
                weight[name] = np.where(np.ma.getmaskarray(cast("Any", x)), 0.0, weight.get(name, 1.0))
        coordinates = {name: tuple(map(str, names)) for name, names in self.coordinates.items()}
        named, sizes = {name: tuple(axes) for name, axes in self.axes.items()}, dict[str, int]()
        of_axes = [(axis, n) for name, x in arrays.items() for axis, n in zip(named[name], x.shape, strict=True)]
        of_names = [(name, n) for name, names in coordinates.items() for n in (len(names), len(set(names)))]
        fits = all(sizes.setdefault(axis, n) == n for axis, n in [*of_names, *of_axes] if axis is not None)
        if not (fits and arrays.keys() == named.keys() >= {*self.auxiliary} and coordinates.keys() >= {*self.partial}):
            raise ValueError
        return {
            "arrays": arrays,
            "axes": {name: tuple(None if a in coordinates else a for a in axes) for name, axes in named.items()},
            "along": {name: tuple(a if a in coordinates else None for a in axes) for name, axes in named.items()},
            "variance": variance,
            "weight": weight,
            "auxiliary": tuple(self.auxiliary),
            "coordinates": coordinates,
            "partial": tuple(self.partial),
            "sizes": {name: size for name, size in sizes.items() if name not in coordinates},
            "time": None if self.time is None else as_time(self.time, where),
        }

    sizes: dict[str, int] = field(init=False, repr=False)
    along: dict[str, Axes] = field(init=False, repr=False)

    def __repr__(self) -> str:
        return f"<{title_of(self)}: {', '.join(f'{name} ({entries})' for name, entries, _ in list_arrays(self))}>"

    def _repr_html_(self) -> str:
        return html_table(title_of(self), ["array", "entries", ""], list_arrays(self))

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
            other._check_words()
            return other
        mine = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return LocalModel(**{**mine, "axes": name_axes(self), **changes})


def name_axes(model: LocalModel) -> dict[str, Axes]:
    """Axes with the names of coordinates, as they were given."""
    return {n: tuple(c or a for c, a in zip(model.along[n], axes, strict=True)) for n, axes in model.axes.items()}


def derive(model: LocalModel, **changes: Any) -> LocalModel:
    """The same model with other fields, computed from checked ones: values are checked once, at the border."""
    other = copy(model)
    for name, value in changes.items():
        object.__setattr__(other, name, value)
    return other


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
        dtype = f" of {values.dtype}" if hasattr(values, "dtype") else ""
        what = f"{type(values).__name__}{dtype}"
        raise InputError(f"{where}: must be an array of real numbers; found {what}.") from None
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
        f" ({bad.size} in all). Drop them, mark them as not seen (weight 0), or change the units."
    )


def _beside(given: Any, array: Array, where: str) -> Array:
    """Variance or weight, spread out to the shape of the array it stands beside."""
    value = check_values(given, where)
    if (value < 0).any():
        raise InputError(f"{where}: must not be negative; found {value.min():g}.")
    if ((value > 0) & (value < SMALLEST_BESIDE)).any():
        raise InputError(f"{where}: must be zero or at least {SMALLEST_BESIDE:g}; found {value[value > 0].min():g}.")
    if value.shape != array.shape[: value.ndim]:
        wanted = f"a number or of the shape of the array, {array.shape}, or of its leading axes"
        raise InputError(f"{where}: must be {wanted}; found {value.shape}.")
    return np.broadcast_to(value.reshape(value.shape + (1,) * (array.ndim - value.ndim)), array.shape)
