"""A prior whose spectrum of supports is learned, with a rate of background: how many atoms do m of J groups hold?

Under the Beta-Bernoulli process the expected number of atoms held by one group only is bounded however many groups
there are. Local models that are *estimated* are not like that: each brings its own share of components that belong to
no atom, so their number grows with J, and a prior that does not know this believes them. Here the numbers of atoms by
support are independent Poisson with means C(J, m) exp R(m),

    R(m) = log c + log B(a + m, b + J - m)  for m >= 2,       R(1) = log(c B(a + 1, b + J - 1) + background),

which is a Beta process of finite (a > 0) or infinite (a -> 0) activity plus Poisson(background) values per group that
belong to no atom. a -> 0, c = alpha gamma0, b = alpha and background = 0 is `BetaBernoulli`. Whether a value alone is
an atom or background is summed out, so nothing else changes: the log prior odds of joining are R(m + 1) - R(m), of
being new R(1).

The most probable spectrum by Newton's method, and none fitted twice.

With c and background at their best, what is left of the log posterior is a function of (a, b) alone, up to a constant:

    sum_m K_m log B(a + m, b + J - m) - K log M(a, b) + log priors,

    without background  M = B(a, b) - B(a, b + J);
    with background     sums run over m >= 2, and  M = B(a, b) - B(a, b + J) - q B(a + 1, b + J - 1),

q = J + 1 / (prior mean of background), because then c M is the number of shared atoms and background + c B(a + 1, b + J
- 1) = K_1 / q. Slopes and curvatures of both sums are those of Beta functions: psi and its derivative. The same of one
point, in readable form, is `_log_posterior` and `_profile`; tests compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import atan2, cos, exp, inf, log, sin
from typing import NamedTuple

import numpy as np

from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index

LOG_A, LOG_B = (np.log(0.5), 2.0), (0.0, 2.0)
"""Prior mean and deviation of log a and log b: a decade either way."""

GATE = 3.0
"""Nats by which background must raise the posterior to be believed in: twenty to one. Clean sets hardly ever get
there."""

BOUNDS = ((-6.0, 4.0), (-4.0, 5.0))
"""Of log a and log b; at the first, a is as good as zero."""

MOST_STEPS = 60
"""Of a climb: a bound. Six do, thirty where the maximum lies on a long ridge."""

MOST_CUTS = 5
"""Quarters that are taken of a step."""

SMALLEST_RISE = 1e-10
"""Nats that a step must promise: at less a climb ends."""

PROMISES = 10.0
"""Times what a step promises that a climb with background may be behind one without: at more it ends. Of 4,172 drawn
tables of supports, 2,565 of them with background, it missed none; at 3 one, at 1 forty-five."""

LONGEST_STEP = 2.0
"""In log a or log b."""

AT_BOUND = 1e-9
"""So near a bound is at it."""

LEAST_CURVATURE = 1e-3
"""By which slopes are divided: where the surface is flat a step is long enough."""

REMEMBERED = 256
"""Tables of supports whose spectrum is remembered: a search comes back to the same ones again and again."""


class Supports(NamedTuple):
    """How many atoms have which support, in how many groups; prior mean of background per group."""

    m: tuple[int, ...]
    number: tuple[int, ...]
    J: int
    background_mean: float


Pair = tuple[float, float]


class Point(NamedTuple):
    """A point (log a, log b): log posterior (minus infinity: no background there), slope, and curvature by aa, ab and
    bb.
    """

    at: Pair
    value: float
    slope: Pair
    curvature: tuple[float, float, float]


class Climbed(NamedTuple):
    """Where a climb ended, (log a, log b), and the log posterior there."""

    at: Pair
    value: float


@lru_cache(maxsize=REMEMBERED)
def climb(s: Supports, background: bool) -> Climbed:
    """Where (log a, log b) is most probable, with or without background; c and background at their best everywhere.

    A climb begins at the prior mean; with background, if there can be none, where the one without ended. If it is
    behind that one, it is given up when it comes to where background ends, along which it would creep on: there it is
    behind by the gate.
    """
    surface, beyond, to_beat = Surface(s, background), False, -inf
    here = surface.look((LOG_A[0], LOG_B[0]))
    if background:
        without, to_beat = climb(s, False)
        here = here if here.value > -inf else surface.look(without)
    for _ in range(MOST_STEPS):
        step = newton_step(here)
        promise = step[0] * here.slope[0] + step[1] * here.slope[1]
        if to_beat - here.value > (0.0 if beyond else PROMISES * promise):
            break
        there = here
        for _ in range(MOST_CUTS):
            if promise < SMALLEST_RISE or there.value > here.value:
                break
            there = surface.look((here.at[0] + step[0], here.at[1] + step[1]))
            beyond |= there.value == -inf
            step, promise = (step[0] / 4, step[1] / 4), promise / 4
        if not there.value > here.value:
            break  # the maximum, or the end of all background, beyond which none is the better belief
        here = there
    return Climbed(here.at, here.value)


def newton_step(here: Point) -> Pair:
    """Newton's step along both axes of the surface, uphill where it bends up; within bounds, and zero at a maximum.

    What would leave the bounds is shortened as a whole, because one of two coordinates alone may lead downhill from a
    ridge; where a bound is reached already, the other coordinate goes on alone.
    """
    if here.value == -inf:
        return 0.0, 0.0
    by_a, both, by_b = here.curvature
    free = [
        not ((at <= low and slope < 0) or (at >= high and slope > 0))
        for at, slope, (low, high) in zip(here.at, here.slope, BOUNDS, strict=True)
    ]
    step, room = (0.0, 0.0), [0.0, 0.0]
    for _ in range(2):
        turn = 0.5 * atan2(2 * both, by_a - by_b) if all(free) else 0.0  # from the coordinates to the axes
        c, s = cos(turn), sin(turn)
        across = 2 * both * c * s if all(free) else 0.0
        bends = by_a * c * c + across + by_b * s * s, by_a * s * s - across + by_b * c * c
        up = [slope if may else 0.0 for slope, may in zip(here.slope, free, strict=True)]
        along = (c * up[0] + s * up[1]) / max(abs(bends[0]), LEAST_CURVATURE)
        beside = (c * up[1] - s * up[0]) / max(abs(bends[1]), LEAST_CURVATURE)
        step = c * along - s * beside, s * along + c * beside
        room = [_room(*one) for one in zip(here.at, step, BOUNDS, strict=True)]
        if all(left > 0 or part == 0 for left, part in zip(room, step, strict=True)):
            break
        free = [may and left > 0 for may, left in zip(free, room, strict=True)]
    shorter = min([1.0, *(left / abs(part) for left, part in zip(room, step, strict=True) if abs(part) > left)])
    return step[0] * shorter, step[1] * shorter


def _room(at: float, step: float, bounds: Pair) -> float:
    """How far a coordinate may go the way of a step."""
    left = bounds[1] - at if step > 0 else at - bounds[0]
    return min(left, LONGEST_STEP) if left >= AT_BOUND else 0.0


def trigamma(x: Array) -> Array:
    """Derivative of psi, to eight digits: scipy's takes as long as all else here.

    Examples
    --------
    >>> bool(abs(trigamma(np.array([1.0]))[0] - np.pi**2 / 6) < 1e-7)
    True
    """
    inverse = 1 / (x + SHIFTS)
    y = 1 / (x + len(SHIFTS))
    y2 = y * y
    return np.asarray((inverse * inverse).sum(0) + y * (1 + y * (0.5 + y * (1 / 6 + y2 * (-1 / 30 + y2 / 42)))))


SHIFTS = np.arange(5.0)[:, None]
"""Psi's derivative at x is that at x + 5, which has a quick series, and five terms more."""


