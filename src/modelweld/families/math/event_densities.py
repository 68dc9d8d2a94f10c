"""How a value that is not negative scatters about its atom: Poisson (rates, counts) or Gamma (scales, durations).

Worth w (an exposure, or a shape: the effective sample size), a value v has log p(v) = p log(lambda) - r lambda + h,
where lambda is the atom's rate, or the inverse of its scale, and p and r are proportional to w. Atoms have lambda ~
Gamma(a, b). The carrier h is in two parts: one depends on w, and comes with its derivative; one does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.families.math.blocks import blocks
from modelweld.families.math.few_events import log_carrier, slope_of_carrier
from modelweld.families.math.maximise import ByAtom, LogLikelihood
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index


class Own(NamedTuple):
    """What values are worth: 1 / worth = own + scale / between, where they are seen."""

    seen: Array
    own: Array
    scale: Array

    def worth(self, between: Array) -> Array:
        """Exposures or shapes (N, D); zero where a value was not seen."""
        return np.asarray(self.seen / np.where(self.seen > 0, self.own + self.scale / between, 1.0))

    def typical(self) -> tuple[Array, Array]:
        """Means of `own` and `scale` over the values seen, (D,)."""
        number = np.maximum((self.seen > 0).sum(0), 1)
        own, scale = (np.where(self.seen > 0, x, 0.0).sum(0) / number for x in (self.own, self.scale))
        return own, scale


class Poisson:
    """Rates: p = w v, r = w, and h = e(v, w) - w v (log v - 1) + g."""

    takes = "not negative"
    variance = 0.25
    """Of the root of a value worth one, whatever the rate."""

    def misfits(self, smallest: Array) -> NDArray[np.bool_]:
        """Rows with a smallest value that is none."""
        return np.asarray(smallest < 0)

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

    def along(self, by_p: Array, by_r: Array, values: Array) -> Array:
        """Derivative by w of a function of p and r."""
        return by_p * values + by_r

    def carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """The part of h that depends on w, and its derivative by w; zero where not seen."""
        from scipy.special import xlogy

        seen, known = w > 0, np.where(w > 0, w, 1.0)
        bend = xlogy(values, values) - values
        h, slope = log_carrier(values, known) - known * bend, slope_of_carrier(values, known) / known - bend
        return np.where(seen, h, 0.0), np.where(seen, slope, 0.0)

    def fixed(self, values: Array, weight: Array | None) -> Array:
        """The part that does not: g, from exposures that are known, or from none."""
        from scipy.special import gammaln, xlogy

        if weight is None:
            return np.where(values > 0, -np.log(np.where(values > 0, values, 1.0)) - 0.5 * np.log(2 * np.pi), 0.0)
        known = np.where(weight > 0, weight, 1.0)
        y = known * values
        return np.asarray(xlogy(y, y) - y - gammaln(y + 1) - log_carrier(values, known))

    def predictive(self, p: Array, r: Array, P: Array, R: Array) -> Array:
        """Log densities (L, K), without carriers, of values at atoms of Gamma(P, R).

        What depends on atoms only is taken out where all values are worth the same.
        """
        from scipy.special import gammaln

        base = (P * np.log(R) - gammaln(P)).sum(-1)
        alike = self.alike(p, r)
        result = np.empty((len(p), len(P)))
        for part in blocks(len(p), P.size):
            if alike:
                result[part] = self.of_alike(p[part], r[part], P, R)
            else:
                shapes = P + p[part, None, :]
                result[part] = (gammaln(shapes) - shapes * np.log(R + r[part, None, :])).sum(-1)
        return np.asarray(result + base)

    def alike(self, p: Array, r: Array) -> bool:
        """Whether values are worth the same."""
        return bool((r == r[:1]).all())

    def of_alike(self, p: Array, r: Array, P: Array, R: Array) -> Array:
        """What depends on values, if they are."""
        from scipy.special import gammaln

        logs = np.log(R + r[0])
        return np.asarray(gammaln(P + p[:, None, :]).sum(-1) - p @ logs.T - (P * logs).sum(-1))

    def value(self, rate: Array) -> Array:
        """The atom's value, and the way back."""
        return rate


