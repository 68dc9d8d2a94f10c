"""The experiments run: their figures are measured elsewhere, by hand."""

import doctest
import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def test_strength(tmp_path):
    run = subprocess.run(
        [sys.executable, str(EXPERIMENTS / "strength" / "run.py"), "--smoke", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results) == ["tiny_sparse", "tiny_mixtures"]
    assert results["tiny_sparse"]["ours"]["ari"] == [1.0, None]
    tables = (tmp_path / "tables.md").read_text()
    assert all(f"| {name} | {method} | 1 |" in tables for name, rows in results.items() for method in rows)
    assert "ours, full" in results["tiny_sparse"]
    mixtures = results["tiny_mixtures"]
    assert mixtures["true labels"]["loss"] == [0.0, None]
    assert all(0 <= row["hamming"][0] <= 1 for row in mixtures.values())


def test_real_sets(tmp_path):
    run = subprocess.run(
        [sys.executable, str(EXPERIMENTS / "strength" / "real.py"), "--smoke", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    (methods,) = json.loads((tmp_path / "real.json").read_text()).values()
    assert all(np.isfinite(row["ours"]) for rows in methods.values() for row in rows)
    assert all(f"| digits | {method} |" in (tmp_path / "real.md").read_text() for method in methods)


def test_families():
    run = subprocess.run(
        [sys.executable, str(EXPERIMENTS / "families" / "run.py"), "--smoke"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    assert run.stdout.count("±") == 12 * 4
    assert "left out" not in run.stdout


@pytest.fixture
def strength(monkeypatch):
    """The modules of the strength study."""
    monkeypatch.syspath_prepend(EXPERIMENTS / "strength")
    import mixtures
    import runnalls

    return mixtures, runnalls


def some_mixture(mixtures, seed, K=7, D=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((K, D, 2 * D))
    return mixtures.Mixture(rng.uniform(1, 9, K), 3 * rng.standard_normal((K, D)), A @ A.transpose(0, 2, 1))


def test_examples_of_the_modules(strength):
    assert all(doctest.testmod(module).failed == 0 for module in strength)


def test_merging_keeps_count_mean_and_covariance(strength):
    mixtures, _ = strength
    parts = some_mixture(mixtures, 0)
    everything = np.zeros(7, int)
    at_once = mixtures.merged(parts, everything)
    in_steps = mixtures.merged(mixtures.merged(parts, np.arange(7) % 3), everything[:3])
    for name in ("counts", "means", "covariances"):
        np.testing.assert_allclose(getattr(at_once, name), getattr(in_steps, name))


def test_log_likelihood_is_that_of_scipy(strength):
    from scipy.stats import multivariate_normal

    mixtures, _ = strength
    mixture, points = some_mixture(mixtures, 1), np.random.default_rng(0).standard_normal((5, 3))
    densities = [multivariate_normal(m, P).pdf(points) for m, P in zip(mixture.means, mixture.covariances, strict=True)]
    expected = np.log(mixture.counts @ np.array(densities) / mixture.counts.sum())
    np.testing.assert_allclose(mixtures.log_likelihood(mixture, points), expected)


@pytest.mark.parametrize("seed", range(5))
def test_runnalls_always_merges_the_cheapest_pair(strength, seed):
    mixtures, runnalls = strength
    parts = some_mixture(mixtures, seed)
    found = runnalls.runnalls(parts, range(1, 8))

    def cost(labels):
        whole = mixtures.merged(parts, labels)
        return float(whole.counts @ np.linalg.slogdet(whole.covariances)[1])

    for K in range(7, 1, -1):
        labels = found[K]
        assert len(np.unique(labels)) == K
        after = [np.where(labels == b, a, labels) for a, b in combinations(np.unique(labels), 2)]
        assert cost(found[K - 1]) == pytest.approx(min(map(cost, after)))


def test_calibration():
    run = subprocess.run(
        [sys.executable, str(EXPERIMENTS / "calibration" / "run.py"), "--smoke"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    assert run.stdout.count("| bin | stated | true | n |") == 4
