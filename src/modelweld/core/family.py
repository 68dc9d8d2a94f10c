"""What a family is: four methods on rows (sufficient statistics) that add up.

Everything else is a capability that a family may have besides. Below are those that the matching and its screens ask
for, each with the function that asks and answers for families without it; the others are in
`modelweld.families.capabilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar, NamedTuple, Self, TypeGuard, TypeVar

import numpy as np
import scipy

from modelweld.core.values import Array, Index, Stack, blocks

Some = TypeVar("Some", bound="Family")


class Capability:
    """What a family may have besides its four methods.

    A family that defines a name of a capability without inheriting it would be taken to lack it: that is refused.
    """

    _owners: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Capability in cls.__bases__:
            Capability._owners.update((name, cls) for name in vars(cls) if not name.startswith("_"))


class Family(ABC):
    """How local values of one array scatter about their global value.

    A family is a frozen dataclass whose fields are its hyperparameters. It turns local values into *rows* of
    sufficient statistics; the rows of the values matched to one atom are added, and everything the matching needs
    is computed from such sums.

    Values that were not seen (weight zero) give rows of zeros. A value is one row (D,) of an array; arrays with more
    axes are flattened, and those of a family of several arrays stand side by side.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), modelweld.Family)
    True
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in vars(cls):
            owner = Capability._owners.get(name, Family)
            if not issubclass(cls, owner):
                raise TypeError(
                    f"{cls.__name__} defines {name!r}, which is asked of families that inherit {owner.__name__}: "
                    f"from {owner.__module__} import {owner.__name__}, class {cls.__name__}({owner.__name__}, Family)."
                )

    @abstractmethod
    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Sufficient statistics (L, k) of local values (L, D)."""

    @abstractmethod
    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density (...) of the values behind summed rows (..., k); zero at zero."""

    @abstractmethod
    def estimate(self, rows: Array) -> Array:
        """Global values (..., D) given summed rows (..., k)."""

    @abstractmethod
    def update(self, sums: Array) -> Self:
        """Hyperparameters learned from the atoms' rows (K, k); never lowers ``log_evidence(sums).sum()``."""


class ChecksValues(Capability):
    """Families that take some values only.

    Attributes
    ----------
    specificity : int
        Of the class: how special its values are, for the message that proposes families to values which belong to
        another (real values 1, rates 2, ..., covariances 6). Zero: it is not proposed.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Rates(), ChecksValues)
    True
    """

    specificity: ClassVar[int] = 0

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """The first row that is no value of this family, and what it takes: "are not negative; found -1"; else None."""
        return None


