"""How a value that is not negative scatters about its atom: Poisson (rates, counts) or Gamma (scales, durations).

Worth w (an exposure, or a shape: the effective sample size), a value v has log p(v) = p log(lambda) - r lambda + h,
where lambda is the atom's rate, or the inverse of its scale, and p and r are proportional to w. Atoms have lambda ~
Gamma(a, b). The carrier h is in two parts: one depends on w, and comes with its derivative; one does not.

The carrier (base measure) of events when effective sample sizes are learned: unbiased also where few are expected.

A value v worth w observations has a density exp(-w KL(v, theta)) times a factor h that may depend on v and w, not on
theta. For many events x = w v, h is sqrt(x) / v up to a constant. For few, the obvious extensions (Gamma functions for
factorials; the square root itself, which is Efron's (1986) double Poisson) take values near zero for witnesses that
sites hardly differ. `log_freedom` has the h whose expected slope by w is zero at the truth for values that are
continuous. Values from few observations are often exactly zero; it would take those for certainty.

How much a composition may differ from its atom's by chance: degrees of freedom where words are rare.

If a value p comes from n observations of theta, n KL(p, theta) is on average half a unit for every word with n theta_w
well above one, and much less for rarer words. Learning n must know how much less: the continuous multinomial, which
counts every word of a vocabulary of 1,000, learns 3,800 where 200 is true.

Let x be Gamma(lam): one word of n p, p ~ Dirichlet(n theta), lam = n theta_w. Its expected divergence is

    E[x log(x / lam) - x + lam] = lam (psi(lam + 1) - log lam),

and the function d with E d(x) = that for every lam is known as an integral (a Mellin transform). d rises from
1 / log(1 / x) at small x to 1/2. `freedom` has both ends and differs by 10 % at most between:

    d(x) = y / ((2 + y) log(1 + y)),   y^2 / (1 + y) = 1 / x,

and `log_freedom` is the function with x a'(x) = d(x):  a(x) = -log log(1 + y). With the density of p taken for

    exp(-n KL(p, theta) + sum_w a(n p_w) - a(n)),

the expected slope by n is zero at the true n, for few and many, rare and frequent words. That is a statement about
the neighbourhood of the truth: far below it the density is too large: see LEAST_PER_WORD in
`families.counts`.

How many observations a site's value is worth: its effective sample size.

A site's rate, proportion, topic or covariance comes from n observations, but sites also differ from each other: n alone
would have them all different. As if each site had drawn its own truth from `between` observations of the atom's, the
value is worth

    1 / n_eff = 1 / n + 1 / between,

which is `between` where n is not known (infinite). It is for counts what noise is for real values, and is learned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.values import Array, Index, blocks
from modelweld.families.math.maximise import ByAtom, LogLikelihood


class Own(NamedTuple):
    """What values are worth: 1 / worth = own + scale / between, where they are seen."""

    seen: Array
    own: Array
    scale: Array

    def effective_size(self, between: Array) -> Array:
        """Exposures or shapes (N, D); zero where a value was not seen."""
        return np.asarray(self.seen / np.where(self.seen > 0, self.own + self.scale / between, 1.0))

    def typical(self) -> tuple[Array, Array]:
        """Means of `own` and `scale` over the values seen, (D,)."""
        number = np.maximum((self.seen > 0).sum(0), 1)
        own, scale = (np.where(self.seen > 0, x, 0.0).sum(0) / number for x in (self.own, self.scale))
        return own, scale


class Poisson:
    """Rates: p = w v, r = w, and h = e(v, w) - w v (log v - 1) + g."""

    variance = 0.25
    """Of the root of a value worth one, whatever the rate."""

    def steady(self, values: Array, seen: NDArray[np.bool_]) -> Array:
        """Values on a scale on which their variance does not depend on the rate."""
        return np.where(seen, np.sqrt(values), 0.0)

    def typical(self, mean: Array, variance: Array) -> Array:
        """Typical value, from mean and variance of steady ones."""
        return np.asarray(np.square(mean) + variance)

    def relative(self, variance: Array, typical: Array) -> Array:
        """Squared coefficient of variation of atoms, from their variance on that scale."""
        return np.asarray(variance * (4.0 / typical))

    def statistics(self, w: Array, values: Array) -> tuple[Array, Array]:
        """P and r."""
        return w * values, w

    def along(self, slope: Array, by_p: Array, by_r: Array, values: Array) -> Array:
        """The slope of carriers, and with it the derivative by w of a function of p and r."""
        return slope + (by_p * values + by_r)

    def carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """The part of h that depends on w, and its derivative by w; zero where not seen."""
        seen = w > 0
        h, slope = self.seen_carrier(np.where(seen, values, 1.0), np.where(seen, w, 1.0))
        return np.where(seen, h, 0.0), np.where(seen, slope, 0.0)

    def seen_carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """The same where all are seen."""
        bend, (h, slope) = scipy.special.xlogy(values, values) - values, carrier_of_events(values, w)
        return h - w * bend, slope / w - bend

    def constant_carrier(self, values: Array, weight: Array | None) -> Array:
        """The part that does not: g, from exposures that are known, or from none."""
        if weight is None:
            return np.where(values > 0, -np.log(np.where(values > 0, values, 1.0)) - 0.5 * np.log(2 * np.pi), 0.0)
        known = np.where(weight > 0, weight, 1.0)
        y = known * values
        e, _ = carrier_of_events(values, known)
        return np.asarray(scipy.special.xlogy(y, y) - y - scipy.special.gammaln(y + 1) - e)

    def predictive(self, p: Array, r: Array, P: Array, R: Array) -> Array:
        """Log densities (L, K), without carriers, of values at atoms of Gamma(P, R).

        What depends on atoms only is taken out where all values are worth the same.
        """
        base = (P * np.log(R) - scipy.special.gammaln(P)).sum(-1)
        same_p, same_r = ((x == x[:1]).all() for x in (p, r))
        result = np.empty((len(p), len(P)))
        for part in blocks(len(p), P.size):
            shapes = P + (p[:1] if same_p else p[part])[:, None, :]
            logs = np.log(R + (r[:1] if same_r else r[part])[:, None, :])
            rates = p[part] @ logs[0].T + (P * logs[0]).sum(-1) if same_r else (shapes * logs).sum(-1)
            result[part] = scipy.special.gammaln(shapes).sum(-1) - rates
        return np.asarray(result + base)

    def log_evidence(self, a: Array, b: Array, P: Array, R: Array) -> Array:
        """Of atoms of Gamma(a, b) with these sums, without carriers: (..., D)."""
        gammaln = scipy.special.gammaln
        return np.asarray(gammaln(a + P) - gammaln(a) - a * np.log1p(R / b) - P * np.log(b + R))

    def over_atoms(self, x: Array, P: Array, R: Array) -> tuple[float, Array, Array, Array]:
        """Sum over atoms of log evidences; gradients by x (2, D), by P and by R (K, D).

        x: logarithms of the mean and the shape of the atoms' Gamma.
        """
        a = np.exp(x[1])
        b = np.exp(x[1] - x[0])
        by_P = scipy.special.digamma(a + P) - np.log(b + R)
        by_R = -(a + P) / (b + R)
        by_a = (by_P - scipy.special.digamma(a) + np.log(b)).sum(0)
        by_b = (a / b + by_R).sum(0)
        gradient = np.stack([-b * by_b, a * by_a + b * by_b])
        return float(self.log_evidence(a, b, P, R).sum()), gradient, by_P, by_R

    def value(self, rate: Array) -> Array:
        """The atom's value, and the way back."""
        return rate


