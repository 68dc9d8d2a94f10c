"""Rates: Poisson and Gamma, with exposures known, unknown and partly not seen."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import quad
from scipy.special import xlogy
from scipy.stats import gamma, poisson

from cases import Case, Drawn
from modelweld.families.math.event_densities import log_freedom
from modelweld.families.rates import Rates


def log_chance(v, theta, w, weight):
    """Log density of values worth w: that of the class's notes, written in divergences."""
    divergence = xlogy(v, v / theta) - v + theta
    if weight is None:
        return half_log(v, w) - np.where(v > 0, np.log(v) + 0.5 * np.log(2 * np.pi), 0.0) - w * divergence
    y = weight * v
    return poisson.logpmf(np.rint(y), y) + half_log(v, w) - half_log(v, weight) - w * divergence


def half_log(v, w):
    return np.where(v > 0, log_freedom(w * np.where(v > 0, v, 1.0)), 0.25 * np.log(w))


@dataclass(frozen=True)
class RatesCase(Case):
    family: Rates
    dimensions: int
    weight: bool = False
    smallest_exposure: float = 4.0

    def draw(self, counts, rng):
        f, D = self.family, self.dimensions
        labels = np.repeat(np.arange(len(counts)), counts)
        theta = rng.gamma(f.concentration, f.mean / f.concentration, (len(counts), D))
        if f.kind == "gamma":
            theta = 1 / rng.gamma(f.concentration, 1 / (f.mean * f.concentration), (len(counts), D))
        weight = None
        if self.weight:
            weight = np.ceil(self.smallest_exposure + rng.gamma(2.0, 2.0, (len(labels), D)))
            weight[:, 1:][rng.random((len(labels), D - 1)) < 0.2] = 0.0
        drawn = Drawn(np.ones((len(labels), D)), labels, None, weight)
        w, mean = self.weights(drawn), theta[labels]
        if f.kind == "gamma":
            values = rng.gamma(w, mean / w)
        elif f.exact:
            n = np.ones_like(w) if weight is None else weight
            values = rng.poisson(n * mean) / np.where(n > 0, n, 1.0)
        else:
            values = rng.gamma(f.between * mean, 1 / f.between)  # the site's own truth
            if weight is not None:
                values = rng.poisson(weight * values) / np.where(weight > 0, weight, 1.0)
        return replace(drawn, values=values)

    def weights(self, drawn):
        """Effective exposures or shapes; one where not seen."""
        f, shape = self.family, drawn.values.shape
        n = np.full(shape, np.inf) if drawn.weight is None else np.where(drawn.weight > 0, drawn.weight, 1.0)
        if f.kind == "gamma" and f.shape is None:
            return f.between * (np.ones(shape) if drawn.weight is None else n)
        if f.shape is not None or (f.exact and drawn.weight is None):
            n = (np.ones(shape) if drawn.weight is None else n) * (f.shape or 1.0)
        return 1 / (1 / n + 1 / f.between)

    def log_density(self, drawn, d, theta):
        """Of coordinate d of all values given the atom's value."""
        f, seen = self.family, np.ones(len(drawn.values), dtype=bool)
        if drawn.weight is not None:
            seen = drawn.weight[:, d] > 0
        v, w = drawn.values[seen, d], self.weights(drawn)[seen, d]
        if f.kind == "gamma":
            return gamma.logpdf(v, w, scale=theta / w).sum()
        n = np.ones(len(v)) if drawn.weight is None else drawn.weight[seen, d]
        if f.exact:
            return poisson.logpmf(np.rint(n * v), n * theta).sum()
        return log_chance(v, theta, w, None if drawn.weight is None else n).sum()

    def log_base(self, d, theta):
        """Log density of log theta under the base measure."""
        c, mean = self.family.concentration[d], self.family.mean[d]
        if self.family.kind == "poisson":
            return gamma.logpdf(theta, c, scale=mean / c) + np.log(theta)
        return gamma.logpdf(1 / theta, c, scale=1 / (mean * c)) - np.log(theta)

    def log_evidence(self, drawn):
        total = 0.0
        for d in range(self.dimensions):

            def joint(x, d=d):
                return self.log_density(drawn, d, np.exp(x)) + self.log_base(d, np.exp(x))

            grid = np.linspace(-12, 12, 601)
            heights = np.array([joint(x) for x in grid])
            top = heights.max()
            near = grid[heights > top - 60]
            integral = quad(lambda x, j=joint, t=top: np.exp(j(x) - t), near[0], near[-1], epsabs=0, limit=400)[0]
            total += top + np.log(integral)
        return total

    def merit(self, theta, drawn):
        return sum(self.log_density(drawn, d, x) + self.log_base(d, x) for d, x in enumerate(theta))

    def neighbour(self, theta, rng):
        return theta * np.exp(rng.normal(0, 0.1, theta.shape))

    def free(self, family):
        return ["mean", "concentration"] if family.exact else ["mean", "concentration", "between"]


def poisson_family(**kwargs):
    return Rates(mean=[3.0, 8.0], concentration=[2.5, 4.0], **kwargs)


def gamma_family(**kwargs):
    return Rates("gamma", mean=[3.0, 0.2], concentration=[2.5, 4.0], **kwargs)


CASES = {
    "counts": RatesCase(poisson_family(between=np.inf), 2),
    "exposure, exact": RatesCase(poisson_family(between=np.inf), 2, weight=True),
    "exposure unknown": RatesCase(poisson_family(between=[3.0, 1.5]), 2),
    "exposure": RatesCase(poisson_family(between=[6.0, 3.0]), 2, weight=True),
    "gamma": RatesCase(gamma_family(between=[6.0, 2.0]), 2),
    "gamma, weight": RatesCase(gamma_family(between=[2.0, 0.5]), 2, weight=True),
    "exponential, exact": RatesCase(gamma_family(shape=1.0, between=np.inf), 2),
    "variances": RatesCase(gamma_family(shape=0.5, between=[6.0, 3.0]), 2, weight=True),
}
