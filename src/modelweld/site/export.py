"""Export, inside a site: what leaves is read from a fitted model, shown, checked for what it would give away, written.

A component that stands for a few points describes persons: it is refused. Noise can be added; its variance travels with
the values, so that the fusion knows how far to trust them. It is noise and not differential privacy: a fitted component
may move by any amount when one row changes, so no scale of the noise bounds what is given away.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import DisclosureWarning, InputError, warn_user
from modelweld.files import save
from modelweld.files.limits import in_words
from modelweld.files.small_counts import cells_behind, counts_behind
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.kinds import kind_named, kind_of
from modelweld.libraries import asked_by_adapter, read

if TYPE_CHECKING:
    from rich.table import Table

FEWEST_POINTS = 5
"""Points a component must stand for: the usual smallest cell of statistical offices and data safe havens."""

SAME_ROW = 1e-9
"""Relative difference below which a parameter is a row of the data: rounding apart, the same numbers."""


@dataclass(frozen=True)
class Leaving:
    """One array that leaves."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    beside: tuple[str, ...]
    noise: str


@dataclass(frozen=True)
class Report:
    """What leaves a site; ``print`` it, or hand it to rich.

    Attributes
    ----------
    site, kind, source : str
        Name of the site, kind of model, and class and version of the model that was read.
    arrays : tuple of Leaving
        Name, axes, shape, what stands beside it (variance, weight), noise.
    names : dict of str to int
        How many names of features, words or classes leave.
    facts : tuple of str
        What else does.
    smallest : float or None
        Points behind the smallest component; None if the site has not said.
    bytes : int
        Of the numbers.
    concerns : tuple of str
        What may give away too much.
    path : Path or None
        The file that was written.
    """

    site: str
    kind: str
    source: str
    arrays: tuple[Leaving, ...]
    names: Mapping[str, int]
    facts: tuple[str, ...]
    smallest: float | None
    bytes: int
    concerns: tuple[str, ...]
    path: Path | None

    def __str__(self) -> str:
        rows = [("array", "axes", "shape", "beside", "noise"), *map(_cells, self.arrays)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self._title, *lines, *self._sentences])

    def __rich__(self) -> Table:
        from rich.markup import escape
        from rich.table import Table

        table = Table("array", "axes", "shape", "beside", "noise", title=escape(self._title), title_justify="left")
        for array in self.arrays:
            table.add_row(*map(escape, _cells(array)))
        table.caption, table.caption_justify = escape("\n".join(self._sentences)), "left"
        return table

    @property
    def _title(self) -> str:
        what = f"{self.kind or 'parameters'}{f' ({self.source})' if self.source else ''}"
        return f"What leaves {self.site or 'the site'}: {what}, {in_words(self.bytes)}"

    @property
    def _sentences(self) -> list[str]:
        found = [f"names of {number} {coordinate}s" for coordinate, number in self.names.items()]
        points = "not said" if self.smallest is None else f"{self.smallest:g}"
        return [
            f"Also: {', '.join([*found, *self.facts]) or 'nothing'}.",
            f"Points behind the smallest component: {points}.",
            *(f"Take care: {concern}" for concern in self.concerns),
            f"Written: {self.path}" if self.path is not None else "Nothing was written.",
        ]


def _cells(array: Leaving) -> tuple[str, ...]:
    shape = " x ".join(map(str, array.shape)) or "1"
    return array.name, ", ".join(array.axes), shape, ", ".join(array.beside), array.noise


