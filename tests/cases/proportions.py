"""Proportions, with trials known, unknown and partly not seen."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import quad
from scipy.special import expit, xlogy
from scipy.stats import beta, binom

from cases import Case, Drawn
from cases.rates import half_log
from modelweld.families.math.event_densities import log_freedom
from modelweld.families.rates import Proportions


def log_chance(v, p, w, n):
    """Log density of values worth w: that of the class's notes, written in divergences."""
    divergence = xlogy(v, v / p) + xlogy(1 - v, (1 - v) / (1 - p))
    if n is None:
        return spread(v, w) - np.log(v * (1 - v)) - 0.5 * np.log(2 * np.pi) - w * divergence
    return binom.logpmf(np.rint(n * v), n, v) + spread(v, w) - spread(v, n) - w * divergence


def spread(v, w):
    return half_log(v, w) + half_log(1 - v, w) - log_freedom(w)


@dataclass(frozen=True)
class ProportionsCase(Case):
    family: Proportions
    dimensions: int = 2
    weight: bool = False

    def draw(self, counts, rng):
        f, D = self.family, self.dimensions
        labels = np.repeat(np.arange(len(counts)), counts)
        p = rng.beta(f.successes, f.failures, (len(counts), D))[labels]
        weight = None
        if self.weight:
            n = 20 + rng.integers(0, 60, p.shape)
            weight = n.astype(float)
            weight[:, 1:][rng.random((len(labels), D - 1)) < 0.2] = 0.0
        if not f.exact:  # the site's own truth has the variance of shares of `between` trials
            p = rng.beta((f.between - 1) * p, (f.between - 1) * (1 - p))
        values = p if weight is None else rng.binomial(n, p) / n
        return replace(Drawn(values, labels), weight=weight)

    def log_density(self, drawn, d, p):
        v, f = drawn.values[:, d], self.family
        if drawn.weight is None:
            return log_chance(v, p, f.between, None).sum()
        seen = drawn.weight[:, d] > 0
        n, v = drawn.weight[seen, d], v[seen]
        if f.exact:
            return binom.logpmf(np.rint(n * v), n, p).sum()
        return log_chance(v, p, 1 / (1 / n + 1 / f.between), n).sum()

    def log_base(self, d, p):
        """Log density of the log odds under the base measure."""
        a, b = self.family.successes[d], self.family.failures[d]
        return beta.logpdf(p, a, b) + np.log(p) + np.log1p(-p)

    def log_evidence(self, drawn):
        total = 0.0
        for d in range(self.dimensions):

            def joint(x, d=d):
                return self.log_density(drawn, d, expit(x)) + self.log_base(d, expit(x))

            grid = np.linspace(-14, 14, 401)
            heights = np.array([joint(x) for x in grid])
            top = heights.max()
            near = grid[heights > top - 50]
            integral = quad(lambda x, j=joint, t=top: np.exp(j(x) - t), near[0], near[-1], epsabs=0, limit=400)[0]
            total += top + np.log(integral)
        return total

    def merit(self, theta, drawn):
        return sum(self.log_density(drawn, d, x) + self.log_base(d, x) for d, x in enumerate(theta))

    def neighbour(self, theta, rng):
        return expit(np.log(theta) - np.log1p(-theta) + rng.normal(0, 0.2, theta.shape))

    def free(self, family):
        return ["successes", "failures"] if family.exact else ["successes", "failures", "between"]


def family(**kwargs):
    return Proportions(successes=[2.0, 3.0], failures=[4.0, 2.0], **kwargs)


CASES = {
    "trials unknown": ProportionsCase(family(between=25.0)),
    "trials": ProportionsCase(family(between=40.0), weight=True),
    "trials, exact": ProportionsCase(family(between=np.inf), weight=True),
}
