"""Which families given values could belong to, for the message when they do not belong to the one that was named."""

from __future__ import annotations

from collections.abc import Sequence

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.families.registry import FAMILIES
from modelweld.inputs.stack import Key, Stack, arrays_of, group_of_values


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
    proposed = sorted((cls for cls in FAMILIES.values() if cls.specificity), key=lambda cls: -cls.specificity)
    return [f"{cls.__name__}()" for cls in proposed if cls().misfit(stack) is None]