def export(
    model: Any,
    path: str | os.PathLike[str] | None,
    *,
    site: str = "",
    features: Sequence[str] | None = None,
    counts: ArrayLike | None = None,
    X: Any = None,
    units: Mapping[str, str] | None = None,
    noise: float | Mapping[str, ArrayLike] | None = None,
    seed: int | None = None,
    allow_small: bool = False,
    drop_small: bool = False,
    force: bool = False,
    **facts: Any,
) -> Report:
    """Write what leaves a site, and say what it is.

    Parameters
    ----------
    model : fitted model, Pipeline, LocalModel, or path of a skops file
        As in `modelweld.read`.
    path : path or None
        Where to: something.safetensors. None: only the report.
    site : str, optional
        A name; a pseudonym will do.
    features : sequence of str, optional
        Names of the features, by which sites are aligned.
    counts : array, optional
        Points behind each component, if the model forgot.
    X : array, optional
        The site's data. It does not travel: adapters that take it count points with it, and parameters are compared
        with its rows.
    units : mapping of str to str, optional
        Units of features; sites that state different ones should not be fused.
    noise : float or mapping of str to float or array, optional
        Standard deviation of Gaussian noise to add: for all arrays that decide the matching, or by array; a number, or
        one per feature. Its square is added to the array's `variance`.
    seed : int, optional
        Source of the noise, for tests: who knows it can take the noise off again. Default: the system's entropy.
    allow_small : bool
        Whether components of fewer than five points, and such cells of tables, may leave all the same.
    drop_small : bool
        Whether cells below five of tables that ride (transitions and starts of a hidden Markov model) are set to zero.
    force : bool
        Whether to replace a file that is there already.
    **facts
        Further facts for the adapter, such as ``n=``.

    Returns
    -------
    Report
        What was written; ``print(report)``.

    Raises
    ------
    InputError
        If a component or a cell stands for fewer than five points, or a parameter is a row of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> print(export(KMeans(2, n_init=1, random_state=0).fit(X), None, site="north", features=["age", "pressure"]))
    ... # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    What leaves north: mixture (sklearn.KMeans ...), 80 bytes
      array      axes                shape  beside    noise
      means      component, feature  2 x 2  variance
      variances  component, feature  2 x 2
      counts     component           2
    Also: names of 2 features, counted.
    Points behind the smallest component: ...
    Nothing was written.
    """
    model = _loaded(model)
    local = _read(model, site, features, {**facts, "counts": counts, "X": X})
    if units is not None:
        local = local.with_(facts={**local.facts, "units": _checked_units(units, local)})
    scales = _scales(noise, local)
    if scales:
        local = _noisy(local, scales, np.random.default_rng(seed))
    if drop_small:
        local = _without_small_cells(local)
    if not allow_small:
        _check_counts(local)
    rows = getattr(model, "X_train_", None) if X is None else X
    _check_rows(local, rows)
    concerns = _concerns(local, compared=rows is not None)
    for concern in concerns:
        warn_user(concern, DisclosureWarning)
    return Report(
        site=local.site,
        kind=local.kind,
        source=" ".join(str(local.facts[name]) for name in ("class", "version") if name in local.facts),
        arrays=tuple(_leaving(local, name, scales) for name in local.arrays),
        names={coordinate: len(names) for coordinate, names in local.coordinates.items()},
        facts=tuple(name for name in local.facts if name not in ("class", "version")),
        smallest=min((float(n.min()) for n in counts_behind(local).values() if n.size), default=None),
        bytes=sum(np.asarray(array).nbytes for array in local.arrays.values()),
        concerns=tuple(concerns),
        path=None if path is None else save(local, path, force=force),
    )


def _loaded(model: Any) -> Any:
    """A fitted model; from a skops file, which is read here because this is the site."""
    if not isinstance(model, (str, os.PathLike)):
        return model
    file = Path(model)
    if file.suffix != ".skops":
        raise InputError(
            f"{str(file)!r}: of files, only skops files of fitted models are exported. Load the model; give the object."
        )
    from modelweld.files.skops_model import read_skops

    return read_skops(file)


def _read(model: Any, site: str, features: Sequence[str] | None, facts: Mapping[str, Any]) -> LocalModel:
    """The model's parameters, told what its adapter wants to know of what is known."""
    told = {name: fact for name, fact in facts.items() if fact is not None}
    if isinstance(model, LocalModel):
        if told.keys() - {"X"} or features is not None:
            raise InputError("a LocalModel says everything itself: give features, counts and facts when it is made.")
        return read(model, site=site)
    if "X" not in asked_by_adapter(model):
        told.pop("X", None)
    return read(model, site=site, features=features, **told)


def _checked_units(units: Mapping[str, str], local: LocalModel) -> dict[str, str]:
    known = local.coordinates.get("feature", ())
    unknown = [name for name in units if name not in known]
    if unknown:
        raise InputError(f"units are given by feature, but there is no feature {unknown[0]!r}; name them: features=...")
    return {str(name): str(unit) for name, unit in units.items()}


