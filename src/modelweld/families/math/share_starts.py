"""Families that start from guesses of which share of what values differ by is noise; groups that vote in pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self, TypeVar

from modelweld.core.family import Family, HasStarts, with_fields
from modelweld.core.values import Stack, total_variance
from modelweld.families.capabilities import NamesHyperparameters, Sampled
from modelweld.families.hyperparameters import check_sizes
from modelweld.families.math.start import VOTERS, evenly, noise_shares

Group = TypeVar("Group")

PARTNERS = (1, 2, 5)
"""With which of the next groups each is paired, where pairs vote."""


class StartsByShare(NamesHyperparameters, HasStarts, Sampled, Family):
    """Families whose first hyperparameters follow from which share of what values differ by is noise.

    Hyperparameters are what it `learns`; those that are given stay.
    """

    @abstractmethod
    def with_share(self, stack: Stack, share: float) -> Self:
        """What is not given, if this share of the variance is noise."""

    def steady(self, stack: Stack) -> Stack:
        """Values whose noise does not depend on where they are."""
        return stack

    def starts(self, stack: Stack) -> list[Self]:
        """All hyperparameters not given, free of units, for every share worth trying."""
        check_sizes(self, self.learns, stack.values.shape[1])
        return [self.with_share(stack, share) for share in self.shares(self.steady(stack))]

    def shares(self, steady: Stack) -> list[float]:
        """Shares worth trying."""
        return noise_shares(steady, total_variance(steady, pooled=False)[1])

    def prior_location(self, stack: Stack, share: float) -> Self:
        """As `starts`, of nothing given."""
        return with_fields(self, **dict.fromkeys(self.learns)).with_share(stack, share)


def pair_evenly(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Pairs of up to VOTERS groups, of all sizes, each with some others: in a median of these two have no majority.

    Examples
    --------
    >>> pair_evenly("abcd")
    [('a', 'b'), ('a', 'c'), ('a', 'd'), ('b', 'c'), ('b', 'd'), ('c', 'd')]
    """
    chosen = [groups[i] for i in evenly(len(groups), VOTERS)]
    G = len(chosen)
    pairs = {(min(i, j), max(i, j)) for i in range(G) for j in ((i + s) % G for s in PARTNERS) if i != j}
    return [(chosen[i], chosen[j]) for i, j in sorted(pairs)]
