"""A LocalModel in words and tensors: what the manifest of a file says of it, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.files.limits import checked_name
from modelweld.files.small_counts import counts_behind
from modelweld.files.tensors import storable
from modelweld.inputs.local_model import Array, LocalModel

Tensor = NDArray[Any]


def described(model: LocalModel, prefix: str = "") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What the manifest says of a model, and its tensors by name.

    Examples
    --------
    >>> entry, tensors = described(LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, variance={"v": 0.5}))
    >>> entry["arrays"]
    [{'name': 'v', 'axes': ['atom', None], 'tensor': 'arrays/v', 'variance': 'variance/v'}]
    >>> {name: tensor.tolist() for name, tensor in tensors.items()}
    {'arrays/v': [[1.0]], 'variance/v': 0.5}
    """
    tensors: dict[str, Tensor] = {}
    arrays = []
    for name, values in model.arrays.items():
        checked_name(name, "an array")
        axes = [c if c is not None else a for c, a in zip(model.along[name], model.axes[name], strict=True)]
        for axis in axes:
            if axis is not None:
                checked_name(axis, "an axis")
        entry: dict[str, Any] = {"name": name, "axes": axes, "tensor": f"{prefix}arrays/{name}"}
        tensors[entry["tensor"]] = storable(values)
        for role, beside in (("variance", model.variance), ("weight", model.weight)):
            if name in beside:
                entry[role] = f"{prefix}{role}/{name}"
                tensors[entry[role]] = storable(_leading(np.asarray(beside[name])))
        arrays.append(entry)
    smallest = {name: float(n.min()) for name, n in counts_behind(model).items() if n.size}
    facts = plain(model.facts, "facts")
    return {
        "site": checked_name(model.site, "a site", empty=True),
        "kind": checked_name(model.kind, "a kind", empty=True),
        "arrays": arrays,
        "riding": list(model.riding),
        "coordinates": [
            {"name": checked_name(name, "a coordinate"), "names": list(names)}
            for name, names in model.coordinates.items()
        ],
        "partial": list(model.partial),
        "facts": facts,
        "counts": smallest,
        "library": {name: facts[name] for name in ("class", "version") if name in facts},
    }, tensors


def rebuilt(entry: Mapping[str, Any], tensor: Callable[[str], Tensor]) -> LocalModel:
    """The model of an entry that follows the schema."""
    arrays = entry["arrays"]
    for listed, what in ((arrays, "array"), (entry["coordinates"], "coordinate")):
        names = [checked_name(one["name"], f"an {what}" if what == "array" else f"a {what}") for one in listed]
        if len(set(names)) < len(names):
            raise InputError(f"the manifest names {what} {max(names, key=names.count)!r} twice.")
    for one in entry["coordinates"]:
        if "names" not in one:
            raise InputError(f"the manifest does not spell out the names along {one['name']!r}.")
    for axis in {axis for one in arrays for axis in one["axes"] if axis is not None}:
        checked_name(axis, "an axis")
    return LocalModel(
        arrays={one["name"]: tensor(one["tensor"]) for one in arrays},
        axes={one["name"]: tuple(one["axes"]) for one in arrays},
        variance={one["name"]: tensor(one["variance"]) for one in arrays if "variance" in one},
        weight={one["name"]: tensor(one["weight"]) for one in arrays if "weight" in one},
        riding=entry["riding"],
        site=checked_name(entry["site"], "a site", empty=True),
        coordinates={one["name"]: one["names"] for one in entry["coordinates"]},
        partial=entry["partial"],
        kind=checked_name(entry["kind"], "a kind", empty=True),
        facts=entry["facts"],
    )


def _leading(beside: Array) -> Array:
    """A variance or weight without the trailing axes along which it is one number."""
    while beside.ndim and beside.strides[-1] == 0 and beside.shape[-1] > 0:
        beside = beside[..., 0]
    return beside


def plain(fact: Any, where: str) -> Any:
    """A fact as JSON has it: numbers, words, truth values, None, lists and dicts of these.

    Examples
    --------
    >>> plain({"labels": (np.int64(3), "a")}, "facts")
    {'labels': [3, 'a']}
    """
    if isinstance(fact, (np.generic, np.ndarray)):
        fact = fact.tolist()
    if isinstance(fact, Mapping):
        odd = next((name for name in fact if not isinstance(name, str)), None)
        if odd is not None:
            raise InputError(f"{where}: keys must be words to travel in a file; found {odd!r}. Write them as words.")
        return {str(name): plain(value, f"{where}[{name!r}]") for name, value in fact.items()}
    if isinstance(fact, (list, tuple)):
        return [plain(value, f"{where}[{i}]") for i, value in enumerate(fact)]
    if fact is None or isinstance(fact, (bool, int, str)):
        return fact
    if isinstance(fact, float) and math.isfinite(fact):
        return fact
    raise InputError(
        f"{where}: only finite numbers, words, lists and dicts of these travel in a file; found {fact!r}. Drop it, or "
        "say it in words."
    )
