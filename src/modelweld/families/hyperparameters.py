"""Hyperparameters as users give them: what is refused, in the same words for every family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from modelweld import errors
from modelweld.core.family import Family
from modelweld.core.values import LARGEST_VALUE
from modelweld.errors import InputError

Known = TypeVar("Known")

SMALLEST_POSITIVE = float(np.finfo(np.float64).tiny)
"""Below it numbers lose their digits, and one over them is infinite."""

LEARNING = ("likelihood", "nothing")
"""Hyperparameters are the most likely ones, or stay as they are."""


def check_choice(family: Family, field: str, known: Sequence[str] = LEARNING) -> None:
    """Refuse a setting that is none of those there are."""
    if getattr(family, field) not in known:
        errors.check_choice(f"{type(family).__name__}: {field}", getattr(family, field), known)


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
        finite = (np.abs(value) <= LARGEST_VALUE).all() or (infinite and (value == np.inf).all())
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
