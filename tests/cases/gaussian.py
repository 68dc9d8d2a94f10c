"""Gaussian: all shapes, with and without variance and weight."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import multivariate_normal

from cases import Case, Drawn
from modelweld import Gaussian


@dataclass(frozen=True)
class GaussianCase(Case):
    family: Gaussian
    dimensions: int
    variance: bool = False
    weight: bool = False

    def draw(self, counts, rng):
        f = self.family.hyperparameters
        labels = np.repeat(np.arange(len(counts)), counts)
        D = self.dimensions
        theta = self.family.mean + rng.normal(size=(len(counts), D)) * np.sqrt(f.spread)
        variance = rng.gamma(1.0, 0.5, (len(labels), D)) if self.variance else None
        weight = rng.gamma(2.0, 0.7, (len(labels), D)) if self.weight else None
        if weight is not None:
            weight[rng.random(weight.shape) < 0.2] = 0.0
            weight[:, 0] += 0.1
        drawn = Drawn(np.empty((len(labels), D)), labels, variance, weight)
        values = theta[labels] + rng.normal(size=(len(labels), D)) * np.sqrt(self.total_variance(drawn))
        return replace(drawn, values=values)

    def total_variance(self, drawn):
        weight = 1.0 if drawn.weight is None else np.where(drawn.weight > 0, drawn.weight, 1.0)
        noise = np.broadcast_to(self.family.hyperparameters.noise, drawn.values.shape)
        return noise / weight + (0.0 if drawn.variance is None else drawn.variance)

    def log_evidence(self, drawn):
        # the values of one atom are jointly normal: diag(var) + spread 1 1'
        f, var = self.family.hyperparameters, self.total_variance(drawn)
        spread = np.broadcast_to(f.spread, self.dimensions)
        total = 0.0
        for d in range(self.dimensions):
            seen = np.ones(len(var), dtype=bool) if drawn.weight is None else drawn.weight[:, d] > 0
            if seen.any():
                mean = np.full(seen.sum(), np.atleast_1d(self.family.mean)[d])
                total += multivariate_normal.logpdf(drawn.values[seen, d], mean, np.diag(var[seen, d]) + spread[d])
        return total

    def merit(self, theta, drawn):
        # the posterior mode maximises log N(values | theta) + log N(theta | mean, spread)
        w = np.ones_like(drawn.values) if drawn.weight is None else drawn.weight
        off = np.where(w > 0, (drawn.values - theta) ** 2 / self.total_variance(drawn), 0.0).sum()
        return -0.5 * off - 0.5 * ((theta - self.family.mean) ** 2 / self.family.hyperparameters.spread).sum()

    def free(self, family):
        return ["mean", "noise", "spread"]

    def untaught(self):
        ones = np.ones(1 if self.family.scalar else self.dimensions)
        return replace(self.family, mean=np.zeros(self.dimensions), noise=ones, spread=ones)


def gaussian(**kwargs):
    return Gaussian(mean=[0.7, -0.2, 0.1], noise=[0.5, 1.2, 0.3], spread=[2.0, 0.8, 3.0], **kwargs)


CASES = {
    "diagonal": GaussianCase(gaussian(), 3),
    "scalar": GaussianCase(Gaussian(mean=[0.7, -0.2, 0.1], noise=0.6, spread=2.5, shape="scalar"), 3),
    "off origin": GaussianCase(gaussian(origin=[5.0, -3.0, 1.0]), 3),
    "variance": GaussianCase(gaussian(), 3, variance=True),
    "weight": GaussianCase(gaussian(), 3, weight=True),
    "both": GaussianCase(gaussian(), 3, variance=True, weight=True),
    "believed": GaussianCase(gaussian(squares=[0.05, 0.4, 1.0], near=0.1, floor=1e-9), 3),
    "believed, both": GaussianCase(
        gaussian(squares=[0.05, 0.4, 1.0], near=0.07, degrees=2.0), 3, variance=True, weight=True
    ),
    "scalar, believed": GaussianCase(
        Gaussian(mean=[0.7, -0.2], noise=0.6, spread=2.5, shape="scalar", squares=0.1, near=0.07), 2, weight=True
    ),
    "scalar, both": GaussianCase(
        Gaussian(mean=[0.7, -0.2], noise=0.6, spread=2.5, shape="scalar"), 2, variance=True, weight=True
    ),
}
