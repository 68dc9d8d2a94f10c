"""The study of temperatures: its trainer, rivals and scores against plain formulas, and a quick run of all of it."""

from types import SimpleNamespace

import numpy as np
import pytest

from modelweld.gp.kernels import Kernel
from modelweld.gp.model import SparseGP
from studies import importing, quick_run


@pytest.fixture
def study(monkeypatch):
    yield from importing(monkeypatch, "temperatures")


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(30, 2))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.3, 30)


KERNEL, NOISE = Kernel(np.array([0.8, 2.0]), 1.3), 0.09


def gp_regression(X, y, variance, new):
    """Textbook means and variances of the function at new places."""
    G = np.linalg.inv(KERNEL(X, X) + np.diag(np.broadcast_to(variance, len(X))))
    k = KERNEL(new, X)
    return k @ G @ y, KERNEL.outputscale - np.einsum("ij,jk,ik->i", k, G, k)


# --- the trainer


def test_bound_is_below_the_evidence_and_reaches_it(study, rows):
    from scipy.stats import multivariate_normal

    X, y = rows
    bound = study("trainer").bound
    evidence = multivariate_normal(np.zeros(30), KERNEL(X, X) + NOISE * np.eye(30)).logpdf(y)
    assert bound(X, y, X[:10], KERNEL, NOISE)[0] < evidence - 0.1
    assert bound(X, y, X, KERNEL, NOISE)[0] == pytest.approx(evidence, abs=1e-2)


def test_slopes_of_the_bound_are_derivatives(study, rows):
    trainer, (X, y) = study("trainer"), rows

    def at(x):
        return trainer.bound(X, y, x[4:].reshape(-1, 2), *trainer.parts(x, 2))

    x = np.concatenate([np.log([0.8, 2.0, 1.3, 0.09]), X[:5].ravel() + 0.1])
    _, by_settings, by_inputs = at(x)
    steps = 1e-5 * np.eye(len(x))
    expected = [(at(x + step)[0] - at(x - step)[0]) / 2e-5 for step in steps]
    assert np.allclose([*by_settings, *by_inputs.ravel()], expected, rtol=1e-4, atol=1e-4)


def test_posterior_at_the_rows_is_the_exact_one(study, rows, rng):
    X, y = rows
    new = rng.normal(size=(7, 2))
    for found, expected in zip(
        study("trainer").posterior(X, y, X, KERNEL, NOISE).latent(new), gp_regression(X, y, NOISE, new), strict=True
    ):
        assert np.allclose(found, expected, atol=1e-6)


def test_training_raises_the_bound_and_moves_the_inputs_off_the_rows(study, rows):
    trainer, (X, y) = study("trainer"), rows
    first, last = (trainer.trained(X, y, 6, steps=steps) for steps in (1, 40))
    again = trainer.trained(X, y, 6, steps=1, start=last)
    low, high, middle = (trainer.bound(X, y, gp.inputs, gp.kernel, gp.noise)[0] for gp in (first, last, again))
    assert low + 1 < middle
    assert low + 1 < high
    assert not (last.inputs[:, None] == X).all(-1).any()


# --- the data


def test_yesterday_is_the_day_before(study):
    data = study("data")
    table = data.weather()
    assert len(set(table.state.tolist())) == 50
    features = table.X * data.UNIT + data.OFFSET
    following = (np.diff(table.station) == 0) & (np.diff(features[:, 0]) == 1)
    assert following.sum() > 350_000
    assert np.allclose(features[1:, -1][following], table.y[:-1][following])
    assert features[:, 0].min() == 1
    assert features[:, 0].max() == 31
    assert sorted(set(features[:, 1].round(6))) == list(range(1, 13))
    assert sorted(set(features[:, 2].round(6))) == [2015, 2016, 2017]


def test_splits_are_disjoint_and_repeatable(study):
    data = study("data")
    one, two, other = (data.split(seed, 40, 20, 5, only=4) for seed in (1, 1, 2))
    assert np.array_equal(one.across.X, two.across.X)
    assert one.states != other.states or not np.array_equal(one.across.X, other.across.X)
    assert one.across.X.shape == (20, 7)
    for train, own in zip(one.train, one.own, strict=True):
        assert (len(train.y), len(own.y)) == (40, 20)
        assert not (train.X[:, None] == own.X).all(-1).any()


