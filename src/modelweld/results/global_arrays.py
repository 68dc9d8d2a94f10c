"""Arrays of all sites as one: put where the matching says, added up or averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from modelweld.core.matching import Matching
from modelweld.core.values import Array, Index, arrays_of
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel


@dataclass(frozen=True, eq=False)
class GlobalArrays:
    """The sites' arrays with their set axes in global order."""

    models: Sequence[LocalModel]
    matchings: Mapping[str, Matching]

    def array(self, name: str) -> Array:
        """What was matched by its atoms' values, what rode along by its average."""
        if name not in self.models[0].axes:
            raise InputError(f"no array {name!r} was fused; there are {sorted(self.models[0].axes)}.")
        axes = self.models[0].axes[name]
        for set_name in reversed([axis for axis in axes if axis is not None]):
            matching = self.matchings[set_name]
            for key, values in matching.values.items():
                if name in arrays_of(key):
                    before = arrays_of(key)[: arrays_of(key).index(name)]
                    first = sum(math.prod(self._member_shape(other, set_name)) for other in before)
                    shape = self._member_shape(name, set_name)
                    columns = values[:, first : first + math.prod(shape)]
                    return np.moveaxis(columns.reshape(len(matching.counts), *shape), 0, axes.index(set_name))
        return self.average(name)

    def total(self, name: str) -> Array:
        """Sum over sites."""
        result = np.zeros(self._shape(name))
        for j, model in enumerate(self.models):
            np.add.at(result, self._places(j, name), np.asarray(model.arrays[name]))
        return result

    def average(self, name: str) -> Array:
        """Mean over the sites that have seen each entry; NaN where none has."""
        number, total = np.zeros((2, *self._shape(name)))
        for j, model in enumerate(self.models):
            values = np.asarray(model.arrays[name])
            seen = np.asarray(model.weight.get(name, np.ones(values.shape))) > 0
            np.add.at(number, self._places(j, name), seen)
            np.add.at(total, self._places(j, name), np.where(seen, values, 0.0))
        return np.where(number > 0, total / np.maximum(number, 1.0), np.nan)

    def _member_shape(self, name: str, set_name: str) -> tuple[int, ...]:
        """Shape of one member of a set in a global array."""
        position = self.models[0].axes[name].index(set_name)
        return tuple(n for i, n in enumerate(self._shape(name)) if i != position)

    def _shape(self, name: str) -> tuple[int, ...]:
        shape, axes = np.shape(self.models[0].arrays[name]), self.models[0].axes[name]
        return tuple(
            n if axis is None else len(self.matchings[axis].counts) for n, axis in zip(shape, axes, strict=True)
        )

    def _places(self, j: int, name: str) -> tuple[Index, ...]:
        """Where site j's entries of an array belong in the global one."""
        model = self.models[j]
        places = [
            np.arange(n) if axis is None else self.matchings[axis].labels[j]
            for n, axis in zip(np.shape(model.arrays[name]), model.axes[name], strict=True)
        ]
        return np.ix_(*places)
