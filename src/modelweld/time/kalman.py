"""Atoms that follow Ornstein-Uhlenbeck paths, exactly: pasts are places, futures are information (`motion`)."""

from __future__ import annotations

import numpy as np

from modelweld.families.drift import Drift
from modelweld.families.math.predictive import log_predictive
from modelweld.families.math.random_effects import Hyperparameters
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, blocks
from modelweld.time.chains import Chains
from modelweld.time.learning import effects_of, learn_drift, log_evidence
from modelweld.time.motion import Information, Motion, Place, State, earlier, given, later, log_factor

COMPILED_FROM = 1_000_000
"""Pasts x futures x dimensions from which gains of links are compiled. By the input alone."""

HOPELESS = -1.0
"""Stands for the gain of a link that is worse than none."""


class Kalman(Motion):
    """The motion of `Drift`.

    Attributes
    ----------
    y, variance : arrays (N, D)
        Values from the mean, and their own variances; infinite where they were not seen.
    mean, spread, noise : arrays (D,)
        Hyperparameters.
    alone, peak : arrays (N,)
        Log density of each value by itself, and the largest there is about any place.
    still, alike : bool
        Whether atoms stand still; whether all values are equally well known.
    """

    family: Drift

    def __init__(self, stack: Stack, family: Drift) -> None:
        super().__init__(stack, family)
        at, D = family.hyperparameters, stack.values.shape[1]
        self.mean, self.spread, self.noise = (np.zeros(D) + x for x in (at.mean, at.spread, at.noise))
        self.y = stack.values - (np.asarray(family.origin) + self.mean)
        self.still = bool(np.isinf(family.memory))
        self.alike = stack.variance is None and stack.weight is None
        if self.alike:
            self.variance, self.weight, self.visible = (
                np.broadcast_to(x, self.y.shape) for x in (self.noise, 1.0, np.True_)
            )
            both = self.noise + self.spread
            self.alone = -0.5 * (np.log(2 * np.pi * both).sum() + (self.y * self.y) @ (1 / both))
            self.peak = np.full(len(self.y), -0.5 * np.log(2 * np.pi * self.noise).sum())
            return
        self.variance = family.value_variances(stack.values, stack.variance, stack.weight)
        self.visible = np.isfinite(self.variance)
        self.y = np.where(self.visible, self.y, 0.0)
        both = np.where(self.visible, self.variance + self.spread, 1 / (2 * np.pi))
        self.alone = -0.5 * (np.log(2 * np.pi * both) + self.y**2 / both).sum(1)
        self.weight = np.where(self.visible, self.noise / self.variance, 0.0)
        self.peak = -0.5 * np.log(np.where(self.visible, 2 * np.pi * self.variance, 1.0)).sum(1)

    def nothing(self, number: int) -> Place:
        """Anywhere."""
        D = len(self.spread)
        return Place(np.zeros((number, D)), np.zeros((number, D)) + self.spread)

    def silence(self, number: int) -> Information:
        """No precision."""
        D = len(self.spread)
        return Information(np.zeros((number, D)), np.zeros((number, D)))

    def later(self, past: State, elapsed: Array) -> Place:
        """It drifts, and is less certain."""
        if self.still:
            return Place(*past)
        return later(Place(*past), self.correlation(elapsed), self.spread)

    def earlier(self, future: State, elapsed: Array) -> Information:
        """It says less."""
        if self.still:
            return Information(*future)
        return earlier(Information(*future), self.correlation(elapsed), self.spread)

    def told(self) -> Information:
        """Precision and shift."""
        precision = (
            np.full(self.y.shape, 1 / self.noise) if self.alike else np.where(self.visible, 1 / self.variance, 0.0)
        )
        return Information(precision, precision * self.y)

    def seeing(self, past: State, values: Index) -> Place:
        """One step of the filter."""
        mean, variance = past
        part = variance / (variance + self.variance[values])
        return Place(mean + part * (self.y[values] - mean), variance - part * variance)

    def scores(self, values: Index, past: State, future: State) -> Array:
        """Log predictive densities."""
        place = given(Place(*past), Information(*future))
        weight = self.weight[values]
        own = (self.visible[values].astype(np.float64), weight, weight * self.y[values])
        return np.asarray(log_predictive(*own, self.noise, place.mean, place.variance) - self.alone[values, None])

    def most(self, values: Index) -> float:
        """That of an atom which is known to be where the value is."""
        return float((self.peak[values] - self.alone[values]).max(initial=-np.inf))

    def links(self, past: State, future: State, ends: Array, starts: Array, own: tuple[Index, Index]) -> Array:
        """Log density ratios, that futures come from places of pasts and not from anywhere."""
        place, told, D = Place(*past), Information(*future), len(self.spread)
        alone = log_factor(Place(np.zeros(D), self.spread), told)
        if len(ends) * len(starts) * D >= COMPILED_FROM:
            from modelweld.time import compiled

            future_of = np.full(len(ends), -1)
            future_of[own[0]] = own[1]
            gains = compiled.link_gains(*place, *told, alone, ends, starts, future_of, HOPELESS)
            return np.asarray(gains)
        gains = np.empty((len(ends), len(starts)))
        for part in blocks(len(ends), len(starts) * D):
            some = Place(*(x[part, None, :] for x in place))
            gains[part] = log_factor(some, Information(*(x[None] for x in told)))
        return gains - alone - ends[:, None] - starts

    def log_evidence(self, chains: Chains) -> float:
        """By the filter, or where atoms stand still by sums."""
        if self.still and self.stack.variance is None:
            at = Hyperparameters(np.zeros(len(self.mean)), self.noise, self.spread)
            return log_evidence(effects_of(self.y, self.stack.weight, chains.labels), at)
        return chains.log_evidence(self.y, self.variance, self.spread, self.family.memory)

    def learned(self, chains: Chains) -> Drift:
        """The most probable hyperparameters near the present ones."""
        return learn_drift(self.family, self.stack, chains)

    def place(self, past: State, future: State) -> Place:
        """In the coordinates of the values."""
        found = given(Place(*past), Information(*future))
        return Place(found.mean + self.mean + np.asarray(self.family.origin), found.variance)

    def sent(self, place: Place) -> Place:
        """With noise, and what standard errors of a typical value add to it."""
        errors = 0.0 if self.stack.variance is None else self.family.trust * np.median(self.stack.variance, axis=0)
        return Place(place.mean, place.variance + self.noise + errors)

    def interval(self, place: Place, level: float) -> tuple[Array, Array]:
        """Of normal variables."""
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + level / 2)) * np.sqrt(place.variance)
        return place.mean - reach, place.mean + reach
