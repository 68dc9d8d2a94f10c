"""What families of atoms with a covariance share: the prior, its checks, and evidences from sums."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import ChecksValues, Family, Predictive
from modelweld.core.values import Array, blocks
from modelweld.errors import InputError
from modelweld.families.capabilities import Embeds, HasStarts, NamesHyperparameters, Sampled
from modelweld.families.checks import check_choice
from modelweld.families.wishart.covariances import misfit_covariances
from modelweld.families.wishart.evidence import Belief, Sums, log_evidence


class InverseWishart(ChecksValues, Predictive, NamesHyperparameters, HasStarts, Embeds, Sampled, Family):
    """Atoms have Sigma ~ inverse Wishart(freedom, scale). Subclasses are dataclasses with these fields.

    They write `sums`, what rows are in the terms of `modelweld.families.wishart.evidence`, and `belief`.
    """

    freedom: float | None
    scale: ArrayLike | None
    learning: Literal["likelihood", "nothing"]

    @abstractmethod
    def sums(self, rows: Array) -> Sums:
        """Summed rows as summed statistics."""

    @property
    @abstractmethod
    def belief(self) -> Belief:
        """The hyperparameters, the mean measured from the origin."""

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of what is behind summed rows."""
        return log_evidence(self.sums(rows), self.belief)

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: a determinant per value and atom, in blocks."""
        result = np.empty((len(own), len(sums)))
        before = self.log_evidence(sums)
        for part in blocks(len(own), sums.size):
            result[part] = self.log_evidence(own[part, None, :] + sums) - before
        return result

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_choice(self, "learning")
        if self.freedom is not None and not np.isfinite(self.freedom):
            raise InputError(f"{name}: freedom is a finite number; found {self.freedom!r}.")
        if self.scale is None:
            return
        scale = np.array(self.scale, dtype=np.float64)
        if scale.ndim != 2 or scale.shape[0] != scale.shape[1] or not np.isfinite(scale).all():
            raise InputError(f"{name}: scale is a finite matrix (D, D); found shape {scale.shape}.")
        found = misfit_covariances(scale.reshape(1, -1), np.ones(1))
        if found is not None:
            raise InputError(f"{name}: the scale must be a covariance; covariances {found[1]}.")
        object.__setattr__(self, "scale", scale)
        self.check_freedom(len(scale))

    def check_freedom(self, D: int) -> None:
        """Refuse an inverse Wishart of matrices (D, D) that is no distribution."""
        if self.freedom is not None and not self.freedom > D - 1:
            raise InputError(
                f"{type(self).__name__}: freedom must exceed D - 1 = {D - 1} for matrices of size {D}; "
                f"found {self.freedom!r}."
            )