# --- rivals


def process(rng, outputscale=2.0):
    Z = rng.normal(size=(4, 2))
    kernel = Kernel(np.ones(2), outputscale)
    return SparseGP(Z, rng.normal(size=4), 0.2 * kernel(Z, Z), kernel, 0.0, 0.1)


def test_a_committee_of_one_is_its_member(study, rng):
    gp, X = process(rng), rng.normal(size=(6, 2))
    for rule in ("poe", "bcm"):
        for found, expected in zip(
            study("rivals").Experts([gp], rule).predict(X, return_std=True), gp.predict(X, return_std=True), strict=True
        ):
            assert np.allclose(found, expected)


def test_committees_multiply_what_members_say(study, rng):
    members, X = [process(rng), process(rng)], rng.normal(size=(6, 2))
    (a, v), (b, w) = (gp.latent(X) for gp in members)
    Experts = study("rivals").Experts
    precision = 1 / v + 1 / w - 1 / 2.0
    mean, std = Experts(members, "bcm").predict(X, return_std=True)
    assert np.allclose(mean, (a / v + b / w) / precision)
    assert np.allclose(std**2, 1 / precision + 0.1)
    first = np.log(2.0 / v) / (np.log(2.0 / v) + np.log(2.0 / w))
    precision = first / v + (1 - first) / w
    mean, std = Experts(members, "poe").predict(X, return_std=True)
    assert np.allclose(mean, (first * a / v + (1 - first) * b / w) / precision)
    assert np.allclose(std**2, 1 / precision + 0.1)


def test_fused_responses_are_observations(study, rows, rng):
    X, y = rows
    variance, new = rng.uniform(0.01, 1, 30), rng.normal(size=(5, 2))
    found = study("rivals").regressed(X, y, variance, KERNEL, NOISE).latent(new)
    assert np.allclose(found, gp_regression(X, y, variance, new), atol=1e-6)


# --- scores and tables


def test_an_honest_model_is_found_honest(study, rng):
    data, scores = study("data"), study("scores")
    n = 40_000
    model = SimpleNamespace(
        noise=0.04, predict=lambda X, return_std=False: (X[:, 0], np.full(len(X), 0.2)) if return_std else X[:, 0]
    )
    X = rng.normal(size=(n, 1))
    y = data.MEAN + data.DEVIATION * (X[:, 0] + rng.normal(0, 0.2, n))
    rows = data.Rows(X, y, np.zeros(n, dtype=np.int64))
    found = scores.scores(model, data.Split(["A"], [rows], [rows], rows))
    assert found["own"] == pytest.approx(4.0, rel=0.02)
    assert np.allclose(found["held"], scores.LEVELS, atol=0.01)
    assert found["surprise"] == pytest.approx(np.log(4) + 0.5 * np.log(2 * np.pi) + 0.5, abs=0.02)
    doubled = scores.scores(model, data.Split(["A"], [rows], [rows], rows), noises=[0.16])
    assert doubled["held"][0] > 0.8
    assert doubled["held_across"] == found["held_across"]


def test_claims_can_fail(study):
    telling = study("telling")

    def of(natural, held=0.9):
        other = {"own": 5.5, "across": 5.6, "held": [0.5, 0.8, 0.9, 0.95], "held_across": [0.5, 0.8, 0.9, 0.95]}
        ours = {**other, "own": natural - 0.2, "across": natural, "held": [0.5, 0.8, held, 0.95]}
        names = ("local", "local, many", "rbcm", "pooled", "pooled, many")
        return telling.claims({"natural": [ours] * 2, **{name: [other] * 2 for name in names}})

    assert [claim.holds for claim in of(5.58)] == [True] * 6
    assert [claim.holds for claim in of(5.62)] == [True, False, True, True, True, True]
    assert [claim.holds for claim in of(5.8, held=0.87)] == [False, False, False, False, True, False]


@pytest.mark.studies
def test_quick_run(tmp_path):
    record = quick_run("temperatures", tmp_path)
    scores = record["results"]["repeat/100"]["scores"]
    assert scores["natural"]["across"] < scores["local"]["across"]
    assert scores["pooled"]["across"] < scores["yesterday"]["across"]
    assert record["claims"] == []  # a quick run is no evidence
