"""The evidence of atoms that move, and its slopes: a Kalman filter along each atom's values, and the way back.

An atom's values in the order of their times are a *chain*. Of each dimension, measured from the mean, with phi =
exp(-gap / memory) since the value before,

    expected:  m- = phi m,  P- = spread - phi^2 (spread - P)        (first value: m- = 0, P- = spread)
    seen:      e = y - m-,  V = P- + R,  log density -(log 2 pi V + e^2 / V) / 2
    known:     m = m- + e P- / V,  P = P- R / V

where R is the value's own variance. Slopes follow the same steps backwards (reverse differentiation), which is stable
also where memory is infinite (`time.motion_kernels`).

Mean, noise, spread and memory of greatest posterior density, given which values belong to which atom.

Where atoms stand still, sums over their values are all there is to know, and no filter is needed.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from modelweld.core.family import sum_by_atom, with_fields
from modelweld.core.moments import Effects, Hyperparameters
from modelweld.core.values import Array, Index, Stack
from modelweld.families.fading import STANDSTILL, Drift
from modelweld.families.math.maximise import LARGEST_LOG_STEP, log_bounds
from modelweld.families.math.maximise import climb as ascend
from modelweld.families.math.random_effects import SMALLEST_RATIO, log_likelihood


class Slopes(NamedTuple):
    """Of the log evidence in each value's own variance (N, D), in mean and spread (D,), and in the log of memory."""

    variance: Array
    mean: Array
    spread: Array
    log_memory: float


class Chains:
    """Values of every atom in the order of time.

    Parameters
    ----------
    labels : int array (N,)
        Atom of each value; values stand in the order of their times.
    times : array (N,)
        When each value was seen.

    Attributes
    ----------
    labels : int array (N,)
        Atom of each value.
    ranks : list of int arrays
        The first values of all chains, the second ones, ...; longer chains first.
    before : int array (N,)
        The value before each in its chain; -1 at the first.
    gap : array (N,)
        Time since that.
    span : float
        From the first value of all to the last.
    """

    def __init__(self, labels: Index, times: Array) -> None:
        self.labels = labels
        by_atom = np.argsort(labels, kind="stable")
        atoms, first, lengths = np.unique(labels[by_atom], return_index=True, return_counts=True)
        self.atoms = atoms
        longest = np.argsort(-lengths, kind="stable")
        first, lengths = first[longest], lengths[longest]
        number = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
        self.ranks = [by_atom[first[:n] + r] for r, n in enumerate(number.tolist())]
        self.before = np.full(len(labels), -1)
        for earlier, later in zip(self.ranks, self.ranks[1:], strict=False):
            self.before[later] = earlier[: len(later)]
        self.order, self.ends = by_atom, np.cumsum(np.unique(labels, return_counts=True)[1])
        self.span = float(np.ptp(times)) if len(times) else 0.0
        self.gap = np.where(self.before >= 0, times - times[self.before], 0.0)

    def log_evidence(self, y: Array, variance: Array, spread: Array, memory: float) -> float:
        """Log evidence of values y (N, D), measured from the mean, of these own variances (infinite: not seen)."""
        return self.with_slopes(y, variance, spread, memory, sloped=False)[0]

    def with_slopes(
        self, y: Array, variance: Array, spread: Array, memory: float, *, sloped: bool = True
    ) -> tuple[float, Slopes]:
        """The same, and its slopes."""
        from modelweld.time.motion_kernels import evidence_and_slopes

        own = np.ascontiguousarray(variance)
        value, *slopes = evidence_and_slopes(self.order, self.ends, self.gap, y, own, spread, memory, sloped)
        return float(value), Slopes(*slopes)


LONGEST, SHORTEST = 1e3, 0.1
"""Memory is looked for up to so many times the whole span and down to so much of the shortest gap: beyond, atoms stand
still, or one group says nothing of the next."""

CLIMB_STEPS = 12
"""Of one climb: learning is called after every sweep and goes on from where it was."""


def learn_drift(family: Drift, stack: Stack, chains: Chains) -> Drift:
    """The family with hyperparameters of greatest posterior density; memory is finite only where that is evident.

    Where no atom has two values, noise and spread move together, and memory stays.
    """
    if family.learning == "nothing" or len(stack.values) == 0:
        return family
    problem = Problem(family, stack, chains)
    if not problem.matched:
        return problem.climb(family)
    found = [family, problem.maximise(family)]
    if np.isinf(family.memory) and problem.may_move(found[-1]):
        found.append(problem.climb(with_fields(found[-1], memory=problem.span)))
    elif problem.span < found[-1].memory < np.inf:
        found.append(problem.maximise(with_fields(found[-1], memory=np.inf)))
    return max(found, key=problem.log_posterior)