class Surface:
    """The log posterior of (log a, log b): the function of the module's first lines, and what it leaves out.

    Its gamma functions are those of a + m and of b + J - m, then of the three Beta functions in M: of their first
    arguments, their second ones, and of the sums of both.
    """

    def __init__(self, s: Supports, background: bool) -> None:
        m, number, J = np.array(s.m, dtype=np.float64), np.array(s.number, dtype=np.float64), s.J
        alone = float(number[m == 1].sum())
        if background:
            m, number = m[m > 1], number[m > 1]
        n, self.K, self.singletons = len(m), float(number.sum()), alone if background else 0.0
        self.offset = np.concatenate([m, J - m, [0, 0, 1], [0, J, J - 1], [0, J, J]])
        self.which = np.repeat([0, 1, 0, 1, 2], [n, n, 3, 3, 3])  # a, b or their sum
        self.number = np.zeros((2 * n, 2))
        self.number[:n, 0] = self.number[n:, 1] = number
        self.q = J + 1 / s.background_mean if background else 0.0
        self.constant = self.K * log(self.K) - self.K if self.K else 0.0
        if background and alone:
            self.constant += alone * log(alone / self.q) - alone - log(s.background_mean) - GATE

    def look(self, x: Pair) -> Point:
        """Value, slope and curvature at one point."""
        from scipy.special import gammaln, psi

        ab, K = (exp(x[0]), exp(x[1])), self.K
        every = self.offset + np.array([*ab, ab[0] + ab[1]])[self.which]
        table = np.array([gammaln(every), psi(every), trigamma(every)])
        sums = (table[:, : len(self.number)] @ self.number).tolist()
        logs, by, bend = ((t[:3], t[3:6], t[6:]) for t in table[:, len(self.number) :].tolist())
        beta = [one + other - both for one, other, both in zip(*logs, strict=True)]
        shares = [1.0, -exp(beta[1] - beta[0]), -self.q * exp(beta[2] - beta[0])]
        M = sum(shares)
        if M <= 0 or (self.q and -K * shares[2] >= self.singletons * M):
            return Point(x, -inf, (0.0, 0.0), (0.0, 0.0, 0.0))
        shares = [share / M for share in shares]
        value = self.constant + sum(sums[0]) - K * (logs[2][2] + log(M) + beta[0])
        slopes = [[part - both for part, both in zip(parts, by[2], strict=True)] for parts in by[:2]]
        mean = [_dot(part, shares) for part in slopes]
        common = _dot(bend[2], shares) - bend[2][2]
        slope, curvature = [], []
        for i, (center, deviation) in enumerate((LOG_A, LOG_B)):
            off = (x[i] - center) / deviation
            value -= 0.5 * off * off
            raw = ab[i] * (sums[1][i] - K * (by[2][2] + mean[i]))
            bent = K * (common - _dot(bend[i], shares) + mean[i] ** 2 - _dot([p * p for p in slopes[i]], shares))
            slope.append(raw - off / deviation)
            curvature.append(ab[i] ** 2 * (sums[2][i] + bent) + raw - deviation**-2)
        both = K * (common + mean[0] * mean[1] - _dot([p * q for p, q in zip(*slopes, strict=True)], shares))
        return Point(x, value, (slope[0], slope[1]), (curvature[0], ab[0] * ab[1] * both, curvature[1]))


