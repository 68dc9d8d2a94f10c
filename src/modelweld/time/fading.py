"""Atoms whose sums of rows fade: compositions by discounting, directions by the same filter on sums. Approximate.

After some time, what values say of an atom is taken for a part of what they said, so much that the atom's expected
value goes back towards that of any atom as that of a stationary path does (`Moving.faded`). The evidence of an atom is
that of its values one after the other, each given those before it, faded:

    sum over i of  E(c_i S_(i-1) + r_i) - E(c_i S_(i-1)),      S_i = c_i S_(i-1) + r_i,

E the log evidence of sums, r rows: a density of all values whatever c is, and that of the family itself where nothing
fades. What it approximates is a path; `tests/test_fading.py` has by how much. Scores of sweeps join past and future as
if both were of the moment, so that a sweep is taken back where the objective fell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelweld.families.base import with_fields
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack
from modelweld.time.chains import Chains
from modelweld.time.motion import Motion, Place, State

STEPS = (2.0, 1.25, 1.05)
"""Factors by which hyperparameters are tried up and down in turn, coarse ones first: 5 % is well below what a matching
can tell of any of them."""

TRIED_MEMORY = 0.3, 1e3
"""Memory to try where atoms stood still, in units of the whole span, and that from which on they do."""


class Fading(Motion):
    """The motion of families that say how their sums fade (`Moving.faded`)."""

    exact = False

    def __init__(self, stack: Stack, family: Any) -> None:
        super().__init__(stack, family)
        self.rows = family.rows(stack.values, stack.variance, stack.weight)
        self.alone = family.log_evidence(self.rows)

    def nothing(self, number: int) -> State:
        """Sums of nothing."""
        return (np.zeros((number, self.rows.shape[1])),)

    def silence(self, number: int) -> State:
        """Sums of nothing, too."""
        return self.nothing(number)

    def later(self, past: State, elapsed: Array) -> State:
        """Faded."""
        return (self.family.faded(past[0], self.correlation(elapsed)[:, 0]),)

    def earlier(self, future: State, elapsed: Array) -> State:
        """The same in both directions."""
        return self.later(future, elapsed)

    def told(self) -> State:
        """Rows."""
        return (self.rows.copy(),)

    def seeing(self, past: State, values: Index) -> State:
        """Added."""
        return (past[0] + self.rows[values],)

    def scores(self, values: Index, past: State, future: State) -> Array:
        """Log predictive densities given both."""
        gain = self.family.gain(self.rows[values], past[0] + future[0])
        return np.asarray(gain - self.alone[values, None])

    def links(self, past: State, future: State, ends: Array, starts: Array, own: tuple[Index, Index]) -> Array:
        """Log density ratios of sums together and apart."""
        told = future[0]
        gains = self.family.gain(told, past[0]) - self.family.log_evidence(told)[:, None]
        return np.asarray(gains.T - ends[:, None] - starts)

    def log_evidence(self, chains: Chains) -> float:
        """Of every value given those before it, faded."""
        sums, value = self.nothing(0)[0], 0.0
        for rank, index in enumerate(chains.ranks):
            if rank == 0:
                past = np.zeros((len(index), self.rows.shape[1]))
            else:
                past = self.family.faded(sums[: len(index)], self.correlation(chains.gap[index])[:, 0])
            sums = past + self.rows[index]
            value += float((self.family.log_evidence(sums) - self.family.log_evidence(past)).sum())
        return value

    def learned(self, chains: Chains) -> Any:
        """As the family learns from atoms that are pairs of values in succession, then each number up and down."""
        if self.family.learning == "nothing" or not len(self.rows):
            return self.family
        best, found = self.log_evidence(chains) + self.family.log_prior(), self.family

        def better(family: Any) -> bool:
            nonlocal best, found
            value = Fading(self.stack, family).log_evidence(chains) + family.log_prior()
            if value > best:
                best, found = value, family
                return True
            return False

        pairs = in_pairs(chains)
        sums = np.zeros((int(pairs.max()) + 1, self.rows.shape[1]))
        np.add.at(sums, pairs, self.rows)
        better(self.family.learn(self.stack, pairs, sums))
        if len(chains.ranks) == 1:
            return found
        if np.isinf(found.memory):
            better(with_fields(found, memory=TRIED_MEMORY[0] * (chains.span or 1.0)))
        elif not better(with_fields(found, memory=np.inf)) and found.memory > TRIED_MEMORY[1] * chains.span:
            found = with_fields(found, memory=np.inf)
        for factor in STEPS:
            for name in (*found.walked, "memory"):
                if name == "memory" and np.isinf(found.memory):
                    continue
                for step in (factor, 1 / factor):
                    if better(scaled(found, name, step)):
                        while better(scaled(found, name, step)):
                            pass
                        break
        return found

    def place(self, past: State, future: State) -> Place:
        """As if all values were of that moment."""
        return Place(*self.family.posterior(past[0] + future[0]))

    def sent(self, place: Place) -> Place:
        """With what sites differ by."""
        return Place(place.mean, place.variance + self.family.scatter(place.mean))

    def interval(self, place: Place, level: float) -> tuple[Array, Array]:
        """As the family has it."""
        low, high = self.family.interval(*place, level)
        return low, high


def scaled(family: Any, name: str, factor: float) -> Any:
    """The family with one hyperparameter so many times as large, within its bounds."""
    low, high = family.limits.get(name, (0.0, np.inf))
    value = np.clip(np.asarray(getattr(family, name)) * factor, low, high)
    return with_fields(family, **{name: float(value) if value.ndim == 0 else value})


def in_pairs(chains: Chains) -> Index:
    """Labels (N,) by which the first and second value of a chain are one atom, the third and fourth another, ...

    Examples
    --------
    >>> in_pairs(Chains(np.array([0, 0, 1, 0]), np.arange(4.0))).tolist()
    [0, 0, 1, 2]
    """
    own = np.full(len(chains.before), -1)
    for rank, index in enumerate(chains.ranks):
        own[index] = index if rank % 2 == 0 else own[chains.before[index]]
    return np.asarray(np.unique(own, return_inverse=True)[1])
