"""What a model of some kind must look like, by which files are checked: arrays with axes and signs, and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.families.wishart.scatter import ROUNDING
from modelweld.inputs.local_model import SMALLEST_BESIDE, LocalModel

REMEDY = "Make it with modelweld.export, or leave the kind out."


@dataclass(frozen=True)
class Layout:
    """Arrays and facts of a kind.

    Attributes
    ----------
    sets : tuple of str
        The kind's sets. Names of axes that are no sets are coordinates, spelt out or not; "" is one of any length.
    arrays : mapping of str to tuple of str
        Arrays the kind knows, with their axes.
    needed : tuple of str
        Those that must be there; between bars, one of them.
    positive, not_negative, spreads : tuples of str
        Arrays of numbers above zero, of zero or more, and of covariances.
    divisors : tuple of str
        Arrays that are divided by number by number, so that none may be tiny. Probabilities are not among them: what
        EM has given up is 1e-250 as often as zero.
    facts : mapping of str to function
        What must be stated, and how to tell whether it makes sense.

    Examples
    --------
    >>> layout = Layout(sets=("drug",), arrays={"responses": ("drug", "dose")}, needed=("responses",))
    >>> layout.check(LocalModel({"doses": [1.0]}, {"doses": (None,)}, kind="dose-curves"))
    Traceback (most recent call last):
    modelweld.errors.InputError: a dose-curves has an array responses, and this one has ['doses']. ...
    """

    sets: tuple[str, ...]
    arrays: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    positive: tuple[str, ...] = ()
    not_negative: tuple[str, ...] = ()
    spreads: tuple[str, ...] = ()
    divisors: tuple[str, ...] = ()
    facts: Mapping[str, Callable[[object], bool]] = field(default_factory=dict)

    def check(self, model: LocalModel) -> None:
        """Refuse a model that is not of this kind, in words that name the array."""
        wrong = next(self._complaints(model), None)
        if wrong is not None:
            raise InputError(f"{wrong}. {REMEDY}")

    def _complaints(self, model: LocalModel) -> Iterator[str]:
        """What is wrong with a model."""
        kind, held = model.kind, sorted(model.arrays)
        for names in self.needed:
            if not set(held) & set(names.split("|")):
                yield f"a {kind} has an array {names.replace('|', ' or ')}, and this one has {held}"
        for name, known in self.facts.items():
            if name not in model.facts:
                yield f"a {kind} states {name!r} among its facts, and this one does not"
            elif not known(model.facts[name]):
                yield f"fact {name!r} of a {kind} makes no sense: found {str(model.facts[name])[:60]!r}"
        sizes: dict[str, tuple[int, str]] = {}
        for name, values in model.arrays.items():
            yield from self._of_axes(model, name, sizes)
            yield from (
                f"array {name!r} of a {kind} must {wrong}" for wrong in self._of_signs(name, np.asarray(values))
            )

    def _of_axes(self, model: LocalModel, name: str, sizes: dict[str, tuple[int, str]]) -> Iterator[str]:
        """Of an array's axes, and of the sizes of those before."""
        found, shape = list(zip(model.axes[name], model.along[name], strict=True)), np.shape(model.arrays[name])
        if name not in self.arrays:
            strange = next((axis for axis, _ in found if axis is not None and axis not in self.sets), None)
            if strange is not None:
                yield f"array {name!r} has the set {strange!r}, which a {model.kind} has not"
            return
        wanted = self.arrays[name]
        if len(found) != len(wanted) or not all(map(self._fits, wanted, found)):
            axes, had = ", ".join(axis or "." for axis in wanted), ", ".join(a or c or "." for a, c in found)
            yield f"array {name!r} of a {model.kind} has the axes ({axes}), and this one ({had}), shape {shape}"
        for axis, size in zip(wanted, shape, strict=False):
            if axis and sizes.setdefault(axis, (size, name))[0] != size:
                first, other = sizes[axis]
                yield f"array {name!r} has {size} {axis}s, but array {other!r} has {first}"

    def _fits(self, wanted: str, found: tuple[str | None, str | None]) -> bool:
        """Whether an axis is what it should be: a set, or a coordinate of that name or of none."""
        axis, spelt = found
        return axis == wanted if wanted in self.sets else axis is None and spelt in (None, wanted)

    def _of_signs(self, name: str, values: Array) -> Iterator[str]:
        """Of an array's numbers."""
        if name in self.positive and values.min(initial=np.inf) <= 0:
            yield f"be positive; found {values.min():g}"
        if name in self.not_negative and values.min(initial=np.inf) < 0:
            yield f"not be negative; found {values.min():g}"
        if name in self.divisors and ((values > 0) & (values < SMALLEST_BESIDE)).any():
            least = values[values > 0].min()
            yield f"be zero or at least {SMALLEST_BESIDE:g}, to be divided by; found {least:g}"
        if name in self.spreads and values.size and not _are_covariances(values):
            yield "be covariances: symmetric, no variance negative"


def _are_covariances(values: Array) -> bool:
    most = ROUNDING * float(np.abs(values).max())
    symmetric = np.abs(values - np.swapaxes(values, -1, -2)).max() <= most
    return bool(symmetric and np.linalg.eigvalsh(values).min() >= -most)


def truth(fact: object) -> bool:
    """Whether a fact is yes or no."""
    return isinstance(fact, (bool, np.bool_))


def whole(fact: object) -> bool:
    """Whether a fact is a number of things."""
    return isinstance(fact, (int, np.integer)) and not truth(fact) and bool(fact >= 0)


def mapping(fact: object) -> bool:
    """Whether a fact says something by name."""
    return isinstance(fact, Mapping)
