"""What is particular to the Gaussian family; the laws all families keep are in test_families.py."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cases.gaussian import GaussianCase
from modelweld import Gaussian, InputError
from modelweld.core.family import sum_by_atom
from modelweld.core.values import Stack, offsets_of
from modelweld.fit.engines.choice import is_compilable


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


def test_coinciding_values_meet_the_floor(rng):
    family = Gaussian().starts(Stack(np.repeat(rng.normal(size=(4, 2)), 3, axis=0), offsets_of([12])))[0]
    values = np.repeat(rng.normal(size=(4, 2)), 3, axis=0)
    sums = sum_by_atom(family.rows(values), np.repeat(np.arange(4), 3))
    found = replace(family, squares=0.0).update(sums)
    assert np.allclose(found.noise, family.floor)
    assert (found.spread > 0.01).all()
    # what is believed adds its squares to those of the values beyond the first of each atom
    assert np.allclose(family.update(sums).noise, family.squares / (12 - 4), rtol=1e-3)


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("floor", [1e-6, 3.0])
def test_nothing_near_is_more_probable_also_at_the_floor(rng, scalar, floor):
    labels = np.repeat(np.arange(9), [3, 1, 2, 4, 1, 1, 2, 5, 1])
    values = rng.normal(0, 2, (9, 2))[labels] + rng.normal(size=(len(labels), 2))
    H = 1 if scalar else 2
    shape = "scalar" if scalar else "diagonal"
    family = Gaussian(np.zeros(2), np.full(H, 3.5), np.ones(H), shape, floor=floor, squares=0.3, near=0.1, degrees=2.0)
    sums = sum_by_atom(family.rows(values), labels)
    found = family.update(sums)

    def merit(f):
        return f.log_evidence(sums).sum() + f.log_prior()

    assert (found.noise >= floor).all()
    for name in ("mean", "noise", "spread"):
        for d, factor in product(range(np.size(getattr(found, name))), (0.999, 1.001)):
            other = np.array(getattr(found, name))
            other[d] *= factor
            if name != "noise" or other[d] >= floor:
                assert merit(replace(found, **{name: other})) <= merit(found) + 1e-9


def test_wrong_number_of_dimensions_is_named():
    with pytest.raises(InputError, match="2 entries but the values have 3"):
        Gaussian(noise=[1.0, 2.0]).starts(Stack(np.zeros((4, 3)), offsets_of([4])))


def test_variances_of_full_covariances_are_their_diagonals():
    frame = np.array([[2.0, 0.5], [0.0, 1.0]])
    full = Gaussian(mean=[0.0, 0.0], noise=[1.0, 2.0], spread=[3.0, 4.0], shape="full", frame=frame)
    for found, matrix in zip(full.variances()[:2], full.covariances, strict=True):
        np.testing.assert_allclose(found, np.diagonal(matrix))
    assert Gaussian().variances() is None


def test_only_what_the_compiled_engine_knows_runs_on_it():
    class Mine(Gaussian):
        pass

    assert [is_compilable(f) for f in (Gaussian(), Gaussian(shape="scalar"), Gaussian(shape="full"), Mine())] == [
        True,
        True,
        False,
        False,
    ]
