"""NormalGamma: noise of each atom, offsets, and what it takes. The laws of all families are in test_families.py."""

import numpy as np
import pytest

import modelweld
from cases.normal_gamma import CASES
from modelweld.core.values import Stack, offsets_of
from modelweld.families.normal_gamma import NormalGamma


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_noise_of_each_atom_is_found(rng):
    atoms, noise = rng.normal(0, 20, (6, 3)), np.geomspace(0.01, 1.0, 6)[:, None]
    sites = [atoms + rng.normal(size=(6, 3)) * np.sqrt(noise) for _ in range(40)]
    fusion = modelweld.fuse(sites, NormalGamma())
    assert fusion.K == 6
    family, labels = fusion.diagnosis.family, fusion.matching.stacked_labels
    sums = np.stack([family.rows(np.vstack(sites)[labels == k]).sum(0) for k in range(6)])
    found = family.noise(sums)[labels[:6]]
    assert np.abs(np.log(found / noise)).max() < np.log(2)


def test_values_far_from_zero_lose_no_digits(rng):
    sites = [rng.normal(0, 0.1, (4, 2)) + 5 * np.arange(8).reshape(4, 2) for _ in range(6)]
    near, far = (modelweld.fuse([s + shift for s in sites], NormalGamma()) for shift in (0.0, 1e6))
    assert near.K == far.K == 4
    assert near.objective == pytest.approx(far.objective, abs=1e-3)


def test_values_that_coincide_stay_finite():
    one = np.array([[0.0, 1.0], [5.0, 5.0], [9.0, -4.0]])
    fusion = modelweld.fuse([one, one, one], NormalGamma(), screens=["outliers"])
    assert fusion.K == 3
    assert np.isfinite(fusion.objective)


def test_where_nothing_is_matched_strength_and_shape_stay(rng):
    case = CASES["plain"]
    drawn = case.draw([1] * 20, rng)
    learned = case.family.update(drawn.sums(case.family))
    assert np.array_equal(learned.strength, case.family.strength)
    assert np.array_equal(learned.shape, case.family.shape)
    assert not np.array_equal(learned.rate, case.family.rate)


def test_what_it_takes():
    values, offsets = np.zeros((2, 3)), offsets_of([1, 1])
    assert NormalGamma().misfit(Stack(values, offsets)) is None
    assert "without variance" in NormalGamma().misfit(Stack(values, offsets, np.ones((2, 3))))[1]
    with pytest.raises(modelweld.InputError, match="rate has 2 entries but the values have 3 dimensions"):
        NormalGamma(rate=[1.0, 2.0]).starts(Stack(values, offsets))
