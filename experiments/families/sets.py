"""Simulated sites for every family: true atoms from its base measure, values that scatter as it says.

Thirty atoms, ten sites; site j holds atom k with probability p_k ~ Beta(1, 1). Where values have a number of
observations behind them, that number is drawn log-uniformly and sent, and each site first draws its own truth about the
atom (worth `between` observations), so that sites differ beyond what their numbers explain, as sites do. Sizes are
chosen so that k-means told the number of atoms has an adjusted Rand index between 0.7 and 0.97.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelweld import Counts, Directions, Gaussian, LocalModel, NormalGamma, Proportions, Rates, Scatter

ATOMS, SITES = 30, 10


@dataclass(frozen=True)
class Simulated:
    """What sites send, the atom of every value, and how a user without the family would see the values."""

    models: list[LocalModel]
    truth: list[np.ndarray]
    flat: list[np.ndarray]
    """Values as real vectors, as they are."""
    transformed: list[np.ndarray]
    """The same after the transformation a careful user would choose."""


@dataclass(frozen=True)
class Setting:
    """One family: which atoms it draws, what sites make of them, the family itself, and the usual transformation."""

    atoms: Callable[[np.random.Generator, int], Any]
    site: Callable[[np.random.Generator, Any], dict[str, dict[str, np.ndarray]]]
    """Keywords of the LocalModel: arrays, and weight or variance where sites send them."""
    families: Callable[[], Any]
    transform: Callable[..., np.ndarray]

    def simulate(self, seed: int, K: int = ATOMS, J: int = SITES) -> Simulated:
        """Draw sites."""
        rng = np.random.default_rng(seed)
        atoms, p = self.atoms(rng, K), rng.beta(1.0, 1.0, K)
        models, truth, flat, transformed = [], [], [], []
        for _ in range(J):
            held = np.flatnonzero(rng.random(K) < p)
            held = rng.permutation(held if len(held) else rng.integers(K, size=1))
            sent = self.site(rng, _taken(atoms, held))
            arrays = sent["arrays"]
            axes = {name: ("atom", *[None] * (a.ndim - 1)) for name, a in arrays.items()}
            models.append(LocalModel(axes=axes, **sent))
            truth.append(held)
            flat.append(np.concatenate([a.reshape(len(held), -1) for a in arrays.values()], axis=1))
            transformed.append(self.transform(*arrays.values()))
        return Simulated(models, truth, flat, transformed)


def _taken(atoms: Any, held: np.ndarray) -> Any:
    return tuple(a[held] for a in atoms) if isinstance(atoms, tuple) else atoms[held]


def numbers(rng: np.random.Generator, low: float, high: float, size: int) -> np.ndarray:
    """Observations behind values: log-uniform, whole."""
    return np.rint(np.exp(rng.uniform(np.log(low), np.log(high), size)))


def as_it_is(values: np.ndarray) -> np.ndarray:
    """No transformation."""
    return values


# ---- real values


def gaussian_site(rng, theta):
    """Noise of constant size."""
    return {"arrays": {"means": rng.normal(theta, 0.7)}}


def own_noise(rng, K, D=4):
    """Atoms with their own noise: precision Gamma, distance from the mean in proportion to the noise."""
    precision = rng.gamma(1.5, 1 / 1.5, (K, D))
    return rng.normal(0, 1 / np.sqrt(0.03 * precision)), precision


def own_noise_site(rng, atoms):
    """The atom's own noise, per dimension."""
    theta, precision = atoms
    return {"arrays": {"means": rng.normal(theta, 1 / np.sqrt(precision))}}


def inverse_wishart(rng, K, freedom, D):
    """Covariances with mean about I freedom / (freedom - D - 1)."""
    from scipy.stats import invwishart

    return invwishart.rvs(freedom, freedom * np.eye(D), size=K, random_state=rng).reshape(K, D, D)


def wishart(rng, n, covariances):
    """Covariances from n points each (n not whole: as if)."""
    from scipy.stats import wishart as law

    n = np.broadcast_to(n, len(covariances))
    return np.array([law.rvs(m, c / m, random_state=rng) for m, c in zip(n, covariances, strict=True)])


def normal(rng, theta, covariances):
    """One normal draw per row."""
    factors = np.linalg.cholesky(covariances)
    return theta + np.einsum("kij,kj->ki", factors, rng.standard_normal(theta.shape))


def scatter_site(rng, sigma, between=40.0):
    """Covariances of n points."""
    n = numbers(rng, 20, 400, len(sigma))
    return {"arrays": {"covariances": wishart(rng, n, wishart(rng, between, sigma))}, "weight": {"covariances": n}}


