"""Sites must describe the same things: the same arrays, the same names in one order, the same units.

Those that name their coordinates are put into one order by name, before anything is compared.

A coordinate that must be complete (features of a network) has the same names everywhere, in any order, and the fused
model has that of most sites; else the sites do not measure the same things and are refused, with the difference. So are
sites that name it among others that do not. Where a kind of model allows it, a site may lack features of the others
(`modelweld.inputs.lacking`). Of a partial one (words, classes) every site sends what it
has: the fused model has them all, and what a site lacks has weight zero there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.lacking import check_lacking, put_names
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.names import SHOWN, some


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
    named = {coordinate for model in models for coordinate in model.coordinates}
    result = list(models)
    for coordinate in sorted(named):
        _check_named(models, coordinate)
        lists = Counter(tuple(m.coordinates[coordinate]) for m in models if coordinate in m.coordinates)
        if len(lists) == 1:
            continue
        names = tuple(sorted(set().union(*lists)))
        if not all(coordinate in m.partial for m in models if coordinate in m.coordinates):
            if coordinate in may_lack:
                check_lacking(models, coordinate)
            else:
                _check_same(models, coordinate)
            most = min(lists, key=lambda known: (-len(known), -lists[known], known))
            names = (*most, *(name for name in names if name not in most))
        lacking = any(len(known) < len(names) for known in lists)
        result = [
            m if coordinate not in m.coordinates else put_names(m, coordinate, names, lacking=lacking) for m in result
        ]
    return result


def _check_named(models: Sequence[LocalModel], coordinate: str) -> None:
    """Refuse sites that do not name what others do: taken by position, columns may be mixed up without a word."""
    known = next(m for m in models if coordinate in m.coordinates)
    along = {name: known.axes[name] for name, spelt in known.along.items() if coordinate in spelt}
    without = [
        m.site or str(j)
        for j, m in enumerate(models)
        if coordinate not in m.coordinates and any(m.axes.get(name) == axes for name, axes in along.items())
    ]
    if without:
        more = f" and {len(without) - SHOWN} more" if len(without) > SHOWN else ""
        remedy = {"feature": "read(model, features=[...]), or a table with named columns", "word": "features=[...]"}
        raise InputError(
            f"site {', '.join(map(repr, without[:SHOWN]))}{more} does not name its {coordinate}s and others do: their "
            f"order may differ, so they are not taken by position. Say the names at all sites, or at none: "
            f"{remedy.get(coordinate, 'coordinates={' + repr(coordinate) + ': [...]}')}."
        )


def _check_same(models: Sequence[LocalModel], coordinate: str) -> None:
    """Refuse sites that lack names others have."""
    first = next(m for m in models if coordinate in m.coordinates)
    wanted = set(first.coordinates[coordinate])
    for j, model in enumerate(models):
        found = set(model.coordinates.get(coordinate, wanted))
        if found != wanted:
            raise InputError(
                f"site {model.site or j}: its {coordinate}s are not those of site {first.site or 0}: it lacks "
                f"{some(wanted - found)} and has {some(found - wanted)} instead. Fuse sites that describe the same "
                f"{coordinate}s, or rename them where they mean the same; LocalModels with "
                f"partial=[{coordinate!r}] at every site count what one lacks as not seen."
            )


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
