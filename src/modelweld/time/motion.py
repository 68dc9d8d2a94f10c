"""How atoms move, for all that goes along time: what is known of them, brought to another time, joined, and scored.

What is known of A atoms is a *State*: arrays with one row per atom. A past is what values up to a time say of an atom
at that time, a future what those from a time on say. `modelweld.time.kalman` has them exactly, for Gaussian values,
`modelweld.time.fading` approximately, for families whose sums of rows fade.

For Gaussian values the past comes as a mean and a variance, the future as an *information*: the log density of all
values from some time on, as a function of the place x at that time (measured from the mean), is -J x^2 / 2 + h x and a
constant. Arrays have one row per atom, one column per dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack
from modelweld.time.chains import Chains

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


def later(place: Place, phi: Array, spread: Array) -> Place:
    """The same after some time, correlated by phi (K, 1); nothing is known any more at phi = 0."""
    return Place(phi * place.mean, spread - phi * phi * (spread - place.variance))


def earlier(after: Information, phi: Array, spread: Array) -> Information:
    """What an information says of the place some time before."""
    shrink = 1 + spread * (1 - phi * phi) * after.precision
    return Information(phi * phi * after.precision / shrink, phi * after.shift / shrink)


def given(place: Place, after: Information) -> Place:
    """A place of which more is known."""
    shrink = 1 + place.variance * after.precision
    return Place((place.mean + place.variance * after.shift) / shrink, place.variance / shrink)


def log_factor(place: Place, after: Information) -> Array:
    """Log of the mean of exp(-J x^2 / 2 + h x) over the place, summed over dimensions: (A,) of rows that broadcast."""
    shrink = 1 + place.variance * after.precision
    squares = after.shift * (2 * place.mean + after.shift * place.variance) - after.precision * place.mean**2
    return np.asarray(0.5 * (squares / shrink - np.log(shrink)).sum(-1))


class Motion(ABC):
    """Values of one array about atoms that move, at present hyperparameters.

    Attributes
    ----------
    family : Family
        With a `memory`, and its other hyperparameters.
    exact : bool
        Of the class: whether steps of a sweep raise the objective by what they say.
    """

    exact = True

    def __init__(self, stack: Stack, family: Any) -> None:
        self.stack, self.family = stack, family

    def correlation(self, elapsed: Array) -> Array:
        """Of an atom's places so far apart in time, as a column."""
        return np.asarray(np.exp(-np.abs(elapsed) / self.family.memory))[:, None]

    @abstractmethod
    def nothing(self, number: int) -> State:
        """The past of so many atoms that have none."""

    @abstractmethod
    def silence(self, number: int) -> State:
        """The future of so many atoms that have none: it says nothing."""

    @abstractmethod
    def later(self, past: State, elapsed: Array) -> State:
        """A past, some time later (A,)."""

    @abstractmethod
    def earlier(self, future: State, elapsed: Array) -> State:
        """A future, some time earlier (A,)."""

    @abstractmethod
    def told(self) -> State:
        """What each value by itself says of its atom, as a future: (N, ...)."""

    @abstractmethod
    def seeing(self, past: State, values: Index) -> State:
        """A past of the time of these values (A,), with what they say."""

    @abstractmethod
    def scores(self, values: Index, past: State, future: State) -> Array:
        """Log score of each value at each atom, both known at its time, minus that of a new one: (L, A)."""

    def most(self, values: Index) -> float:
        """No atom scores more for any of these values, whatever is known of it; infinite: that is not known."""
        del values
        return np.inf

    @abstractmethod
    def links(self, past: State, future: State, ends: Array, starts: Array, own: tuple[Index, Index]) -> Array:
        """What linking each past to each future gains (A, B), less `ends` (A,) and `starts` (B,).

        Links that are worse than none may have any gain below zero, but for those of the `own` pairs.
        """

    @abstractmethod
    def log_evidence(self, chains: Chains) -> float:
        """Log evidence of a matching."""

    @abstractmethod
    def learned(self, chains: Chains) -> Any:
        """The family with hyperparameters that suit a matching; never less probable than the present ones."""

    @abstractmethod
    def place(self, past: State, future: State) -> Place:
        """Mean and variance of atoms of which both are known."""

    @abstractmethod
    def sent(self, place: Place) -> Place:
        """Mean and variance of what a typical site would send of atoms that are there."""

    @abstractmethod
    def interval(self, place: Place, level: float) -> tuple[Array, Array]:
        """Where they are with this probability, in each dimension."""
