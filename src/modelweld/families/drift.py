"""Gaussian values whose atoms move: each follows an Ornstein-Uhlenbeck path, of which `Gaussian` is the standstill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.families.fading import Moving, with_fields_of
from modelweld.families.real_values import Gaussian
from modelweld.families.registry import register


@register
@dataclass(frozen=True, eq=False)
class Drift(Moving, Gaussian):
    r"""Real values of groups that come at different times, about atoms that move.

    An atom is where `Gaussian` has it at any one time, N(mean, spread) in each dimension, and at times t and s its
    places are correlated by exp(-\\|t - s\\| / memory). It moves by sqrt(2 spread dt / memory) in a short time dt, and
    after a few memories it may be anywhere. Values scatter about its place of the moment, as they do in `Gaussian`.

    Parameters
    ----------
    memory : float
        Correlation time, in units of the times that groups have; learned. Infinite: atoms stand still.
    mean, noise, spread, shape, learning, trust, resolution, origin, floor, squares, near, degrees, frame
        As in `Gaussian`; shape "full" and the closed forms are not for atoms that move.

    Notes
    -----
    What a family does with rows, it does here for values of one moment: then a path is a place. Values at several times
    are those of a Gaussian process, which `modelweld.time` follows by Kalman filters.

    Examples
    --------
    >>> import numpy as np
    >>> family = Drift(mean=0.0, noise=1.0, spread=4.0, memory=10.0)
    >>> family.value_variances(np.array([[1.0], [2.0]]), weight=np.array([[1.0], [4.0]])).ravel()
    array([1.  , 0.25])
    """

    learns = ("mean", "noise", "spread", "memory")
    specificity = 0
    forgotten = ("resolution",)  # how finely sites of one day are told apart

    memory: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_memory()
        if self.shape == "full" or self.learning == "moments":
            raise InputError("Drift: shape is 'diagonal' or 'scalar', and learning 'likelihood' or 'nothing'.")

    def still(self) -> Gaussian:
        """Of atoms that stand still."""
        found: Gaussian = with_fields_of(Gaussian, self)
        return found

    def value_variances(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Variance (L, D) of each value about its atom; infinite where it was not seen."""
        noise = np.full(values.shape, np.asarray(self.noise))
        if weight is not None:
            with np.errstate(divide="ignore"):
                noise = noise / weight
        return noise if variance is None else np.asarray(noise + self.inflation * variance)
