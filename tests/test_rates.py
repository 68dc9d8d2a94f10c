"""What is particular to rates: exposures, the carrier near zero, units, and which values are refused."""

import numpy as np
import pytest

from modelweld import InputError, LocalModel, fuse, metrics
from modelweld.core.family import sum_by_atom
from modelweld.core.values import Stack, offsets_of
from modelweld.families.rates import Rates


def test_a_large_between_is_almost_exact():
    weight, values = np.array([[4.0], [20.0]]), np.array([[0.5], [1.35]])
    exact, almost = (Rates(mean=1.0, concentration=2.0, between=b) for b in (np.inf, 1e7))
    sums = [f.rows(values, weight=weight).sum(0) for f in (exact, almost)]
    assert exact.log_evidence(sums[0]) == pytest.approx(float(almost.log_evidence(sums[1])), abs=1e-4)


@pytest.mark.parametrize("mean", [5.0, 0.5, 0.1])
@pytest.mark.parametrize("sent", [True, False])
def test_what_values_are_worth_is_learned_also_from_few_events(mean, sent):
    # every site draws its own rate, worth 8 intervals of the atom's, then counts 30 intervals
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(400), 4)
    theta = rng.gamma(2.0, mean / 2.0, (400, 1))[labels]
    own = rng.gamma(8.0 * theta, 1 / 8.0)
    values, weight = (rng.poisson(30 * own) / 30.0, np.full(own.shape, 30.0)) if sent else (own, None)
    stack = Stack(values, offsets_of([len(labels)]), None, weight)
    family = Rates().starts(stack)[0]
    for _ in range(10):
        family = family.learn(stack, labels, sum_by_atom(family.rows(stack.values, weight=stack.weight), labels))
    assert 0.8 < family.between[0] / 8.0 < 1.25


@pytest.mark.parametrize("kind", ["poisson", "gamma"])
def test_units_do_not_matter(kind):
    rng = np.random.default_rng(3)
    atoms = rng.gamma(2.0, 1.0, (8, 4))
    sites = [rng.gamma(40.0, atoms[rng.permutation(8)[:5]] / 40.0) for _ in range(6)]
    here, there = fuse(sites, Rates(kind)), fuse([1e4 * v for v in sites], Rates(kind))
    assert all(np.array_equal(a, b) for a, b in zip(here.labels, there.labels, strict=True))
    assert np.allclose(here.atoms, there.atoms / 1e4, rtol=1e-3)


def sites_with_exposure(rng, K=8, J=8):
    atoms = rng.gamma(1.5, 1.0, (K, 5))
    models, truth = [], []
    for _ in range(J):
        held = rng.permutation(K)[:5]
        weight = rng.integers(30, 300, (5, 5)).astype(float)
        values = rng.poisson(weight * atoms[held]) / weight
        weight[rng.random((5, 5)) < 0.15] = 0.0
        models.append(
            LocalModel({"rates": np.where(weight > 0, values, -7.0)}, {"rates": ("s", None)}, weight={"rates": weight})
        )
        truth.append(held)
    return models, truth


def test_rates_that_were_partly_not_seen_are_matched():
    models, truth = sites_with_exposure(np.random.default_rng(5))
    fusion = fuse(models, Rates())
    assert metrics.adjusted_rand(truth, fusion.labels) == 1.0
    assert fusion.K == 8


@pytest.mark.parametrize(
    ("family", "value", "words"),
    [
        (Rates(), -0.5, "Rates takes values that are not negative; found -0.5"),
        (Rates("gamma"), 0.0, "Rates takes values that are positive; found 0"),
    ],
)
def test_what_is_no_rate_is_refused(family, value, words):
    with pytest.raises(InputError, match=words):
        fuse([[[1.0, 2.0]], [[1.0, value]]], family)


def test_variance_and_wrong_lengths_are_refused():
    stack = Stack(np.ones((3, 2)), offsets_of([3]))
    with pytest.raises(InputError, match="takes no variance"):
        Rates(mean=1.0, concentration=1.0, between=1.0).rows(stack.values, variance=stack.values)
    with pytest.raises(InputError, match="3 entries but the values have 2"):
        Rates(mean=[1.0, 2.0, 3.0]).starts(stack)


@pytest.mark.parametrize("family", [Rates(), Rates("gamma"), Rates("gamma", shape=1.0), Rates(between=np.inf)])
def test_values_that_coincide_are_matched(family):
    sites = [np.array([[1.0, 3.0], [5.0, 3.0], [30.0, 3.0]]) for _ in range(5)]
    fusion = fuse(sites, family, screens=["outliers"])
    assert np.isfinite(fusion.objective)
    if family.shape is None and not family.exact:
        assert fusion.K == 3


def test_a_coordinate_without_events_does_no_harm():
    rng = np.random.default_rng(2)
    atoms = np.array([[1.0, 0.0, 8.0], [6.0, 0.0, 0.2], [20.0, 0.0, 3.0]])
    sites = [rng.poisson(50 * atoms) / 50 for _ in range(6)]
    fusion = fuse(sites, Rates())
    assert fusion.K == 3
    assert np.allclose(fusion.atoms[:, 1], 0.0, atol=1e-2)
