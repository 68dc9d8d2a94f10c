"""Location parameters: where values lie and with what variance, for screening, which looks for those far off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from modelweld.inputs.local_model import Array

if TYPE_CHECKING:
    from modelweld.families.base import Family


class Variances(NamedTuple):
    """How far values lie from their atom (noise) and atoms from each other (spread): variances (D,) or (1,).

    Variances that sites send with their values are multiplied by `trust`.
    """

    noise: Array
    spread: Array
    trust: float = 1.0


@dataclass(frozen=True, eq=False)
class Location:
    """Where values and atoms lie, both measured from one origin; dimensions are independent.

    Attributes
    ----------
    values, seen : arrays (N, D)
        Places of values; 1 where they were seen, else 0.
    precision : array (N, D)
        One over the variance of a value about its atom, its own standard error included; zero where it was not seen.
    peak : array (N,)
        Log density of a value at the place where it is.
    places, uncertain : arrays (K, D)
        Posterior means and variances of the atoms.
    noise : array (D,)
        Variance of a value of weight one about its atom.
    about : function (place, spread)
        The family of atoms that lie about a place (D,), with a variance (D,), instead of where all atoms lie.
    """

    values: Array
    seen: Array
    precision: Array
    peak: Array
    places: Array
    uncertain: Array
    noise: Array
    about: Callable[[Array, Array], Family]
