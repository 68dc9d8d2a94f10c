"""Families with the hyperparameters of one draw; and by which names draws of several arrays keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelweld.families.base import Family, with_fields
from modelweld.inputs.stack import Index

if TYPE_CHECKING:
    from modelweld.posterior.draws import Posterior


def drawn_name(name: str, array: int, arrays: int) -> str:
    """How draws call a hyperparameter of one of several arrays of a set.

    Examples
    --------
    >>> drawn_name("noise", 0, 1), drawn_name("noise", 1, 2)
    ('noise', 'noise 1')
    """
    return name if arrays == 1 else f"{name} {array}"


def drawn_families(families: Sequence[Family], posterior: Posterior, at: tuple[Index | int, ...]) -> list[Family]:
    """Families as one draw has them; as they were learned where hyperparameters were not drawn."""
    drawn, A = posterior.hyperparameters or {}, len(families)
    found = []
    for a, family in enumerate(families):
        names = {name: drawn_name(name, a, A) for name in {*family.learned(), *family.walked}}
        found.append(with_fields(family, **{name: drawn[key][at] for name, key in names.items() if key in drawn}))
    return found
