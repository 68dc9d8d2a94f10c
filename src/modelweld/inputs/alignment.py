"""Sites must describe the same things: the same arrays, the same names in one order, the same units.

Those that name their coordinates are put into one order by name, before anything is compared (`inputs.feature_names`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.feature_names import align_coordinate
from modelweld.inputs.local_model import LocalModel


def local_models(given: Sequence[object]) -> list[LocalModel]:
    """All of them, if all are LocalModels; else an error that says which is none."""
    for j, m in enumerate(given):
        if not isinstance(m, LocalModel):
            raise InputError(f"site {j}: either all sites are LocalModels or none is; found {type(m).__name__}.")
    return [m for m in given if isinstance(m, LocalModel)]


def check_models(given: Sequence[object], may_lack: Sequence[str] = ()) -> list[LocalModel]:
    """All LocalModels, aligned by name, with the same arrays and axes; names along `may_lack` may be some of them."""
    models = align(local_models(given), may_lack)
    first = models[0]
    for j, m in enumerate(models):
        if dict(m.axes) != dict(first.axes):
            raise InputError(
                f"site {m.site or j}: all sites must send the same arrays with the same axes. It has "
                f"{dict(m.axes)}, the first site {dict(first.axes)}. What a site has not seen it sends with weight 0."
            )
        for name, axes in m.axes.items():
            for axis, n, n_first in zip(axes, np.shape(m.arrays[name]), np.shape(first.arrays[name]), strict=True):
                if axis is None and n != n_first:
                    raise InputError(
                        f"site {m.site or j}: fixed coordinates must agree, but array {name!r} has shape "
                        f"{np.shape(m.arrays[name])} and the first site's {np.shape(first.arrays[name])}. Where "
                        "sites have other features or words, name them, to align them by: read(model, features=...), "
                        "for texts vectorizer.get_feature_names_out()."
                    )
    return models


def align(models: Sequence[LocalModel], may_lack: Sequence[str] = ()) -> list[LocalModel]:
    """The same models with the same names in the same order along every coordinate they name.

    Examples
    --------
    >>> a = LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["x", "y"]})
    >>> b = LocalModel({"v": [[3.0, 4.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["y", "x"]})
    >>> [m.arrays["v"].tolist() for m in align([a, b])]
    [[[1.0, 2.0]], [[4.0, 3.0]]]
    """
    result = list(models)
    for coordinate in sorted({coordinate for model in models for coordinate in model.coordinates}):
        result = align_coordinate(models, result, coordinate, coordinate in may_lack)
    return result


def check_units(models: Sequence[LocalModel]) -> None:
    """Refuse sites that measure a feature in another unit than the first site that says in which it does.

    Examples
    --------
    >>> sites = [LocalModel({}, {}, facts={"units": {"age": unit}}) for unit in ("years", "days")]
    >>> check_units(sites)
    Traceback (most recent call last):
    modelweld.errors.InputError: site 1: 'age' is in 'days', but in 'years' at site 0. Convert it at the site.
    """
    said: dict[str, tuple[str, object]] = {}
    for j, model in enumerate(models):
        units = model.facts.get("units", {})
        for feature, unit in units.items() if isinstance(units, dict) else ():
            where, first = said.setdefault(feature, (model.site or str(j), unit))
            if unit != first:
                raise InputError(
                    f"site {model.site or j}: {feature!r} is in {unit!r}, but in {first!r} at site {where}. Convert it "
                    "at the site."
                )


def with_units(model: LocalModel, units: Mapping[str, str]) -> LocalModel:
    """The model, with the units of its features stated.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["age"]})
    >>> with_units(site, {"age": "years"}).facts
    {'units': {'age': 'years'}}
    """
    unknown = [name for name in units if name not in model.coordinates.get("feature", ())]
    if unknown:
        raise InputError(f"units are given by feature, but there is no feature {unknown[0]!r}; name them: features=...")
    return model.with_(facts={**model.facts, "units": {str(name): str(unit) for name, unit in units.items()}})
