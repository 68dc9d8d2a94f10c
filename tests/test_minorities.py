"""What two sites of twenty cannot do in any family: part the others. Copies, sites of far more values and fragments."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import modelweld
from modelweld import Counts, Directions, Factors, Gaussian, LocalModel, NormalGamma, Proportions, Rates, Scatter
from modelweld.demo.metrics import adjusted_rand

SITES, ATOMS = 20, 10

Draw = Callable[[np.random.Generator, np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Drawn:
    """A family, its atoms, and values about some of them: `values(rng, atoms, times)` with that much more noise."""

    family: object
    atoms: Callable[[np.random.Generator, int], np.ndarray]
    values: Draw
    exposure: float | None = None

    def model(self, values, times=1.0):
        weight = {} if self.exposure is None else {"v": np.full(values.shape, self.exposure / times**2)}
        return LocalModel({"v": values}, {"v": ("atom", *[None] * (values.ndim - 1))}, weight=weight)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def either_sign(rng, x):
    return rng.choice([-1, 1], (len(x), 1)) * x


def shares(rng, atoms, times):
    atoms = atoms / atoms.sum(1, keepdims=True)
    return np.array([rng.dirichlet(200 / times**2 * own + 1e-3) for own in atoms])


def counts(rng, atoms, times):
    return np.array([rng.multinomial(int(400 / times**2), own) for own in shares(rng, atoms, times)]).astype(float)


def events(rng, atoms, times):
    return rng.gamma(40 / times**2 * atoms) / 40 * times**2


def counted_events(rng, atoms, times):
    return rng.poisson(events(rng, atoms, times) * 40 / times**2) / 40 * times**2


def covariances(rng, number):
    factors = rng.normal(size=(number, 3, 5)) * rng.gamma(2, 0.7, (number, 3, 1))
    return factors @ factors.swapaxes(1, 2) / 3 + 0.2 * np.eye(3)


def sample_covariances(rng, atoms, times):
    points = int(30 / times**2)
    rows = rng.normal(size=(len(atoms), points, 3)) @ np.linalg.cholesky(atoms).swapaxes(1, 2)
    return rows.swapaxes(1, 2) @ rows / points


def real(rng, number):
    return rng.normal(0, 4, (number, 8))


def near(rng, atoms, times):
    return rng.normal(atoms, 0.7 * times)


def directions(rng, number):
    return unit(rng.normal(size=(number, 8)))


def near_direction(rng, atoms, times):
    return unit(rng.normal(atoms, times / 15))


def rates(rng, number):
    return rng.gamma(0.5, 3.0, (number, 8)) + 0.2


TABLE = {
    "gaussian": Drawn(Gaussian(), real, near),
    "gaussian, scalar": Drawn(Gaussian(shape="scalar"), real, near),
    "normal gamma": Drawn(NormalGamma(), real, near),
    "factors": Drawn(Factors(), real, lambda rng, atoms, times: either_sign(rng, near(rng, atoms, times))),
    "shares": Drawn(Counts(), lambda rng, number: rng.dirichlet(np.full(20, 0.3), number), shares),
    "counts": Drawn(Counts(), lambda rng, number: rng.dirichlet(np.full(20, 0.3), number), counts),
    "directions": Drawn(Directions(), directions, near_direction),
    "directions, axial": Drawn(
        Directions(axial=True),
        directions,
        lambda rng, atoms, times: either_sign(rng, near_direction(rng, atoms, times)),
    ),
    "rates": Drawn(Rates(), rates, events),
    "rates, exposed": Drawn(Rates(), rates, counted_events, 40.0),
    "scales": Drawn(
        Rates("gamma"),
        lambda rng, number: 1 / rng.gamma(1.0, 1.0, (number, 8)),
        lambda rng, atoms, times: rng.gamma(30 / times**2, atoms * times**2 / 30),
    ),
    "proportions": Drawn(
        Proportions(),
        lambda rng, number: np.clip(rng.beta(0.5, 0.5, (number, 8)), 0.02, 0.98),
        lambda rng, atoms, times: rng.beta(60 / times**2 * atoms, 60 / times**2 * (1 - atoms)),
    ),
    "scatter": Drawn({"v": Scatter()}, covariances, sample_covariances),
}


def copies(drawn, rng, atoms, sites):
    """Two sites that hold everything, one of them a copy of the other with a hundredth of the noise."""
    one = drawn.values(rng, atoms, 1.0)
    other = drawn.values(rng, one, 0.01)
    return [drawn.model(one), drawn.model(other)], True


def precise(drawn, rng, atoms, sites):
    """Two that know all atoms thirty times as well as the others do: nothing is wrong with them."""
    return [drawn.model(drawn.values(rng, atoms, 0.03), 0.03) for _ in range(2)], False


def far_more(drawn, rng, atoms, sites):
    """One of forty times as many values."""
    return [drawn.model(drawn.values(rng, np.concatenate([atoms, drawn.atoms(rng, 390)]), 1.0))], True


def fragments(drawn, rng, atoms, sites):
    """One that sends every atom three times."""
    return [drawn.model(drawn.values(rng, np.repeat(atoms, 3, axis=0), 1.0))], True


@pytest.mark.parametrize("odd", [copies, precise, far_more, fragments], ids=lambda odd: odd.__name__)
@pytest.mark.parametrize("name", TABLE)
def test_the_others_are_matched_as_without_them_and_they_are_named(name, odd):
    drawn, rng = TABLE[name], np.random.default_rng(9000)
    atoms = drawn.atoms(rng, ATOMS)
    held = [rng.permutation(ATOMS)[: rng.integers(ATOMS // 2, ATOMS + 1)] for _ in range(SITES)]
    sites = [drawn.model(drawn.values(rng, atoms[own], 1.0)) for own in held]
    added, named = odd(drawn, rng, atoms, sites)
    clean = modelweld.fuse(sites, drawn.family)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fusion = modelweld.fuse([*sites, *added], drawn.family)
    truth, honest = np.concatenate(held), np.concatenate(fusion.labels[:SITES])
    assert adjusted_rand(honest, truth) >= 0.98 * adjusted_rand(np.concatenate(clean.labels), truth)
    text = " ".join(str(warning.message) for warning in said)
    assert not named or all(f"'{SITES + i}'" in text for i in range(len(added))), text
