"""How atoms move, for all that goes along time: what is known of them, brought to another time, joined, and scored.

What is known of A atoms is a *State*: arrays with one row per atom. A past is what values up to a time say of an atom
at that time, a future what those from a time on say. `Kalman` has them exactly, for Gaussian values, `Fading`
approximately, for families whose sums of rows fade; both have the same methods.

For Gaussian values the past comes as a mean and a variance, the future as an *information*: the log density of all
values from some time on, as a function of the place x at that time (measured from the mean), is -J x^2 / 2 + h x and a
constant. Arrays have one row per atom, one column per dimension.

Sums of rows fade approximately: compositions by discounting, directions by the same filter on sums.
After some time, what values say of an atom is taken for a part of what they said, so much that the atom's expected
value goes back towards that of any atom as that of a stationary path does (`Moving.fade`). The evidence of an atom is
that of its values one after the other, each given those before it, faded:

    sum over i of  E(c_i S_(i-1) + r_i) - E(c_i S_(i-1)),      S_i = c_i S_(i-1) + r_i,

E the log evidence of sums, r rows: a density of all values whatever c is, and that of the family itself where nothing
fades. What it approximates is a path; `tests/test_fading.py` has by how much. Scores of sweeps join past and future as
if both were of the moment, so that a sweep is taken back where the objective fell.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy

from modelweld.core.family import learn_from_values, log_predictive, log_prior, with_fields
from modelweld.core.moments import Hyperparameters
from modelweld.core.values import Array, Index, Stack
from modelweld.families.capabilities import list_sampled
from modelweld.families.fading import Drift
from modelweld.time.chains import Chains, effects_of, learn_drift, log_evidence

State = tuple[Array, ...]
"""Arrays with one row per atom, or per value."""


class Place(NamedTuple):
    """Mean and variance of a place."""

    mean: Array
    variance: Array


class Information(NamedTuple):
    """J and h above; both zero: nothing is known."""

    precision: Array
    shift: Array


def condition(place: Place, after: Information) -> Place:
    """A place of which more is known."""
    shrink = 1 + place.variance * after.precision
    return Place((place.mean + place.variance * after.shift) / shrink, place.variance / shrink)


def log_factor(place: Place, after: Information) -> Array:
    """Log of the mean of exp(-J x^2 / 2 + h x) over the place, summed over dimensions: (A,) of rows that broadcast."""
    shrink = 1 + place.variance * after.precision
    squares = after.shift * (2 * place.mean + after.shift * place.variance) - after.precision * place.mean**2
    return np.asarray(0.5 * (squares / shrink - np.log(shrink)).sum(-1))


class ValuesInTime:
    """Values of one array about atoms that move, at present hyperparameters of their `family`, which has a `memory`."""

    def __init__(self, stack: Stack, family: Any) -> None:
        self.stack, self.family = stack, family

    def correlation(self, elapsed: Array) -> Array:
        """Of an atom's places so far apart in time, as a column."""
        return np.asarray(np.exp(-np.abs(elapsed) / self.family.memory))[:, None]


HOPELESS = -1.0
"""Stands for the gain of a link that is worse than none."""


