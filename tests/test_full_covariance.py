"""Full covariances: the same exact objective, in a frame where they are diagonal."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import simulated_sets as simulate
from modelweld import Gaussian, InputError, LocalModel, fuse
from modelweld.core.family import subtract_evidence, sum_by_atom
from modelweld.core.values import Stack, offsets_of
from modelweld.demo.metrics import adjusted_rand
from modelweld.families.math.random_effects import frame_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def positive(rng, D):
    A = rng.normal(size=(D, D))
    return A @ A.T + 0.3 * np.eye(D)


def framed(rng, D=3):
    noise, spread = positive(rng, D), 4 * positive(rng, D)
    frame = frame_of(noise, spread)
    family = Gaussian(
        mean=rng.normal(size=D),
        noise=np.ones(D),
        spread=np.diag(frame.T @ spread @ frame),
        shape="full",
        frame=frame,
        origin=rng.normal(size=D),
    )
    return family, noise, spread


def test_frame_makes_both_covariances_diagonal(rng):
    family, noise, spread = framed(rng)
    assert np.allclose(family.covariances[0], noise)
    assert np.allclose(family.covariances[1], spread)


def test_evidence_is_the_marginal_density(rng):
    family, noise, spread = framed(rng)
    for m in (1, 2, 4):
        values = rng.normal(0, 2, (m, 3))
        joint = np.kron(np.eye(m), noise) + np.kron(np.ones((m, m)), spread)
        expected = multivariate_normal.logpdf(values.ravel(), np.tile(family.mean, m), joint)
        assert family.log_evidence(family.rows(values).sum(0)) == pytest.approx(expected)


def test_gain_is_the_difference_of_evidences(rng):
    family, _, _ = framed(rng)
    rows = family.rows(rng.normal(0, 2, (6, 3)))
    sums = np.stack([rows[:2].sum(0), rows[2:5].sum(0), rows[0]])
    plain = subtract_evidence(family, rows, sums)
    assert np.allclose(family.log_predictive(rows, sums), plain)


def test_estimate_is_the_posterior_mean(rng):
    family, noise, spread = framed(rng)
    values = rng.normal(0, 2, (5, 3))
    precision = np.linalg.inv(spread) + 5 * np.linalg.inv(noise)
    expected = np.linalg.solve(precision, np.linalg.solve(spread, family.mean) + np.linalg.solve(noise, values.sum(0)))
    assert np.allclose(family.estimate(family.rows(values).sum(0)), expected)


def test_learning_never_lowers_and_finds_the_covariances(rng):
    truth, noise, spread = framed(rng)
    labels = np.repeat(np.arange(4000), rng.integers(1, 5, 4000))
    theta = rng.multivariate_normal(truth.mean, spread, 4000)
    values = theta[labels] + rng.multivariate_normal(np.zeros(3), noise, len(labels))
    stack = Stack(values, offsets_of([len(values)]))
    family = Gaussian(shape="full").starts(stack)[0]
    for _ in range(3):
        before = float(family.log_evidence(sum_by_atom(family.rows(values), labels)).sum())
        family = family.learn(stack, labels, sum_by_atom(family.rows(values), labels))
        assert family.log_evidence(sum_by_atom(family.rows(values), labels)).sum() >= before
    assert np.allclose(family.covariances[0], noise, atol=0.1 * np.abs(noise).max())
    assert np.allclose(family.covariances[1], spread, atol=0.1 * np.abs(spread).max())


def test_correlated_noise_is_matched_where_a_diagonal_fails():
    full, diagonal = [], []
    for seed in range(3):
        data = simulate.correlated(10, seed=seed)
        full.append(fuse(data.values, Gaussian(shape="full")))
        diagonal.append(fuse(data.values))
        assert (np.diff(full[-1].diagnosis.history) >= -1e-6).all()
        full[-1] = adjusted_rand(data.truth, full[-1].labels)
        diagonal[-1] = adjusted_rand(data.truth, diagonal[-1].labels)
    assert np.mean(full) > 0.98
    assert np.mean(full) > np.mean(diagonal)


def test_units_of_each_dimension_do_not_matter():
    values = simulate.correlated(10, seed=1).values
    units = np.geomspace(1e-4, 1e4, 10)
    base = fuse(values, Gaussian(shape="full"))
    other = fuse([v * units for v in values], Gaussian(shape="full"))
    assert np.array_equal(base.matching.stacked_labels, other.matching.stacked_labels)


def test_it_takes_plain_values_only():
    model = LocalModel({"v": np.eye(2)}, {"v": ("atom", None)}, variance={"v": 1.0})
    with pytest.raises(InputError, match="plain values"):
        fuse([model, model], Gaussian(shape="full"), screens=["outliers"])
