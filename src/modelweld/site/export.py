"""Export, inside a site: what leaves is read from a fitted model, shown, checked for what it would give away, written.

A component that stands for a few points describes persons: it is refused. Noise can be added; its variance travels with
the values, so that the fusion knows how far to trust them. It is noise and not differential privacy: a fitted component
may move by any amount when one row changes, so no scale of the noise bounds what is given away.

`Report` lists what leaves a site, for review by the person responsible.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, arrays_of
from modelweld.errors import DisclosureWarning, InputError, warn_user
from modelweld.families import Gaussian
from modelweld.files import read_any, save
from modelweld.files.fused_model import read_skops
from modelweld.files.limits import spell_bytes
from modelweld.files.manifest import counts_behind
from modelweld.inputs.feature_names import with_units
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import is_plain
from modelweld.inputs.sets import families_by_set
from modelweld.kinds import kind_of
from modelweld.libraries.reading import list_facts, read
from modelweld.report.text import align_cells
from modelweld.site.rows import check_counts, check_rows, drop_small_cells, find_concerns

FACTS = {
    "time": "when it was trained",
    "counted": "whether counts are numbers of points, or shares",
    "undone": "which scalers were undone",
    "units": "units of the features",
    "noisy": "which arrays have noise",
    "dropped": "which tables lost small cells",
    "labels": "labels of the classes, or names of the groups",
    "doubts": "what was found odd about it",
    "activation": "the activation between layers",
    "documents": "the number of documents",
    "n_trials": "the number of trials",
    "named_columns": "whether its columns had names",
    "named_symbols": "whether its codes had names",
    "correlation_time": "over how many frames they resemble each other",
    "end": "what follows the last layer",
    "dtype": "the type of its numbers",
    "kernel": "the kernel's name",
}
"""What else leaves, in words."""


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
    """What leaves a site; ``print`` it.

    Attributes
    ----------
    site, kind, source : str
        Name of the site, kind of model, and class and version of the model that was read.
    arrays : tuple of Leaving
        Name, axes, shape, what comes with it (variance, weight), noise.
    names : dict of str to int
        How many names of features, words or classes leave.
    facts : tuple of str
        What else does.
    smallest : float or None
        Points behind the smallest component; None if it is not known.
    bytes : int
        Of the numbers.
    concerns : tuple of str
        What may give away too much.
    path : Path or None
        The file that was written.

    Examples
    --------
    >>> import modelweld
    >>> from sklearn.cluster import KMeans
    >>> X = [[0.0], [0.1], [0.2], [0.3], [0.5], [9.0], [9.1], [9.2], [9.3], [9.5]]
    >>> report = modelweld.export(KMeans(2, n_init=1, random_state=0).fit(X), None, X=X, site="north")
    >>> report.kind, report.smallest, [leaving.name for leaving in report.arrays]
    ('mixture', 5.0, ['means', 'variances', 'counts'])
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
        what = f"{self.kind or 'parameters'}{f' ({self.source})' if self.source else ''}"
        found = [f"names of {number} {coordinate}s" for coordinate, number in self.names.items()]
        points = "not stated" if self.smallest is None else f"{self.smallest:.0f}"
        lines = [
            f"What leaves {self.site or 'the site'}: {what}, {spell_bytes(self.bytes)}",
            *(f"  {line}" for line in align_cells(rows, left=len(rows[0]))),
            f"Beside them: {'; '.join([*found, *(FACTS.get(fact, fact) for fact in self.facts)]) or 'nothing'}.",
            f"Points behind the smallest component: {points}.",
            *(f"Take care: {concern}" for concern in self.concerns),
            f"Written: {self.path}" if self.path is not None else "Nothing was written.",
        ]
        return "\n".join(lines)


def _cells(array: Leaving) -> tuple[str, ...]:
    shape = " x ".join(map(str, array.shape)) or "1"
    return array.name, ", ".join(array.axes), shape, ", ".join(array.beside), array.noise


def describe_array(local: LocalModel, name: str, scales: Mapping[str, Array]) -> Leaving:
    """One array, with the standard deviations of the noise that was added."""
    axes = tuple(c or a or "·" for c, a in zip(local.along[name], local.axes[name], strict=True))
    beside = tuple(role for role, of in (("variance", local.variance), ("weight", local.weight)) if name in of)
    noise = ""
    if name in scales and scales[name].size:
        low, high = float(scales[name].min()), float(scales[name].max())
        noise = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return Leaving(name, axes, np.shape(local.arrays[name]), beside, noise)


