"""What a family may be able to do besides its four methods, by the room that asks: each with the function that asks.

A family that lacks a capability gets the answer that stands in that function. What the matching itself asks for is in
`modelweld.core.family`.

Which families there are: what is entered here is saved, loaded and proposed by name.

Which families given values could belong to, for the message when they do not belong to the one that was named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
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
from modelweld.core.values import Array, Index, Key, Stack, arrays_of, group_of_values
from modelweld.errors import InputError

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


FAMILIES: dict[str, type[Family]] = {}
"""Name of a family -> its class."""


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
