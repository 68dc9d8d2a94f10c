"""Directions whose atoms move: the resultant of what was seen of one becomes shorter as time goes by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.errors import InputError
from modelweld.families.checks import known
from modelweld.families.directions import Directions
from modelweld.families.fading import Moving, with_fields_of
from modelweld.families.math.bessel import slope
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array

BISECTIONS = 40
"""Of the part that is remembered: it is known to 1e-12."""


@register
@dataclass(frozen=True, eq=False)
class FadingDirections(Moving, Directions):
    """Unit vectors of groups that come at different times, about atoms that move. An approximation.

    Parameters
    ----------
    memory : float
        Correlation time, in units of the times that groups have; learned. Infinite: atoms stand still.
    mean, concentration, base_concentration, learning, reference
        As in `Directions`. All atoms have one concentration, and values have signs: `own`, `diversity` and `axial` are
        not for atoms that move.

    Notes
    -----
    The filter of Yurochkin et al. (streaming topics, 2019) on sums: with sums S of length s, an atom is von
    Mises-Fisher of parameter kappa S and the base's, of mean cosine A(kappa s). After a time dt it is c S, with

        A(c kappa s) = exp(-dt / memory) A(kappa s),

    the mean cosine after a random step on the sphere, so that two steps are one. What is approximate is that the law
    stays von Mises-Fisher, and that the base does not pull while an atom moves.

    Examples
    --------
    >>> import numpy as np
    >>> family = FadingDirections(mean=[1.0, 0.0, 0.0], concentration=50.0, base_concentration=0.0, memory=10.0)
    >>> sums = family.rows(np.array([[0.0, 1.0, 0.0]]))
    >>> bool(0 < family.faded(sums, np.array([0.9]))[0, 3] < 0.5)
    True
    """

    learns = ("mean", "concentration", "base_concentration", "memory")
    specificity = 0

    memory: float = np.inf

    def __post_init__(self) -> None:
        if self.axial or self.own or self.diversity:
            raise InputError(
                f"{type(self).__name__}: atoms that move have one concentration, values signs. Leave own, diversity "
                "and axial out, or the times."
            )
        object.__setattr__(self, "own", False)
        super().__post_init__()
        self.check_memory()

    def still(self) -> Directions:
        """Of atoms that stand still."""
        found: Directions = with_fields_of(Directions, self)
        return found

    def faded(self, sums: Array, correlation: Array) -> Array:
        """Shorter sums."""
        S = sums[:, 2:]
        D, length = S.shape[1], known(self.concentration) * np.sqrt(np.einsum("kd,kd->k", S, S))
        wanted = correlation * length * slope(D, length**2)
        low, high = np.zeros(len(S)), np.ones(len(S))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            x = middle * length
            above = x * slope(D, x**2) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        part = np.where(correlation == 1, 1.0, (low + high) / 2)
        return np.asarray(sums * part[:, None])

    def posterior(self, sums: Array) -> tuple[Array, Array]:
        """The mode, and variances across and along it."""
        at = self._at
        mean, squared = self.estimate(sums), at.squares(sums)
        return mean, spread_about(mean, np.asarray(squared))

    def scatter(self, mean: Array) -> Array:
        """Of values of weight one."""
        return spread_about(mean, np.full(len(mean), known(self.concentration) ** 2))

    def interval(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """As of normal variables, on the sphere."""
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + level / 2)) * np.sqrt(variance)
        return np.maximum(mean - reach, -1.0), np.minimum(mean + reach, 1.0)


def spread_about(mean: Array, squared: Array) -> Array:
    """Variance of each coordinate of unit vectors about a direction (K, D), given squared concentrations (K,)."""
    D, across = mean.shape[1], slope(mean.shape[1], squared)
    along = np.maximum(1 - (D - 1) * across - squared * across**2, 0.0)
    return np.asarray(mean**2 * along[:, None] + (1 - mean**2) * across[:, None])
