"""A prior whose spectrum of supports is learned, with a rate of junk: how many atoms do m of J groups hold?

Under the Beta-Bernoulli process the expected number of atoms held by one group only is bounded however many groups
there are. Local models that are *estimated* are not like that: each brings its own share of components that belong to
no atom, so their number grows with J, and a prior that does not know this believes them. Here the numbers of atoms by
support are independent Poisson with means C(J, m) exp R(m),

    R(m) = log c + log B(a + m, b + J - m)  for m >= 2,       R(1) = log(c B(a + 1, b + J - 1) + junk),

which is a Beta process of finite (a > 0) or infinite (a -> 0) activity plus Poisson(junk) values per group that belong
to no atom. a -> 0, c = alpha gamma0, b = alpha and junk = 0 is `BetaBernoulli`. Whether a value alone is an atom or
junk is summed out, so nothing else changes: the log prior odds of joining are R(m + 1) - R(m), of being new R(1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.priors.beta_bernoulli import Prior
from modelweld.priors.spectrum_fit import BOUNDS as BOUNDS
from modelweld.priors.spectrum_fit import GATE, LOG_A, LOG_B, Supports, climb

JUNK_SHARE = 0.1
"""Prior mean of junk values as a share of a group's values."""


@dataclass(frozen=True)
class Spectrum(Prior):
    """Prior with learned spectrum of supports and a gated junk rate.

    Parameters
    ----------
    a, b, c : float
        Shape of the spectrum; the defaults are those of ``BetaBernoulli(1, 1)``, to start from.
    junk : float
        Expected number of values per group that belong to no atom.

    Examples
    --------
    >>> Spectrum().steps(3).round(2)
    array([-1.1 , -0.69,  0.69])
    """

    a: float = float(np.exp(BOUNDS[0][0]))
    b: float = 1.0
    c: float = 1.0
    junk: float = 0.0

    @classmethod
    def expecting(cls, a: float, b: float, atoms: float, J: int, junk: float = 0.0) -> Spectrum:
        """The one that expects so many atoms in J groups, besides junk.

        Examples
        --------
        >>> prior = Spectrum.expecting(0.5, 2.0, 12.0, 5)
        >>> m = np.arange(1.0, 6.0)
        >>> rate = np.exp(prior.log_rate(m, 5)) * [5, 10, 10, 5, 1]
        >>> round(float(rate.sum()), 9)
        12.0
        """
        return cls(a, b, atoms / _mass(a, b, J), junk)

    def log_rate(self, m: Array, J: int) -> Array:
        """R(m) of J groups."""
        from scipy.special import betaln

        R = np.log(self.c) + betaln(self.a + m, self.b + J - m)
        return np.asarray(np.where(m == 1, np.logaddexp(R, np.log(self.junk)), R) if self.junk > 0 else R)

    def steps(self, J: int) -> Array:
        """R(1), then R(m + 1) - R(m)."""
        R = self.log_rate(np.arange(1.0, max(J, 1) + 1), J)
        return np.concatenate([R[:1], np.diff(R)])

    def log_prob(self, counts: Index, sizes: Index) -> float:
        """Log probability of a matching, with the log priors of a, b and junk: learning never lowers it."""
        from scipy.special import gammaln

        labels = float(gammaln(sizes + 1.0).sum())
        return _log_posterior(self, _supports(counts, sizes)) - labels

    def learned(self, counts: Index, sizes: Index) -> Spectrum:
        """The most probable spectrum given how many atoms have which support; never less probable than this one."""
        supports = _supports(counts, sizes)
        if len(counts) == 0:
            return self
        found = [self, _fit(supports, junk=False)]
        if 1 in supports.m and len(supports.m) > 1:  # else nothing can be junk, or all
            found.append(_fit(supports, junk=True))
        return max(found, key=lambda prior: _log_posterior(prior, supports))

    def junk_probability(self, J: int) -> float:
        """Probability that a value alone is junk and not an atom of its own."""
        return float(self.junk / np.exp(self.log_rate(np.ones(1), J)[0])) if self.junk > 0 else 0.0


