"""The spectrum prior: a Poisson law of supports, with the Beta-Bernoulli process as its limit."""

from math import comb

import numpy as np
import pytest

from modelweld import BetaBernoulli, Spectrum, fuse, simulate
from modelweld.fit.priors.spectrum import BOUNDS, _mass


@pytest.mark.parametrize("J", [1, 2, 5, 12])
def test_the_mass_is_the_sum_over_supports(J):
    for prior in (Spectrum(0.7, 2.0, 3.0), Spectrum(0.01, 0.5, 1.0), Spectrum(5.0, 9.0, 100.0)):
        total = sum(comb(J, m) * np.exp(R) for m, R in enumerate(prior.log_rate(np.arange(1.0, J + 1), J), start=1))
        assert total == pytest.approx(prior.c * _mass(prior.a, prior.b, J))


def test_the_beta_bernoulli_process_is_a_limit():
    for alpha, gamma0 in ((1.0, 1.0), (0.4, 3.0)):
        limit = Spectrum(a=1e-10, b=alpha, c=alpha * gamma0)
        assert np.allclose(limit.increments(30), BetaBernoulli(alpha, gamma0).increments(30), atol=1e-7)


def supports(seed):
    """Of 2 to 200 groups: of all kinds, all alike (the maximum lies on a ridge), all at every group, all at one."""
    rng = np.random.default_rng(seed)
    J, K = int(rng.integers(2, 6) if seed % 2 else rng.integers(4, 200)), int(rng.integers(1, 60))
    counts = (
        rng.binomial(J, rng.beta(*np.exp(rng.normal(0, 1, 2)), K)),
        rng.binomial(J, rng.uniform(0.2, 0.9), K),
        np.full(K, J),
        np.full(K, 1),
    )[seed % 4]
    return np.maximum(counts, 1), np.full(J, max(1, counts.sum() // J))


@pytest.mark.parametrize("seed", range(40))
def test_learning_never_lowers_and_finds_the_maximum(seed):
    counts, sizes = supports(seed)
    rng = np.random.default_rng(seed)
    old = Spectrum(*np.exp(rng.normal(0, 1, 3)))
    new = old.learn(counts, sizes)
    best = new.log_prob(counts, sizes)
    assert best >= old.log_prob(counts, sizes)
    assert best == pytest.approx(Spectrum().learn(counts, sizes).log_prob(counts, sizes), abs=1e-4)
    for width in (0.01, 0.3, 2.0):
        for _ in range(20):
            a, b, c = np.array([new.a, new.b, new.c]) * np.exp(rng.normal(0, width, 3))
            a, b = np.exp(np.clip(np.log([a, b]), *BOUNDS))
            assert Spectrum(a, b, c).log_prob(counts, sizes) <= best + 1e-4


def test_clean_sets_lose_nothing():
    for seed in range(4):
        data = simulate.paper_figure(20, 1.0, seed=seed)
        fusion = fuse(data.values)
        assert fusion.K == data.K
        assert len(fusion.matching.excluded) == 0


@pytest.mark.parametrize("J", [2, 3, 12])
def test_groups_of_single_sites_are_counted_and_told_from_shared_ones(J):
    rng = np.random.default_rng(1)
    atoms = rng.normal(0, 5, (6, 4))
    sites = [np.vstack([atoms + rng.normal(0, 0.2, atoms.shape), rng.normal(0, 5, (1, 4))]) for _ in range(J)]
    fusion = fuse(sites)
    assert (fusion.K, fusion.shared) == (6 + J, 6)
    assert len(fusion.matching.excluded) == 0
    assert f"{6 + J} atoms (6 shared) from {7 * J}" in repr(fusion)
