"""What is known of a moving atom's place at one time, from values before it and from values after it.

The past comes as a mean and a variance, the future as an *information*: the log density of all values from some time
on, as a function of the place x at that time (measured from the mean), is -J x^2 / 2 + h x and a constant. Arrays have
one row per atom, one column per dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array


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
