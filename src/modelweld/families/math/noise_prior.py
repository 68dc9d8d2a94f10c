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

import numpy as np

from modelweld.core.random_effects import NoisePrior
from modelweld.core.values import Array
from modelweld.families.math.start import Look

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
