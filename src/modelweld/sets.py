"""Local models as sets: which arrays decide which set's matching, and their values as rows of that set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.local import Array, LocalModel
from modelweld.matched import Matching
from modelweld.stack import Stack, offsets_of

Families = Family | Mapping[str, Any] | None


def checked_models(given: Sequence[Any]) -> list[LocalModel]:
    """All LocalModels, with the same arrays and axes."""
    for j, m in enumerate(given):
        if not isinstance(m, LocalModel):
            raise InputError(f"site {j}: either all sites are LocalModels or none is; found {type(m).__name__}.")
    first = given[0]
    for j, m in enumerate(given):
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
                        f"{np.shape(m.arrays[name])} and the first site's {np.shape(first.arrays[name])}."
                    )
    return list(given)


def families_by_set(sites: Sequence[LocalModel], families: Families) -> dict[str, dict[str, Family]]:
    """Which arrays decide which set's matching, with their families; sets in the order of the arrays' axes."""
    first = sites[0]
    sets = list(dict.fromkeys(axis for axes in first.axes.values() for axis in axes if axis is not None))
    result: dict[str, dict[str, Family]] = {}
    for position, set_name in enumerate(sets):
        known = set(sets[:position])
        usable = [
            name
            for name, axes in first.axes.items()
            if axes.count(set_name) == 1 and all(a is None or a == set_name or a in known for a in axes)
        ]
        result[set_name] = _chosen(families, set_name, usable, first)
    if not result:
        raise InputError("there is nothing to match: no array has a set among its axes.")
    return result


def _chosen(families: Families, set_name: str, usable: list[str], first: LocalModel) -> dict[str, Family]:
    """The families of one set."""
    if families is None or isinstance(families, Family):
        chosen = {name: families or Gaussian() for name in usable if name not in first.riding}
    else:
        own = families.get(set_name, families)
        if not isinstance(own, Mapping):
            raise InputError(f"families[{set_name!r}] must map array names to families; found {own!r}.")
        wrong = [n for n, f in own.items() if n in first.axes and not isinstance(f, Family)]
        if wrong:
            raise InputError(f"families must be Family objects, such as Gaussian(); {wrong} are not.")
        unknown = [n for n in own if n not in first.axes and n not in {a for x in first.axes.values() for a in x}]
        if unknown:
            raise InputError(f"families name {unknown}, but the sites send {sorted(first.axes)}.")
        chosen = {name: own[name] for name in usable if name in own}
    if not chosen:
        raise InputError(
            f"no array decides the matching of set {set_name!r}: arrays that could are {usable or 'none'}; "
            "they must not all ride, and must have a family."
        )
    return chosen


def stack_of(sites: Sequence[LocalModel], name: str, set_name: str, matchings: Mapping[str, Matching]) -> Stack:
    """One array of all sites as rows of `set_name`, its other sets in global order (absent members: weight 0)."""
    has_variance = any(name in m.variance for m in sites)
    axes = sites[0].axes[name]
    reordered = any(axis is not None and axis != set_name for axis in axes)
    has_weight = reordered or any(name in m.weight for m in sites)
    values, variance, weight = [], [], []
    for j, m in enumerate(sites):
        array = np.asarray(m.arrays[name])

        def rows(x: Array, j: int = j, m: LocalModel = m) -> Array:
            for position, axis in enumerate(m.axes[name]):
                if axis is not None and axis != set_name:
                    matching = matchings[axis]
                    shape = (*x.shape[:position], len(matching.counts), *x.shape[position + 1 :])
                    spread_out = np.zeros(shape)
                    spread_out[(slice(None),) * position + (matching.labels[j],)] = x
                    x = spread_out
            x = np.moveaxis(x, m.axes[name].index(set_name), 0)
            return x.reshape(len(x), int(np.prod(x.shape[1:])))

        values.append(rows(array))
        if has_variance:
            variance.append(rows(np.asarray(m.variance.get(name, np.zeros(array.shape)))))
        if has_weight:
            weight.append(rows(np.asarray(m.weight.get(name, np.ones(array.shape)))))
    stack = Stack(
        np.concatenate(values),
        offsets_of([len(v) for v in values]),
        np.concatenate(variance) if has_variance else None,
        np.concatenate(weight) if has_weight else None,
    )
    return stack.blind()
