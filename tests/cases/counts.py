"""Counts: exact counts, counts of sites that differ, and probabilities."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from cases import Case, Drawn
from modelweld.families.counts import Counts
from modelweld.families.math.event_densities import log_freedom


@dataclass(frozen=True)
class CountsCase(Case):
    family: Counts
    kind: str = "counts"  # "probabilities", "weights": probabilities with the number of observations behind them
    tolerance = 1e-6

    def draw(self, counts, rng):
        f = self.family
        labels = np.repeat(np.arange(len(counts)), counts)
        theta = rng.dirichlet(f.base, len(counts))[labels]
        if not f.exact:
            gammas = np.maximum(rng.standard_gamma(f.between * theta), 1e-12)
            theta = gammas / gammas.sum(1, keepdims=True)
        if self.kind == "probabilities":
            return Drawn(theta, labels)
        n = rng.integers(300, 900, len(labels))
        x = rng.multinomial(n, theta).astype(float)
        if self.kind == "counts":
            return Drawn(x, labels)
        weight = np.repeat(n[:, None], x.shape[1], axis=1).astype(float)
        return Drawn(x / weight, labels, weight=weight)

    def observations(self, drawn):
        """Probabilities, what they come from and what they are worth."""
        x = drawn.values if drawn.weight is None else drawn.values * drawn.weight
        p = x / np.where(x.sum(1) > 0, x.sum(1), 1)[:, None]
        n = np.full(len(p), np.inf) if self.kind == "probabilities" else x.sum(1)
        return p, n, 1 / (1 / n + 1 / self.family.between)

    def log_density(self, drawn, theta):
        """At global values (..., 3)."""
        p, n, worth = self.observations(drawn)
        if self.family.exact:
            x = np.rint(p * n[:, None])
            return (gammaln(n + 1) - gammaln(x + 1).sum(1)).sum() + np.log(theta) @ x.sum(0)
        there = p > 1e-100
        q = np.where(there, p, 1.0)
        spread = np.where(there, log_freedom(worth[:, None] * q) - np.log(q), 0.0).sum() - log_freedom(worth).sum()
        constants = -0.5 * np.log(2 * np.pi) * (there.sum(1) - 1).sum()
        once = (np.rint(p * n[:, None]) == 1).sum(1) / n if np.isfinite(n).all() else np.zeros(len(p))
        fit = np.log(theta) @ (worth @ p) - worth @ (p * np.log(q)).sum(1)
        return fit + spread + constants + 1.25 * worth @ once

    def log_base(self, theta):
        a = self.family.base
        return gammaln(a.sum()) - gammaln(a).sum() + np.log(theta) @ (a - 1)

    def log_evidence(self, drawn):
        # the integral over the simplex about the mode, by Gauss-Legendre in both directions
        _, _, worth = self.observations(drawn)
        theta = self.family.estimate(drawn.rows(self.family).sum(0))
        top = self.log_density(drawn, theta) + self.log_base(theta)
        sd = 12 * np.sqrt(theta * (1 - theta) / (worth.sum() + self.family.base.sum()))
        low, high = np.maximum(theta - sd, 1e-12), np.minimum(theta + sd, 1 - 1e-12)
        nodes, weights = np.polynomial.legendre.leggauss(200)
        x = low[0] + (high[0] - low[0]) * (nodes[:, None] + 1) / 2
        most = np.minimum(high[1], 1 - x)
        y = low[1] + (most - low[1]) * (nodes + 1) / 2
        at = np.stack([x + 0 * y, y, 1 - x - y], axis=-1)
        joint = np.exp(self.log_density(drawn, at) + self.log_base(at) - top)
        inner = (joint @ weights) * (most - low[1])[:, 0] / 2
        return top + np.log(weights @ inner * (high[0] - low[0]) / 2)

    def merit(self, theta, drawn):
        # the mode of log theta: base measure times the product of theta
        return self.log_density(drawn, theta) + self.log_base(theta) + np.log(theta).sum()

    def neighbour(self, theta, rng):
        moved = theta * np.exp(rng.normal(0, 0.1, theta.shape))
        return moved / moved.sum()

    def free(self, family):
        return ["base"] if family.exact else ["base", "between"]


CASES = {
    "probabilities": CountsCase(Counts(base=[4.0, 3.0, 5.0], between=60.0), "probabilities"),
    "counts": CountsCase(Counts(base=[4.0, 3.0, 5.0], between=60.0)),
    "weights": CountsCase(Counts(base=[4.0, 3.0, 5.0], between=60.0), "weights"),
    "counts, exact": CountsCase(Counts(base=[2.0, 3.0, 4.0], between=np.inf)),
}
