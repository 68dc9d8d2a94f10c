"""Which arrays of local models decide which set's matching, the values they give to it, and names of their columns.

Sites must describe the same things: the same arrays, the same names in one order, the same units.

Those that name their coordinates are put into one order by name, before anything is compared (`inputs.feature_names`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.matching import Matching
from modelweld.core.values import Array, Key, Stack, arrays_of, offsets_of
from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.inputs import disagreements
from modelweld.inputs.feature_names import align_coordinate
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.stacks import side_by_side

Families = Family | Mapping[Any, Any] | None


def families_by_set(sites: Sequence[LocalModel], families: Families) -> dict[str, dict[Key, Family]]:
    """Which arrays decide which set's matching, with their families; sets in the order of the arrays' axes."""
    first = sites[0]
    sets = list(dict.fromkeys(axis for axes in first.axes.values() for axis in axes if axis is not None))
    result: dict[str, dict[Key, Family]] = {}
    for position, set_name in enumerate(sets):
        known = set(sets[:position])
        usable = [
            name
            for name, axes in first.axes.items()
            if axes.count(set_name) == 1 and all(a is None or a == set_name or a in known for a in axes)
        ]
        result[set_name] = _choose(families, set_name, usable, first)
    if not result and families != {}:
        raise InputError("there is nothing to match: no array has a set among its axes.")
    return result


def _choose(families: Families, set_name: str, usable: list[str], first: LocalModel) -> dict[Key, Family]:
    """The families of one set."""
    if families is None or isinstance(families, Family):
        chosen: dict[Key, Family] = {name: families or Gaussian() for name in usable if name not in first.auxiliary}
    else:
        chosen = dict(families)
        if not all(name in usable and isinstance(family, Family) for name, family in families.items()):
            chosen = disagreements.choose_families(families, set_name, usable, first)
    if not chosen:
        able = f"arrays that could are {usable or 'none'}; at least one needs a family and must not be auxiliary"
        raise InputError(f"no array decides the matching of set {set_name!r}: {able}.")
    return chosen


def stack_of(sites: Sequence[LocalModel], key: Key, set_name: str, matchings: Mapping[str, Matching]) -> Stack:
    """The values of one family, all sites one below the other; several arrays of a family stand side by side."""
    stacks = [_array_stack(sites, name, set_name, matchings) for name in arrays_of(key)]
    return stacks[0] if len(stacks) == 1 else side_by_side(stacks)


def _array_stack(sites: Sequence[LocalModel], name: str, set_name: str, matchings: Mapping[str, Matching]) -> Stack:
    """One array of all sites as rows of `set_name`, its other sets in global order (absent members: weight 0)."""
    axes = sites[0].axes[name]
    reordered = any(axis is not None and axis != set_name for axis in axes)

    def members(parts: Sequence[ArrayLike]) -> list[Array]:
        return [_as_members(np.asarray(x), j, axes, set_name, matchings) for j, x in enumerate(parts)]

    values = members([m.arrays[name] for m in sites])
    variance = weight = None
    if any(name in m.variance for m in sites):
        variance = members([m.variance.get(name, np.zeros(np.shape(m.arrays[name]))) for m in sites])
    weighted = any(name in m.weight for m in sites)
    if weighted:
        disagreements.check_weights(sites, name)
    if reordered or weighted:
        weight = members([m.weight.get(name, np.ones(np.shape(m.arrays[name]))) for m in sites])
    stack = Stack(
        np.concatenate(values),
        offsets_of([len(v) for v in values]),
        None if variance is None else np.concatenate(variance),
        None if weight is None else np.concatenate(weight),
    )
    return stack.blind()


def _as_members(
    x: Array, j: int, axes: Sequence[str | None], set_name: str, matchings: Mapping[str, Matching]
) -> Array:
    """An array of site j with one row per member of a set, other sets in global order, zero what the site lacks."""
    for position, axis in enumerate(axes):
        if axis is not None and axis != set_name:
            matching = matchings[axis]
            wide = np.zeros((*x.shape[:position], len(matching.counts), *x.shape[position + 1 :]))
            wide[(slice(None),) * position + (matching.labels[j],)] = x
            x = wide
    x = np.moveaxis(x, axes.index(set_name), 0)
    return x.reshape(len(x), int(np.prod(x.shape[1:])))


def columns_of(
    model: LocalModel, key: Key, set_name: str, matchings: Mapping[str, Matching], *, in_words: bool = False
) -> list[str]:
    """Names of the columns of `modelweld.inputs.sets.stack_of`: short ones for tables, or `in_words` for sentences.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["age", "weight"]})
    >>> columns_of(site, "v", "atom", {}), columns_of(site, "v", "atom", {}, in_words=True)
    (['age', 'weight'], ["feature 'age'", "feature 'weight'"])
    >>> columns_of(LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}), "v", "atom", {}, in_words=True)
    ['dimension 0']
    """
    several = len(arrays_of(key)) > 1
    return [
        (f"array {name!r}, {column}" if in_words else f"{name} {column}".strip()) if several else column
        for name in arrays_of(key)
        for column in _of_array(model, name, set_name, matchings, in_words)
    ]


def _of_array(
    model: LocalModel, name: str, set_name: str, matchings: Mapping[str, Matching], in_words: bool
) -> list[str]:
    parts: list[list[str]] = []
    set_itself = model.axes[name].index(set_name)
    for i, (axis, spelt) in enumerate(zip(model.axes[name], model.along[name], strict=True)):
        if i == set_itself:
            continue
        if spelt is not None:
            names = model.coordinates[spelt]
            parts.append([f"{spelt} {entry!r}" for entry in names] if in_words else list(names))
        else:
            n = np.shape(model.arrays[name])[i] if axis is None else len(matchings[axis].counts)
            parts.append([f"{axis or ('dimension' if in_words else 'dim')} {d}" for d in range(n)])
    return [", ".join(entry) for entry in product(*parts)]


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


def local_models(given: Sequence[object]) -> list[LocalModel]:
    """All of them, if all are LocalModels; else an error that says which is none."""
    for j, model in enumerate(given):
        if not isinstance(model, LocalModel):
            raise InputError(f"site {j}: either all sites are LocalModels or none is; found {type(model).__name__}.")
    return [model for model in given if isinstance(model, LocalModel)]


def check_models(given: Sequence[object], may_lack: Sequence[str] = ()) -> list[LocalModel]:
    """All LocalModels, aligned by name, with the same arrays and axes; names along `may_lack` may be some of them."""
    models = align(local_models(given), may_lack)
    form, *others = [
        {name: [a or n for a, n in zip(axes, np.shape(m.arrays[name]), strict=True)] for name, axes in m.axes.items()}
        for m in models
    ]
    for j, other in enumerate(others, 1):
        if other != form:
            raise InputError(disagreements.describe_form(models[0], models[j], models[j].site or str(j)))
    return models


def check_units(models: Sequence[LocalModel]) -> None:
    """Refuse sites that measure a feature in another unit than the first site that says in which it does."""
    if any("units" in model.facts for model in models):
        disagreements.compare_stated_units(models)
