"""What a family may be able to do besides its four methods, by the room that asks: each with the function that asks.

A family that lacks a capability gets the answer that stands in that function. What the matching itself asks for is in
`modelweld.core.family`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.family import (
    Capability,
    ChecksValues,
    Conditional,
    Family,
    HasHyperprior,
    HasPlaces,
    HasStarts,
    Predictive,
    Signless,
    Some,
    Unites,
    ValueLearner,
    Variances,
    has_places,
    with_fields,
)
from modelweld.core.values import Array, Index, Stack

CORE = (ChecksValues, Conditional, HasHyperprior, HasPlaces, HasStarts, Predictive, Signless, Unites, ValueLearner)
"""Capabilities that the matching itself asks for, to be imported from here, too."""

Hyperparameters = dict[str, ArrayLike | None]
"""Hyperparameters by name; None where one is not known yet."""


def first_row(wrong: NDArray[np.bool_]) -> int | None:
    """The first row of a mask that is set; None if none is."""
    return int(wrong.argmax()) if wrong.any() else None


# Asked by the search (`modelweld.fit.search`) and its engines (`modelweld.fit.engines`).


class NamesHyperparameters(Capability):
    """Families that say which of their fields are learned.

    Attributes
    ----------
    learns : tuple of str
        Of the class: the fields that are learned.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), NamesHyperparameters)
    True
    """

    learns: ClassVar[tuple[str, ...]] = ()

    def name_hyperparameters(self) -> Hyperparameters:
        """Hyperparameters by name."""
        return {name: getattr(self, name) for name in self.learns}


def name_hyperparameters(family: Family) -> Hyperparameters:
    """Hyperparameters by name: fields that are numbers or arrays of numbers, unless the family says which."""
    return family.name_hyperparameters() if isinstance(family, NamesHyperparameters) else _numbers(family)


class NamesCandidates(Capability):
    """Families that know which atoms a value may join without scoring them all, for the sparse engine.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Directions(), NamesCandidates)
    True
    """

    def names_candidates(self, stack: Stack) -> bool:
        """Whether `candidates` is quicker than scoring all pairs of such values and atoms."""
        raise NotImplementedError

    def candidates(self, own: Array, sums: Array, odds: Array) -> tuple[Index, Index] | None:
        """Pairs of values (L, k) and atoms (K, k) at which a value may score above zero; None: not known.

        A score is an atom's log prior `odds` (K,) plus `log_predictive` less the evidence of the value by itself; all
        pairs that are not named score zero at most.
        """
        raise NotImplementedError


def names_candidates(family: Family, stack: Stack) -> bool:
    """Whether a family names candidates of such values."""
    return isinstance(family, NamesCandidates) and family.names_candidates(stack)


def find_candidates(family: Family, own: Array, sums: Array, odds: Array) -> tuple[Index, Index] | None:
    """Pairs of values (L, k) and atoms (K, k) at which a value may score above zero; None: not known."""
    return family.candidates(own, sums, odds) if isinstance(family, NamesCandidates) else None


# Asked by diagnostics: how far values are from each other.


def variances_of(family: Family) -> Variances | None:
    """How far values lie from their atom and atoms from each other; None: there is no such thing."""
    return family.variances() if isinstance(family, HasPlaces) and family.has_places else None


class Embeds(Capability):
    """Families whose values can be compared by distance.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Counts(), Embeds)
    True
    """

    def embed(self, values: Array) -> Array:
        """Values (N, D) as points whose distances mean something, columns in any units."""
        return values


def embed_values(family: Family, values: Array) -> Array | None:
    """Values (N, D) as points whose distances mean something; None: there are none."""
    if isinstance(family, Embeds):
        return family.embed(values)
    return values if has_places(family) else None


# Asked of results (`modelweld.results.posterior`, `modelweld.revision.slim_fusion`).


class Drawable(Capability):
    """Families whose atoms can be drawn given their values.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Rates(), Drawable)
    True
    """

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Global values (K, D) drawn from their posterior given summed rows (K, k)."""
        raise NotImplementedError

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """Values (N, D) as they would be if global values were (N, D) `after` instead of `before`."""
        return values + after - before


