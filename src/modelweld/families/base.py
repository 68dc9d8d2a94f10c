"""What a family is: five methods on rows that add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from modelweld.local import Array
from modelweld.stack import Index, Stack


class Family(ABC):
    """How local values of one array scatter about their global value.

    A family is a frozen dataclass whose fields are its hyperparameters. It turns local values into *rows* of
    sufficient statistics; the rows of the values matched to one atom are added, and everything the matching needs
    is computed from such sums. Subclasses write `rows`, `log_evidence`, `estimate` and `update`.
    """

    def starts(self, stack: Stack) -> list[Self]:
        """Families to start from: what was not given is read off the values; the best objective wins."""
        return [self]

    @abstractmethod
    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Statistics (L, k) of local values (L, D); they depend on hyperparameters only if `variance` is given."""

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
        """Whether rows depend on hyperparameters, so that they must be made anew when these are learned."""
        return stack.variance is not None

    def log_prior(self) -> float:
        """Log prior density of hyperparameters that have one; part of the objective."""
        return 0.0

    def gain(self, own: Array, sums: Array) -> Array:
        """What each value (L, k) adds to each atom (K, k): (L, K), the log predictive density.

        This is the paper's subtraction trick. Override it where there is something faster.
        """
        return self.log_evidence(own[:, None, :] + sums[None, :, :]) - self.log_evidence(sums)[None, :]
