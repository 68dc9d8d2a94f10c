"""Which families given values could belong to, for the message when they do not belong to the one that was named."""

from __future__ import annotations

from collections.abc import Sequence

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.families.counts import Counts
from modelweld.families.directions import Directions
from modelweld.families.gaussian import Gaussian
from modelweld.families.proportions import Proportions
from modelweld.families.rates import Rates
from modelweld.families.scatter import Scatter
from modelweld.inputs.keys import Key, arrays_of
from modelweld.inputs.stack import Stack, group_of_rows

KNOWN: tuple[type[Family], ...] = (Scatter, Directions, Counts, Proportions, Rates, Gaussian)
"""Families that can be made without arguments, the most special first."""


def check_fit(family: Family, stack: Stack, sites: Sequence[str], key: Key) -> None:
    """Refuse values that cannot be values of their family: where, why, and which family would take them."""
    found = family.misfit(stack)
    if found is None:
        return
    row, why = found
    j = int(group_of_rows(stack.offsets)[row])
    where = (
        f"site {sites[j]}, array {' and '.join(repr(name) for name in arrays_of(key))}, row {row - stack.offsets[j]}"
    )
    fitting = [f"{known.__name__}()" for known in KNOWN if known().misfit(stack) is None]
    raise InputError(
        f"{where}: {type(family).__name__} takes values that {why}."
        f" Families that take all values of this array: {', '.join(fitting) or 'none'}."
    )
