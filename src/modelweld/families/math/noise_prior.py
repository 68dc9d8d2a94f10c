"""What is believed of noise and spread before anything is matched: weak, and free of units.

The likelihood of one-way random effects is unbounded where two sites coincide (noise to zero), and its spread can fall
to zero, so that every atom is the grand mean. Neither is ever what a user means. So noise has a scaled inverse
chi-squared prior of DEGREES degrees of freedom about s, a hundredth of the total variance,

    log p(noise) = -nu/2 [s / noise - 1 - log(s / noise)],                        zero at noise = s,

and the ratio r = w spread / noise, with w the weight of a typical value, one that keeps off zero like the deviation of
the atoms and is flat beyond (Chung et al., *A nondegenerate penalized likelihood estimator for variance parameters*,
Psychometrika 2013):

    log p(r) = -1/2 log(1 + NEAR / r).

The first is conjugate (nu values more, of squares s each), the second a function of the ratio alone, so the profile of
the likelihood stays one-dimensional.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array

DEGREES = 1.0
"""One value's worth: a prior that any three matched values overrule."""

EXPECTED_SHARE = 0.01
"""Of the total variance that is expected to be noise. A thousandth lets two sites that nearly coincide still collapse
in twenty dimensions (three draws of four); a hundredth and three hundredths never did."""

NEAR = 0.1
"""Ratio of spread to noise below which atoms are hardly told apart. At one, overlapping atoms are split too often (the
hardest golden case has eight atoms too many instead of four)."""


class NoisePrior(NamedTuple):
    """The prior of noise and spread.

    Attributes
    ----------
    scale : array (D,) or (1,)
        s above; zero where nothing is believed.
    weight : float
        w above.

    Examples
    --------
    >>> prior = NoisePrior(np.array([1.0]), 1.0)
    >>> noise = np.array([1e-6, 1.0, 1e6])
    >>> [round(float(x), 1) for x in prior.log_density(noise, 100.0 * noise)]
    [-499992.6, -0.0, -6.4]
    """

    scale: Array
    weight: float = 1.0

    @property
    def degrees(self) -> Array:
        """Values that the prior of the noise is worth, in each dimension."""
        return np.where(self.scale > 0, DEGREES, 0.0)

    def log_density(self, noise: Array, spread: Array) -> Array:
        """Log density at these variances, up to a constant: (D,) or (1,)."""
        believed = self.scale > 0
        share = np.where(believed, self.scale, 1.0) / noise
        of_noise = -0.5 * DEGREES * (share - 1 - np.log(share))
        return np.where(believed, of_noise + self.of_ratio(spread / noise), 0.0)

    def slopes(self, noise: Array, spread: Array) -> tuple[Array, Array]:
        """Slopes of `log_density` in log noise and log spread."""
        by_ratio = self.slope_of_ratio(spread / noise)
        return 0.5 * self.degrees * (self.scale / noise - 1) - by_ratio, by_ratio

    def of_ratio(self, ratio: Array) -> Array:
        """Log density of spread / noise; zero where nothing is believed."""
        return np.where(self.scale > 0, -0.5 * np.log1p(NEAR / (self.weight * ratio)), 0.0)

    def slope_of_ratio(self, ratio: Array) -> Array:
        """Its slope in the logarithm of the ratio."""
        return np.where(self.scale > 0, 0.5 / (1 + self.weight * ratio / NEAR), 0.0)


NOTHING_BELIEVED = NoisePrior(np.zeros(1))
