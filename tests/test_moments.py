"""Moments: what points say, however few, and what it takes. The laws of all families are in test_families.py."""

import numpy as np
import pytest

import modelweld
from cases.moments import CASES
from modelweld import LocalModel
from modelweld.core.values import Stack, offsets_of
from modelweld.demo.metrics import adjusted_rand
from modelweld.errors import InputError
from modelweld.families import Moments

KEY = ("means", "covariances")


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def value(points):
    """Mean and covariance of points side by side."""
    return np.append(points.mean(0), np.cov(points.T, bias=True))


def site(means, covariances, n):
    return LocalModel(
        dict(zip(KEY, (means, covariances), strict=True)),
        {"means": ("state", None), "covariances": ("state", None, None)},
        weight=dict.fromkeys(KEY, np.asarray(n, dtype=float)),
    )


def drawn_sites(rng, K=4, J=6, D=3):
    """States whose means and covariances come from up to five points: most of them singular."""
    theta, root = rng.normal(0, 6, (K, D)), rng.normal(0, 0.5, (K, D, D))
    sites = []
    for _ in range(J):
        n = rng.integers(1, 6, K)
        values = np.array([value(theta[k] + rng.normal(size=(n[k], D)) @ root[k]) for k in range(K)])
        sites.append(site(values[:, :D], values[:, D:].reshape(K, D, D), n))
    return sites, np.tile(np.arange(K), J)


def test_without_weight_a_value_is_one_point(rng):
    family = CASES["points"].family
    values = np.array([value(rng.normal(size=(5, 2)))])
    assert np.array_equal(family.rows(values), family.rows(values, weight=np.ones((1, 6))))


def test_states_of_few_points_are_matched(rng):
    sites, truth = drawn_sites(rng)
    fusion = modelweld.fuse(sites, {KEY: Moments()})
    assert fusion.K == 4
    assert adjusted_rand(fusion.matching.stacked_labels, truth) == 1.0


def test_covariances_of_too_few_points_for_a_density_count(rng):
    shapes = [np.diag(d) for d in ([100.0, 1, 1], [1, 100.0, 1], [1, 1, 100.0])]
    sites = [site(rng.normal(0, 0.1, (3, 3)), np.array(shapes), [4.0] * 3) for _ in range(5)]
    by_moments = modelweld.fuse(sites, {KEY: Moments()})
    truth = np.tile(np.arange(3), 5)
    assert adjusted_rand(by_moments.matching.stacked_labels, truth) == 1.0


def test_units_and_origin_do_not_matter(rng):
    sites, _ = drawn_sites(rng)
    unit, shift = np.array([1e-3, 1.0, 1e4]), np.array([5.0, -300.0, 2e5])
    moved = [
        site(s.arrays["means"] * unit + shift, s.arrays["covariances"] * np.outer(unit, unit), s.weight["means"][:, 0])
        for s in sites
    ]
    here, there = (modelweld.fuse(s, {KEY: Moments()}) for s in (sites, moved))
    assert np.array_equal(here.matching.stacked_labels, there.matching.stacked_labels)
    points = sum(s.weight["means"][:, 0].sum() for s in sites)
    assert there.objective == pytest.approx(here.objective - points * np.log(unit).sum(), abs=1e-4)


def test_single_frames_alone_do_not_make_it_unbounded():
    line = np.linspace(0, 1, 5)[:, None] * [1.0, 2.0, 3.0]
    sites = [site(line, np.zeros((5, 3, 3)), np.ones(5)) for _ in range(3)]
    fusion = modelweld.fuse(sites, {KEY: Moments()}, screens=["outliers"])
    assert np.isfinite(fusion.objective)


def test_what_rounding_makes_negative_is_zero():
    family = CASES["points"].family
    exact = np.array([[1.0, 2.0, 1.0, 2.0, 2.0, 4.0]])  # a singular covariance
    rounded = exact - np.array([[0, 0, 1e-7, 0, 0, 0]])
    stack = Stack(rounded, offsets_of([1]), None, np.full((1, 6), 1e9))
    assert np.linalg.eigvalsh(rounded[0, 2:].reshape(2, 2))[0] < 0
    assert family.misfit(stack) is None
    covariance = family.estimate(family.rows(rounded, weight=stack.weight)[0])[2:].reshape(2, 2)
    assert np.linalg.eigvalsh(covariance)[0] > 0  # a billion times -1e-7 would outweigh the scale
    assert np.allclose(covariance.ravel(), exact[0, 2:], atol=1e-6)


@pytest.mark.parametrize(
    ("values", "weight", "words"),
    [
        (
            [[0.0, 0.0, 1.0, 2.0, 0.0, 1.0]],
            None,
            "have a symmetric covariance beside the mean; found 2 at (0, 1) and 0",
        ),
        ([[0.0, 0.0, 1.0, 2.0, 2.0, 1.0]], None, "without negative eigenvalues beside the mean; found -1"),
        ([[0.0, 0.0, -1.0, 0.0, 0.0, 1.0]], None, "without negative eigenvalues beside the mean; found -1"),
        ([[0.0, 0.0, 1.0, 0.0, 1.0]], None, "side by side; found 5 columns"),
        ([[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]], [[3.0, 3, 4, 4, 4, 4]], "the same weight in all entries of a row"),
    ],
)
def test_what_is_no_covariance_is_refused(values, weight, words):
    values = np.array(values)
    good = np.append(np.ones(2), np.eye(2))[: values.shape[1]]
    weight = None if weight is None else np.vstack([np.full((1, 6), 2.0), weight])
    row, why = Moments().misfit(Stack(np.vstack([good, values]), offsets_of([2]), None, weight))
    assert words in why
    assert row == (0 if "columns" in why else 1)


def test_what_was_not_seen_may_be_anything():
    values = np.array([[0.0, 1.0], [5.0, -3.0]])
    assert Moments().misfit(Stack(values, offsets_of([2]), None, np.array([[1.0, 1.0], [0.0, 0.0]]))) is None


def test_as_many_dimensions_as_were_given():
    stack = Stack(np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]]), offsets_of([1]))
    assert "as the mean that was given, 3; found 2" in Moments(mean=[0.0] * 3).misfit(stack)[1]
    assert "as the scale that was given, 3; found 2" in Moments(scale=np.eye(3)).misfit(stack)[1]
    with pytest.raises(InputError, match="freedom must exceed D - 1 = 1"):
        Moments(freedom=0.5).starts(stack)


def test_given_hyperparameters_are_kept(rng):
    sites, _ = drawn_sites(rng)
    given = {"mean": [0.5] * 3, "strength": 0.1, "freedom": 7.0, "scale": np.eye(3) * 6}
    kept = modelweld.fuse(sites, {KEY: Moments(**given, learning="nothing")}).matching.families[KEY]
    learned = modelweld.fuse(sites, {KEY: Moments(freedom=7.0)}).matching.families[KEY]
    assert all(np.array_equal(getattr(kept, name), x) for name, x in given.items())
    assert learned.freedom == 7.0
    assert learned.strength != 0.1