class Gamma(Poisson):
    """Scales: p = w, r = w v, lambda the inverse of the scale, and h = w log w + (w - 1) log v - log Gamma(w)."""

    takes = "positive"
    variance = 1.0
    """Of the logarithm of a value worth one, about."""

    def misfits(self, smallest: Array) -> NDArray[np.bool_]:
        """Zero is no scale."""
        return np.asarray(smallest <= 0)

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

    def along(self, by_p: Array, by_r: Array, values: Array) -> Array:
        """Derivative by w of a function of p and r."""
        return by_p + by_r * values

    def carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """All of h, and its derivative by w; zero where not seen."""
        from scipy.special import digamma, gammaln

        seen, known = w > 0, np.where(w > 0, w, 1.0)
        log_v = np.log(np.where(seen, values, 1.0))
        h = known * np.log(known) + (known - 1) * log_v - gammaln(known)
        slope = np.log(known) + 1 + log_v - digamma(known)
        return np.where(seen, h, 0.0), np.where(seen, slope, 0.0)

    def fixed(self, values: Array, weight: Array | None) -> Array:
        """Nothing."""
        return np.zeros_like(values)

    def alike(self, p: Array, r: Array) -> bool:
        """Whether values are worth the same."""
        return bool((p == p[:1]).all())

    def of_alike(self, p: Array, r: Array, P: Array, R: Array) -> Array:
        """What depends on values, if they are."""
        from scipy.special import gammaln

        shapes = P + p[0]
        return np.asarray(gammaln(shapes).sum(-1) - (shapes * np.log(R + r[:, None, :])).sum(-1))

    def value(self, rate: Array) -> Array:
        """Scales are inverse rates."""
        return 1 / rate


KINDS = {"poisson": Poisson(), "gamma": Gamma()}
"""By their names in `Rates`."""


def over_atoms(x: Array, P: Array, R: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by x (2, D), by P and by R (K, D).

    x: logarithms of the mean and the shape of the atoms' Gamma.
    """
    from scipy.special import digamma, gammaln

    a = np.exp(x[1])
    b = np.exp(x[1] - x[0])
    value = gammaln(a + P) - gammaln(a) - a * np.log1p(R / b) - P * np.log(b + R)
    by_P = digamma(a + P) - np.log(b + R)
    by_R = -(a + P) / (b + R)
    by_a = (by_P - digamma(a) + np.log(b)).sum(0)
    by_b = (a / b + by_R).sum(0)
    return float(value.sum()), np.stack([-b * by_b, a * by_a + b * by_b]), by_P, by_R


def likelihood_of_atoms(P: Array, R: Array) -> LogLikelihood:
    """Of logarithms (2 D,) of mean and shape of the atoms' Gamma, given sums (K, D)."""

    def log_likelihood(x: Array) -> tuple[float, Array]:
        value, gradient, _, _ = over_atoms(x.reshape(2, -1), P, R)
        return value, gradient.ravel()

    return log_likelihood


def likelihood_of_values(of: Poisson, values: Array, own: Own, labels: Index) -> LogLikelihood:
    """The same together with those of `between`, last, given values (N, D)."""
    by_atom = ByAtom(labels)

    def log_likelihood(x: Array) -> tuple[float, Array]:
        x = x.reshape(3, -1)
        w = own.worth(np.exp(x[2]))
        carrier, slope = of.carrier(values, w)
        p, r = of.statistics(w, values)
        value, gradient, by_P, by_R = over_atoms(x[:2], by_atom(p), by_atom(r))
        slope = slope + of.along(by_P[labels], by_R[labels], values)
        raised = (slope * w * w * own.scale).sum(0) * np.exp(-x[2])
        return value + float(carrier.sum()), np.vstack([gradient, raised]).ravel()

    return log_likelihood
