"""What the columns of a set's values are called: by the names that sites spell out, else by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from modelweld.inputs.keys import Key, arrays_of
from modelweld.inputs.local_model import LocalModel
from modelweld.matching.result import Matching


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
