"""Sites of every family that shards take, with and without what is known of their values: for laws of shards."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from modelweld import Counts, Directions, Gaussian, LocalModel, NormalGamma, Proportions, Rates
from modelweld.core.family import Family

SITES, ATOMS = 70, 6


@dataclass(frozen=True)
class Sharded:
    """A family (None: the default), and sites of some of its atoms: `draw(rng, hard)`."""

    family: Family | None
    draw: object

    def sites(self, seed, *, hard=False):
        return self.draw(np.random.default_rng(seed), hard)


def held(rng):
    """Atoms of every site."""
    return [rng.permutation(ATOMS)[: rng.integers(2, ATOMS)] for _ in range(SITES)]


def model(values, variance=None, weight=None, site=None):
    beside = {"variance": variance, "weight": weight}
    return LocalModel(
        {"v": values}, {"v": ("atom", None)}, site=site, **{k: {"v": x} for k, x in beside.items() if x is not None}
    )


def real(rng, hard, known=()):
    """Real values with what is `known` of them: standard errors, weights."""
    D, spread = 5, 3.0 if hard else 20.0
    atoms, sites = rng.normal(0, spread, (ATOMS, D)), []
    for j, own in enumerate(held(rng)):
        shape = (len(own), D)
        variance = rng.uniform(0.1, 2.0, shape) if "variance" in known else None
        weight = rng.uniform(0.5, 4.0, shape) if "weight" in known else None
        noise = 1 / (1.0 if weight is None else weight) + (0.0 if variance is None else variance)
        values = atoms[own] + rng.normal(size=shape) * np.sqrt(noise)
        sites.append(model(values, variance, weight, f"s{j}") if known else values)
    return sites


def loud(rng, hard):
    """Real values whose noise differs by atom."""
    atoms = rng.normal(0, 4.0 if hard else 30.0, (ATOMS, 4))
    noise = rng.gamma(2.0, 0.5, (ATOMS, 4))
    return [atoms[own] + rng.normal(size=(len(own), 4)) * np.sqrt(noise[own]) for own in held(rng)]


def compositions(rng, hard, counted):
    """Counts over words, or shares."""
    atoms = rng.dirichlet(np.full(12, 3.0 if hard else 0.3), ATOMS)
    sites = []
    for own in held(rng):
        n = rng.integers(60, 300, len(own))
        shares = np.array([rng.dirichlet(200 * theta + 1e-3) for theta in atoms[own]])
        counts = np.array([rng.multinomial(m, p) for m, p in zip(n, shares, strict=True)]).astype(float) + 0.5
        sites.append(counts if counted else counts / counts.sum(1, keepdims=True))
    return sites


def directions(rng, hard, diversity=0.7, weighted=False):
    """Unit vectors, of which sites agree more closely on some than on others."""
    D = 8
    atoms = rng.normal(size=(ATOMS, D))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    kappa = (12.0 if hard else 300.0) * np.exp(diversity * rng.normal(size=ATOMS))
    sites = []
    for j, own in enumerate(held(rng)):
        weight = rng.uniform(0.5, 3.0, (len(own), 1)) if weighted else np.ones((len(own), 1))
        values = atoms[own] + rng.normal(size=(len(own), D)) / np.sqrt(kappa[own, None] * weight)
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        sites.append(model(values, weight=weight * np.ones(D), site=f"s{j}") if weighted else values)
    return sites


def rates(rng, hard):
    """Events per interval, with the number of intervals behind them."""
    atoms, sites = rng.gamma(4.0 if hard else 0.5, 3.0, (ATOMS, 6)) + 0.2, []
    for j, own in enumerate(held(rng)):
        exposure = rng.uniform(20, 60, (len(own), 6))
        own_truth = atoms[own] * rng.gamma(40, 1 / 40, (len(own), 6))
        sites.append(model(rng.poisson(own_truth * exposure) / exposure, weight=exposure, site=f"s{j}"))
    return sites


def proportions(rng, hard):
    """Successes of trials."""
    shape = 3.0 if hard else 0.4
    atoms, sites = np.clip(rng.beta(shape, shape, (ATOMS, 8)), 0.02, 0.98), []
    for j, own in enumerate(held(rng)):
        trials = rng.integers(20, 80, (len(own), 8)).astype(float)
        truth = rng.beta(60 * atoms[own], 60 * (1 - atoms[own]))
        sites.append(model(rng.binomial(trials.astype(int), truth) / trials, weight=trials, site=f"s{j}"))
    return sites


TABLE = {
    "gaussian": Sharded(None, real),
    "gaussian, scalar": Sharded(Gaussian(shape="scalar"), real),
    "gaussian, standard errors": Sharded(None, partial(real, known=("variance",))),
    "gaussian, weights": Sharded(None, partial(real, known=("weight",))),
    "gaussian, both": Sharded(None, partial(real, known=("variance", "weight"))),
    "normal gamma": Sharded(NormalGamma(), loud),
    "counts": Sharded(Counts(), partial(compositions, counted=True)),
    "shares": Sharded(Counts(), partial(compositions, counted=False)),
    "directions": Sharded(Directions(), directions),
    "directions, one concentration": Sharded(Directions(own=False), partial(directions, diversity=0.0)),
    "directions, weights": Sharded(Directions(), partial(directions, weighted=True)),
    "rates": Sharded(Rates(), rates),
    "proportions": Sharded(Proportions(), proportions),
}
