"""Families from a user's density: normal and Student-t; only where jax is installed."""

from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from cases import Case, Drawn

FINE = {1: 2401, 2: 501}
"""Nodes per axis of the independent integrals, by dimensions: a tenth of the noise apart at most."""


@dataclass(frozen=True)
class DensityCase(Case):
    """`noise(rng, shape, h)` draws values about their atoms; `log_noise(off, h)` is its log density, summed over d."""

    family: object
    dimensions: int
    noise: object
    log_noise: object
    tolerance: float = 1e-8
    modal: bool = False
    many: int = 500
    marks = (pytest.mark.jax,)

    def draw(self, counts, rng):
        labels = np.repeat(np.arange(len(counts)), counts)
        h = self.family.hyper
        theta = h["mean"] + h["spread"] * rng.normal(size=(len(counts), self.dimensions))
        return Drawn(theta[labels] + self.noise(rng, (len(labels), self.dimensions), h), labels)

    def log_joint(self, theta, drawn):
        """Log density of values and global values theta (..., d) together."""
        h = self.family.hyper
        off = (theta - h["mean"]) / h["spread"]
        prior = -0.5 * off**2 - np.log(h["spread"]) - 0.5 * np.log(2 * np.pi)
        return prior.sum(-1) + sum(self.log_noise(v - theta, h) for v in drawn.values)

    def grid(self, drawn):
        """Global values (G, d) in one or two dimensions, fine and wide, and the log volume of each."""
        h = self.family.hyper
        reach = np.abs(drawn.values - h["mean"]).max() + 9 * h["spread"]
        axis = np.linspace(-reach, reach, FINE[self.dimensions])
        axes = np.meshgrid(*[axis] * self.dimensions, indexing="ij")
        theta = np.stack([x.ravel() for x in axes], axis=-1) + h["mean"]
        return theta, self.dimensions * np.log(axis[1] - axis[0])

    def log_evidence(self, drawn):
        theta, log_volume = self.grid(drawn)
        return float(logsumexp(self.log_joint(theta, drawn)) + log_volume)

    def merit(self, theta, drawn):
        if self.modal:
            return float(self.log_joint(theta, drawn))
        grid, _ = self.grid(drawn)
        log_posterior = self.log_joint(grid, drawn)
        posterior = np.exp(log_posterior - logsumexp(log_posterior))
        return -float(posterior @ ((grid - theta) ** 2).sum(-1))

    def perturbed(self, family, scale, rng):
        h = dict(family.hyper)
        for name in family.free:
            step = scale * rng.normal(size=h[name].shape)
            h[name] = h[name] * np.exp(step) if name in family.positive else h[name] + step
        return replace(family, h=h)

    def error(self, family):
        def measured(f):
            return [np.log(f.hyper[n]) if n in f.positive else f.hyper[n] for n in f.free]

        both = zip(measured(family), measured(self.family), strict=True)
        return max(float(np.abs(a - b).max()) for a, b in both)


def normal_noise(rng, shape, h):
    return h["scale"] * rng.normal(size=shape)


def log_normal(off, h):
    return (-0.5 * (off / h["scale"]) ** 2 - np.log(h["scale"]) - 0.5 * np.log(2 * np.pi)).sum(-1)


def student_noise(rng, shape, h):
    return h["scale"] * rng.standard_t(h["df"], shape)


def log_student(off, h):
    df = h["df"]
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi) - np.log(h["scale"])
    return (constant - (df + 1) / 2 * np.log1p((off / h["scale"]) ** 2 / df)).sum(-1)


def cases():
    from jax.scipy.stats import norm, t

    from modelweld.families.own.user_density import from_density

    def gaussian(v, theta, h):
        return norm.logpdf(v, theta, h["scale"])

    def student(v, theta, h):
        return t.logpdf(v, h["df"], theta, h["scale"])

    def prior(theta, h):
        return norm.logpdf(theta, h["mean"], h["spread"])

    start = {"mean": 0.7, "scale": 0.6, "spread": 1.6}
    heavy = start | {"df": 3.0}
    by_grid = {"factorises": True, "positive": ("scale", "spread", "df"), "fixed": ("df",)}
    normal = {"positive": ("scale", "spread"), "fixed": ()}
    return {
        "normal": DensityCase(
            from_density(gaussian, prior, start, **by_grid | normal), 1, normal_noise, log_normal
        ),
        "Student": DensityCase(from_density(student, prior, heavy, **by_grid), 2, student_noise, log_student),
    }  # fmt: skip


CASES = cases() if find_spec("jax") else {}
