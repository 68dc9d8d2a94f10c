"""What is refused where sites do not describe the same things, or families do not suit what they send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modelweld.core.values import Key, arrays_of
from modelweld.errors import InputError, some
from modelweld.families import Family
from modelweld.inputs.local_model import LocalModel


def choose_families(
    families: Mapping[Any, Any], set_name: str, usable: Sequence[str], first: LocalModel
) -> dict[Key, Family]:
    """The families of one set, of those that were named for several sets or arrays."""
    own = families.get(set_name, families)
    if not isinstance(own, Mapping):
        raise InputError(f"families[{set_name!r}] must map array names to families; found {own!r}.")
    sets = {axis for axes in first.axes.values() for axis in axes}
    unknown = [key for key in own if not set(arrays_of(key)) <= set(first.axes) and key not in sets]
    if unknown:
        raise InputError(f"families name {unknown}, but the sites send {sorted(first.axes)}.")
    wrong = [key for key, f in own.items() if key not in sets and not isinstance(f, Family)]
    if wrong:
        raise InputError(f"families must be Family objects, such as Gaussian(); {wrong} are not.")
    chosen = {key: f for key, f in own.items() if isinstance(f, Family) and set(arrays_of(key)) <= set(usable)}
    named = [name for key in chosen for name in arrays_of(key)]
    if len(set(named)) < len(named):
        twice = sorted({name for name in named if named.count(name) > 1})
        raise InputError(f"families name {twice} twice: every array has one family, alone or with others.")
    return chosen


def check_weights(sites: Sequence[LocalModel], name: str) -> None:
    """Refuse weights from some sites and not from others, unless they only say what was seen."""
    without = [m.site or str(j) for j, m in enumerate(sites) if name not in m.weight]
    sent = [np.asarray(m.weight[name]) for m in sites if name in m.weight]
    if without and any(((w != 0) & (w != 1)).any() for w in sent):
        raise InputError(
            f"array {name!r}: some sites send a weight, but not {some(without)}: send one from all sites, or from none."
        )


def describe_form(first: LocalModel, model: LocalModel, site: str) -> str:
    """In which arrays, axes or lengths of fixed coordinates a site differs from the first."""
    if dict(model.axes) != dict(first.axes):
        return (
            f"site {site}: all sites must send the same arrays with the same axes, with weight 0 where nothing was "
            f"seen. It has {dict(model.axes)}, the first site {dict(first.axes)}."
        )
    shapes = {name: (np.shape(model.arrays[name]), np.shape(first.arrays[name])) for name in first.axes}
    fixed = {name: [i for i, axis in enumerate(axes) if axis is None] for name, axes in first.axes.items()}
    name, (own, other) = next((n, x) for n, x in shapes.items() if any(x[0][i] != x[1][i] for i in fixed[n]))
    return (
        f"site {site}: fixed coordinates must agree, but array {name!r} has shape {own} and the first site's {other}. "
        "Name features or words to align sites by: read(model, features=vectorizer.get_feature_names_out())."
    )


def compare_stated_units(models: Sequence[LocalModel]) -> None:
    """Refuse sites that measure a feature in another unit than the first site that says in which it does.

    Examples
    --------
    >>> sites = [LocalModel({}, {}, facts={"units": {"age": unit}}) for unit in ("years", "days")]
    >>> compare_stated_units(sites)
    Traceback (most recent call last):
    modelweld.errors.InputError: site 1: 'age' is in 'days', but in 'years' at site 0. Convert it at the site.
    """
    said: dict[str, tuple[str, object]] = {}
    for j, model in enumerate(models):
        units = model.facts.get("units", {})
        for feature, unit in units.items() if isinstance(units, dict) else ():
            where, first = said.setdefault(feature, (model.site or str(j), unit))
            if unit != first:
                what = f"{feature!r} is in {unit!r}, but in {first!r} at site {where}"
                raise InputError(f"site {model.site or j}: {what}. Convert it at the site.")