def _supports(counts: Index, sizes: Index) -> Supports:
    number = np.bincount(counts)
    m = np.flatnonzero(number)
    mean_size = float(sizes.sum() / len(sizes)) if len(sizes) else 1.0
    return Supports(tuple(m.tolist()), tuple(number[m].tolist()), len(sizes), JUNK_SHARE * max(mean_size, 1e-9))


@lru_cache
def _log_posterior(prior: Spectrum, s: Supports) -> float:
    """sum_m K_m R(m) - sum_m C(J, m) exp R(m), plus log priors; the same is asked for when a matching is learned from.

    The second sum has a closed form: sum_{m=0..J} C(J, m) B(a + m, b + J - m) = B(a, b).
    """
    R = prior.log_rate(np.array(s.m, dtype=np.float64), s.J)
    total = prior.c * _mass(prior.a, prior.b, s.J) + prior.junk * s.J
    log_prior = (
        -0.5 * ((np.log(prior.a) - LOG_A[0]) / LOG_A[1]) ** 2 - 0.5 * ((np.log(prior.b) - LOG_B[0]) / LOG_B[1]) ** 2
    )
    if prior.junk > 0:
        log_prior += -np.log(s.junk_mean) - prior.junk / s.junk_mean - GATE
    return float((np.array(s.number) * R).sum() - total + log_prior)


def _mass(a: float, b: float, J: int) -> float:
    """sum_{m=1..J} C(J, m) B(a + m, b + J - m) = B(a, b) - B(a, b + J)."""
    from scipy.special import betaln

    whole, none = betaln(a, b), betaln(a, b + J)
    return float(np.exp(whole) * -np.expm1(none - whole))


def _fit(s: Supports, junk: bool) -> Spectrum:
    """The most probable spectrum with or without junk: a search in (log a, log b), the rest in closed form."""
    return _profile(s, *climb(s, junk).at, junk)


def _slope(prior: Spectrum, s: Supports) -> Array:
    """Derivative of the log posterior in log a and log b; c and junk, being at their best, may be held fixed."""
    from scipy.special import betaln, psi

    a, b, J, m, number = prior.a, prior.b, s.J, np.array(s.m), np.array(s.number)
    both = psi(a + b + J)
    by_a, by_b = psi(a + m) - both, psi(b + J - m) - both
    share = np.ones(len(m))  # of the rate at support m that belongs to atoms
    if prior.junk > 0:
        share[m == 1] = 1 - prior.junk_probability(J)
    whole, none = np.exp(betaln(a, b)), np.exp(betaln(a, b + J))
    mass_by_a = whole * (psi(a) - psi(a + b)) - none * (psi(a) - both)
    mass_by_b = whole * (psi(b) - psi(a + b)) - none * (psi(b + J) - both)
    log_prior = [-(np.log(x) - mean) / deviation**2 for x, (mean, deviation) in ((a, LOG_A), (b, LOG_B))]
    return np.array(
        [
            a * ((number * share * by_a).sum() - prior.c * mass_by_a) + log_prior[0],
            b * ((number * share * by_b).sum() - prior.c * mass_by_b) + log_prior[1],
        ]
    )


def _profile(s: Supports, log_a: float, log_b: float, junk: bool) -> Spectrum:
    """The scale c and junk at their best given a and b.

    Without junk, c = K / mass. With junk, setting both derivatives to zero gives c B_1 + junk = K_1 / q with
    q = J + 1 / (prior mean of junk), and c = (K - K_1) / (mass - q B_1), where B_1 = B(a + 1, b + J - 1).
    """
    from scipy.special import betaln

    a, b = np.exp(log_a), np.exp(log_b)
    mass = _mass(a, b, s.J)
    K, K_1 = sum(s.number), dict(zip(s.m, s.number, strict=True)).get(1, 0)
    plain = Spectrum(float(a), float(b), float(K / mass), 0.0)
    if not junk or K_1 == 0 or K_1 == K:
        return plain
    first, q = float(np.exp(betaln(a + 1, b + s.J - 1))), s.J + 1 / s.junk_mean
    if mass <= q * first:
        return plain
    c = (K - K_1) / (mass - q * first)
    rate = K_1 / q - c * first
    return replace(plain, c=float(c), junk=float(rate)) if rate > 0 else plain
