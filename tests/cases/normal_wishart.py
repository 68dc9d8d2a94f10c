"""NormalWishart: values with and without weights, and pairs of means and covariances."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import invwishart, multivariate_normal, wishart

from cases import Drawn
from cases.scatter import SCALE, CovarianceCase, drawn_counts, inverse_wishart, scattered
from modelweld.families.wishart.normal_wishart import NormalWishart


@dataclass(frozen=True)
class NormalWishartCase(CovarianceCase):
    family: NormalWishart
    weight: bool = False

    @property
    def D(self):
        return len(self.family.scale)

    def points(self, drawn):
        """Means, their worth, covariances and whether these count."""
        D, values = self.D, drawn.values
        if self.family.pair:
            n, known = self.worth(drawn, D)
            return values[:, :D], n, values[:, D:].reshape(-1, D, D), known
        n = np.ones(len(values)) if drawn.weight is None else drawn.weight[:, 0]
        return values, n, np.zeros((len(values), D, D)), np.zeros(len(values), dtype=bool)

    def draw(self, counts, rng):
        labels = np.repeat(np.arange(len(counts)), counts)
        L, D, f = len(labels), self.D, self.family
        width = D + D * D if f.pair else D
        weight = None
        if self.weight:
            n = drawn_counts(L, rng) if f.pair else rng.gamma(2.0, 0.7, L) * (rng.random(L) < 0.8)
            weight = np.repeat(n[:, None], width, 1)
        drawn = Drawn(np.empty((L, width)), labels, None, weight)
        _, n, _, known = self.points(drawn)
        Sigma = inverse_wishart(len(counts), f.freedom, f.scale, rng)
        root = np.linalg.cholesky(Sigma)
        theta = f.mean + np.einsum("kij,kj->ki", root, rng.normal(size=(len(counts), D))) / np.sqrt(f.strength)
        off = np.einsum("lij,lj->li", root[labels], rng.normal(size=(L, D)))
        values = theta[labels] + off / np.sqrt(np.where(n > 0, n, 1.0))[:, None]
        if f.pair:
            S = scattered(Sigma[labels], np.where(known, n - 1, D + 2), rng)
            values = np.hstack([values, S.reshape(L, -1)])
        return replace(drawn, values=values)

    def log_likelihood(self, theta, Sigma, drawn):
        mean, n, S, known = self.points(drawn)
        total = 0.0
        for i in np.flatnonzero(n > 0):
            total += multivariate_normal.logpdf(mean[i], theta, Sigma / n[i])
            if known[i]:
                total += wishart.logpdf(S[i], n[i] - 1, Sigma / (n[i] - 1))
        return total

    def log_density(self, theta, Sigma, mean, strength, freedom, scale):
        return multivariate_normal.logpdf(theta, mean, Sigma / strength) + invwishart.logpdf(Sigma, freedom, scale)

    def log_evidence(self, drawn):
        # Bayes' rule solved for the evidence: the same everywhere only if the posterior is right too
        f = self.family
        mean, n, S, known = self.points(drawn)
        prior = (f.mean, f.strength, f.freedom, f.scale)
        strength = f.strength + n.sum()
        centre = (f.strength * f.mean + n @ mean) / strength
        scale = f.scale + f.strength * np.outer(f.mean - centre, f.mean - centre)
        scale = scale + np.einsum("l,li,lj->ij", n, mean - centre, mean - centre)
        scale = scale + np.einsum("l,lij->ij", np.where(known, n - 1, 0.0), S)
        posterior = (centre, strength, f.freedom + (n > 0).sum() + (n - 1)[known].sum(), scale)
        return self.by_bayes(drawn, prior, posterior)

    def by_bayes(self, drawn, prior, posterior):
        """Evidence = likelihood x prior / posterior at any atom."""
        found, rng = [], np.random.default_rng(1)
        for Sigma in inverse_wishart(3, self.family.freedom + 4, self.family.scale, rng):
            theta = posterior[0] + rng.normal(size=self.D)
            joint = self.log_likelihood(theta, Sigma, drawn) + self.log_density(theta, Sigma, *prior)
            found.append(joint - self.log_density(theta, Sigma, *posterior))
        assert np.ptp(found) < 1e-8 * max(1.0, np.abs(found).max())
        return found[0]

    def merit(self, theta, drawn):
        f, D = self.family, self.D
        mean, n, _, _ = self.points(drawn)
        if not f.pair:
            # Sigma integrated out: the log evidence of a value of infinite weight at theta, up to a constant
            centred = mean - theta
            scale = f.scale + np.einsum("l,li,lj->ij", n, centred, centred)
            scale = scale + f.strength * np.outer(f.mean - theta, f.mean - theta)
            return -np.linalg.slogdet(scale)[1]
        # the mode over theta and Sigma, under the measure that prefers no units of Sigma and none of theta
        Sigma = theta[D:].reshape(D, D)
        joint = self.log_likelihood(theta[:D], Sigma, drawn)
        joint += self.log_density(theta[:D], Sigma, f.mean, f.strength, f.freedom, f.scale)
        return joint + (D + 2) / 2 * np.linalg.slogdet(Sigma)[1]

    def neighbour(self, theta, rng):
        D = self.D
        moved = theta[:D] + rng.normal(0, 0.05, D)
        turn = np.eye(D) + rng.normal(0, 0.05, (D, D))
        return moved if not self.family.pair else np.append(moved, turn @ theta[D:].reshape(D, D) @ turn.T)


MEAN = np.array([0.7, -0.2])
BELIEF = {"mean": MEAN, "strength": 0.2, "freedom": 6.0, "scale": SCALE}

CASES = {
    "values": NormalWishartCase(NormalWishart(**BELIEF)),
    "one dimension": NormalWishartCase(NormalWishart(mean=[0.4], strength=0.2, freedom=5.0, scale=[[3.0]])),
    "weights, off origin": NormalWishartCase(NormalWishart(**BELIEF, origin=[5.0, -3.0]), weight=True),
    "pairs": NormalWishartCase(NormalWishart(**BELIEF, pair=True, between=15.0)),
    "pairs with counts": NormalWishartCase(
        NormalWishart(**BELIEF, pair=True, between=30.0, origin=[5.0, -3.0]), weight=True
    ),
}
