"""Arrays of all sites as one: put where the matching says, added up or averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from modelweld.core.matching import Matching
from modelweld.core.values import Array, Index, Key, arrays_of
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel

Thing = TypeVar("Thing")


class ByMatchings:
    """What the `matchings` of sets say, asked of a fit and of a fusion."""

    if TYPE_CHECKING:  # a field of one, a property of the other

        @property
        def matchings(self) -> dict[str, Matching]:
            """By set."""

    @property
    def matching(self) -> Matching:
        """The matching, when there is one set."""
        if not self.matchings:
            raise InputError("nothing was matched: what these sites sent has names, by which it was put together.")
        if len(self.matchings) != 1:
            raise InputError(
                f"this fusion matched the sets {list(self.matchings)}: ask fusion.matchings[name] for one of them."
            )
        return next(iter(self.matchings.values()))

    @property
    def K(self) -> int:
        """Number of groups that any site has: all atoms but those that are excluded."""
        return self.matching.K

    @property
    def shared(self) -> int:
        """How many of them several sites have; sites that repeat another do not count."""
        return self.matching.shared

    @property
    def labels(self) -> list[Index]:
        """Atom of each local parameter, one array per site."""
        return self.matching.labels

    @property
    def counts(self) -> Index:
        """Number of sites that hold each atom."""
        return self.matching.counts

    @property
    def atoms(self) -> Array:
        """Global values of the one array that was matched, one row per atom: K, then those excluded."""
        return one_array(self.matching.values)

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence; over several sets, their sum."""
        return sum(m.objective for m in self.matchings.values())


def one_array(by_name: Mapping[Key, Thing]) -> Thing:
    """What belongs to the one array that was matched."""
    if len(by_name) != 1:
        raise InputError(
            f"several arrays were matched together, {list(by_name)}: ask fusion.parameters.estimate(name) for "
            "values and fusion.matching.families[name] for hyperparameters."
        )
    return next(iter(by_name.values()))


class GlobalArrays(ByMatchings):
    """The sites' arrays with their set axes in global order, of what has `models`, too."""

    if TYPE_CHECKING:

        @property
        def models(self) -> list[LocalModel]:
            """What sites sent."""

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
