"""Scatter: integrals, slopes, size, and what it takes. The laws of all families are in test_families.py."""

import numpy as np
import pytest
from scipy.special import multigammaln

import modelweld
from cases.scatter import inverse_wishart, scattered
from modelweld.core.values import Stack, offsets_of
from modelweld.demo.metrics import adjusted_rand
from modelweld.errors import InputError
from modelweld.families.wishart.evidence import FREEDOMS, integral, log_normaliser
from modelweld.families.wishart.scatter import Scatter


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def drawn_sites(rng, D=3, K=5, J=8, between=80.0, freedom=8.0):
    """Every site has every atom's covariance."""
    atoms = inverse_wishart(K, freedom, np.eye(D) * freedom, rng)
    return [scattered(atoms, np.full(K, between), rng).reshape(K, -1) for _ in range(J)], np.tile(np.arange(K), J)


@pytest.mark.parametrize("D", [1, 2, 7, 50])
def test_normaliser_is_that_of_the_wishart_distribution(D):
    x = np.array([D - 0.5, D + 2, 100.3 + D, 1e4])
    leading = x * D / 2 * np.log(x / 2)
    assert np.allclose(log_normaliser(x, D) + leading, [multigammaln(v / 2, D) for v in x], rtol=1e-12)


def test_adding_a_covariance_of_fifty_dimensions_keeps_its_digits():
    # F(x + 1, B) - F(x, B) in closed form, at a freedom of a million
    D, x = 50, np.array([60.0, 1e4, 1e6])
    from scipy.special import gammaln

    exact = gammaln((x + 1) / 2) - gammaln((x + 1 - D) / 2) + D / 2 * np.log(2.0) - 3.0 / 2
    found = integral(x + 1, np.full(3, 3.0), D) - integral(x, np.full(3, 3.0), D)
    assert np.abs(found - exact).max() < 1e-6


def test_few_points_count_as_not_seen(rng):
    family = Scatter(freedom=6.0, scale=np.eye(3), between=2.0)
    values = scattered(np.tile(np.eye(3), (3, 1, 1)), np.full(3, 9.0), rng).reshape(3, 9)
    rows = family.rows(values, None, np.repeat([[4.0], [5.0], [500.0]], 9, 1))
    assert not rows[0].any()
    assert rows[1:, 0].tolist() == [5.0, 5.0]  # D + 2, though 1 / (1 / 500 + 1 / 2) is less


def test_covariances_alone_are_matched(rng):
    sites, truth = drawn_sites(rng)
    fusion = modelweld.fuse(sites, Scatter())
    assert fusion.K == 5
    assert adjusted_rand(fusion.matching.stacked_labels, truth) == 1.0
    assert 50 < fusion.diagnosis.hyperparameters["between"] < 130


def test_units_and_turns_do_not_matter(rng):
    sites, _ = drawn_sites(rng, D=2, between=25.0)
    turn = np.array([[1e3, 2.0], [0.0, 1e-3]])
    turned = [(turn @ s.reshape(-1, 2, 2) @ turn.T).reshape(len(s), 4) for s in sites]
    plain, other = (modelweld.fuse(s, Scatter(), search="plain") for s in (sites, turned))
    assert plain.K == other.K
    found = [f.diagnosis.hyperparameters["between"] for f in (plain, other)]
    assert found[0] == pytest.approx(found[1], rel=1e-2)


def test_covariances_that_coincide_do_not_overflow():
    one = np.array([[2.0, 0.3, 0.3, 1.0], [0.1, 0.0, 0.0, 5.0]])
    fusion = modelweld.fuse([one, one, one], Scatter(), screens=["outliers"])
    assert fusion.K == 2
    assert fusion.diagnosis.hyperparameters["between"] <= FREEDOMS[1] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0, 0.0, 0.0], "square matrices, flattened; found 3 columns"),
        ([1.0, 0.5, 0.4, 1.0], r"symmetric matrices; found 0.5 at \(0, 1\) and 0.4 at \(1, 0\)"),
        ([1.0, 2.0, 2.0, 1.0], "positive definite matrices; found a smallest eigenvalue of -1"),
        ([1.0, 0.0, 0.0, -1.0], "positive diagonal; found -1"),
    ],
)
def test_what_is_no_covariance_is_refused(value, words):
    good = np.eye(2).reshape(1, 4)[:, : len(value)]
    with pytest.raises(InputError, match=f"Scatter takes values that .*{words}"):
        modelweld.fuse([good, np.array([value])], Scatter())


def test_what_is_not_seen_is_not_judged():
    values, offsets = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]), offsets_of([1, 1])
    assert Scatter().misfit(Stack(values, offsets, None, np.repeat([[9.0], [0.0]], 4, 1))) is None
    row, words = Scatter().misfit(Stack(values[[0, 0]], offsets, None, np.array([[9.0] * 4, [9.0, 9.0, 1.0, 9.0]])))
    assert row == 1
    assert "same weight in all entries" in words
    assert "without variance" in Scatter().misfit(Stack(values, offsets, np.ones((2, 4))))[1]


def test_given_hyperparameters_are_kept(rng):
    sites, _ = drawn_sites(rng, D=2)
    family = Scatter(freedom=5.0, scale=np.eye(2) * 5, between=40.0, learning="nothing")
    fusion = modelweld.fuse(sites, family)
    assert fusion.diagnosis.hyperparameters["between"] == 40.0
    assert fusion.diagnosis.hyperparameters["freedom"] == 5.0
    assert family.update(np.zeros((1, 6))) is family
    with pytest.raises(InputError, match="exceed D - 1 = 1"):
        modelweld.fuse(sites, Scatter(freedom=0.5))


def test_one_site_alone_keeps_its_covariances_apart(rng):
    sites, _ = drawn_sites(rng, J=1)
    assert modelweld.fuse(sites, Scatter()).K == 5
