"""What a site that comes later must send: arrays like those of the sites before it, which are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.alignment import check_models
from modelweld.inputs.local_model import Array, LocalModel, check_values

NEW_SITE = "new"
"""What messages call a site that has no name."""


def conform(model: Any, pattern: LocalModel) -> LocalModel:
    """What a site sends, as a LocalModel in the order of the pattern; refused if it is not like those before."""
    arrays = list(pattern.arrays)
    own = _as_local(model, pattern)
    absent = sorted(set(arrays) - set(own.arrays))
    if absent:
        raise InputError(f"the site must send {arrays}, like those before; {absent} is not there.")
    _check_weights(own, pattern)
    aligned, own = check_models([pattern, _part(own, arrays)])
    if aligned.coordinates != pattern.coordinates:
        raise InputError(
            "the site names coordinates that those before do not have, and sums cannot be widened: fuse all sites "
            "again, or leave the new names out."
        )
    return own


def pattern_of(models: Sequence[LocalModel], names: Sequence[str]) -> LocalModel:
    """These arrays of a site without members; with a weight where sites sent one that is not 0 or 1."""
    empty = _part(models[0], names, empty=True)
    weighted = [name for name in names if any(_weighted(model, name) for model in models)]
    return empty.with_(site="", variance={}, weight={name: np.ones_like(empty.arrays[name]) for name in weighted})


def _part(model: LocalModel, names: Sequence[str], empty: bool = False) -> LocalModel:
    """These arrays of a model, all their members or none."""
    axes = {n: tuple(c or a for c, a in zip(model.along[n], model.axes[n], strict=True)) for n in names}
    used = {axis for named in axes.values() for axis in named}

    def cut(values: ArrayLike, name: str) -> Array:
        of = tuple(slice(0) if empty and axis is not None else slice(None) for axis in model.axes[name])
        return np.array(values)[of].copy()

    return LocalModel(
        arrays={name: cut(model.arrays[name], name) for name in names},
        axes=axes,
        variance={name: cut(values, name) for name, values in model.variance.items() if name in names},
        weight={name: cut(values, name) for name, values in model.weight.items() if name in names},
        site=model.site or NEW_SITE,
        coordinates={name: entries for name, entries in model.coordinates.items() if name in used},
        partial=[name for name in model.partial if name in used],
    )


def _weighted(model: LocalModel, name: str) -> bool:
    """Whether a weight other than 0 and 1 is sent."""
    return name in model.weight and not np.isin(model.weight[name], (0.0, 1.0)).all()


def _check_weights(own: LocalModel, pattern: LocalModel) -> None:
    """A weight is sent by all sites or by none."""
    for name in pattern.arrays:
        before = name in pattern.weight
        if before and name not in own.weight:
            sent = "the sites before sent one and this one does not"
        elif not before and _weighted(own, name):
            sent = "only this site sends one"
        else:
            continue
        raise InputError(f"array {name!r}: a weight is sent by all sites or by none; {sent}.")


def _as_local(model: Any, pattern: LocalModel) -> LocalModel:
    """A LocalModel of whatever `fuse` takes as a site."""
    from modelweld.libraries import read

    if isinstance(model, LocalModel):
        return model
    if not (isinstance(model, (list, tuple)) or hasattr(model, "__array__")):
        return read(model)
    if list(pattern.axes.values()) != [("atom", None)]:
        raise InputError(f"the site must be a model with the arrays {list(pattern.arrays)}, like those before.")
    values = check_values(model, f"site {NEW_SITE}")
    width = np.shape(pattern.arrays["values"])[1]
    return LocalModel({"values": values if values.size else np.zeros((0, width))}, {"values": ("atom", None)})
