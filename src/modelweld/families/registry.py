"""Which families there are: what is entered here is saved, loaded and proposed by name.

Which families given values could belong to, for the message when they do not belong to the one that was named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import TypeVar

from modelweld.core.family import ChecksValues, Family
from modelweld.core.values import Key, Stack, arrays_of, group_of_values
from modelweld.errors import InputError

FAMILIES: dict[str, type[Family]] = {}
"""Name of a family -> its class."""

Some = TypeVar("Some", bound=Family)


def register(cls: type[Some]) -> type[Some]:
    """Enter a family, so that fusions with it can be saved and loaded, and so that it is proposed where it fits.

    Ours are entered by this decorator as yours would be. Files hold the name and the fields of a family, no code: who
    loads a fusion with a family of yours must have registered it, too.

    Parameters
    ----------
    cls : class
        A `Family` that is a dataclass, of a name that is not taken. If its `specificity` is not zero, all fields have
        defaults.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from modelweld.families import Gaussian, register
    >>> @register
    ... @dataclass(frozen=True, eq=False)
    ... class Weights(Gaussian):
    ...     "Of our sensors; saved under their own name."
    >>> FAMILIES.pop("Weights").__name__
    'Weights'
    """
    needed = _find_required(cls)
    if needed is None:
        raise InputError(f"register: a family is a dataclass that subclasses modelweld.Family; found {cls!r}.")
    taken = FAMILIES.get(cls.__name__)
    if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InputError(
            f"register: there is a family {cls.__name__} already, of {taken.__module__}; give yours another name."
        )
    specificity = cls.specificity if issubclass(cls, ChecksValues) else 0
    if specificity and needed:
        raise InputError(
            f"register: {cls.__name__} is to be proposed (its specificity is {specificity}), so it must be made "
            f"without arguments; give {needed[0]!r} a default, or leave specificity at 0."
        )
    FAMILIES[cls.__name__] = cls
    return cls


def _find_required(thing: object) -> list[str] | None:
    """Fields of a family that have no default; None if it is no family."""
    if not (is_dataclass(thing) and isinstance(thing, type)):
        return None
    needed = [f.name for f in fields(thing) if f.init and f.default is MISSING and f.default_factory is MISSING]
    return needed if issubclass(thing, Family) else None


def misfit_error(family: Family, found: tuple[int, str], stack: Stack, sites: Sequence[str], key: Key) -> InputError:
    """What to raise where `Family.misfit` found something: where, why, and which family would take the values."""
    row, why = found
    j = int(group_of_values(stack.offsets)[row])
    where = (
        f"site {sites[j]}, array {' and '.join(repr(name) for name in arrays_of(key))}, row {row - stack.offsets[j]}"
    )
    return InputError(
        f"{where}: {type(family).__name__} takes values that {why}."
        f" Families that take all values of this array: {', '.join(fitting(stack)) or 'none'}."
    )


def fitting(stack: Stack) -> list[str]:
    """Calls that make families which take all these values, the most special first."""
    proposed = [cls for cls in FAMILIES.values() if issubclass(cls, ChecksValues) and cls.specificity]
    proposed.sort(key=lambda cls: -cls.specificity)
    return [f"{cls.__name__}()" for cls in proposed if cls().misfit(stack) is None]
