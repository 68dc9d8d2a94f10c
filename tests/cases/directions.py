"""Directions: on the circle, the sphere and beyond, with and without weights and base."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp

from cases import Case, Drawn
from modelweld.families.directions import Directions

ANGLES = 2000
"""Points on the circle: sums of smooth periodic functions converge faster than any power."""


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def about(means, kappa, rng):
    """One draw of vMF about each of the means (N, D): the cosine by rejection from an even one, the rest evenly."""
    N, D = means.shape
    kappa = np.broadcast_to(np.asarray(kappa, dtype=float), N)
    # Wood (1994): a transformed beta variable bounds the density of the cosine
    b = (D - 1) / (2 * kappa + np.sqrt(4 * kappa**2 + (D - 1) ** 2))
    x = (1 - b) / (1 + b)
    cosine, todo = np.empty(N), np.arange(N)
    while len(todo):
        z = rng.beta((D - 1) / 2, (D - 1) / 2, len(todo))
        t = (1 - (1 + b[todo]) * z) / (1 - (1 - b[todo]) * z)
        log_ratio = kappa[todo] * (t - x[todo]) + (D - 1) * np.log((1 - x[todo] * t) / (1 - x[todo] ** 2))
        taken = log_ratio >= np.log(rng.random(len(todo)))
        cosine[todo[taken]] = t[taken]
        todo = todo[~taken]
    across = rng.normal(size=(N, D))
    across -= (across * means).sum(1, keepdims=True) * means
    return unit(cosine[:, None] * means + np.sqrt(1 - cosine**2)[:, None] * unit(across))


@dataclass(frozen=True)
class DirectionsCase(Case):
    family: Directions
    weight: bool = False

    @property
    def dimensions(self):
        return len(self.family.mean)

    def draw(self, counts, rng):
        f, D = self.family, self.dimensions
        labels = np.repeat(np.arange(len(counts)), counts)
        weight = rng.gamma(2.0, 0.7, len(labels)) + 0.1 if self.weight else None
        theta = about(np.tile(f.mean, (len(counts), 1)), f.base_concentration, rng)
        values = about(theta[labels], f.concentration * (1.0 if weight is None else weight), rng)
        return Drawn(values, labels, None, None if weight is None else np.repeat(weight[:, None], D, axis=1))

    def concentrations(self, drawn):
        return self.family.concentration * (np.ones(len(drawn.values)) if drawn.weight is None else drawn.weight[:, 0])

    def log_evidence(self, drawn):
        # on the circle the integral over the atom as it is; beyond, all but the constants depends on the length of the
        # pull of values and base alone, and the integral is over the angle with it
        f, D, kappa = self.family, self.dimensions, self.concentrations(drawn)
        pulls = np.vstack([kappa[:, None] * drawn.values, f.base_concentration * np.asarray(f.mean)])
        constants = sum(log_constant(D, np.linalg.norm(pull)) for pull in pulls)
        if D > 2:
            return constants - log_constant(D, np.linalg.norm(pulls.sum(0)))
        angles = 2 * np.pi * np.arange(ANGLES) / ANGLES
        log_densities = (pulls @ np.array([np.cos(angles), np.sin(angles)])).sum(0)
        return constants + logsumexp(log_densities) + np.log(2 * np.pi / ANGLES)

    def merit(self, theta, drawn):
        pull = self.family.base_concentration * np.asarray(self.family.mean)
        return float(theta @ (pull + self.concentrations(drawn) @ drawn.values))

    def neighbour(self, theta, rng):
        return unit(theta + rng.normal(0, 0.05, theta.shape))

    def perturbed(self, family, scale, rng):
        D = self.dimensions
        return replace(
            family,
            mean=unit(np.asarray(family.mean) + scale / np.sqrt(D) * rng.normal(size=D)),
            concentration=family.concentration * np.exp(scale * rng.normal()),
            base_concentration=(family.base_concentration or 0.1) * np.exp(scale * rng.normal()),
        )

    def error(self, family):
        truth = self.family
        return max(
            abs(np.log(family.concentration / truth.concentration)),
            np.linalg.norm(
                np.asarray(family.mean) * family.base_concentration - np.asarray(truth.mean) * truth.base_concentration
            )
            / (truth.base_concentration + 1),
        )


def log_constant(D, kappa):
    """Log of one over the integral of exp(kappa cosine) over the sphere, by quadrature over the angle."""

    def integrand(angle):
        return np.exp(kappa * (np.cos(angle) - 1)) * np.sin(angle) ** (D - 2)

    width = min(np.pi, 12 / np.sqrt(kappa)) if kappa > 0 else np.pi
    ring = np.log(2) + (D - 1) / 2 * np.log(np.pi) - gammaln((D - 1) / 2)  # area of the sphere of one dimension less
    return -(ring + kappa + np.log(quad(integrand, 0, width, epsabs=0, epsrel=1e-12, limit=200)[0]))


def directions(D, concentration, base_concentration):
    mean = unit(np.arange(1.0, D + 1) * np.where(np.arange(D) % 2, -1, 1))
    return Directions(mean, concentration, base_concentration)


CASES = {
    "circle": DirectionsCase(directions(2, 12.0, 1.5)),
    "sphere": DirectionsCase(directions(3, 30.0, 2.0)),
    "even base": DirectionsCase(directions(4, 25.0, 0.0)),
    "weight": DirectionsCase(directions(3, 20.0, 3.0), weight=True),
    "many dimensions": DirectionsCase(directions(60, 150.0, 40.0)),
}
