"""Scatter: covariances with and without numbers of points. Also what all families with covariances share."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import invwishart, wishart

from cases import Case, Drawn
from modelweld.families.math.event_densities import effective_count
from modelweld.families.wishart.scatter import Scatter


def bartlett(freedom, D, rng):
    """Lower triangular A with A A' ~ Wishart(freedom, I), one for each freedom (L,)."""
    A = np.tril(rng.normal(size=(len(freedom), D, D)), -1)
    for j in range(D):
        A[:, j, j] = np.sqrt(rng.chisquare(freedom - j))
    return A


def inverse_wishart(K, freedom, scale, rng):
    """Covariances (K, D, D)."""
    root = np.linalg.cholesky(scale) @ np.linalg.inv(bartlett(np.full(K, freedom), len(scale), rng)).swapaxes(1, 2)
    return root @ root.swapaxes(1, 2)


def scattered(Sigma, freedom, rng):
    """S ~ Wishart(freedom, Sigma / freedom), one for each Sigma (L, D, D)."""
    root = np.linalg.cholesky(Sigma) @ bartlett(freedom, Sigma.shape[1], rng)
    return root @ root.swapaxes(1, 2) / freedom[:, None, None]


def drawn_counts(L, rng):
    """Numbers of points: most enough for a covariance, some too few, some none."""
    return rng.choice([0.0, 3.0, 8.0, 20.0, 60.0, 200.0], L, p=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2])


class CovarianceCase(Case):
    """What cases with a scale matrix share."""

    def weights(self, drawn, D):
        """Effective counts and whether the covariance counts, the long way."""
        n = np.full(len(drawn.values), np.inf) if drawn.weight is None else drawn.weight[:, 0]
        counts = n >= D + 2
        worth = effective_count(n, self.family.between)
        return np.where(counts, np.maximum(worth, D + 2), worth), counts

    def perturbed(self, family, scale, rng):
        D = len(family.scale)
        changes = {}
        for name in self.free(family):
            step = rng.normal(size=D if name == "mean" else ()) * scale
            x = getattr(family, name)
            if name == "mean":
                changes[name] = x + step
            elif name == "freedom":
                changes[name] = float(D - 1 + (x - D + 1) * np.exp(step))
            elif name == "scale":
                root = np.linalg.cholesky(x) @ (
                    np.diag(np.exp(step * np.ones(D))) + np.tril(rng.normal(size=(D, D))) * scale / 3
                )
                changes[name] = root @ root.T
            else:
                changes[name] = float(x * np.exp(step))
        return replace(family, **changes)

    def error(self, family):
        worst = 0.0
        for name in self.free(family):
            x, truth = getattr(family, name), getattr(self.family, name)
            if name == "scale":
                ratio = np.linalg.eigvals(np.linalg.solve(truth / self.family.freedom, x / family.freedom))
                worst = max(worst, float(np.abs(np.log(ratio.real)).max()))
            else:
                worst = max(worst, float(np.abs(x - truth if name == "mean" else np.log(x / truth)).max()))
        return worst


@dataclass(frozen=True)
class ScatterCase(CovarianceCase):
    family: Scatter
    weight: bool = False

    @property
    def D(self):
        return len(self.family.scale)

    def draw(self, counts, rng):
        labels = np.repeat(np.arange(len(counts)), counts)
        L, D, f = len(labels), self.D, self.family
        weight = np.repeat(drawn_counts(L, rng)[:, None], D * D, 1) if self.weight else None
        drawn = Drawn(np.empty((L, D * D)), labels, None, weight)
        n, known = self.weights(drawn, D)
        Sigma = inverse_wishart(len(counts), f.freedom, f.scale, rng)
        values = scattered(Sigma[labels], np.where(known, n, D + 2), rng)
        return replace(drawn, values=values.reshape(L, -1))

    def log_evidence(self, drawn):
        # Bayes' rule solved for the evidence: the same at every Sigma only if the posterior is right too
        f, D = self.family, self.D
        n, known = self.weights(drawn, D)
        n, S = n[known], drawn.values[known].reshape(-1, D, D)
        found = []
        for Sigma in inverse_wishart(3, f.freedom + 4, f.scale, np.random.default_rng(1)):
            likelihood = sum(wishart.logpdf(s, w, Sigma / w) for s, w in zip(S, n, strict=True))
            prior = invwishart.logpdf(Sigma, f.freedom, f.scale)
            posterior = invwishart.logpdf(Sigma, f.freedom + n.sum(), f.scale + np.einsum("l,lij->ij", n, S))
            found.append(likelihood + prior - posterior)
        assert np.ptp(found) < 1e-8 * max(1.0, np.abs(found).max())
        return found[0]

    def merit(self, theta, drawn):
        # posterior density under the measure that prefers no units
        f, D = self.family, self.D
        n, known = self.weights(drawn, D)
        Sigma = theta.reshape(D, D)
        S = drawn.values.reshape(-1, D, D)
        likelihood = sum(wishart.logpdf(S[i], n[i], Sigma / n[i]) for i in np.flatnonzero(known))
        return likelihood + invwishart.logpdf(Sigma, f.freedom, f.scale) + (D + 1) / 2 * np.linalg.slogdet(Sigma)[1]

    def neighbour(self, theta, rng):
        D = self.D
        turn = np.eye(D) + rng.normal(0, 0.05, (D, D))
        return (turn @ theta.reshape(D, D) @ turn.T).ravel()


SCALE = np.array([[6.0, 2.0], [2.0, 3.0]])

CASES = {
    "one dimension": ScatterCase(Scatter(freedom=5.0, scale=[[3.0]], between=12.0)),
    "no counts": ScatterCase(Scatter(freedom=6.0, scale=SCALE, between=15.0)),
    "counts": ScatterCase(Scatter(freedom=6.0, scale=SCALE, between=30.0), weight=True),
}
