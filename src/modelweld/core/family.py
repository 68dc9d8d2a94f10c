"""What a family is: four methods on rows (sufficient statistics) that add up, and a few that have a default.

Location parameters: where values lie and with what variance, for screening, which looks for those far off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.signs import oriented
from modelweld.core.values import Array, Index, Stack

Learned = dict[str, ArrayLike | None]
"""Hyperparameters by name; None where one is not known yet."""

Some = TypeVar("Some", bound="Family")


class Family(ABC):
    """How local values of one array scatter about their global value.

    A family is a frozen dataclass whose fields are its hyperparameters. It turns local values into *rows* of
    sufficient statistics; the rows of the values matched to one atom are added, and everything the matching needs
    is computed from such sums. Subclasses write `rows`, `log_evidence`, `estimate` and `update`; if some values make no
    sense to them, also `misfit`; if hyperparameters are to be read off the values, `starts`.

    Values that were not seen (weight zero) give rows of zeros. A value is one row (D,) of an array; arrays with more
    axes are flattened, and those of a family of several arrays stand side by side.

    Attributes
    ----------
    learns : tuple of str
        Of the class: fields that are learned; if there are none here, those that are numbers or arrays of numbers.
    walked : tuple of str
        Of the class: fields that are drawn with a matching (`modelweld.results.posterior.walks`), positive numbers or
        arrays of such; none where that is not better calibrated than what is learned.
    row_fields : tuple of str
        Of the class: fields on which rows depend where `rows_change`, positive numbers or arrays of such. Whoever names
        them promises that `update`, which sees sums alone, leaves them as they are: shards then state sums for others.
    specificity : int
        Of the class: how special its values are, for the message that proposes families to values which belong to
        another (real values 1, rates 2, ..., covariances 6). Zero: it is not proposed.
    has_places : bool
        Of the class: whether values are real numbers that scatter about a place, so that one can be far from others.
    moves_as : str
        Of the class: the name of the family of such values whose atoms move (`modelweld.families.fading.Moving`), for
        groups that come at different times; empty: there is none.

    Examples
    --------
    >>> import modelweld
    >>> family = modelweld.Gaussian()
    >>> isinstance(family, modelweld.Family), family.learns
    (True, ('mean', 'noise', 'spread'))
    """

    learns: ClassVar[tuple[str, ...]] = ()
    walked: ClassVar[tuple[str, ...]] = ()
    row_fields: ClassVar[tuple[str, ...]] = ()
    specificity: ClassVar[int] = 0
    has_places: ClassVar[bool] = False
    moves_as: ClassVar[str] = ""

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """The first row that is no value of this family, and what it takes: "are not negative; found -1"; else None."""
        return None

    def starts(self, stack: Stack) -> list[Self]:
        """Families to start from: what was not given is read off the values; the best objective wins."""
        return [self]

    def seeing(self, stack: Stack) -> Self:
        """The same family for these values: for families that keep something of the values they work on."""
        return self

    def believing(self, stack: Stack) -> Self:
        """The same hyperparameters, with what is believed of them before any matching read off these values."""
        return self

    def expecting(self, stack: Stack, share: float) -> Self:
        """The same family where this share of what values differ by is noise; here as it is.

        What draws believe of `walked` fields before anything is matched (`modelweld.results.posterior.walks`).
        """
        return self

    @abstractmethod
    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Statistics (L, k) of local values (L, D); see `rows_change` if they depend on hyperparameters."""

    @abstractmethod
    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density (...) of the values behind summed rows (..., k); zero at zero."""

    @abstractmethod
    def estimate(self, rows: Array) -> Array:
        """Global values (..., D) given summed rows (..., k)."""

    @abstractmethod
    def update(self, sums: Array) -> Self:
        """Hyperparameters learned from the atoms' rows (K, k); never lowers ``log_evidence(sums).sum()``."""

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, for families whose rows depend on hyperparameters; never lowers the evidence."""
        return self.update(sums)

    def rows_change(self, stack: Stack) -> bool:
        """Whether rows depend on hyperparameters, so that they must be made again when these are learned."""
        return stack.variance is not None

    def log_prior(self) -> float:
        """Log prior density of hyperparameters that have one; part of the objective."""
        return 0.0

    def bounded(self, sums: Array) -> Self:
        """The same family with `row_fields` no farther out than learning would go, given atoms' rows (K, k)."""
        return self

    def pooled(self, families: Sequence[Self], share: Array) -> Self:
        """One family of this and others that were read off values elsewhere: of every number the mean by `share`."""
        found: dict[str, object] = {}
        for name in getattr(self, "__dataclass_fields__", ()):
            given = [getattr(family, name) for family in families]
            if all(isinstance(x, (float, np.floating, np.ndarray)) for x in given):
                mean = np.average([np.asarray(x) for x in given], axis=0, weights=share)
                found[name] = mean if isinstance(given[0], np.ndarray) else float(mean)
        return with_fields(self, **found)

    def learned(self) -> Learned:
        """Hyperparameters by name."""
        if self.learns:
            return {name: getattr(self, name) for name in self.learns}
        fields = {name: getattr(self, name) for name in getattr(self, "__dataclass_fields__", ())}
        return {name: x for name, x in fields.items() if isinstance(x, (float, np.floating, np.ndarray))}

    @property
    def compilable(self) -> bool:
        """Whether the compiled engine knows this family and its present settings."""
        return False

    @property
    def signless(self) -> bool:
        """Whether v and -v are one value: rows are then turned to agree with those they are added to (`facing`)."""
        return False

    def facing(self, rows: Array, sums: Array) -> Array:
        """Rows (L, k) as they are added to sums (L, k); where values have no sign, turned to agree with them."""
        return rows

    def agreement(self, stack: Stack, atoms: Array) -> Array:
        """How far values agree with atoms (N, D), value by value; where they have no sign, negative: turned round."""
        return np.asarray(np.einsum("nd,nd->n", stack.values, atoms))

    def upright(self, stack: Stack) -> Stack:
        """The same values in the form in which they are matched, whatever their signs if they have none."""
        return stack

    def variances(self) -> Variances | None:
        """How far values lie from their atom and atoms from each other, per dimension; None: there is no such thing."""
        return None

    def located(self, rows: Array, sums: Array) -> Location | None:
        """Places of the values behind rows (N, k) and of atoms (K, k), if dimensions are independent; else None."""
        return None

    def embedded(self, values: Array) -> Array | None:
        """Values (N, D) as points whose distances mean something, columns in any units; None: there are none."""
        return values if self.has_places else None

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Global values (K, D) drawn from their posterior given summed rows (K, k); here their estimates, undrawn."""
        return self.estimate(sums)

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """Values (N, D) as they would be if global values were (N, D) `after` instead of `before`."""
        return values + after - before

    def names_contenders(self, stack: Stack) -> bool:
        """Whether `contenders` is quicker than scoring all pairs of such values and atoms."""
        return False

    def contenders(self, own: Array, sums: Array, odds: Array) -> tuple[Index, Index] | None:
        """Pairs of values (L, k) and atoms (K, k) at which a value may score above zero; None: nobody knows.

        A score is an atom's log prior `odds` (K,) plus `log_predictive` less the evidence of the value by itself; all
        pairs that are not named score zero at most.
        """
        return None

    def unions(self, sums: Array, a: int | Index, b: Index) -> Array:
        """Sums of unions of atoms (K, k): of atom a, or of each of several, with each of b."""
        one, other = sums[a], sums[b]
        return np.asarray(one + (self.facing(other, np.broadcast_to(one, other.shape)) if self.signless else other))

    def log_evidence_of_unions(self, sums: Array, a: Index, b: Index) -> Array:
        """Log evidence of unions of atoms (K, k): of each of a with that of b."""
        return self.log_evidence(self.unions(sums, a, b))

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """What each value (L, k) adds to each atom (K, k): (L, K), the log predictive density.

        This is the paper's subtraction trick. Override it where there is something faster.
        """
        added = own[:, None, :]
        if self.signless:
            added = self.facing(np.broadcast_to(added, (len(own), *sums.shape)), sums[None, :, :])
        return self.log_evidence(added + sums[None, :, :]) - self.log_evidence(sums)[None, :]


def with_fields(family: Some, **fields: object) -> Some:
    """The same family with other fields, which need not be checked again."""
    result = copy(family)
    for name, value in fields.items():
        object.__setattr__(result, name, value)
    return result


FEW_NUMBERS = 20_000
"""Numbers up to which adding runs of sorted rows is quicker than making a sparse matrix."""


def sum_by_atom(rows: Array, labels: Index, K: int | None = None) -> Array:
    """Rows (N, k) added up by atom: (K, k); rows whose label is negative belong to none.

    Examples
    --------
    >>> sum_by_atom(np.array([[1.0], [2.0], [4.0]]), np.array([1, -1, 1]), 3).tolist()
    [[0.0], [5.0], [0.0]]
    """
    K = int(labels.max(initial=-1)) + 1 if K is None else K
    placed = np.flatnonzero(labels >= 0)
    if rows.size <= FEW_NUMBERS and len(placed):
        order = placed[np.argsort(labels[placed], kind="stable")]
        first = np.flatnonzero(np.diff(labels[order], prepend=-1))
        sums = np.zeros((K, rows.shape[1]))
        sums[labels[order[first]]] = np.add.reduceat(rows[order], first, axis=0)
        return sums
    from scipy.sparse import csr_array

    members = csr_array((np.ones(len(placed)), (labels[placed], placed)), shape=(K, len(labels)))
    return np.asarray(members @ rows)


def gather(family: Family, rows: Array, labels: Index, K: int) -> tuple[Array, Array]:
    """Rows (N, k) as they stand in their atoms, and their sums (K, k): turned to agree where values have no sign."""
    if family.signless:
        return oriented(family.facing, rows, labels, K)
    return rows, sum_by_atom(rows, labels, K)


def first_row(wrong: NDArray[np.bool_]) -> int | None:
    """The first row of a mask that is set; None if none is."""
    return int(wrong.argmax()) if wrong.any() else None


class Variances(NamedTuple):
    """How far values lie from their atom (noise) and atoms from each other (spread): variances (D,) or (1,).

    Variances that sites send with their values are multiplied by `inflation`.
    """

    noise: Array
    spread: Array
    inflation: float = 1.0


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