class Gamma(Poisson):
    """Scales: p = w, r = w v, lambda the inverse of the scale, and h = w log w + (w - 1) log v - log Gamma(w)."""

    variance = 1.0
    """Of the logarithm of a value worth one, about."""

    def steady(self, values: Array, seen: NDArray[np.bool_]) -> Array:
        """Logarithms."""
        return np.where(seen, np.log(np.where(seen, values, 1.0)), 0.0)

    def typical(self, mean: Array, variance: Array) -> Array:
        """The geometric mean."""
        return np.asarray(np.exp(mean))

    def relative(self, variance: Array, typical: Array) -> Array:
        """Logarithms vary by it."""
        return variance

    def statistics(self, w: Array, values: Array) -> tuple[Array, Array]:
        """P and r."""
        return w, w * values

    def along(self, slope: Array, by_p: Array, by_r: Array, values: Array) -> Array:
        """The slope of carriers, and with it the derivative by w of a function of p and r."""
        return slope + (by_p + by_r * values)

    def seen_carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """All of h, and its derivative by w."""
        log_w, log_v = np.log(w), np.log(values)
        h = w * log_w + (w - 1) * log_v - scipy.special.gammaln(w)
        return h, log_w + 1 + log_v - scipy.special.digamma(w)

    def constant_carrier(self, values: Array, weight: Array | None) -> Array:
        """Nothing."""
        return np.zeros_like(values)

    def value(self, rate: Array) -> Array:
        """Scales are inverse rates."""
        return 1 / rate


