"""Mean, noise, spread and memory of greatest posterior density, given which values belong to which atom.

Where atoms stand still, sums over their values are all there is to know, and no filter is needed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from modelweld.core.family import sum_by_atom, with_fields
from modelweld.core.random_effects import SMALLEST_RATIO, Effects, Hyperparameters, log_likelihood
from modelweld.core.values import Index, Stack
from modelweld.families.drift import Drift
from modelweld.families.fading import STANDSTILL
from modelweld.families.math.maximise import LARGEST_LOG_STEP, climb, log_bounds
from modelweld.inputs.local_model import Array
from modelweld.time.chains import Chains

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
        return problem.climbed(family)
    found = [family, problem.learned(family)]
    if np.isinf(family.memory) and problem.may_move(found[-1]):
        found.append(problem.climbed(with_fields(found[-1], memory=problem.span)))
    elif problem.span < found[-1].memory < np.inf:
        found.append(problem.learned(with_fields(found[-1], memory=np.inf)))
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

    def learned(self, family: Drift) -> Drift:
        """The most probable family of this memory, or near it if that is finite."""
        return family.with_learned(self.effects) if self.has_sums(family) else self.climbed(family)

    def climbed(self, family: Drift) -> Drift:
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
        return family_at(climb(slope, np.zeros(len(low)), low, high, most_steps=CLIMB_STEPS))

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
        more_noise, more_spread = here.belief.slopes(*at)
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
