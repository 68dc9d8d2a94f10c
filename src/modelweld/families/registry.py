"""Which families there are: what is entered here is saved, loaded and proposed by name.

Hyperparameters as users give them: what is refused, in the same words for every family.

Which families given values could belong to, for the message when they do not belong to the one that was named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import TypeVar

import numpy as np

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


Known = TypeVar("Known")

SMALLEST_POSITIVE = float(np.finfo(np.float64).tiny)
"""Below it numbers lose their digits, and one over them is infinite."""

LEARNING = ("likelihood", "nothing")
"""Hyperparameters are the most likely ones, or stay as they are."""


def check_choice(family: Family, field: str, known: Sequence[str] = LEARNING) -> None:
    """Refuse a setting that is none of those there are."""
    given = getattr(family, field)
    if given not in known:
        names = " or ".join((", ".join(map(repr, known[:-1])), repr(known[-1])))
        raise InputError(f"{type(family).__name__}: {field} is {names}; found {given!r}.")


def freeze_number(family: Family, field: str, what: str = "a positive number", also: float = 1.0) -> None:
    """Make a field that is given a float; refuse what is neither a positive finite number nor `also` allowed."""
    given = getattr(family, field)
    if given is None:
        return
    if np.ndim(given) or not (SMALLEST_POSITIVE <= given < np.inf or given == also):
        raise InputError(f"{type(family).__name__}: {field} is {what}; found {given!r}.")
    object.__setattr__(family, field, float(given))


def freeze_vectors(family: Family, *names: str, positive: bool = False, infinite: bool = False) -> None:
    """Make fields that are given arrays (1,) or (D,); refuse what is no number, or not positive where that is asked.

    `infinite`: all of a field may be infinite at once.
    """
    for name in names:
        given = getattr(family, name)
        if given is None:
            continue
        value = np.atleast_1d(np.array(given, dtype=np.float64))
        finite = np.isfinite(value).all() or (infinite and (value == np.inf).all())
        if value.ndim > 1 or not finite or (positive and not (value >= SMALLEST_POSITIVE).all()):
            what = "positive" if positive else "finite"
            also = " (or infinite for all of them)" if infinite else ""
            raise InputError(
                f"{type(family).__name__}: {name} must be a {what} number or one per dimension{also}; found {given!r}."
            )
        object.__setattr__(family, name, value)


def check_sizes(family: Family, names: Sequence[str], D: int) -> None:
    """Refuse fields that are neither one number nor one per dimension of the values."""
    for name in names:
        given = getattr(family, name)
        if given is not None and np.size(given) not in (1, D):
            raise InputError(
                f"{type(family).__name__}: {name} has {np.size(given)} entries but the values have {D} dimensions."
            )


def check_single(family: Family, *names: str) -> None:
    """Refuse several numbers where one serves all dimensions."""
    for name in names:
        if (size := np.size(getattr(family, name))) > 1:
            raise InputError(f"{type(family).__name__}: shape 'scalar' takes one {name}; found {size}.")


def require(given: Known | None) -> Known:
    """A hyperparameter after `starts`, which has read off the values what was not given."""
    if given is None:
        raise InputError("hyperparameters are not known yet; family.starts(stack) reads them off the values.")
    return given


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