class Kalman(ValuesInTime):
    """The motion of `Drift`; steps of a sweep raise the objective by as much as their scores say.

    Attributes
    ----------
    y, variance : arrays (N, D)
        Values from the mean, and their own variances; infinite where they were not seen.
    mean, spread, noise : arrays (D,)
        Hyperparameters.
    alone, peak : arrays (N,)
        Log density of each value by itself, and the largest there is about any place.
    """

    family: Drift
    exact = True

    def __init__(self, stack: Stack, family: Drift) -> None:
        super().__init__(stack, family)
        at, D = family.hyperparameters, stack.values.shape[1]
        self.mean, self.spread, self.noise = (np.zeros(D) + x for x in (at.mean, at.spread, at.noise))
        self.y = stack.values - (np.asarray(family.origin) + self.mean)
        self.variance = family.value_variances(stack.values, stack.variance, stack.weight)
        self.visible = np.isfinite(self.variance)
        self.y = np.where(self.visible, self.y, 0.0)
        both = np.where(self.visible, self.variance + self.spread, 1 / (2 * np.pi))
        self.singletons = -0.5 * (np.log(2 * np.pi * both) + self.y**2 / both).sum(1)
        self.weight = np.where(self.visible, self.noise / self.variance, 0.0)
        self.peak = -0.5 * np.log(np.where(self.visible, 2 * np.pi * self.variance, 1.0)).sum(1)

    def nothing(self, number: int) -> Place:
        """The past of so many atoms that have none: they may be anywhere."""
        D = len(self.spread)
        return Place(np.zeros((number, D)), np.zeros((number, D)) + self.spread)

    def silence(self, number: int) -> Information:
        """The future of so many atoms that have none: no precision."""
        return Information(*np.zeros((2, number, len(self.spread))))

    def later(self, past: State, elapsed: Array) -> Place:
        """A past, some time (A,) later: it drifts, and is less certain."""
        (mean, variance), phi = past, self.correlation(elapsed)
        return Place(phi * mean, variance + (1 - phi * phi) * (self.spread - variance))

    def earlier(self, future: State, elapsed: Array) -> Information:
        """A future, some time (A,) earlier: it says less."""
        (precision, shift), phi = future, self.correlation(elapsed)
        shrink = 1 + self.spread * (1 - phi * phi) * precision
        return Information(phi * phi * precision / shrink, phi * shift / shrink)

    def information(self) -> Information:
        """What each value by itself says of its atom, as a future: precision and shift (N, D)."""
        precision = np.where(self.visible, 1 / self.variance, 0.0)
        return Information(precision, precision * self.y)

    def update(self, past: State, values: Index) -> Place:
        """A past of the time of these values (A,), with what they say: one step of the filter."""
        mean, variance = past
        part = variance / (variance + self.variance[values])
        return Place(mean + part * (self.y[values] - mean), variance - part * variance)

    def scores(self, values: Index, past: State, future: State) -> Array:
        """Log score of each value at each atom, both known at its time, minus that of a new one: (L, A)."""
        place = condition(Place(*past), Information(*future))
        weight = self.weight[values]
        own = (self.visible[values].astype(np.float64), weight, weight * self.y[values])
        return np.asarray(Drift.density(*own, self.noise, place.mean, place.variance) - self.singletons[values, None])

    def most(self, values: Index) -> float:
        """No atom scores more for any of these values: that of an atom known to be where the value is."""
        return float((self.peak[values] - self.singletons[values]).max(initial=-np.inf))

    def links(self, past: State, future: State, ends: Array, starts: Array, own: tuple[Index, Index]) -> Array:
        """What linking each past to each future gains (A, B), less `ends` (A,) and `starts` (B,).

        Log density ratios, that futures come from places of pasts and not from anywhere. Links that are worse than
        none may have any gain below zero, but for those of the `own` pairs.
        """
        from modelweld.time.motion_kernels import link_gains

        alone = log_factor(Place(np.zeros_like(self.spread), self.spread), Information(*future))
        future_of = np.full(len(ends), -1)
        future_of[own[0]] = own[1]
        return np.asarray(link_gains(*past, *future, alone, ends, starts, future_of, HOPELESS))

    def log_evidence(self, chains: Chains) -> float:
        """Log evidence of a matching: by the filter, or where atoms stand still by sums."""
        if np.isinf(self.family.memory) and self.stack.variance is None:
            at = Hyperparameters(np.zeros(len(self.mean)), self.noise, self.spread)
            return log_evidence(effects_of(self.y, self.stack.weight, chains.labels), at)
        return chains.log_evidence(self.y, self.variance, self.spread, self.family.memory)

    def learn(self, chains: Chains) -> Drift:
        """The family with the most probable hyperparameters near the present ones, given a matching."""
        return learn_drift(self.family, self.stack, chains)

    def place(self, past: State, future: State) -> Place:
        """Mean and variance of atoms of which both are known, in the coordinates of the values."""
        found = condition(Place(*past), Information(*future))
        return Place(found.mean + self.mean + np.asarray(self.family.origin), found.variance)

    def predict(self, place: Place) -> Place:
        """Mean and variance of what a typical site would send of atoms there: with noise and standard errors."""
        errors = 0.0 if self.stack.variance is None else self.family.inflation * np.median(self.stack.variance, axis=0)
        return Place(place.mean, place.variance + self.noise + errors)

    def interval(self, place: Place, level: float) -> tuple[Array, Array]:
        """Where atoms are with this probability, in each dimension: intervals of normal variables."""
        reach = float(scipy.special.ndtri(0.5 + level / 2)) * np.sqrt(place.variance)
        return place.mean - reach, place.mean + reach


STEPS = (2.0, 1.25, 1.05)
"""Factors by which hyperparameters are tried up and down in turn, coarse ones first: 5 % is well below what a matching
can tell of any of them."""

