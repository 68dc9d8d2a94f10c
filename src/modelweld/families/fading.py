"""What families of atoms that move have in common, where what was seen of an atom fades."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.families.registry import FAMILIES
from modelweld.inputs.local_model import Array

STANDSTILL = 3.0
"""Nats by which a finite memory must raise the evidence to be believed in: twenty to one. Atoms that stand still would
else be given some drift in half of all sets, and be forecast the worse for it."""


class Moving(Family):
    """A family of atoms that move, of memory `memory`: infinite, they stand still.

    Attributes
    ----------
    limits : dict
        Of the class: hyperparameters that are learned between bounds.
    forgotten : tuple of str
        Of the class: fields of the family of atoms that stand still that say nothing of atoms that move.
    """

    memory: float
    limits: ClassVar[dict[str, tuple[float, float]]] = {}
    forgotten: ClassVar[tuple[str, ...]] = ()

    def check_memory(self) -> None:
        """Refuse what is no correlation time."""
        if not self.memory > 0:
            raise InputError(
                f"{type(self).__name__}: memory must be positive, or infinite for atoms that stand still; found "
                f"{self.memory!r}."
            )

    def still(self) -> Family:
        """The same family of atoms that stand still."""
        raise NotImplementedError

    def log_prior(self) -> float:
        """As of atoms that stand still; that they move at all is believed with odds of one in twenty."""
        return super().log_prior() - (STANDSTILL if np.isfinite(self.memory) else 0.0)

    def faded(self, sums: Array, correlation: Array) -> Array:
        """What sums of rows (K, k) say of atoms whose expected value is so far (K,) on its way back to that of any."""
        raise NotImplementedError

    def posterior(self, sums: Array) -> tuple[Array, Array]:
        """Mean and variance (K, D) of atoms given sums (K, k)."""
        raise NotImplementedError

    def scatter(self, mean: Array) -> Array:
        """Variance (K, D) of typical values about such atoms."""
        raise NotImplementedError

    def interval(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """Where numbers of this mean and variance lie with this probability."""
        raise NotImplementedError


def moving(family: Family) -> Moving | None:
    """The same family for atoms that move; None: there is none."""
    if isinstance(family, Moving):
        return family
    form = FAMILIES.get(family.moves_as)
    if form is None or not issubclass(form, Moving):
        return None
    found: Moving = with_fields_of(form, family, form.forgotten)
    return found


def with_fields_of(form: type[Any], family: Any, forgotten: tuple[str, ...] = ()) -> Any:
    """A family of this class with the fields that another has, too, but for some."""
    there = {field.name for field in fields(form)} - set(forgotten)
    return form(**{field.name: getattr(family, field.name) for field in fields(family) if field.name in there})