def _scales(noise: float | Mapping[str, ArrayLike] | None, local: LocalModel) -> dict[str, Array]:
    """Standard deviations of the noise by array, in the array's shape."""
    if noise is None:
        return {}
    deciding = _deciding(local)
    if not deciding and not isinstance(noise, Mapping):
        raise InputError(
            "noise is for real values that decide the matching, and this model has none: nothing would account for "
            "noise on its counts or rates. Leave noise out."
        )
    by_array: Mapping[str, ArrayLike] = noise if isinstance(noise, Mapping) else dict.fromkeys(deciding, noise)
    scales = {}
    for name, scale in by_array.items():
        if name not in deciding:
            raise InputError(
                f"noise is for real values that decide the matching, whose variance the fusion knows how to use: here "
                f"{', '.join(deciding) or 'there are none'}; found {name!r}."
            )
        shape = np.shape(local.arrays[name])
        try:
            scales[name] = np.broadcast_to(np.asarray(scale, dtype=np.float64), shape)
        except (TypeError, ValueError):
            raise InputError(
                f"noise of {name!r} must be a number, or fit its shape {shape}; found {scale!r}."
            ) from None
        if not (np.isfinite(scales[name]).all() and (scales[name] >= 0).all()):
            raise InputError(f"noise of {name!r} is a standard deviation: finite, not negative; found {scale!r}.")
    return scales


def _deciding(local: LocalModel) -> list[str]:
    """Arrays of real values that decide the matching, by families that use a variance."""
    from modelweld.families import Gaussian
    from modelweld.inputs.stack import arrays_of
    from modelweld.matching.sets import families_by_set

    by_set = families_by_set([local], kind_of([local]).families([local]))
    gaussian = [key for families in by_set.values() for key, f in families.items() if isinstance(f, Gaussian)]
    return list(dict.fromkeys(name for key in gaussian for name in arrays_of(key)))


def _noisy(local: LocalModel, scales: Mapping[str, Array], rng: np.random.Generator) -> LocalModel:
    arrays, variance = dict(local.arrays), dict(local.variance)
    for name, scale in scales.items():
        arrays[name] = np.asarray(arrays[name]) + scale * rng.standard_normal(scale.shape)
        variance[name] = np.asarray(variance.get(name, 0.0)) + scale**2
    return local.with_(arrays=arrays, variance=variance, facts={**local.facts, "noisy": list(scales)})


def _leaving(local: LocalModel, name: str, scales: Mapping[str, Array]) -> Leaving:
    axes = tuple(c or a or "·" for c, a in zip(local.along[name], local.axes[name], strict=True))
    beside = tuple(role for role, of in (("variance", local.variance), ("weight", local.weight)) if name in of)
    noise = ""
    if name in scales and scales[name].size:
        low, high = float(scales[name].min()), float(scales[name].max())
        noise = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return Leaving(name, axes, np.shape(local.arrays[name]), beside, noise)


def _without_small_cells(local: LocalModel) -> LocalModel:
    """The model with cells below the limit set to zero, and a fact that says so."""
    tables = {name: np.asarray(local.arrays[name]) for name in cells_behind(local)}
    dropped = {name: np.where(cells < FEWEST_POINTS, 0.0, cells) for name, cells in tables.items()}
    return local.with_(arrays={**local.arrays, **dropped}, facts={**local.facts, "dropped": list(dropped)})


def _check_counts(local: LocalModel) -> None:
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


def _check_rows(local: LocalModel, X: Any) -> None:
    """Refuse parameters that are rows of the data, where the data is at hand."""
    if X is None or not hasattr(X, "__array__"):
        return
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf" or not rows.size:
        return
    size = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
    for name, values in local.arrays.items():
        found = np.asarray(values)
        if found.ndim < 2 or found.shape[-1] != rows.shape[1]:
            continue
        for parameter in found.reshape(-1, rows.shape[1]):
            near = rows[np.abs(rows[:, 0] - parameter[0]) <= SAME_ROW * size[0]]
            if parameter.any() and (np.abs(near - parameter) <= SAME_ROW * size).all(axis=1).any():
                raise InputError(
                    f"array {name!r} has a row of the data among its values: that row would leave. Fit fewer "
                    "components, learn places instead of choosing points (inducing inputs), or add noise."
                )


def _concerns(local: LocalModel, compared: bool) -> list[str]:
    """What may give away too much, but not for certain."""
    found = []
    counts, kind = counts_behind(local), kind_named(local.kind)
    if kind is not None and kind.stands_for_points and not counts:
        found.append(
            "how many points stand behind each component is not known, so small ones cannot be refused. Say n=, "
            "counts= or X=."
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
