"""What is believed of noise and spread before anything is matched: weak, and free of units.

The likelihood of one-way random effects is unbounded where two sites coincide (noise to zero), and its spread can fall
to zero, so that every atom is the grand mean. Neither is ever what a user means. So noise has the conjugate prior,
which is what nu values more, of squares s in all, would add to the likelihood:

    log p(noise) = -nu/2 log(noise) - s / (2 noise).

Of plain values nothing is known but that noise is not zero: nu = 0, flat in the logarithm but for an end below s. Where
sites say how wide their components are, means of one differ by about that: nu = DEGREES. And the ratio
r = spread / noise has a prior that keeps off zero like the deviation of the atoms and is flat beyond (Chung et al., *A
nondegenerate penalized likelihood estimator for variance parameters*, Psychometrika 2013):

    log p(r) = -1/2 log(1 + near / r).

The first only adds to values and squares, the second is a function of the ratio alone, so the profile of the likelihood
stays one-dimensional.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.families.math.start import Look
from modelweld.inputs.local_model import Array

EXPECTED_SHARE = 0.01
"""Of the total variance that is expected to be noise, at most. A thousandth lets two sites that nearly coincide still
collapse in twenty dimensions (three draws of four); a hundredth and three hundredths never did."""

NEAR = 0.1
"""Ratio of spread to noise below which atoms are hardly told apart, at most. At one, overlapping atoms are split too
often (the hardest golden case has eight atoms too many instead of four)."""


DEGREES = 4.0
"""Values that what is known of components' widths is worth. With few sites, few dimensions and components three
deviations apart, noise otherwise grows until neighbours fall together (ARI .870 at 0, .877 .880 .887 .891 .885 at 1, 2,
4, 8, 16); with more sites it is all the same."""


class NoisePrior(NamedTuple):
    """The prior of noise and spread.

    Attributes
    ----------
    squares : array (D,) or (1,)
        s above, in each dimension; zero where nothing is believed.
    near : float
        near above; zero where nothing is believed.
    degrees : float
        nu above.

    Examples
    --------
    >>> prior = NoisePrior(np.array([1.0]), 0.1)
    >>> noise = np.array([1e-3, 1.0, 1e6])
    >>> [round(float(x), 2) for x in prior.log_density(noise, noise, noise)]
    [-500.05, -0.55, -0.05]
    """

    squares: Array
    near: float = 0.0
    degrees: float = 0.0

    def log_density(self, mean: Array, noise: Array, spread: Array) -> Array:
        """Log density at these hyperparameters, up to a constant: (D,), or (1,) for one noise in all D dimensions."""
        each = len(mean) // len(noise)
        of_noise = -0.5 * each * (self.squares / noise + self.degrees * np.log(noise))
        return np.asarray(of_noise + self.of_ratio(spread / noise))

    def slopes(self, mean: Array, noise: Array, spread: Array) -> tuple[Array, Array]:
        """Slopes of `log_density` in log noise and log spread."""
        each, by_ratio = len(mean) // len(noise), self.slope_of_ratio(spread / noise)
        return np.asarray(0.5 * each * (self.squares / noise - self.degrees) - by_ratio), by_ratio

    def of_ratio(self, ratio: Array) -> Array:
        """Log density of spread / noise."""
        return np.asarray(-0.5 * np.log1p(self.near / ratio))

    def slope_of_ratio(self, ratio: Array) -> Array:
        """Its slope in the logarithm of the ratio."""
        return np.asarray(0.5 * self.near / (self.near + ratio))


def believed(first: Look, resolution: Array) -> NoisePrior:
    """What is believed of values after a first look.

    Noise may be far below EXPECTED_SHARE where most groups say so, and atoms as hard to tell apart as they look. Where
    there is a `resolution`, noise is believed to be about that.
    """
    share = max(first.shares)
    near = NEAR * min(1.0, 1 / share - 1) / first.typical
    if np.any(resolution > 0):
        return NoisePrior(DEGREES * resolution, near, DEGREES)
    return NoisePrior(min(share, EXPECTED_SHARE) * first.total * first.typical, near)


NOTHING_BELIEVED = NoisePrior(np.zeros(1))
