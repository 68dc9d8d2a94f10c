"""The most probable spectrum by Newton's method, and none fitted twice.

With c and junk at their best, what is left of the log posterior is a function of (a, b) alone, up to a constant:

    sum_m K_m log B(a + m, b + J - m) - K log M(a, b) + log priors,

    without junk  M = B(a, b) - B(a, b + J);
    with junk     sums run over m >= 2, and  M = B(a, b) - B(a, b + J) - q B(a + 1, b + J - 1),

q = J + 1 / (prior mean of junk), because then c M is the number of shared atoms and junk + c B(a + 1, b + J - 1) =
K_1 / q. Slopes and curvatures of both sums are those of Beta functions: psi and its derivative. The same of one point,
in readable form, is `_log_posterior`, `_profile` and `_slope` of `priors.spectrum`; tests compare.
"""

from __future__ import annotations

from functools import lru_cache
from math import atan2, cos, exp, inf, log, sin
from typing import NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array

LOG_A, LOG_B = (np.log(0.5), 2.0), (0.0, 2.0)
"""Prior mean and deviation of log a and log b: a decade either way."""

GATE = 3.0
"""Nats by which junk must raise the posterior to be believed in: twenty to one. Clean sets hardly ever get there."""

BOUNDS = ((-6.0, 4.0), (-4.0, 5.0))
"""Of log a and log b; at the first, a is as good as zero."""

MOST_STEPS = 60
"""Of a climb: a bound. Six do, thirty where the maximum lies on a long ridge."""

MOST_CUTS = 5
"""Quarters that are taken of a step."""

SMALLEST_RISE = 1e-10
"""Nats that a step must promise: at less a climb ends."""

PROMISES = 10.0
"""Times what a step promises that a climb with junk may be behind one without: at more it ends. Of 4,172 drawn tables
of supports, 2,565 of them with junk, it missed none; at 3 one, at 1 forty-five."""

LONGEST_STEP = 2.0
"""In log a or log b."""

AT_BOUND = 1e-9
"""So near a bound is at it."""

LEAST_CURVATURE = 1e-3
"""By which slopes are divided: where the surface is flat a step is long enough."""

REMEMBERED = 256
"""Tables of supports whose spectrum is remembered: a search comes back to the same ones again and again."""


class Supports(NamedTuple):
    """How many atoms have which support, in how many groups; prior mean of junk per group."""

    m: tuple[int, ...]
    number: tuple[int, ...]
    J: int
    junk_mean: float


Pair = tuple[float, float]


class Point(NamedTuple):
    """A point (log a, log b): log posterior (minus infinity: no junk there), slope, and curvature by aa, ab and bb."""

    at: Pair
    value: float
    slope: Pair
    curvature: tuple[float, float, float]


class Climbed(NamedTuple):
    """Where a climb ended, (log a, log b), and the log posterior there."""

    at: Pair
    value: float


@lru_cache(maxsize=REMEMBERED)
def climb(s: Supports, junk: bool) -> Climbed:
    """Where (log a, log b) is most probable, with or without junk; c and junk at their best everywhere.

    A climb begins at the prior mean; with junk, if there can be none, where the one without ended. If it is behind that
    one, it is given up when it comes to where junk ends, along which it would creep on: there it is behind by the gate.
    """
    surface, beyond, to_beat = Surface(s, junk), False, -inf
    here = surface.look((LOG_A[0], LOG_B[0]))
    if junk:
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
            break  # the maximum, or the end of all junk, beyond which none is the better belief
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

    def __init__(self, s: Supports, junk: bool) -> None:
        m, number, J = np.array(s.m, dtype=np.float64), np.array(s.number, dtype=np.float64), s.J
        alone = float(number[m == 1].sum())
        if junk:
            m, number = m[m > 1], number[m > 1]
        n, self.K, self.alone = len(m), float(number.sum()), alone if junk else 0.0
        self.offset = np.concatenate([m, J - m, [0, 0, 1], [0, J, J - 1], [0, J, J]])
        self.which = np.repeat([0, 1, 0, 1, 2], [n, n, 3, 3, 3])  # a, b or their sum
        self.number = np.zeros((2 * n, 2))
        self.number[:n, 0] = self.number[n:, 1] = number
        self.q = J + 1 / s.junk_mean if junk else 0.0
        self.constant = self.K * log(self.K) - self.K if self.K else 0.0
        if junk and alone:
            self.constant += alone * log(alone / self.q) - alone - log(s.junk_mean) - GATE

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
        if M <= 0 or (self.q and -K * shares[2] >= self.alone * M):
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
