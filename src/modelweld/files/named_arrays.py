"""Arrays without a manifest, known by their names: what npz files, tables and short JSON can say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.files.limits import check_name, check_words
from modelweld.files.tensors import NamedArrays
from modelweld.inputs.local_model import Array, LocalModel, check_values
from modelweld.inputs.plain_tables import check_centres

CENTRES = ("centres", "centers", "means")
"""Names of arrays that say what rows are."""

SPREADS = {"covariances", "variances", "variance"}
"""What only parameters have beside them."""

TOLD = "modelweld.load(path, centres=True), or how many in a column or array `counts`"

OTHERS = ("counts", "covariances", "variances", "variance", "weight", "features", "site", "time")

SHARES_SUM = 1e-6
"""Counts whose sum is this close to one are shares of points, not numbers."""


def model_of(given: Mapping[str, ArrayLike], *, centres: bool = False) -> LocalModel:
    """The model that named arrays make.

    One row per parameter (`values`, or one array of any name) and, beside it, what is known: `counts` (rows),
    `features` (names of columns), `variance` and `weight`. With `covariances` or `variances`, and `counts`, it is a
    mixture. Rows of which nothing says that they are parameters are refused unless they are said to be `centres`.

    Examples
    --------
    >>> model = model_of({"centres": [[0.0, 1.0], [5.0, 5.0]], "counts": [10, 30], "features": ["x", "y"]})
    >>> model.along["values"], model.riding
    ((None, 'feature'), ('counts',))
    """
    parts = dict(given)
    alone = [name for name in parts if name not in OTHERS]
    if len(alone) != 1:
        raise InputError(
            f"without a manifest, one array has a row per parameter, and {', '.join(OTHERS)} may stand beside it; "
            f"found {sorted(parts)}. Name them so, or write the file with modelweld.files.save or modelweld.export."
        )
    values = check_values(parts.pop(alone[0]), f"array {alone[0]!r}")
    if values.ndim != 2:
        raise InputError(
            f"array {alone[0]!r} must have one row per parameter: two axes; found shape {values.shape}."
            + (" For one-dimensional parameters use shape (L, 1)." if values.ndim == 1 else "")
        )
    site = check_name(str(parts.pop("site", "")), "a site", empty=True)
    time = _time(parts.pop("time", None))
    features = _features(parts.pop("features", None), values.shape[1])
    counts = check_values(parts.pop("counts"), "counts") if "counts" in parts else None
    if counts is not None and (counts.shape != values.shape[:1] or (counts < 0).any()):
        raise InputError(f"counts must be one number, not negative, for each of {len(values)} rows.")
    told = counts is not None or alone[0] in CENTRES or bool(parts.keys() & SPREADS)
    check_centres(len(values), centres or told, TOLD)
    spreads = [name for name in ("covariances", "variances") if name in parts]
    if spreads:
        return _mixture(values, parts, counts, features, site).with_(time=time)
    arrays = {"values": values, **({} if counts is None else {"counts": counts})}
    axes: dict[str, tuple[str | None, ...]] = {"values": ("atom", None if features is None else "feature")}
    return LocalModel(
        arrays,
        axes if counts is None else {**axes, "counts": ("atom",)},
        variance={"values": parts["variance"]} if "variance" in parts else {},
        weight={"values": parts["weight"]} if "weight" in parts else {},
        riding=[name for name in arrays if name == "counts"],
        site=site,
        coordinates={} if features is None else {"feature": features},
        time=time,
    )


def _time(given: ArrayLike | None) -> object:
    """When it was trained: one number, or one date in words."""
    if given is None:
        return None
    found = np.asarray(given)
    if found.ndim:
        raise InputError(f"time must be one number or date; found an array of shape {found.shape}.")
    return found.item() if found.dtype.kind != "M" else found[()]


def _features(given: ArrayLike | None, D: int) -> list[str] | None:
    if given is None:
        return None
    names = given if isinstance(given, list) else np.asarray(given).tolist()
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names) and len(names) == D):
        raise InputError(f"features must be {D} names, one per column; found {str(given)[:60]!r}.")
    check_words(names, "features")
    return names


def _mixture(
    values: Array, parts: NamedArrays, counts: Array | None, features: list[str] | None, site: str
) -> LocalModel:
    from modelweld.kinds.mixture import mixture

    if len(parts) > 1 or counts is None:
        raise InputError(
            "a mixture has means, either covariances or variances, and counts (numbers of points, or shares that sum "
            f"to one), and nothing else; found {sorted(parts)} and {'no ' if counts is None else ''}counts."
        )
    ((name, given),) = parts.items()
    spreads = check_values(given, name)
    L, D = values.shape
    wanted = (L, D, D) if name == "covariances" else (L, D)
    if spreads.shape != wanted:
        raise InputError(f"{name} must have shape {wanted}, as the means have {values.shape}; found {spreads.shape}.")
    diagonal = np.diagonal(spreads, axis1=1, axis2=2) if spreads.ndim == 3 else spreads
    if (diagonal < 0).any():
        raise InputError(f"{name} must not be negative; found {diagonal.min():g}.")
    counted = abs(float(counts.sum()) - 1) > SHARES_SUM
    return mixture(values, spreads, counts, counted=counted, features=features, site=site)
