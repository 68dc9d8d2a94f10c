"""The study of temperatures: its trainer, rivals and scores against plain formulas, and a quick run of all of it."""

from types import SimpleNamespace

import numpy as np
import pytest

from modelweld.kinds.gp_natural import Kernel
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


def test_posterior_at_the_rows_is_the_exact_one(study, rows, rng):
    X, y = rows
    new = rng.normal(size=(7, 2))
    for found, expected in zip(
        study("trainer").posterior(X, y, X, KERNEL, NOISE).latent(new), gp_regression(X, y, NOISE, new), strict=True
    ):
        assert np.allclose(found, expected, atol=1e-6)


def test_an_honest_model_is_found_honest(study, rng):
    data, scores = study("data"), study("scores")
    n = 40_000
    model = SimpleNamespace(
        noise=0.04, predict=lambda X, return_std=False: (X[:, 0], np.full(len(X), 0.2)) if return_std else X[:, 0]
    )
    X = rng.normal(size=(n, 1))
    y = data.MEAN + data.DEVIATION * (X[:, 0] + rng.normal(0, 0.2, n))
    rows = data.Rows(X, y)
    found = scores.scores(model, data.Split(["A"], [rows], [rows], rows))
    assert found["own"] == pytest.approx(4.0, rel=0.02)
    assert np.allclose(found["held"], scores.LEVELS, atol=0.01)


@pytest.mark.studies
def test_quick_run(tmp_path):
    record = quick_run("temperatures", tmp_path)
    scores = record["results"]["repeat/100"]["scores"]
    assert scores["natural"]["across"] < scores["local"]["across"]
    assert scores["pooled"]["across"] < scores["yesterday"]["across"]
    assert record["claims"] == []  # a quick run is no evidence
