"""Moments: mean and covariance of any number of points, whole (singular covariances too) or not."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import invwishart, multivariate_normal

from cases import Drawn
from cases.scatter import SCALE, CovarianceCase, inverse_wishart, scattered
from modelweld.families.wishart.scatter import Moments


@dataclass(frozen=True)
class MomentsCase(CovarianceCase):
    family: Moments
    whole: bool = True
    many = 3000

    @property
    def D(self):
        return len(self.family.scale)

    def parts(self, drawn):
        """Means, covariances and numbers of points."""
        D, values = self.D, drawn.values
        return values[:, :D], values[:, D:].reshape(-1, D, D), drawn.weight[:, 0]

    def draw(self, counts, rng):
        labels = np.repeat(np.arange(len(counts)), counts)
        L, D, f = len(labels), self.D, self.family
        Sigma = inverse_wishart(len(counts), f.freedom, f.scale, rng)
        root = np.linalg.cholesky(Sigma)
        theta = f.mean + np.einsum("kij,kj->ki", root, rng.normal(size=(len(counts), D))) / np.sqrt(f.strength)
        if self.whole:  # the points themselves, those beyond n left out
            n = rng.choice([0.0, 1.0, 2.0, 3.0, 8.0, 12.0], L)
            x = theta[labels][:, None] + np.einsum("lij,lpj->lpi", root[labels], rng.normal(size=(L, 12, D)))
            held = (np.arange(12) < n[:, None])[..., None] / np.maximum(n, 1.0)[:, None, None]
            mean = (held * x).sum(1)
            C = np.einsum("lpo,lpi,lpj->lij", held, x - mean[:, None], x - mean[:, None])
        else:  # their density, times what is free of theta and Sigma: n - 1 degrees of freedom, if more than D - 1
            n = D + rng.gamma(1.0, 4.0, L)
            off = np.einsum("lij,lj->li", root[labels], rng.normal(size=(L, D)))
            mean = theta[labels] + off / np.sqrt(n)[:, None]
            C = scattered(Sigma[labels], n - 1, rng) * ((n - 1) / n)[:, None, None]
        values = np.hstack([mean, C.reshape(L, -1)])
        return Drawn(values, labels, None, np.repeat(n[:, None], D + D * D, 1))

    def log_likelihood(self, theta, Sigma, drawn):
        # of points, and of powers of one: its average over N(m, C) to the n
        total = 0.0
        for m, C, n in zip(*self.parts(drawn), strict=True):
            total += n * (multivariate_normal.logpdf(m, theta, Sigma) - np.trace(np.linalg.solve(Sigma, C)) / 2)
        return total

    def log_density(self, theta, Sigma, mean, strength, freedom, scale):
        return multivariate_normal.logpdf(theta, mean, Sigma / strength) + invwishart.logpdf(Sigma, freedom, scale)

    def log_evidence(self, drawn):
        # Bayes' rule solved for the evidence: the same everywhere only if the posterior is right too
        f = self.family
        mean, C, n = self.parts(drawn)
        prior = (f.mean, f.strength, f.freedom, f.scale)
        strength = f.strength + n.sum()
        centre = (f.strength * f.mean + n @ mean) / strength
        scale = f.scale + f.strength * np.outer(f.mean - centre, f.mean - centre)
        scale = scale + np.einsum("l,li,lj->ij", n, mean - centre, mean - centre) + np.einsum("l,lij->ij", n, C)
        posterior = (centre, strength, f.freedom + n.sum(), scale)
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
        # the mode over theta, of which nothing is known before, and Sigma, under the measure that prefers no units
        f, D = self.family, self.D
        Sigma = theta[D:].reshape(D, D)
        joint = self.log_likelihood(theta[:D], Sigma, drawn) + invwishart.logpdf(Sigma, f.freedom, f.scale)
        return joint + (D + 1) / 2 * np.linalg.slogdet(Sigma)[1]

    def neighbour(self, theta, rng):
        D = self.D
        turn = np.eye(D) + rng.normal(0, 0.05, (D, D))
        return np.append(theta[:D] + rng.normal(0, 0.05, D), turn @ theta[D:].reshape(D, D) @ turn.T)


BELIEF = {"mean": np.array([0.7, -0.2]), "strength": 0.2, "freedom": 4.0, "scale": SCALE}

CASES = {
    "points": MomentsCase(Moments(**BELIEF)),
    "one dimension": MomentsCase(Moments(mean=[0.4], strength=0.2, freedom=3.0, scale=[[3.0]])),
    "powers, off origin": MomentsCase(Moments(**BELIEF, origin=[5.0, -3.0]), whole=False),
}
