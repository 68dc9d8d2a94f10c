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
from typing import NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array

LOG_A, LOG_B = (np.log(0.5), 2.0), (0.0, 2.0)
"""Prior mean and deviation of log a and log b: a decade either way."""

MEAN, DEVIATION = np.transpose([LOG_A, LOG_B])
"""The same as arrays (2,)."""

BOUNDS = ((-6.0, 4.0), (-4.0, 5.0))
"""Of log a and log b; at the first, a is as good as zero."""

STARTS = np.array([[LOG_A[0], LOG_B[0]], [-3.0, 0.0], [2.0, 2.0], [0.0, 3.0], [2.0, -2.0], [3.0, 4.5]])
"""Where climbs may begin: the prior mean first, the others if that is impossible with junk."""

MOST_STEPS = 60
"""Of a climb: a bound. Six do, thirty where the maximum lies on a long ridge."""

MOST_CUTS = 5
"""Quarters that are taken of a step."""

SMALLEST_RISE = 1e-10
"""Nats that a step must promise: at less a climb ends."""

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


class Point(NamedTuple):
    """A point (log a, log b): value (minus infinity: no junk there), slope (2,) and curvature (2, 2)."""

    at: Array
    value: float
    slope: Array
    curvature: Array


@lru_cache(maxsize=REMEMBERED)
def climb(s: Supports, junk: bool) -> tuple[float, float]:
    """Where (log a, log b) is most probable, with or without junk; c and junk at their best everywhere."""
    surface = Surface(s, junk)
    here = surface.look(STARTS[0])
    if here.value == -np.inf:
        here = max(map(surface.look, STARTS), key=lambda point: point.value)
    for _ in range(MOST_STEPS):
        step = _newton_step(here)
        there = here
        for _ in range(MOST_CUTS):
            if step @ here.slope < SMALLEST_RISE or there.value > here.value:
                break
            there = surface.look(here.at + step)
            step = step / 4
        if not there.value > here.value:
            break  # the maximum, or the end of all junk, beyond which none is the better belief
        here = there
    return float(here.at[0]), float(here.at[1])


def _newton_step(here: Point) -> Array:
    """Newton's step along every axis of the surface, uphill where it bends up; within bounds, and zero at a maximum.

    What would leave the bounds is shortened as a whole, because one of two coordinates alone may lead downhill from a
    ridge; where a bound is reached already, the other coordinate goes on alone.
    """
    if here.value == -np.inf:
        return np.zeros(2)
    low, high = np.transpose(BOUNDS)
    held = ((here.at <= low) & (here.slope < 0)) | ((here.at >= high) & (here.slope > 0))
    for _ in range(2):
        bent = np.where(held[:, None] | held, np.diag(np.diagonal(here.curvature)), here.curvature)
        bends, axes = np.linalg.eigh(bent)
        step = axes @ ((axes.T @ np.where(held, 0.0, here.slope)) / np.maximum(np.abs(bends), LEAST_CURVATURE))
        room = np.where(step > 0, high - here.at, here.at - low)
        room[room < AT_BOUND] = 0.0
        room = np.minimum(room, LONGEST_STEP)
        if (room > 0)[step != 0].all():
            break
        held |= room <= 0
    far = np.abs(step) > room
    return np.asarray(step * (room[far] / np.abs(step[far])).min(initial=1.0))


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
    """The function of the module's first lines."""

    def __init__(self, s: Supports, junk: bool) -> None:
        m, self.number = np.array(s.m, dtype=np.float64), np.array(s.number, dtype=np.float64)
        self.alone = float(self.number[m == 1].sum()) if junk else 0.0
        if junk:
            m, self.number = m[m > 1], self.number[m > 1]
        self.K = float(self.number.sum())
        self.first, self.second = np.append(m, [0, 0, 1]), np.append(s.J - m, [0, s.J, s.J - 1])
        self.sums = np.array([0.0, s.J, s.J])
        self.q = s.J + 1 / s.junk_mean if junk else 0.0
        self.signs = np.array([1.0, -1.0, -self.q])

    def look(self, x: Array) -> Point:
        """Value, slope and curvature at one point."""
        from scipy.special import gammaln, psi

        ab = np.exp(x)
        n, whole = len(self.number), float(ab[0] + ab[1])
        w = n + 3
        # arguments of all gamma functions: a + m and a + ... of M; b + J - m and b + ... of M; sums of those of M
        every = np.concatenate([ab[0] + self.first, ab[1] + self.second, whole + self.sums])
        log, by, bend = gammaln(every), psi(every), trigamma(every)
        beta = log[n:w] + log[w + n : 2 * w] - log[2 * w :]
        shares = self.signs * np.exp(beta - beta[0])
        M = float(shares.sum())
        if M <= 0 or (self.q and -self.K * shares[2] >= self.alone * M):
            return Point(x, -np.inf, np.zeros(2), np.zeros((2, 2)))
        off = (x - MEAN) / DEVIATION
        value = self.number @ (log[:n] + log[w : w + n]) - self.K * (log[-1] + np.log(M) + beta[0]) - 0.5 * off @ off
        shares /= M
        slopes = np.array([by[n:w], by[w + n : 2 * w]]) - by[2 * w :]  # of each log Beta function in M
        mean = slopes @ shares
        both = self.K * (bend[2 * w :] @ shares - bend[-1] - (slopes * shares) @ slopes.T + mean[:, None] * mean)
        raw, at = np.empty(2), (slice(0, w), slice(w, 2 * w))
        for i in (0, 1):
            raw[i] = ab[i] * (self.number @ by[at[i]][:n] - self.K * (by[-1] + mean[i]))
            both[i, i] += self.number @ bend[at[i]][:n] - self.K * (bend[at[i]][n:] @ shares)
        curvature = ab[:, None] * ab * both
        curvature[[0, 1], [0, 1]] += raw - DEVIATION**-2
        return Point(x, float(value), raw - off / DEVIATION, curvature)