class Predictive(Capability):
    """Families with a predictive density that is quicker than the difference of two evidences.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), Predictive)
    True
    """

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive density of each value (L, k) given each atom (K, k): (L, K)."""
        raise NotImplementedError


class Unites(Capability):
    """Families with an evidence of all unions that is quicker than making their sums.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), Unites)
    True
    """

    def log_evidence_of_all_unions(self, sums: Array) -> Array | None:
        """Log evidence of the unions of any two atoms (K, K), where that is quicker than asking for pairs; else None.

        What it says of an atom with itself does not matter.
        """
        return None


class Pools(Capability, Family):
    """Families in which a group's fragments of an atom are one value of it: their mean, and contrasts among themselves.

    Where they do not, fragments are values like any others, and their rows are added.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), Pools)
    True
    """

    @property
    def pools(self) -> bool:
        """Whether this is so with the present settings."""
        return True

    def fragment_statistics(self, stack: Stack) -> Array:
        """What adds up over the fragments of one group (N, s); it does not depend on hyperparameters."""
        raise NotImplementedError

    def pool_fragments(self, statistics: Array) -> Array:
        """Rows (C, k) of the means of fragments with these summed statistics, the evidence of their contrasts with
        them.
        """
        raise NotImplementedError

    def pool_stack(self, statistics: Array, offsets: Index) -> Stack:
        """These means as values."""
        raise NotImplementedError

    def learn_fragments(self, statistics: Array) -> Self:
        """With the variance of fragments that suits these (C, s); never lowers the evidence."""
        raise NotImplementedError

    def log_contrast(self, own: Array, sums: Array) -> Array:
        """About what each value (L, k) adds as a further fragment, the others being where each atom (K, k) is."""
        raise NotImplementedError


class Signless(Capability):
    """Families of values of which v and -v are one. Rows are turned to agree with the sums that they are added to.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Factors(), Signless)
    True
    """

    @property
    def is_signless(self) -> bool:
        """Whether this is so with the present settings."""
        return True

    def align_sign(self, rows: Array, sums: Array) -> Array:
        """Rows (L, k), turned to agree with sums (L, k)."""
        raise NotImplementedError

    def canonical_sign(self, stack: Stack) -> Stack:
        """The same values, each with the sign in which it is matched."""
        raise NotImplementedError

    def gather(self, rows: Array, labels: Index, K: int) -> tuple[Array, Array]:
        """Rows (N, k) turned to agree with those of the same label, and their sums (K, k)."""
        raise NotImplementedError

    def agreement(self, stack: Stack, atoms: Array) -> Array:
        """Of each value with its atom (N, D); negative where it is turned round."""
        return np.asarray(np.einsum("nd,nd->n", stack.values, atoms))


class ValueLearner(Capability, Family):
    """Families whose rows depend on hyperparameters, so that these are learned from the values instead of sums.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Counts(), ValueLearner)
    True
    """

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `Family.update`, given also the values and their atoms; never lowers the evidence."""
        return self.update(sums)

    def rows_change(self, stack: Stack) -> bool:
        """Whether rows of these values depend on hyperparameters, and are made again when these are learned."""
        return stack.variance is not None


class Conditional(Capability):
    """Families that keep something of the values that they work on.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), Conditional)
    False
    """

    def condition_on(self, stack: Stack) -> Self:
        """The same family for these values."""
        raise NotImplementedError


class HasHyperprior(Capability):
    """Families whose hyperparameters have a prior, which is part of the objective.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), HasHyperprior)
    True
    """

    def log_prior(self) -> float:
        """Log prior density of the hyperparameters."""
        return 0.0

    def with_hyperprior(self, stack: Stack) -> Self:
        """The same hyperparameters, with the prior that suits these values."""
        return self


class HasStarts(Capability):
    """Families that read hyperparameters which are not given off the values.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), HasStarts)
    True
    """

    def starts(self, stack: Stack) -> list[Self]:
        """Families to start from; the best objective wins."""
        raise NotImplementedError


class Variances(NamedTuple):
    """How far values lie from their atom (noise) and atoms from each other (spread): variances (D,) or (1,).

    Variances that sites send with their values are multiplied by `inflation`.
    """

    noise: Array
    spread: Array
    inflation: float = 1.0


class HasPlaces(Capability):
    """Families of real values that scatter about a place, so that one can be far from others.

    Attributes
    ----------
    has_places : bool
        Of the class: whether this is so; subclasses may not.

    Examples
    --------
    >>> import modelweld
    >>> isinstance(modelweld.Gaussian(), HasPlaces)
    True
    """

    has_places: ClassVar[bool] = True

    def variances(self) -> Variances | None:
        """How far values lie from their atom and atoms from each other, per dimension; None: not known yet."""
        return None


def pools(family: Family) -> TypeGuard[Pools]:
    """Whether a group's fragments of an atom are pooled."""
    return isinstance(family, Pools) and family.pools


def has_places(family: Family) -> bool:
    """Whether values are real numbers that scatter about a place."""
    return isinstance(family, HasPlaces) and family.has_places


def find_misfit(family: Family, stack: Stack) -> tuple[int, str] | None:
    """The first row that is no value of a family, and what it takes; None if there is none, or if it checks nothing."""
    return family.misfit(stack) if isinstance(family, ChecksValues) else None


def log_predictive(family: Family, own: Array, sums: Array) -> Array:
    """What each value (L, k) adds to the log evidence of each atom (K, k): (L, K), the log predictive density."""
    return family.log_predictive(own, sums) if isinstance(family, Predictive) else subtract_evidence(family, own, sums)