def _dot(one: list[float], other: list[float]) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


BACKGROUND_SHARE = 0.1
"""Prior mean of background values as a share of a group's values."""


@dataclass(frozen=True)
class Spectrum(Prior):
    """Prior with learned spectrum of supports and a gated background rate.

    Parameters
    ----------
    a, b, c : float
        Shape of the spectrum; the defaults are those of ``BetaBernoulli(1, 1)``, to start from.
    background : float
        Expected number of values per group that belong to no atom.

    Examples
    --------
    >>> Spectrum().increments(3).round(2)
    array([-1.1 , -0.69,  0.69])
    """

    a: float = float(np.exp(BOUNDS[0][0]))
    b: float = 1.0
    c: float = 1.0
    background: float = 0.0

    @classmethod
    def expecting(cls, a: float, b: float, atoms: float, J: int, background: float = 0.0) -> Spectrum:
        """The one that expects so many atoms in J groups, besides background.

        Examples
        --------
        >>> prior = Spectrum.expecting(0.5, 2.0, 12.0, 5)
        >>> m = np.arange(1.0, 6.0)
        >>> rate = np.exp(prior.log_rate(m, 5)) * [5, 10, 10, 5, 1]
        >>> round(float(rate.sum()), 9)
        12.0
        """
        return cls(a, b, atoms / _mass(a, b, J), background)

    def log_rate(self, m: Array, J: int) -> Array:
        """R(m) of J groups."""
        from scipy.special import betaln

        R = np.log(self.c) + betaln(self.a + m, self.b + J - m)
        return np.asarray(np.where(m == 1, np.logaddexp(R, np.log(self.background)), R) if self.background > 0 else R)

    def increments(self, J: int) -> Array:
        """R(1), then R(m + 1) - R(m)."""
        R = self.log_rate(np.arange(1.0, max(J, 1) + 1), J)
        return np.concatenate([R[:1], np.diff(R)])

    def log_prob(self, counts: Index, sizes: Index) -> float:
        """Log probability of a matching, with the log priors of a, b and background: learning never lowers it."""
        from scipy.special import gammaln

        labels = float(gammaln(sizes + 1.0).sum())
        return _log_posterior(self, _supports(counts, sizes)) - labels

    def learn(self, counts: Index, sizes: Index) -> Spectrum:
        """The most probable spectrum given how many atoms have which support; never less probable than this one."""
        supports = _supports(counts, sizes)
        if len(counts) == 0:
            return self
        found = [self, _fit(supports, background=False)]
        if 1 in supports.m and len(supports.m) > 1:  # else nothing can be background, or all
            found.append(_fit(supports, background=True))
        return max(found, key=lambda prior: _log_posterior(prior, supports))

    def background_probability(self, J: int) -> float:
        """Probability that a value alone is background and not an atom of its own."""
        return float(self.background / np.exp(self.log_rate(np.ones(1), J)[0])) if self.background > 0 else 0.0


