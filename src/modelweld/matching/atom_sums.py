"""Atoms as sums of sufficient statistics (rows), without any site's values: what is left of slim fusions and shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Key
from modelweld.priors.beta_bernoulli import Prior


@dataclass(frozen=True, eq=False)
class AtomSums:
    """Sums of rows (sufficient statistics) per atom, and all that can be said from them.

    Attributes
    ----------
    families : dict of str, or tuple of str, to Family
        With learned hyperparameters.
    sums : dict of str, or tuple of str, to array (K, k)
        Sums of the families' rows, one row per atom.
    prior : Prior
        The prior of the matching.
    counts : int array (K,)
        Number of sites that hold each atom.
    sizes : int array (J,)
        How many values the sites sent.
    """

    families: Mapping[Key, Family]
    sums: Mapping[Key, Array]
    prior: Prior
    counts: Index
    sizes: Index

    @property
    def K(self) -> int:
        """Number of atoms that are not set aside, by the rule of `Fusion.K`."""
        return int(self.prior.is_atom(self.counts, len(self.sizes)).sum())

    @property
    def values(self) -> dict[Key, Array]:
        """Global values of every array, one row per atom."""
        return {key: family.estimate(self.sums[key]) for key, family in self.families.items()}

    @property
    def atoms(self) -> Array:
        """Global values of the one array that was matched; those set aside come last."""
        return self.values[self._one_array]

    @property
    def family(self) -> Family:
        """The family of the one array that was matched."""
        return self.families[self._one_array]

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        return {**self.family.learned(), **self.prior.parameters()}

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence."""
        value = self.prior.log_prob(self.counts, self.sizes)
        for key, family in self.families.items():
            value += float(family.log_evidence(self.sums[key]).sum()) + family.log_prior()
        return value

    def learned(self) -> Self:
        """The same matching with hyperparameters learned from the sums; never lowers the objective."""
        return replace(
            self,
            prior=self.prior.learned(self.counts, self.sizes),
            families={key: family.update(self.sums[key]) for key, family in self.families.items()},
        )

    @property
    def _one_array(self) -> Key:
        if len(self.families) != 1:
            raise InputError(
                f"several arrays were matched together, {list(self.families)}: ask for values[name] and families[name]."
            )
        return next(iter(self.families))