def subtract_evidence(family: Family, own: Array, sums: Array) -> Array:
    """Log predictive densities (L, K) by the paper's subtraction trick: evidence with the value less that without."""
    found, without = np.empty((len(own), len(sums))), family.log_evidence(sums)
    for part in blocks(len(own), sums.size):
        added = np.broadcast_to(own[part, None, :], (len(own[part]), *sums.shape))
        found[part] = family.log_evidence(align_sign(family, added, sums[None]) + sums) - without
    return found


def unite(family: Family, sums: Array, a: int | Index, b: Index) -> Array:
    """Sums of unions of atoms (K, k): of atom a, or of each of several, with each of b."""
    one, other = sums[a], sums[b]
    return np.asarray(one + align_sign(family, other, np.broadcast_to(one, other.shape)))


def log_evidence_of_unions(family: Family, sums: Array, a: int | Index, b: Index) -> Array:
    """Log evidence of unions of atoms (K, k): of atom a, or of each of several, with each of b."""
    return family.log_evidence(unite(family, sums, a, b))


def is_signless(family: Family) -> bool:
    """Whether v and -v are one value."""
    return isinstance(family, Signless) and family.is_signless


def align_sign(family: Family, rows: Array, sums: Array) -> Array:
    """Rows (L, k) as they are added to sums (L, k): turned to agree where values have no sign."""
    return family.align_sign(rows, sums) if isinstance(family, Signless) and family.is_signless else rows


def canonical_sign(family: Family, stack: Stack) -> Stack:
    """Values as they are matched, whatever their signs if they have none."""
    return family.canonical_sign(stack) if isinstance(family, Signless) else stack


def learn_from_values(family: Some, stack: Stack, labels: Index, sums: Array) -> Some:
    """Hyperparameters learned from values, their atoms and the atoms' rows (K, k)."""
    return family.learn(stack, labels, sums) if isinstance(family, ValueLearner) else family.update(sums)


def rows_change(family: Family, stack: Stack) -> bool:
    """Whether rows depend on hyperparameters, so that they must be made again when these are learned."""
    return family.rows_change(stack) if isinstance(family, ValueLearner) else stack.variance is not None


def condition_on(family: Some, stack: Stack) -> Some:
    """The same family for these values."""
    return family.condition_on(stack) if isinstance(family, Conditional) else family


def log_prior(family: Family) -> float:
    """Log prior density of hyperparameters that have one; else zero."""
    return family.log_prior() if isinstance(family, HasHyperprior) else 0.0


def find_starts(family: Some, stack: Stack) -> list[Some]:
    """Families to start from: the family as it is, unless it reads hyperparameters off the values."""
    return family.starts(stack) if isinstance(family, HasStarts) else [family]


def with_hyperprior(family: Some, stack: Stack) -> Some:
    """The same hyperparameters, with the prior that suits these values where the family has one."""
    return family.with_hyperprior(stack) if isinstance(family, HasHyperprior) else family


def with_fields(family: Some, **fields: object) -> Some:
    """The same family with other fields, which need not be checked again."""
    result = copy(family)
    for name, value in fields.items():
        object.__setattr__(result, name, value)
    return result


def sum_by_atom(rows: Array, labels: Index, K: int | None = None) -> Array:
    """Rows (N, k) added up by atom: (K, k); rows whose label is negative belong to none.

    Examples
    --------
    >>> sum_by_atom(np.array([[1.0], [2.0], [4.0]]), np.array([1, -1, 1]), 3).tolist()
    [[0.0], [5.0], [0.0]]
    """
    K = int(labels.max(initial=-1)) + 1 if K is None else K
    placed = labels >= 0
    ends = np.concatenate([[0], np.cumsum(placed)])
    members = scipy.sparse.csc_array((np.ones(ends[-1]), labels[placed], ends), shape=(K, len(labels)))
    return np.asarray(members @ rows)


def gather(family: Family, rows: Array, labels: Index, K: int) -> tuple[Array, Array]:
    """Rows (N, k) as they stand in their atoms, and their sums (K, k): turned to agree where values have no sign."""
    if isinstance(family, Signless) and family.is_signless:
        return family.gather(rows, labels, K)
    return rows, sum_by_atom(rows, labels, K)
