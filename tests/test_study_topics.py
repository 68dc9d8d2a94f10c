"""The study of topics: its sampler against a plain one, its measure by hand, its quick run."""

import doctest
from pathlib import Path

import numpy as np
import pytest

from studies import quick_run

TOPICS = Path(__file__).parents[1] / "experiments" / "topics"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(TOPICS)


def plain_sampler(tokens, vectors, K, prior, *, iterations, seed):
    """Gaussian LDA as it is written down: all from the tokens at every step."""
    from scipy.stats import multivariate_t

    rng = np.random.default_rng(seed)
    topics = rng.integers(0, K, len(tokens.words))
    x, D = vectors[tokens.words], vectors.shape[1]
    for _ in range(iterations):
        for t, draw in enumerate(rng.random(len(topics))):
            others = np.arange(len(topics)) != t
            chances = np.empty(K)
            for k in range(K):
                mine = x[others & (topics == k)]
                kappa, nu = prior.kappa + len(mine), prior.nu + len(mine)
                mean = (prior.kappa * prior.mean + mine.sum(0)) / kappa
                own = mine.mean(0) if len(mine) else prior.mean
                psi = prior.scale * np.eye(D) + (mine - own).T @ (mine - own)
                psi += prior.kappa * len(mine) / kappa * np.outer(own - prior.mean, own - prior.mean)
                freedom = nu - D + 1
                density = multivariate_t(mean, psi * (kappa + 1) / (kappa * freedom), df=freedom).pdf(x[t])
                here = others & (topics == k) & (tokens.documents == tokens.documents[t])
                chances[k] = (here.sum() + 1 / K) * density
            topics[t] = np.searchsorted(np.cumsum(chances), draw * chances.sum())
    return topics


@pytest.mark.parametrize("prior", ["authors_prior", "matched_prior"])
def test_the_compiled_sampler_draws_what_the_plain_one_draws(prior):
    import gaussian_lda

    rng = np.random.default_rng(3)
    vectors = rng.normal(0, 1, (12, 3)) + rng.integers(0, 2, (12, 1)) * 4
    tokens = gaussian_lda.Tokens(rng.integers(0, 12, 24), np.repeat(np.arange(4), 6))
    known = getattr(gaussian_lda, prior)(vectors)
    topics, means = gaussian_lda.gaussian_lda(tokens, vectors, 4, known, iterations=3, seed=5)
    assert topics.tolist() == plain_sampler(tokens, vectors, 4, known, iterations=3, seed=5).tolist()
    for k in range(4):
        mine = vectors[tokens.words[topics == k]]
        expected = (known.kappa * known.mean + mine.sum(0)) / (known.kappa + len(mine))
        np.testing.assert_allclose(means[k], expected)


def test_coherence():
    import coherence

    assert doctest.testmod(coherence).failed == 0
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, 3, (6, 6)).astype(float)
    table = coherence.Table(rng.integers(5, 9, 6).astype(float), pairs + pairs.T, 50.0)
    for row in np.array([[0, 3, 5], [4, 2, 1]]):
        found = coherence.coherence(row[None], table)
        couples = [(row[0], row[1]), (row[0], row[2]), (row[1], row[2])]
        p = table.windows / table.total
        by_hand = [np.log((table.pairs[a, b] / table.total + 1e-12) / (p[a] * p[b])) for a, b in couples]
        assert found["uci"] == pytest.approx(np.mean(by_hand))
        assert found["unseen"] == pytest.approx(np.mean([table.pairs[a, b] == 0 for a, b in couples]))


@pytest.mark.studies
def test_quick_run(tmp_path):
    record = quick_run("topics", tmp_path)
    assert len(record["tables"]) >= 3
    assert record["claims"] == []  # a quick run is no evidence
