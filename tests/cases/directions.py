"""Directions: on the circle, the sphere and beyond, with and without weights and base; of one concentration, of
concentrations of their own, and without signs."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp

from cases import Case, Drawn
from modelweld.families.directions import Directions
from modelweld.families.math.own_concentration import MOST_DIVERSITY

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


EXPECTED = {}
"""Of the last values that were asked about."""


@dataclass(frozen=True)
class OwnCase(DirectionsCase):
    """Concentrations of their own, signs of no meaning, or both."""

    axes: int = 0

    @property
    def tolerance(self):
        return 1e-4 if self.family.diversity else 1e-8  # integrals over concentrations are of thirteen points

    @property
    def many(self):
        return 800 if self.family.differing else 6000  # mixtures take a while

    @property
    def dimensions(self):
        return self.axes or super().dimensions

    @property
    def grid(self):
        """Concentrations, closely enough that atoms of few values know no better, and their probabilities."""
        z = np.linspace(-6.0, 6.0, 61) if self.family.diversity else np.zeros(1)
        shares = np.exp(-0.5 * z**2)
        return self.family.concentration * np.exp((self.family.diversity or 0.0) * z), shares / shares.sum()

    def draw(self, counts, rng):
        f, D = self.family, self.dimensions
        labels = np.repeat(np.arange(len(counts)), counts)
        weight = rng.gamma(2.0, 0.7, len(labels)) + 0.1 if self.weight else None
        kappa = f.concentration * np.exp((f.diversity or 0.0) * rng.normal(size=len(counts)))[labels]
        kappa = kappa * (1.0 if weight is None else weight)
        even = unit(rng.normal(size=(len(counts), D)))
        theta = even if f.axial else about(np.tile(f.mean, (len(counts), 1)), f.base_concentration, rng)
        values = about(theta[labels], kappa, rng)
        if f.axial:
            values = values * rng.choice([-1.0, 1.0], (len(values), 1))
        return Drawn(values, labels, None, None if weight is None else np.repeat(weight[:, None], D, axis=1))

    def turned(self, drawn):
        """The values with the best of all signs."""
        if not self.family.axial:
            return drawn.values
        signs = np.array([(1.0, *rest) for rest in product([-1.0, 1.0], repeat=len(drawn.values) - 1)])
        pulls = signs @ (drawn.values * (1.0 if drawn.weight is None else drawn.weight))
        return drawn.values * signs[np.linalg.norm(pulls, axis=1).argmax()][:, None]

    def by_node(self, drawn):
        """Log evidence with each concentration, and the pull of the values."""
        f, D, values = self.family, self.dimensions, self.turned(drawn)
        weight = np.ones(len(values)) if drawn.weight is None else drawn.weight[:, 0]
        base = np.zeros(D) if f.axial else f.base_concentration * np.asarray(f.mean)
        logs, pulls = [], []
        for kappa in self.grid[0]:
            parts = np.vstack([kappa * weight[:, None] * values, base])
            constants = sum(log_constant(D, np.linalg.norm(part)) for part in parts)
            pulls.append(parts.sum(0))
            logs.append(constants - log_constant(D, np.linalg.norm(pulls[-1])))
        return np.array(logs), np.array(pulls)

    def log_evidence(self, drawn):
        signs = (len(drawn.values) - 1) * np.log(2) if self.family.axial else 0.0
        return logsumexp(self.by_node(drawn)[0], b=self.grid[1]) - signs

    def merit(self, theta, drawn):
        if EXPECTED.get("of") is not drawn:  # it takes a while, and is asked for again and again
            EXPECTED.update(of=drawn, expected=self.expected(drawn))
        cosine = float(theta @ EXPECTED["expected"])
        return abs(cosine) if self.family.axial else cosine

    def expected(self, drawn):
        """The atom that is expected, given its values."""
        logs, pulls = self.by_node(drawn)
        shares = np.exp(logs - logs.max()) * self.grid[1]
        lengths = np.linalg.norm(pulls, axis=1)
        step = 1e-4 * lengths  # mean cosines are slopes of log constants
        cosines = np.array(
            [
                (log_constant(self.dimensions, x - h) - log_constant(self.dimensions, x + h)) / (2 * h)
                for x, h in zip(lengths, step, strict=True)
            ]
        )
        return (shares * cosines / lengths) @ pulls

    def perturbed(self, family, scale, rng):
        changes = {"concentration": family.concentration * np.exp(scale * rng.normal())}
        if family.differing:
            changes["diversity"] = min((family.diversity or 0.1) * np.exp(scale * rng.normal()), MOST_DIVERSITY)
        if not family.axial:
            step = scale / np.sqrt(self.dimensions) * rng.normal(size=self.dimensions)
            changes["mean"] = unit(np.asarray(family.mean) + step)
            changes["base_concentration"] = (family.base_concentration or 0.1) * np.exp(scale * rng.normal())
        return replace(family, **changes)

    def error(self, family):
        truth = self.family
        own = abs(np.log(family.diversity / truth.diversity)) if truth.diversity else family.diversity or 0.0
        place = abs(np.log(family.concentration / truth.concentration)) if truth.axial else super().error(family)
        return max(own, place)


def log_constant(D, kappa):
    """Log of one over the integral of exp(kappa cosine) over the sphere, by quadrature over the angle."""

    def integrand(angle):
        return np.exp(kappa * (np.cos(angle) - 1)) * np.sin(angle) ** (D - 2)

    width = min(np.pi, 12 / np.sqrt(kappa)) if kappa > 0 else np.pi
    ring = np.log(2) + (D - 1) / 2 * np.log(np.pi) - gammaln((D - 1) / 2)  # area of the sphere of one dimension less
    return -(ring + kappa + np.log(quad(integrand, 0, width, epsabs=0, epsrel=1e-12, limit=200)[0]))


def directions(D, concentration, base_concentration, own=False, **more):
    mean = unit(np.arange(1.0, D + 1) * np.where(np.arange(D) % 2, -1, 1))
    return Directions(mean, concentration, base_concentration, own=own, **more)


def axial(concentration, **more):
    return Directions(None, concentration, 0.0, axial=True, **more)


CASES = {
    "circle": DirectionsCase(directions(2, 12.0, 1.5)),
    "sphere": DirectionsCase(directions(3, 30.0, 2.0)),
    "even base": DirectionsCase(directions(4, 25.0, 0.0)),
    "weight": DirectionsCase(directions(3, 20.0, 3.0), weight=True),
    "many dimensions": DirectionsCase(directions(60, 150.0, 40.0)),
    "own": OwnCase(directions(6, 80.0, 4.0, own=True, diversity=1.0, reference=7.0)),
    "axial": OwnCase(axial(40.0), axes=4),
    "axial, own, weight": OwnCase(axial(60.0, own=True, diversity=0.8, reference=6.0), axes=5, weight=True),
}