def export(
    model: object,
    path: str | os.PathLike[str] | None,
    *,
    site: str = "",
    features: Sequence[str] | None = None,
    counts: ArrayLike | None = None,
    X: object = None,
    units: Mapping[str, str] | None = None,
    lacks: Sequence[str] | None = None,
    time: Any = None,
    noise: float | Mapping[str, ArrayLike] | None = None,
    seed: int | None = None,
    allow_small: bool = False,
    drop_small: bool = False,
    centres: bool = False,
    force: bool = False,
    **facts: object,
) -> Report:
    """Write what leaves a site, and say what it is.

    Parameters
    ----------
    model : fitted model, Pipeline, LocalModel, table, or path of a skops file or of a table
        As in `modelweld.read`; None where ``labels=`` tell the groups of the rows `X`.
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
    lacks : sequence of str, optional
        Features of the other sites that this one never measured, as in `modelweld.read`.
    time : number or date, optional
        When the model was trained; it travels along.
    noise : float or mapping of str to float or array, optional
        Standard deviation of Gaussian noise to add: for all arrays that decide the matching, or by array; a number, or
        one per feature. Its square is added to the array's `variance`.
    seed : int, optional
        Source of the noise, for tests: who knows it can take the noise off again. Default: the system's entropy.
    allow_small : bool
        Whether components of fewer than five points, and such cells of tables, may leave all the same.
    drop_small : bool
        Whether cells below five of tables that ride (transitions and starts of a hidden Markov model) are set to zero.
    centres : bool
        Whether the rows of a table are centres of groups; tables without counts are refused else, as in
        `modelweld.read`.
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
        If a component or a cell stands for fewer than five points, a parameter is a row of the data, or `X` cannot be
        compared with them.

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
    Beside them: names of 2 features; whether counts are numbers of points, or shares.
    Points behind the smallest component: ...
    Nothing was written.
    """
    model = open_model(model, centres)
    local = _read(model, site, features, centres, {**facts, "counts": counts, "X": X})
    if units is not None:
        local = with_units(local, units)
    scales = _scales(noise, local)
    if scales:
        local = _noisy(local, scales, np.random.default_rng(seed))
    if drop_small:
        local = drop_small_cells(local)
    if not allow_small:
        check_counts(local)
    rows = getattr(model, "X_train_", None) if X is None else X
    check_rows(local, rows)
    local = read(local, lacks=lacks or (), time=time)
    concerns = find_concerns(local, compared=rows is not None)
    for concern in concerns:
        warn_user(concern, DisclosureWarning)
    return Report(
        site=local.site,
        kind=local.kind,
        source=" ".join(str(local.facts[name]) for name in ("class", "version") if name in local.facts),
        arrays=tuple(describe_array(local, name, scales) for name in local.arrays),
        names={coordinate: len(names) for coordinate, names in local.coordinates.items()},
        facts=(
            *(name for name in local.facts if name not in ("class", "version")),
            *(["time"] if local.time is not None else []),
        ),
        smallest=min((float(n.min()) for n in counts_behind(local).values() if n.size), default=None),
        bytes=sum(np.asarray(array).nbytes for array in local.arrays.values()),
        concerns=tuple(concerns),
        path=None if path is None else save(local, path, force=force),
    )


def open_model(model: object, centres: bool) -> object:
    """A fitted model, or a table's parameters; of a skops file, which is read here because this is the site."""
    if not isinstance(model, (str, os.PathLike)):
        return model
    file = Path(model)
    return read_skops(file) if file.suffix == ".skops" else read_any(file, centres=centres)


def _read(
    model: object, site: str, features: Sequence[str] | None, centres: bool, facts: Mapping[str, object]
) -> LocalModel:
    """The model's parameters, read with the facts that its adapter takes."""
    known: dict[str, Any] = {name: fact for name, fact in facts.items() if fact is not None}
    if isinstance(model, LocalModel):
        if known.keys() - {"X"} or features is not None:
            raise InputError("a LocalModel says everything itself: give features, counts and facts when it is made.")
        return read(model, site=site)
    if is_plain(model) or (model is not None and "X" not in list_facts(model)):
        known.pop("X", None)
    return read(model, site=site, features=features, centres=centres, **known)


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
    kind = kind_of([local])
    alike = kind.harmonise([local])
    by_set = families_by_set(alike, kind.families(alike))
    gaussian = [key for families in by_set.values() for key, f in families.items() if isinstance(f, Gaussian)]
    return list(dict.fromkeys(name for key in gaussian for name in arrays_of(key)))


def _noisy(local: LocalModel, scales: Mapping[str, Array], rng: np.random.Generator) -> LocalModel:
    arrays, variance = dict(local.arrays), dict(local.variance)
    for name, scale in scales.items():
        arrays[name] = np.asarray(arrays[name]) + scale * rng.standard_normal(scale.shape)
        variance[name] = np.asarray(variance.get(name, 0.0)) + scale**2
    return local.with_(arrays=arrays, variance=variance, facts={**local.facts, "noisy": list(scales)})
