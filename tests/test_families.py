"""Laws that hold for every family, run over the table in cases/."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp

from cases import Drawn, collected
from modelweld.core.family import (
    align_sign,
    find_misfit,
    is_signless,
    learn_from_values,
    log_evidence_of_unions,
    log_predictive,
    subtract_evidence,
    unite,
)
from modelweld.families.capabilities import Drawable
from modelweld.families.math.signs import upright

CASES = collected()


@pytest.fixture(params=[pytest.param(name, marks=case.marks) for name, case in CASES.items()])
def case(request):
    return CASES[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_evidence_is_zero_at_zero(case, rng):
    drawn = case.draw([2], rng)
    family, rows = drawn.seen_by(case.family), drawn.rows(case.family)
    assert family.log_evidence(np.zeros_like(rows[0])) == 0.0
    assert family.log_evidence(np.zeros((2, 3, rows.shape[1]))).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("members", [1, 2, 5])
def test_evidence_is_the_marginal_density(case, rng, members):
    drawn = case.draw([members], rng)
    found = float(drawn.seen_by(case.family).log_evidence(drawn.rows(case.family).sum(0)))
    expected = case.log_evidence(drawn)
    assert abs(found - expected) < case.tolerance * max(1.0, abs(expected))


def test_gain_is_the_difference_of_evidences(case, rng):
    drawn = case.draw([3, 1, 4, 2], rng)
    family, rows, sums = drawn.seen_by(case.family), drawn.rows(case.family), drawn.sums(case.family)
    plain = subtract_evidence(family, rows[:5], sums)
    assert np.allclose(log_predictive(family, rows[:5], sums), plain, rtol=1e-8, atol=1e-7)


def test_evidence_of_unions_is_that_of_their_sums(case, rng):
    drawn = case.draw([3, 1, 4, 2], rng)
    family, sums = drawn.seen_by(case.family), drawn.sums(case.family)
    a, b = np.array([0, 3, 1]), np.array([1, 2, 3])
    joined = sums[a] + align_sign(family, sums[b], sums[a])
    assert np.array_equal(unite(family, sums, a, b), joined)
    assert np.array_equal(unite(family, sums, 0, b[:1]), joined[:1])
    assert np.allclose(log_evidence_of_unions(family, sums, a, b), family.log_evidence(joined), rtol=1e-9, atol=1e-8)


def test_gain_is_the_same_in_blocks(case, rng, monkeypatch):
    drawn = case.draw([3, 1, 4, 2], rng)
    family, rows, sums = drawn.seen_by(case.family), drawn.rows(case.family), drawn.sums(case.family)
    whole = log_predictive(family, rows, sums)
    monkeypatch.setattr("modelweld.core.values.BLOCK", 1)
    assert np.allclose(log_predictive(family, rows, sums), whole, rtol=1e-12)


def test_gain_at_an_empty_atom_is_the_evidence_alone(case, rng):
    drawn = case.draw([3], rng)
    family, rows = drawn.seen_by(case.family), drawn.rows(case.family)
    alone = log_predictive(family, rows, np.zeros((1, rows.shape[1])))[:, 0]
    assert np.allclose(alone, family.log_evidence(rows))


def test_estimate_beats_its_neighbours(case, rng):
    drawn = case.draw([4], rng)
    theta = drawn.seen_by(case.family).estimate(drawn.rows(case.family).sum(0))
    assert theta.shape == drawn.values.shape[1:]
    best = case.merit(theta, drawn)
    for _ in range(50):
        assert best > case.merit(case.neighbour(theta, rng), drawn)


DRAWN = [name for name, case in CASES.items() if isinstance(case.family, Drawable)]
"""Cases of families that draw atoms given their values."""


@pytest.mark.parametrize("name", DRAWN)
def test_atoms_drawn_given_values_of_drawn_atoms_are_like_atoms(name, rng):
    case = CASES[name]
    drawn = case.draw([3] * 1000, rng)
    family, sums = drawn.seen_by(case.family), drawn.sums(case.family)
    given, prior = family.draw_atoms(sums, rng), family.draw_atoms(np.zeros_like(sums), rng)
    like = (upright(given), upright(prior)) if is_signless(family) else (given, prior)
    assert min(ks_2samp(x, y).pvalue for x, y in zip(like[0].T, like[1].T, strict=True)) > 1e-3
    scatter = np.abs(given - family.estimate(sums)).mean()
    assert scatter < 0.8 * np.abs(prior - family.estimate(0 * sums)).mean()  # what is known of an atom is not lost


@pytest.mark.parametrize("name", DRAWN)
def test_values_that_follow_their_atoms_are_values(name, rng):
    case = CASES[name]
    drawn = case.draw([3] * 20, rng)
    family, sums = drawn.seen_by(case.family), drawn.sums(case.family)
    before, after = (x[drawn.labels] for x in (family.estimate(sums), family.draw_atoms(sums, rng)))
    assert np.allclose(family.follow(drawn.values, before, before), drawn.values)
    moved = replace(drawn, values=family.follow(drawn.values, before, after))
    assert find_misfit(family, moved.stack) is None
    faced = upright(after[::3]) if is_signless(family) else after[::3]
    nearer = np.abs(family.estimate(moved.sums(family)) - faced).mean()
    assert nearer < 0.9 * np.abs(before - after).mean()


def test_weight_zero_is_absent(case, rng):
    drawn = case.draw([3], rng)
    weight = np.ones_like(drawn.values) if drawn.weight is None else drawn.weight.copy()
    weight[1] = 0.0
    blind = Drawn(drawn.values, drawn.labels, drawn.variance, weight)
    family, absent = blind.seen_by(case.family), blind.rows(case.family)
    assert not absent[1].any()
    other = drawn.values.copy()
    other[1] = drawn.values[0]
    assert np.array_equal(Drawn(other, drawn.labels, drawn.variance, weight).rows(case.family), absent)
    assert np.allclose(log_predictive(family, absent[[1]], absent[[0, 2]]), 0.0)
    stay = [0, 2]
    variance = None if drawn.variance is None else drawn.variance[stay]
    alone = Drawn(drawn.values[stay], drawn.labels[stay], variance, weight[stay])
    found = family.log_evidence(absent.sum(0))
    assert found == pytest.approx(float(family.log_evidence(alone.rows(family).sum(0))))


def test_rows_add_in_any_order(case, rng):
    drawn = case.draw([6], rng)
    family, rows = drawn.seen_by(case.family), drawn.rows(case.family)
    whole = family.log_evidence(rows.sum(0))
    for _ in range(5):
        parts = np.array_split(rng.permutation(rows), 3)
        assert family.log_evidence(sum(p.sum(0) for p in parts)) == pytest.approx(float(whole))


@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_learning_never_lowers_the_evidence(case, rng, scale):
    for counts in ([1, 1, 1], [2, 1, 1], [5, 3, 1, 2, 2], [30], [2, 2]):
        drawn = case.draw(counts, rng)
        family = drawn.seen_by(case.perturbed(case.family, scale, rng))
        for _ in range(2):  # from afar, and from near the maximum
            before = drawn.evidence(family)
            family = learn_from_values(family, drawn.stack, drawn.labels, drawn.sums(family))
            assert drawn.evidence(family) >= before - 1e-9 * abs(before)


def test_nothing_is_learned_if_told_so(case, rng):
    drawn = case.draw([2, 3], rng)
    family = drawn.seen_by(replace(case.family, learning="nothing"))
    assert learn_from_values(family, drawn.stack, drawn.labels, drawn.sums(family)) is family


def taught(drawn, family, rounds=10):
    """The family after learning again and again, until it has nothing more to gain."""
    reached = -np.inf
    for _ in range(rounds):
        family = learn_from_values(family, drawn.stack, drawn.labels, drawn.sums(family))
        before, reached = reached, drawn.evidence(family)
        if reached - before <= 1e-9 * abs(reached):
            break
    return family


def test_learning_finds_the_maximum(case, rng):
    # nothing in a wide neighbourhood is more likely
    drawn = case.draw(rng.integers(1, 6, 40), rng)
    family = taught(drawn, drawn.seen_by(case.family))
    best = drawn.evidence(family)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(10):
            assert drawn.evidence(case.perturbed(family, scale, rng)) <= best + 1e-3


def test_hyperparameters_are_consistent(case, rng):
    """Theorem 1: with the matching known, hyperparameters converge to the truth as atoms grow in number."""
    error = {}
    for K in (60, case.many):
        drawn = case.draw(rng.integers(1, 6, K), rng)
        error[K] = case.error(taught(drawn, drawn.seen_by(case.untaught())))
    assert error[case.many] < case.recovered
    assert error[case.many] < error[60]


def test_values_of_a_family_fit_it(case, rng):
    assert find_misfit(case.family, case.draw([3, 2], rng).stack) is None