def draw_atoms(family: Family, sums: Array, rng: np.random.Generator) -> Array:
    """Global values (K, D) drawn from their posterior given summed rows (K, k); else their estimates, undrawn."""
    return family.draw_atoms(sums, rng) if isinstance(family, Drawable) else family.estimate(sums)


def follow(family: Family, values: Array, before: Array, after: Array) -> Array:
    """Values (N, D) as they would be if global values were (N, D) `after` instead of `before`."""
    return family.follow(values, before, after) if isinstance(family, Drawable) else values + after - before


class Sampled(Capability):
    """Families whose hyperparameters are drawn together with matchings.

    Attributes
    ----------
    sampled : tuple of str
        Of the class: the fields that are drawn, positive numbers or arrays of such; none where that is not better
        calibrated than what is learned.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Rates(), Sampled)
    True
    """

    sampled: ClassVar[tuple[str, ...]] = ()

    def prior_location(self, stack: Stack, share: float) -> Self:
        """The same family where this share of what values differ by is noise; the prior is centred there."""
        return self


def list_sampled(family: Family) -> tuple[str, ...]:
    """Names of the fields that are drawn together with matchings."""
    return family.sampled if isinstance(family, Sampled) else ()


def prior_location(family: Some, stack: Stack, share: float) -> Some:
    """The same family where this share of what values differ by is noise; as it is if it cannot say."""
    return family.prior_location(stack, share) if isinstance(family, Sampled) else family


# Asked by shards (`modelweld.shards`) and by time (`modelweld.time`).


class Shardable(Capability):
    """Families of which shards state sums for hyperparameters other than their own.

    Attributes
    ----------
    row_fields : tuple of str
        Of the class: fields on which rows depend where `rows_change`, positive numbers or arrays of such. `update`,
        which sees sums alone, leaves them as they are.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Counts(), Shardable)
    True
    """

    row_fields: ClassVar[tuple[str, ...]] = ()

    def pool(self, families: Sequence[Self], share: Array) -> Self:
        """One family of this and others that were read off values elsewhere: of every number the mean."""
        return average(families, share)  # type: ignore[type-var]


class Moves(Capability):
    """Families that have a form for atoms that move.

    Attributes
    ----------
    moves_as : str
        Of the class: the name of that form (`modelweld.families.fading.Moving`), for groups that come at different
        times; empty: there is none.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), Moves)
    True
    """

    moves_as: ClassVar[str] = ""


def row_fields_of(family: Family) -> tuple[str, ...]:
    """Names of the fields on which rows depend, where shards may state sums for others."""
    return family.row_fields if isinstance(family, Shardable) else ()


def pool(families: Sequence[Some], share: Array) -> Some:
    """One family of several that were read off values apart."""
    first = families[0]
    return first.pool(families, share) if isinstance(first, Shardable) else average(families, share)


def average(families: Sequence[Some], share: Array) -> Some:
    """The first of several families, with of every number the mean by `share`."""
    found: dict[str, object] = {}
    for name in _numbers(families[0]):
        given = [getattr(family, name) for family in families]
        if all(isinstance(x, (float, np.floating, np.ndarray)) for x in given):
            mean = np.average([np.asarray(x) for x in given], axis=0, weights=share)
            found[name] = mean if isinstance(given[0], np.ndarray) else float(mean)
    return with_fields(families[0], **found)


def _numbers(family: Family) -> Hyperparameters:
    """Fields of a dataclass that are numbers or arrays of numbers."""
    fields = {name: getattr(family, name) for name in getattr(family, "__dataclass_fields__", ())}
    return {name: x for name, x in fields.items() if isinstance(x, (float, np.floating, np.ndarray))}