class Problem:
    """The log posterior density of a family's hyperparameters, given chains of values."""

    def __init__(self, family: Drift, stack: Stack, chains: Chains) -> None:
        self.stack, self.chains = stack, chains
        self.values = stack.values - np.asarray(family.origin)
        if stack.weight is not None:
            self.values = np.where(stack.weight > 0, self.values, 0.0)
        self.matched = len(chains.ranks) > 1
        gaps = chains.gap[chains.gap > 0]
        self.shortest = float(gaps.min()) if len(gaps) else 1.0
        self.span = float(chains.span) or 1.0
        with np.errstate(divide="ignore"):
            self.inverse = None if stack.weight is None else 1 / stack.weight

    @cached_property
    def effects(self) -> Effects:
        """What there is to know of atoms that stand still."""
        return effects_of(self.values, self.stack.weight, self.chains.labels)

    def has_sums(self, family: Drift) -> bool:
        """Whether sums over the values of each atom are all there is to know: it stands still, and errors are none."""
        return bool(np.isinf(family.memory)) and self.stack.variance is None

    def log_posterior(self, family: Drift) -> float:
        """Log evidence and log prior densities."""
        if self.has_sums(family):
            return log_evidence(self.effects, family.hyperparameters) + family.log_prior()
        y = self.values - family.hyperparameters.mean
        variance = family.value_variances(y, self.stack.variance, self.stack.weight)
        spread = np.zeros(y.shape[1]) + family.hyperparameters.spread
        return self.chains.log_evidence(y, variance, spread, family.memory) + family.log_prior()

    def may_move(self, still: Drift) -> bool:
        """Whether the least drift that is looked for makes values more probable: its score test."""
        slow = with_fields(still, memory=LONGEST * self.span)
        return self.log_posterior(slow) + STANDSTILL > self.log_posterior(still)

    def maximise(self, family: Drift) -> Drift:
        """The most probable family of this memory, or near it if that is finite."""
        return family.fit_to(self.effects) if self.has_sums(family) else self.climb(family)

    def climb(self, family: Drift) -> Drift:
        """The most probable family near this one, its memory finite or infinite as it is."""
        at, D = family.hyperparameters, self.values.shape[1]
        H, unit = len(at.noise), np.sqrt(at.noise + at.spread)
        floor = np.maximum(np.asarray(family.floor), np.finfo(float).tiny)
        free_memory = self.matched and np.isfinite(family.memory) and bool((self.chains.gap > 0).any())

        def family_at(x: Array) -> Drift:
            log_noise, log_spread = x[D : D + H], x[D + H : D + 2 * H] if self.matched else x[D : D + H]
            return with_fields(
                family,
                mean=np.asarray(family.origin) + at.mean + unit * x[:D],
                noise=np.maximum(at.noise * np.exp(log_noise), floor),
                spread=np.maximum(at.spread * np.exp(log_spread), SMALLEST_RATIO * floor),
                memory=float(family.memory * np.exp(x[-1])) if free_memory else family.memory,
            )

        def slope(x: Array) -> tuple[float, Array]:
            here = family_at(x)
            value, gradient = self._with_slopes(here)
            by_mean, by_noise, by_spread, by_memory = gradient
            logs = [by_noise, by_spread] if self.matched else [by_noise + by_spread, np.zeros(H)]
            return value, np.concatenate([by_mean * unit, *logs, [by_memory]])

        zero, far = np.zeros(H), np.full(H, LARGEST_LOG_STEP)
        lowest = np.maximum(np.log(floor / at.noise), -far) + zero
        memory = log_bounds(free_memory, family.memory, SHORTEST * self.shortest, LONGEST * self.span)
        wide = np.full(D, np.inf)
        low = np.concatenate([-wide, np.minimum(lowest, 0.0), -far if self.matched else zero, [memory[0]]])
        high = np.concatenate([wide, far, far if self.matched else zero, [memory[1]]])
        return family_at(ascend(slope, np.zeros(len(low)), low, high, most_steps=CLIMB_STEPS))

    def _with_slopes(self, here: Drift) -> tuple[float, tuple[Array, Array, Array, float]]:
        """Log posterior and its slopes in mean, log noise, log spread and log memory."""
        at = here.hyperparameters
        y, stack = self.values - at.mean, self.stack
        variance = here.value_variances(y, stack.variance, stack.weight)
        value, slopes = self.chains.with_slopes(y, variance, np.zeros(y.shape[1]) + at.spread, here.memory)
        seen = slopes.variance if self.inverse is None else np.where(np.isinf(self.inverse), 0.0, slopes.variance)
        by_noise = seen if self.inverse is None else seen * np.where(np.isinf(self.inverse), 0.0, self.inverse)
        by_noise, by_spread = by_noise.sum(0) * at.noise, slopes.spread * at.spread
        if here.scalar:
            by_noise, by_spread = by_noise.sum(keepdims=True), by_spread.sum(keepdims=True)
        more_noise, more_spread = here.noise_prior.slopes(*at)
        gradient = (slopes.mean, by_noise + more_noise, by_spread + more_spread, slopes.log_memory)
        return value + here.log_prior(), gradient


def effects_of(y: Array, weight: Array | None, labels: Index) -> Effects:
    """Of values (N, D) of these weights, none negative and zero where not seen, and their atoms (N,)."""
    if weight is None:
        return Effects.from_counts(np.bincount(labels), sum_by_atom(y, labels), np.einsum("nd,nd->d", y, y))
    seen = (weight > 0).astype(np.float64)
    parts = seen, weight, weight * y, weight * y * y, np.log(np.where(weight > 0, weight, 1.0))
    return Effects.from_sums(*(sum_by_atom(x, labels) for x in parts))


def log_evidence(effects: Effects, at: Hyperparameters) -> float:
    """Of all values."""
    return float(log_likelihood(effects, at).sum())