def mixture_site(rng, atoms, between=30.0):
    """Means and covariances of components: both from n points, of a site whose truth is worth `between`."""
    theta, sigma = atoms
    n = numbers(rng, 20, 400, len(theta))
    own = wishart(rng, between, sigma)
    centre = rng.normal(theta, 0.5)
    arrays = {"means": normal(rng, centre, own / n[:, None, None]), "covariances": wishart(rng, n, own)}
    errors = np.diagonal(arrays["covariances"], axis1=1, axis2=2) / n[:, None]
    return {"arrays": arrays, "variance": {"means": errors}, "weight": {"covariances": n}}


def log_matrix(covariances):
    """Upper triangle of the matrix logarithm."""
    values, vectors = np.linalg.eigh(covariances)
    logs = np.einsum("kij,kj,klj->kil", vectors, np.log(values), vectors)
    return logs[:, *np.triu_indices(covariances.shape[1])]


def mean_and_log_matrix(means, covariances):
    """Side by side."""
    return np.concatenate([means, log_matrix(covariances)], axis=1)


# ---- directions, categories, rates, proportions


def unit(rng, K, D=8):
    """Uniform on the sphere."""
    x = rng.standard_normal((K, D))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def directions_site(rng, theta, kappa=28.0):
    """Von Mises-Fisher about the atom."""
    from scipy.stats import vonmises_fisher

    drawn = [vonmises_fisher(mu, kappa).rvs(1, random_state=rng) for mu in theta]
    return {"arrays": {"directions": np.concatenate(drawn)}}


def topics_site(rng, theta, between=12.0):
    """Relative frequencies of n words."""
    n = numbers(rng, 10, 500, len(theta))
    own = np.array([rng.dirichlet(np.maximum(between * t, 1e-6)) for t in theta])
    counts = np.array([rng.multinomial(int(m), t / t.sum()) for m, t in zip(n, own, strict=True)])
    return {"arrays": {"topics": counts / n[:, None]}, "weight": {"topics": n}}


def poisson_site(rng, theta, between=6.0):
    """Events per interval, of n intervals."""
    n = numbers(rng, 3, 100, len(theta))
    own = rng.gamma(between * theta, 1 / between)
    return {"arrays": {"rates": rng.poisson(n[:, None] * own) / n[:, None]}, "weight": {"rates": n}}


def durations(rng, K):
    """Mean durations, or scales."""
    return 1 / rng.gamma(1.5, 1 / 1.5, (K, 8))


def exponential_site(rng, theta, between=15.0):
    """Means of n durations."""
    n = numbers(rng, 3, 100, len(theta))
    own = theta * rng.gamma(between, 1 / between, theta.shape)
    return {"arrays": {"durations": rng.gamma(n[:, None], own / n[:, None])}, "weight": {"durations": n}}


def gamma_site(rng, theta, shape=8.0):
    """A constant relative error that nobody states."""
    return {"arrays": {"scales": rng.gamma(shape, theta / shape)}}


def proportions_site(rng, p, between=12.0):
    """Shares of n trials."""
    n = numbers(rng, 5, 200, len(p))
    own = rng.beta(np.maximum(between * p, 1e-6), np.maximum(between * (1 - p), 1e-6))
    return {"arrays": {"features": rng.binomial(n[:, None].astype(int), own) / n[:, None]}, "weight": {"features": n}}


SETTINGS: dict[str, Setting] = {
    "Gaussian": Setting(
        lambda rng, K: rng.normal(0, 2.5, (K, 5)), gaussian_site, lambda: {"means": Gaussian()}, as_it_is
    ),
    "NormalGamma": Setting(own_noise, own_noise_site, lambda: {"means": NormalGamma()}, as_it_is),
    "Scatter": Setting(
        lambda rng, K: inverse_wishart(rng, K, 5.0, 3), scatter_site, lambda: {"covariances": Scatter()}, log_matrix
    ),
    "Gaussian x Scatter": Setting(
        lambda rng, K: (rng.normal(0, 2.0, (K, 3)), inverse_wishart(rng, K, 8.0, 3)),
        mixture_site,
        lambda: {"means": Gaussian(), "covariances": Scatter()},
        mean_and_log_matrix,
    ),
    "Counts": Setting(
        lambda rng, K: rng.dirichlet(np.full(40, 0.1), K), topics_site, lambda: {"topics": Counts()}, np.sqrt
    ),
    "Directions": Setting(unit, directions_site, lambda: {"directions": Directions()}, as_it_is),
    "Rates, Poisson": Setting(
        lambda rng, K: rng.gamma(1.0, 2.0, (K, 6)), poisson_site, lambda: {"rates": Rates()}, np.sqrt
    ),
    "Rates, exponential": Setting(
        durations, exponential_site, lambda: {"durations": Rates(kind="gamma", shape=1.0)}, np.log
    ),
    "Rates, Gamma": Setting(durations, gamma_site, lambda: {"scales": Rates(kind="gamma")}, np.log),
    "Proportions": Setting(
        lambda rng, K: rng.beta(0.7, 0.7, (K, 8)),
        proportions_site,
        lambda: {"features": Proportions()},
        lambda v: np.arcsin(np.sqrt(v)),
    ),
}
