"""The carrier (base measure) of events when effective sample sizes are learned: unbiased also where few are expected.

A value v worth w observations has a density exp(-w KL(v, theta)) times a factor h that may depend on v and w, not on
theta. For many events x = w v, h is sqrt(x) / v up to a constant. For few, the obvious extensions (Gamma functions for
factorials; the square root itself, which is Efron's (1986) double Poisson) take values near zero for witnesses that
sites hardly differ. `modelweld.families.math.freedom` has the h whose expected slope by w is zero at the truth for
values that are continuous. Values from few observations are often exactly zero; it would take those for certainty.
"""

from __future__ import annotations

import numpy as np

from modelweld.families.math.freedom import freedom, log_freedom
from modelweld.inputs.local_model import Array

SLOPE_AT_ZERO = 0.25
"""Degrees of freedom of a value that is exactly zero: between none (theta is tiny) and the half of many events (theta
is not, and no event was seen by chance). Of 0, 1/4 and 1/2 it comes nearest to the truth: sites whose values are worth
6.3 intervals (8 for their differences, 30 observed), with 5, 0.5, 0.1 and 0.03 events in each, are learned to be worth
6.3, 6.0, 5.6, 8.1 with 1/4; 6.3, 5.7, 3.2, 2.4 with 0; 6.3, 6.2, 8.0, 16 with 1/2; far more with Gamma functions."""

SMALLEST = 1e-290
"""Numbers of events below this count as this: their inverse is still a number."""


def log_carrier(values: Array, worth: Array) -> Array:
    """What takes the place of half the logarithm of the number of events, worth * values."""
    events = np.maximum(worth * values, SMALLEST)
    return np.where(values > 0, log_freedom(events), SLOPE_AT_ZERO * np.log(worth))


def slope_of_carrier(values: Array, worth: Array) -> Array:
    """Its derivative by the logarithm of worth: 1/2 for many events.

    Examples
    --------
    >>> slope_of_carrier(np.array([0.0, 0.01, 1.0, 100.0]), np.ones(4)).round(2)
    array([0.25, 0.21, 0.46, 0.5 ])
    """
    events = np.maximum(worth * values, SMALLEST)
    return np.where(values > 0, freedom(events), SLOPE_AT_ZERO)
