"""Laws that hold for every family, run over one table."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from modelweld import Gaussian, InputError
from modelweld.families import random_effects
from modelweld.families.random_effects import Effects
from modelweld.families.standard_errors import VaryingNoise
from modelweld.stack import Stack, offsets_of


@dataclass(frozen=True)
class Case:
    """A family with hyperparameters, and how its local values are drawn."""

    family: object
    dimensions: int
    variance: bool = False
    weight: bool = False

    def draw(self, counts, rng):
        """Values of atoms with these counts, their variance and weight, and labels."""
        f = self.family.hyperparameters
        labels = np.repeat(np.arange(len(counts)), counts)
        D = self.dimensions
        theta = self.family.mean + rng.normal(size=(len(counts), D)) * np.sqrt(f.spread)
        variance = rng.gamma(1.0, 0.5, (len(labels), D)) if self.variance else None
        weight = rng.gamma(2.0, 0.7, (len(labels), D)) if self.weight else None
        if weight is not None:
            weight[rng.random(weight.shape) < 0.2] = 0.0
            weight[:, 0] += 0.1
        var = f.noise / (1.0 if weight is None else np.where(weight > 0, weight, 1.0))
        var = var + (0.0 if variance is None else variance)
        values = theta[labels] + rng.normal(size=(len(labels), D)) * np.sqrt(var)
        return values, variance, weight, labels


def gaussian(**kwargs):
    return Gaussian(mean=[0.7, -0.2, 0.1], noise=[0.5, 1.2, 0.3], spread=[2.0, 0.8, 3.0], **kwargs)


CASES = {
    "diagonal": Case(gaussian(), 3),
    "scalar": Case(Gaussian(mean=[0.7, -0.2, 0.1], noise=0.6, spread=2.5, shape="scalar"), 3),
    "off origin": Case(gaussian(origin=[5.0, -3.0, 1.0]), 3),
    "variance": Case(gaussian(), 3, variance=True),
    "weight": Case(gaussian(), 3, weight=True),
    "both": Case(gaussian(), 3, variance=True, weight=True),
    "scalar, both": Case(
        Gaussian(mean=[0.7, -0.2], noise=0.6, spread=2.5, shape="scalar"), 2, variance=True, weight=True
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def summed(rows, labels):
    sums = np.zeros((labels.max() + 1, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums


def test_evidence_is_zero_at_zero(case, rng):
    rows = case.family.rows(*case.draw([2], rng)[:3])
    assert case.family.log_evidence(np.zeros_like(rows[0])) == 0.0


def test_evidence_is_the_marginal_density(case, rng):
    # the values of one atom are jointly normal: diag(var) + spread 1 1'
    f = case.family.hyperparameters
    for m in (1, 2, 5):
        values, variance, weight, _ = case.draw([m], rng)
        expected = 0.0
        for d in range(case.dimensions):
            h = d if len(f.noise) > 1 else 0
            w = np.ones(m) if weight is None else weight[:, d]
            seen = w > 0
            if not seen.any():
                continue
            var = f.noise[h] / w[seen] + (0.0 if variance is None else variance[seen, d])
            cov = np.diag(var) + f.spread[h]
            expected += multivariate_normal.logpdf(
                values[seen, d], np.full(seen.sum(), np.atleast_1d(case.family.mean)[d]), cov
            )
        found = case.family.log_evidence(case.family.rows(values, variance, weight).sum(0))
        assert found == pytest.approx(expected, rel=1e-9)


def test_gain_is_the_difference_of_evidences(case, rng):
    values, variance, weight, labels = case.draw([3, 1, 4, 2], rng)
    rows = case.family.rows(values, variance, weight)
    sums = summed(rows, labels)
    plain = super(type(case.family), case.family).gain(rows[:5], sums)
    assert np.allclose(case.family.gain(rows[:5], sums), plain, atol=1e-8)


def test_gain_at_an_empty_atom_is_the_evidence_alone(case, rng):
    rows = case.family.rows(*case.draw([3], rng)[:3])
    alone = case.family.gain(rows, np.zeros((1, rows.shape[1])))[:, 0]
    assert np.allclose(alone, case.family.log_evidence(rows))


def test_estimate_beats_its_neighbours(case, rng):
    # the posterior mode maximises log N(values | theta) + log N(theta | mean, spread)
    values, variance, weight, _ = case.draw([4], rng)
    f = case.family
    h = f.hyperparameters
    theta = f.estimate(f.rows(values, variance, weight).sum(0))
    w = np.ones_like(values) if weight is None else weight
    var = h.noise / np.where(w > 0, w, 1.0) + (0.0 if variance is None else variance)

    def posterior(theta):
        off = np.where(w > 0, (values - theta) ** 2 / var, 0.0).sum()
        return -0.5 * off - 0.5 * ((theta - f.mean) ** 2 / h.spread).sum()

    for _ in range(50):
        assert posterior(theta) > posterior(theta + rng.normal(0, 0.1, theta.shape))


def test_weight_zero_is_absent(rng):
    f = gaussian()
    values = rng.normal(size=(3, 3))
    weight = np.ones((3, 3))
    weight[1] = 0.0
    with_absent = f.rows(values, None, weight)
    assert not with_absent[1].any()
    assert np.allclose(with_absent[[0, 2]], f.rows(values[[0, 2]]))
    other = values.copy()
    other[1] += 100
    assert np.array_equal(f.rows(other, None, weight), with_absent)


def test_rows_add_in_any_order(case, rng):
    rows = case.family.rows(*case.draw([6], rng)[:3])
    whole = case.family.log_evidence(rows.sum(0))
    for _ in range(5):
        parts = np.array_split(rng.permutation(rows), 3)
        assert case.family.log_evidence(sum(p.sum(0) for p in parts)) == pytest.approx(whole)


@pytest.mark.parametrize("start", [0.01, 1.0, 50.0])
def test_update_never_lowers_the_evidence(case, rng, start):
    for counts in ([1, 1, 1], [2, 1, 1], [5, 3, 1, 2, 2], [30], [2, 2]):
        values, variance, weight, labels = case.draw(counts, rng)
        stack = Stack(values, offsets_of([len(values)]), variance, weight)
        f = replace(case.family, noise=np.asarray(case.family.noise) * start)
        for _ in range(3):
            rows = f.rows(values, variance, weight)
            before = f.log_evidence(summed(rows, labels)).sum() + f.log_prior()
            f = f.learn(stack, labels, summed(rows, labels))
            after = f.log_evidence(summed(f.rows(values, variance, weight), labels)).sum() + f.log_prior()
            assert after >= before - 1e-9 * abs(before)


def test_update_finds_the_maximum(case, rng):
    # nothing in a wide neighbourhood is more likely
    values, variance, weight, labels = case.draw(rng.integers(1, 6, 40), rng)
    stack = Stack(values, offsets_of([len(values)]), variance, weight)
    f = case.family

    def evidence(f):
        return f.log_evidence(summed(f.rows(values, variance, weight), labels)).sum() + f.log_prior()

    for _ in range(3):
        f = f.learn(stack, labels, summed(f.rows(values, variance, weight), labels))
    best = evidence(f)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(10):
            other = replace(
                f,
                mean=f.mean + scale * rng.normal(size=f.mean.shape),
                noise=f.noise * np.exp(scale * rng.normal(size=f.noise.shape)),
                spread=f.spread * np.exp(scale * rng.normal(size=f.spread.shape)),
            )
            assert evidence(other) <= best + 1e-4


def test_hyperparameters_are_consistent(case, rng):
    """Theorem 1: with the matching known, hyperparameters converge to the truth as atoms grow in number."""
    error = {}
    for K in (60, 6000):
        values, variance, weight, labels = case.draw(rng.integers(1, 6, K), rng)
        stack = Stack(values, offsets_of([len(values)]), variance, weight)
        ones = np.ones(1 if case.family.scalar else case.dimensions)
        f = replace(case.family, mean=np.zeros(case.dimensions), noise=ones, spread=ones)
        for _ in range(4):
            f = f.learn(stack, labels, summed(f.rows(values, variance, weight), labels))
        truth = case.family
        error[K] = max(
            np.abs(np.log(f.noise / truth.noise)).max(),
            np.abs(np.log(f.spread / truth.spread)).max(),
            np.abs(f.mean - np.atleast_1d(truth.mean)).max(),
        )
    assert error[6000] < 0.15
    assert error[6000] < error[60]


def test_closed_forms_are_consistent_too(rng):
    family = Gaussian(mean=[1.0, -1.0], noise=[0.5, 2.0], spread=[3.0, 1.5], learning="moments")
    values, _, _, labels = Case(family, 2).draw(rng.integers(1, 6, 6000), rng)
    found = family.update(summed(family.rows(values), labels))
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
    from modelweld.compiled import likelihood

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
    values, variance, weight, labels = case.draw([3, 2, 4], rng)
    likelihood = VaryingNoise(values, Stack(values, offsets_of([9]), variance, weight), labels)
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
