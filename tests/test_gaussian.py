"""What is particular to the Gaussian family; the laws all families keep are in test_families.py."""

import numpy as np
import pytest

from cases.gaussian import CASES, GaussianCase, gaussian
from modelweld import Gaussian, InputError
from modelweld.families.base import summed
from modelweld.families.math import random_effects
from modelweld.families.math.random_effects import Effects
from modelweld.families.math.standard_errors import VaryingNoise
from modelweld.inputs.stack import Stack, offsets_of


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_closed_forms_are_consistent_too(rng):
    family = Gaussian(mean=[1.0, -1.0], noise=[0.5, 2.0], spread=[3.0, 1.5], learning="moments")
    found = family.update(GaussianCase(family, 2).draw(rng.integers(1, 6, 6000), rng).sums(family))
    assert np.allclose(found.noise, family.noise, rtol=0.05)
    assert np.allclose(found.spread, family.spread, rtol=0.1)
    assert np.allclose(found.mean, family.mean, atol=0.1)


@pytest.mark.parametrize("learning", ["likelihood", "moments"])
def test_nothing_matched_keeps_the_ratio(rng, learning):
    family = Gaussian(mean=[0.0], noise=[1.0], spread=[4.0], learning=learning)
    values = rng.normal(0, 3, (20, 1))
    found = family.update(family.rows(values))
    assert found.spread / found.noise == pytest.approx(4.0)


def test_fixed_hyperparameters_stay(rng):
    family = gaussian(learning="nothing")
    rows = family.rows(rng.normal(size=(5, 3)))
    assert family.update(rows) is family


def test_coinciding_values_meet_the_floor(rng):
    family = Gaussian().starts(Stack(np.repeat(rng.normal(size=(4, 2)), 3, axis=0), offsets_of([12])))[0]
    values = np.repeat(rng.normal(size=(4, 2)), 3, axis=0)
    found = family.update(summed(family.rows(values), np.repeat(np.arange(4), 3)))
    assert np.allclose(found.noise, family.floor)
    assert (found.spread > 0.01).all()


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("counts", [[2, 1, 1], [1, 1, 1], [1, 50], [3, 3, 3], "many"])
def test_compiled_likelihood_is_the_plain_one(rng, scalar, counts):
    from modelweld.matching.compiled import likelihood

    counts = rng.integers(1, 9, 30) if counts == "many" else np.asarray(counts)
    labels = np.repeat(np.arange(len(counts)), counts)
    values = rng.normal(0, 2, (len(counts), 4))[labels] + rng.normal(size=(len(labels), 4))
    sums, squares = summed(values, labels), (values**2).sum(0)
    effects, lines = Effects.from_counts(counts, sums, squares), likelihood.lines_of(counts, sums, squares)
    H = 1 if scalar else 4
    for start in (0.1, 1.0, 10.0):
        at = random_effects.Hyperparameters(np.full(4, 0.3), np.full(H, start), np.full(H, 2.0))
        assert np.allclose(likelihood.log_likelihood(lines, *at), random_effects.log_likelihood(effects, at))
        for floor in (np.full(H, 1e-6), np.full(H, 3.0)):
            plain = random_effects.maximise(effects, at, floor, scalar)
            *found, evidence = likelihood.maximise(lines, *at, floor)
            for a, b in zip(found, plain, strict=True):
                assert np.allclose(a, b, rtol=1e-5, atol=1e-8)
            assert evidence == pytest.approx(random_effects.log_likelihood(effects, plain).sum())


def test_gradient_with_variance_is_the_slope(rng):
    case = CASES["both"]
    drawn = case.draw([3, 2, 4], rng)
    likelihood = VaryingNoise(drawn.values, drawn.stack, drawn.labels)
    at = case.family.hyperparameters
    _, slope, by_trust = likelihood(at, 1.3)
    up, down = (likelihood(at, 1.3 + step)[0] for step in (1e-6, -1e-6))
    assert by_trust == pytest.approx((up - down) / 2e-6, rel=1e-4)
    for name in at._fields:
        for d in range(3):
            step = np.zeros(3)
            step[d] = 1e-6
            up = likelihood(at._replace(**{name: getattr(at, name) + step}), 1.3)[0]
            down = likelihood(at._replace(**{name: getattr(at, name) - step}), 1.3)[0]
            assert getattr(slope, name)[d] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"shape": "round"}, "shape"),
        ({"learning": "magic"}, "learning"),
        ({"noise": 0.0}, "positive"),
        ({"spread": [-1.0, 1.0]}, "positive"),
        ({"mean": np.inf}, "finite"),
        ({"noise": [1.0, 2.0], "shape": "scalar"}, "one noise"),
    ],
)
def test_wrong_arguments_are_named(wrong, says):
    with pytest.raises(InputError, match=says):
        Gaussian(**wrong)


def test_wrong_number_of_dimensions_is_named():
    with pytest.raises(InputError, match="2 entries but the values have 3"):
        Gaussian(noise=[1.0, 2.0]).starts(Stack(np.zeros((4, 3)), offsets_of([4])))