def _supports(counts: Index, sizes: Index) -> Supports:
    number = np.bincount(counts)
    m = np.flatnonzero(number)
    mean_size = float(sizes.sum() / len(sizes)) if len(sizes) else 1.0
    return Supports(tuple(m.tolist()), tuple(number[m].tolist()), len(sizes), BACKGROUND_SHARE * max(mean_size, 1e-9))


@lru_cache
def _log_posterior(prior: Spectrum, s: Supports) -> float:
    """sum_m K_m R(m) - sum_m C(J, m) exp R(m), plus log priors; the same is asked for when a matching is learned from.

    The second sum has a closed form: sum_{m=0..J} C(J, m) B(a + m, b + J - m) = B(a, b).
    """
    R = prior.log_rate(np.array(s.m, dtype=np.float64), s.J)
    total = prior.c * _mass(prior.a, prior.b, s.J) + prior.background * s.J
    log_prior = (
        -0.5 * ((np.log(prior.a) - LOG_A[0]) / LOG_A[1]) ** 2 - 0.5 * ((np.log(prior.b) - LOG_B[0]) / LOG_B[1]) ** 2
    )
    if prior.background > 0:
        log_prior += -np.log(s.background_mean) - prior.background / s.background_mean - GATE
    return float((np.array(s.number) * R).sum() - total + log_prior)


def _mass(a: float, b: float, J: int) -> float:
    """sum_{m=1..J} C(J, m) B(a + m, b + J - m) = B(a, b) - B(a, b + J)."""
    from scipy.special import betaln

    whole, none = betaln(a, b), betaln(a, b + J)
    return float(np.exp(whole) * -np.expm1(none - whole))


def _fit(s: Supports, background: bool) -> Spectrum:
    """The most probable spectrum with or without background: a search in (log a, log b), the rest in closed form."""
    return _profile(s, *climb(s, background).at, background)


def _profile(s: Supports, log_a: float, log_b: float, background: bool) -> Spectrum:
    """The scale c and background at their best given a and b.

    Without background, c = K / mass. With background, setting both derivatives to zero gives c B_1 + background = K_1 /
    q with q = J + 1 / (prior mean of background), and c = (K - K_1) / (mass - q B_1), where B_1 = B(a + 1, b + J - 1).
    """
    from scipy.special import betaln

    a, b = np.exp(log_a), np.exp(log_b)
    mass = _mass(a, b, s.J)
    K, K_1 = sum(s.number), dict(zip(s.m, s.number, strict=True)).get(1, 0)
    plain = Spectrum(float(a), float(b), float(K / mass), 0.0)
    if not background or K_1 == 0 or K_1 == K:
        return plain
    first, q = float(np.exp(betaln(a + 1, b + s.J - 1))), s.J + 1 / s.background_mean
    if mass <= q * first:
        return plain
    c = (K - K_1) / (mass - q * first)
    rate = K_1 / q - c * first
    return replace(plain, c=float(c), background=float(rate)) if rate > 0 else plain
