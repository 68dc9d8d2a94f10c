"""NormalGamma: with and without weights."""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal

from cases import Case, Drawn
from modelweld.families.normal_gamma import NormalGamma


@dataclass(frozen=True)
class NormalGammaCase(Case):
    family: NormalGamma
    weight: bool = False

    def draw(self, counts, rng):
        f, labels = self.family, np.repeat(np.arange(len(counts)), counts)
        shape = (len(labels), f.mean.size)
        precision = rng.gamma(f.shape, 1 / f.rate, (len(counts), f.mean.size))
        theta = f.mean + rng.normal(size=precision.shape) / np.sqrt(f.strength * precision)
        weight = rng.gamma(2.0, 0.7, shape) * (rng.random(shape) < 0.8) if self.weight else None
        w = np.ones(shape) if weight is None else np.where(weight > 0, weight, 1.0)
        values = theta[labels] + rng.normal(size=shape) / np.sqrt(w * precision[labels])
        return Drawn(values, labels, None, weight)

    def entries(self, drawn):
        """Per dimension: hyperparameters, values and weights of what was seen."""
        f, w = self.family, np.ones(drawn.values.shape) if drawn.weight is None else drawn.weight
        for d in range(f.mean.size):
            seen = w[:, d] > 0
            yield f.mean[d], f.strength[d], f.shape[d], f.rate[d], drawn.values[seen, d], w[seen, d]

    def log_evidence(self, drawn):
        return sum(log_integral(*entry) for entry in self.entries(drawn) if len(entry[-1]))

    def merit(self, theta, drawn):
        # precision integrated out: Student's t in theta
        total = 0.0
        for t, (m, strength, a, b, v, w) in zip(theta, self.entries(drawn), strict=True):
            squares = (w * (v - t) ** 2).sum() + strength * (t - m) ** 2
            total -= (a + (len(v) + 1) / 2) * np.log(b + squares / 2)
        return total


def log_integral(m, strength, a, b, v, w):
    """Given the precision, values of one atom are jointly normal; the precision is integrated numerically."""
    unit = multivariate_normal(np.full(len(v), m), np.diag(1 / w) + 1 / strength)
    at_one = unit.logpdf(v)
    squares = -2 * (at_one - unit.logpdf(np.full(len(v), m)))

    def joint(log_precision):
        precision = np.exp(log_precision)
        values = at_one + len(v) / 2 * log_precision - (precision - 1) * squares / 2
        return values + gamma.logpdf(precision, a, scale=1 / b) + log_precision

    grid = np.linspace(-15, 15, 3001)
    peak = grid[joint(grid).argmax()]
    highest = joint(peak)
    area = quad(lambda x: np.exp(joint(x) - highest), peak - 12, peak + 12, points=[peak], limit=200)[0]
    return highest + np.log(area)


BELIEF = {"mean": [0.7, -0.2], "strength": [0.1, 0.3], "shape": [3.0, 2.0], "rate": [2.0, 5.0]}

CASES = {
    "plain": NormalGammaCase(NormalGamma(**BELIEF)),
    "weights, off origin": NormalGammaCase(NormalGamma(**BELIEF, origin=[5.0, -3.0]), weight=True),
}
