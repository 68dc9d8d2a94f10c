"""A prior over sharing frequencies that is learned: how many atoms do m of J groups hold?

Under the Beta-Bernoulli process the expected number of atoms held by one group only is bounded however many groups
there are. Local models that are *estimated* are not like that: each brings components of its own, so their number grows
with J, and a prior that does not know this believes them. Here the numbers of atoms by support are independent Poisson
with means C(J, m) exp R(m),

    R(m) = log c + log B(a + m, b + J - m),        log a, log b ~ N(0, 2^2),

which is a Beta process of finite (a > 0) or infinite (a -> 0) activity; a -> 0, c = alpha gamma0 and b = alpha is
`BetaBernoulli`. The log prior odds of joining are R(m + 1) - R(m), of being new R(1).

With c at its best, K / M, what is left of the log posterior is a function of (log a, log b) alone, up to a constant:

    sum_m K_m log B(a + m, b + J - m) - K log M(a, b) + log priors,        M = B(a, b) - B(a, b + J),

because sum_{m=0..J} C(J, m) B(a + m, b + J - m) = B(a, b). Newton's method finds its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index

DEVIATION = 2.0
"""Prior deviation of log a and of log b about zero: a decade either way."""

BOUNDS = (-6.0, 6.0)
"""Of log a and log b; at the first, a is as good as zero, beyond the second c has too many digits."""

MOST_STEPS = 60
"""Of a climb: a bound. Six do, thirty where the maximum lies on a long ridge."""

SMALLEST_STEP, LONGEST_STEP = 1e-4, 2.0
"""In log a or log b: a climb ends at less, and goes no farther at once."""

LEAST_CURVATURE = 1e-3
"""By which slopes are divided: where the surface is flat a step is long enough."""

NEARBY = 1e-5 * np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
"""A point and its neighbours in log a and log b, by whose slopes curvatures are estimated."""

REMEMBERED = 256
"""Tables of supports that are remembered with their spectrum: a search comes back to the same ones again and again."""


@dataclass(frozen=True)
class Spectrum(Prior):
    """Prior over sharing frequencies that is learned (empirical Bayes).

    Parameters
    ----------
    a, b, c : float
        Shape and scale of the frequencies; the defaults are those of ``BetaBernoulli(1, 1)``, to start from.

    Examples
    --------
    >>> Spectrum().increments(3).round(2)
    array([-1.1 , -0.69,  0.69])
    """

    a: float = float(np.exp(BOUNDS[0]))
    b: float = 1.0
    c: float = 1.0

    @classmethod
    def expecting(cls, a: float, b: float, atoms: float, J: int) -> Spectrum:
        """The one that expects so many atoms in J groups.

        Examples
        --------
        >>> prior = Spectrum.expecting(0.5, 2.0, 12.0, 5)
        >>> rate = np.exp(prior.log_rate(np.arange(1.0, 6.0), 5)) * [5, 10, 10, 5, 1]
        >>> round(float(rate.sum()), 9)
        12.0
        """
        return cls(a, b, atoms / _mass(a, b, J))

    def log_rate(self, m: Array, J: int) -> Array:
        """R(m) of J groups."""
        from scipy.special import betaln

        return np.asarray(np.log(self.c) + betaln(self.a + m, self.b + J - m))

    def increments(self, J: int) -> Array:
        """R(1), then R(m + 1) - R(m)."""
        R = self.log_rate(np.arange(1.0, max(J, 1) + 1), J)
        return np.concatenate([R[:1], np.diff(R)])

    def log_prob(self, counts: Index, sizes: Index) -> float:
        """Log probability of a matching, with the log priors of a and b: learning never lowers it."""
        from scipy.special import gammaln

        return _log_posterior(self, tuple(np.bincount(counts).tolist()), len(sizes)) - float(gammaln(sizes + 1.0).sum())

    def learn(self, counts: Index, sizes: Index) -> Spectrum:
        """The most probable spectrum given how many atoms have which support; never less probable than this one."""
        if len(counts) == 0:
            return self
        found = _fit(tuple(np.bincount(counts).tolist()), len(sizes))
        return found if found.log_prob(counts, sizes) > self.log_prob(counts, sizes) else self


def _mass(a: float, b: float, J: int) -> float:
    """sum_{m=1..J} C(J, m) B(a + m, b + J - m) = B(a, b) - B(a, b + J)."""
    from scipy.special import betaln

    whole, none = betaln(a, b), betaln(a, b + J)
    return float(np.exp(whole) * -np.expm1(none - whole))


@lru_cache(maxsize=REMEMBERED)
def _log_posterior(prior: Spectrum, number: tuple[int, ...], J: int) -> float:
    """Log probability of so many atoms held by 0, 1, ... of J groups, with the log priors of a and b."""
    m, x = np.flatnonzero(number), np.log([prior.a, prior.b])
    rates = np.take(number, m) @ prior.log_rate(m.astype(np.float64), J)
    return float(rates - prior.c * _mass(prior.a, prior.b, J) - 0.5 * x @ x / DEVIATION**2)


@lru_cache(maxsize=REMEMBERED)
def _fit(number: tuple[int, ...], J: int) -> Spectrum:
    """The most probable spectrum where so many atoms are held by 0, 1, ... of J groups: a climb in (log a, log b)."""
    held = np.flatnonzero(number)
    m, K_m = held.astype(np.float64), np.take(number, held).astype(np.float64)
    here = np.zeros(2)
    value, slope, curvature = _look(here, m, K_m, J)
    for _ in range(MOST_STEPS):
        free = (np.abs(here) < BOUNDS[1]) | (here * slope < 0)  # from a bound only back
        slope, curvature = slope * free, curvature * np.outer(free, free)
        bends, axes = np.linalg.eigh(curvature)
        step = axes @ ((axes.T @ slope) / np.maximum(np.abs(bends), LEAST_CURVATURE))  # uphill where it bends up
        step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), SMALLEST_STEP))
        while np.abs(step).max() >= SMALLEST_STEP:
            there = np.clip(here + step, *BOUNDS)
            found = _look(there, m, K_m, J)
            if found[0] > value:
                break
            step = step / 4
        else:
            break
        here, (value, slope, curvature) = there, found
    a, b = np.exp(here).tolist()
    return Spectrum.expecting(a, b, float(K_m.sum()), J)


def _look(x: Array, m: Array, K_m: Array, J: int) -> tuple[float, Array, Array]:
    """The function of the module's first lines at x = (log a, log b), its slope and its curvature."""
    from scipy.special import betaln, psi

    near = x[:, None] + NEARBY
    (a, b), K, m = np.exp(near), K_m.sum(), m[:, None]
    whole, less = psi(a + b), psi(a + b + J)
    log_mass, none = betaln(a, b), np.exp(betaln(a, b + J) - betaln(a, b))  # none: the share that no group holds
    log_mass += np.log1p(-none)
    value = K_m @ betaln(a[0] + m[:, 0], b[0] + J - m[:, 0]) - K * log_mass[0] - 0.5 * x @ x / DEVIATION**2
    by_a = K_m @ psi(a + m) - K * (less + psi(a) - whole + none * (less - whole) / (1 - none))
    by_b = none * (psi(b) - whole + less - psi(b + J)) / (1 - none)
    by_b = K_m @ psi(b + J - m) - K * (less + psi(b) - whole + by_b)
    slopes = np.array([a * by_a, b * by_b]) - near / DEVIATION**2
    curvature = (slopes[:, 1:] - slopes[:, :1]) / NEARBY.max()
    return float(value), slopes[:, 0], (curvature + curvature.T) / 2