TRIED_MEMORY = 0.3, 1e3
"""Memory to try where atoms stood still, in units of the whole span, and that from which on they do."""


class Fading(ValuesInTime):
    """The motion of families that say how their sums fade (`Moving.fade`); scores of a sweep are approximate."""

    exact = False

    def __init__(self, stack: Stack, family: Any) -> None:
        super().__init__(stack, family)
        self.rows = family.rows(stack.values, stack.variance, stack.weight)
        self.singletons = family.log_evidence(self.rows)

    def nothing(self, number: int) -> State:
        """The past of so many atoms that have none: sums of nothing."""
        return (np.zeros((number, self.rows.shape[1])),)

    silence = nothing

    def later(self, past: State, elapsed: Array) -> State:
        """A past some time (A,) later, or a future so much earlier: faded."""
        return (self.family.fade(past[0], self.correlation(elapsed)[:, 0]),)

    earlier = later

    def information(self) -> State:
        """What each value by itself says of its atom: rows (N, ...)."""
        return (self.rows.copy(),)

    def update(self, past: State, values: Index) -> State:
        """A past of the time of these values (A,), with what they say: added."""
        return (past[0] + self.rows[values],)

    def scores(self, values: Index, past: State, future: State) -> Array:
        """Log score of each value at each atom, both known at its time, minus that of a new one: (L, A)."""
        gain = log_predictive(self.family, self.rows[values], past[0] + future[0])
        return np.asarray(gain - self.singletons[values, None])

    def most(self, values: Index) -> float:
        """No atom scores more for any of these values; infinite: that is not known."""
        return np.inf

    def links(self, past: State, future: State, ends: Array, starts: Array, own: tuple[Index, Index]) -> Array:
        """Log density ratios of sums together and apart."""
        gains = log_predictive(self.family, future[0], past[0]) - self.family.log_evidence(future[0])[:, None]
        return np.asarray(gains.T - ends[:, None] - starts)

    def log_evidence(self, chains: Chains) -> float:
        """Log evidence of a matching: of every value given those before it, faded."""
        sums, value = self.nothing(0)[0], 0.0
        for rank, index in enumerate(chains.ranks):
            if rank == 0:
                past = np.zeros((len(index), self.rows.shape[1]))
            else:
                past = self.family.fade(sums[: len(index)], self.correlation(chains.gap[index])[:, 0])
            sums = past + self.rows[index]
            value += float((self.family.log_evidence(sums) - self.family.log_evidence(past)).sum())
        return value

    def learn(self, chains: Chains) -> Any:
        """As the family learns from atoms that are pairs of values in succession, then each number up and down."""
        if self.family.learning == "nothing" or not len(self.rows):
            return self.family
        best, found = self.log_evidence(chains) + log_prior(self.family), self.family

        def better(family: Any) -> bool:
            nonlocal best, found
            value = Fading(self.stack, family).log_evidence(chains) + log_prior(family)
            if value > best:
                best, found = value, family
                return True
            return False

        pairs = in_pairs(chains)
        sums = np.zeros((int(pairs.max()) + 1, self.rows.shape[1]))
        np.add.at(sums, pairs, self.rows)
        better(learn_from_values(self.family, self.stack, pairs, sums))
        if len(chains.ranks) == 1:
            return found
        if np.isinf(found.memory):
            better(with_fields(found, memory=TRIED_MEMORY[0] * (chains.span or 1.0)))
        elif not better(with_fields(found, memory=np.inf)) and found.memory > TRIED_MEMORY[1] * chains.span:
            found = with_fields(found, memory=np.inf)
        for factor in STEPS:
            for name in (*list_sampled(found), "memory"):
                if name == "memory" and np.isinf(found.memory):
                    continue
                for step in (factor, 1 / factor):
                    if better(scale_field(found, name, step)):
                        while better(scale_field(found, name, step)):
                            pass
                        break
        return found

    def place(self, past: State, future: State) -> Place:
        """As if all values were of that moment."""
        return Place(*self.family.posterior(past[0] + future[0]))

    def predict(self, place: Place) -> Place:
        """Mean and variance of what a typical site would send of atoms there: with what sites differ by."""
        return Place(place.mean, place.variance + self.family.scatter(place.mean))

    def interval(self, place: Place, level: float) -> tuple[Array, Array]:
        """Where atoms are with this probability, in each dimension, as the family has it."""
        low, high = self.family.interval(*place, level)
        return low, high


Motion: TypeAlias = Kalman | Fading


def scale_field(family: Any, name: str, factor: float) -> Any:
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