KINDS = {"poisson": Poisson(), "gamma": Gamma()}
"""By their names in `Rates`."""


def likelihood_of_atoms(of: Poisson, P: Array, R: Array) -> LogLikelihood:
    """Of logarithms (2 D,) of the atoms' hyperparameters, given sums (K, D)."""

    def log_likelihood(x: Array) -> tuple[float, Array]:
        value, gradient, _, _ = of.over_atoms(x.reshape(2, -1), P, R)
        return value, gradient.ravel()

    return log_likelihood


def likelihood_of_values(of: Poisson, values: Array, own: Own, labels: Index) -> LogLikelihood:
    """The same together with those of `between`, last, (D,) or one for all, given values (N, D)."""
    by_atom, D = ByAtom(labels), values.shape[1]

    def log_likelihood(x: Array) -> tuple[float, Array]:
        between = np.exp(x[2 * D :])
        w = own.effective_size(between)
        carrier, slope = of.carrier(values, w)
        p, r = of.statistics(w, values)
        value, gradient, by_P, by_R = of.over_atoms(x[: 2 * D].reshape(2, D), by_atom(p), by_atom(r))
        raised = of.along(slope, by_P[labels], by_R[labels], values) * w * w * own.scale
        raised = raised.sum(0) * np.exp(-x[2 * D :]) if len(between) == D else raised.sum() / between
        return value + float(carrier.sum()), np.append(gradient.ravel(), raised)

    return log_likelihood


SLOPE_AT_ZERO = 0.25
"""Degrees of freedom of a value that is exactly zero: between none (theta is tiny) and the half of many events (theta
is not, and no event was seen by chance). Of 0, 1/4 and 1/2 it comes nearest to the truth: sites whose values are worth
6.3 intervals (8 for their differences, 30 observed), with 5, 0.5, 0.1 and 0.03 events in each, are learned to be worth
6.3, 6.0, 5.6, 8.1 with 1/4; 6.3, 5.7, 3.2, 2.4 with 0; 6.3, 6.2, 8.0, 16 with 1/2; far more with Gamma functions."""

SMALLEST = 1e-290
"""Numbers of events below this count as this: their inverse is still a number."""


def carrier_of_events(values: Array, worth: Array) -> tuple[Array, Array]:
    """What takes the place of half the logarithm of the number of events, worth * values; its slope by log worth.

    Examples
    --------
    >>> carrier_of_events(np.array([0.0, 0.01, 1.0, 100.0]), np.ones(4))[1].round(2)      # 1/2 for many events
    array([0.25, 0.21, 0.46, 0.5 ])
    """
    e, slope = log_freedom_and_slope(np.maximum(worth * values, SMALLEST))
    there = values > 0
    return np.where(there, e, SLOPE_AT_ZERO * np.log(worth)), np.where(there, slope, SLOPE_AT_ZERO)


SEEN_ONCE = 1.25
"""Degrees of freedom that each word counted exactly once adds, in a value of whole numbers. There rare words are mostly
not seen at all, which `freedom` takes for certainty. Those seen once tell how many there are (Good and Turing); 1.25
makes up for E[x log(x / lam)] - E d(x), x Poisson(lam), summed over Zipf's spectrum d lam / lam."""


def log_freedom(x: Array) -> Array:
    """The integral of d(x) / x: half of log x for large x."""
    return log_freedom_and_slope(x)[0]


def freedom(x: Array) -> Array:
    """Degrees of freedom of coordinates of size x > 0: 1/2 for large x.

    Examples
    --------
    >>> freedom(np.array([0.01, 1.0, 100.0])).round(2)
    array([0.21, 0.46, 0.5 ])
    """
    return log_freedom_and_slope(x)[1]


def log_freedom_and_slope(x: Array) -> tuple[Array, Array]:
    """a(x) and x a'(x) = d(x)."""
    y = (1 + np.sqrt(1 + 4 * x)) / (2 * x)
    logs = np.log1p(y)
    return -np.log(logs), y / ((2 + y) * logs)


SMALLEST_SHARE = 0.1
"""Of the first noise, put down to differences between sites even where sites' observations would explain all."""


def effective_count(n: Array, between: float | Array) -> Array:
    """Observations that values from n of them are worth; n may be infinite, and zero stays zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 / n + 1.0 / between))
