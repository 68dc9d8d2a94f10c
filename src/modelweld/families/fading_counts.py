"""Compositions whose atoms move: what was seen of one is discounted as time goes by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.families.base import Learned
from modelweld.families.checks import known
from modelweld.families.counts import PSEUDO_COUNTS, Counts
from modelweld.families.fading import Moving, with_fields_of
from modelweld.families.math.counts_start import WORTH
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array


@register
@dataclass(frozen=True, eq=False)
class FadingCounts(Moving, Counts):
    """Compositions of groups that come at different times, about atoms that move: topics over years. An approximation.

    Parameters
    ----------
    memory : float
        Correlation time, in units of the times that groups have; learned. Infinite: atoms stand still.
    base, between, learning, counted, least
        As in `Counts`.

    Notes
    -----
    An atom's law at any one time is Dirichlet(base), and after a time dt its expected value is phi = exp(-dt / memory)
    of the way from the mean of all atoms, as of Wright-Fisher paths. Where sums s of total N were seen, c s are
    remembered, with A = sum of base and

        c = phi / (1 + (1 - phi) N / A),

    so that the expected value is that of the path, and two steps are one. What is approximate is that the law
    stays Dirichlet.

    Examples
    --------
    >>> import numpy as np
    >>> family = FadingCounts(base=[1.0, 1.0], between=np.inf, memory=10.0)
    >>> sums = family.rows(np.array([[30.0, 10.0]]))
    >>> later = family.faded(sums, np.array([0.5]))
    >>> family.estimate(sums).round(3), family.estimate(later).round(3)     # half way back to (1/2, 1/2)
    (array([[0.738, 0.262]]), array([[0.619, 0.381]]))
    """

    specificity = 0
    limits = {"base": PSEUDO_COUNTS, "between": WORTH}  # noqa: RUF012 (nobody changes it)

    memory: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_memory()

    def learned(self) -> Learned:
        """As `Counts`, and the memory."""
        return {**super().learned(), "memory": self.memory}

    def still(self) -> Counts:
        """Of atoms that stand still."""
        found: Counts = with_fields_of(Counts, self)
        return found

    def faded(self, sums: Array, correlation: Array) -> Array:
        """Less observations of the same composition."""
        A, N = float(self._base.sum()), sums[:, self._base.size]
        return np.asarray(sums * (correlation / (1 + (1 - correlation) * N / A))[:, None])

    def posterior(self, sums: Array) -> tuple[Array, Array]:
        """Of a Dirichlet distribution."""
        mean, D = self.estimate(sums), self._base.size
        return mean, mean * (1 - mean) / (1 + self._base.sum() + sums[:, D, None])

    def scatter(self, mean: Array) -> Array:
        """Of the shares of as many observations as a value is worth at most."""
        return np.asarray(mean * (1 - mean) / known(self.between))

    def interval(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """Of Beta variables, which the shares of a Dirichlet distribution are."""
        from scipy.special import betaincinv

        total = np.maximum(mean * (1 - mean) / variance - 1, np.finfo(float).tiny)
        a, b = np.maximum(mean * total, 1e-9), np.maximum((1 - mean) * total, 1e-9)
        low, high = (betaincinv(a, b, 0.5 + side * level / 2) for side in (-1, 1))
        return np.minimum(low, mean), np.maximum(high, mean)
