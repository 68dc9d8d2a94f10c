"""The spectrum prior: a Poisson law of supports, with the Beta-Bernoulli process as its limit."""

from math import comb

import numpy as np
import pytest

from modelweld import BetaBernoulli, Spectrum, fuse, simulate
from modelweld.fit.priors import spectrum
from modelweld.fit.priors.spectrum import BOUNDS, _fit, _log_posterior, _mass, _supports, climb


@pytest.mark.parametrize("J", [1, 2, 5, 12])
def test_the_mass_is_the_sum_over_supports(J):
    for prior in (Spectrum(0.7, 2.0, 3.0), Spectrum(0.01, 0.5, 1.0, 0.4), Spectrum(5.0, 9.0, 100.0, 2.0)):
        total = sum(comb(J, m) * np.exp(R) for m, R in enumerate(prior.log_rate(np.arange(1.0, J + 1), J), start=1))
        assert total == pytest.approx(prior.c * _mass(prior.a, prior.b, J) + prior.background * J)


def test_the_beta_bernoulli_process_is_a_limit():
    for alpha, gamma0 in ((1.0, 1.0), (0.4, 3.0)):
        limit = Spectrum(a=1e-10, b=alpha, c=alpha * gamma0)
        assert np.allclose(limit.increments(30), BetaBernoulli(alpha, gamma0).increments(30), atol=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_learning_never_lowers_and_finds_the_maximum(seed):
    rng = np.random.default_rng(seed)
    J = int(rng.integers(4, 60))
    counts = rng.binomial(J, rng.beta(1, 2, rng.integers(1, 60)))
    counts = np.concatenate([counts[counts > 0], np.ones(rng.integers(0, 30), dtype=np.int64), [1]]).astype(np.int64)
    sizes = np.full(J, max(1, counts.sum() // J))
    old = Spectrum(*np.exp(rng.normal(0, 1, 3)))
    new = old.learn(counts, sizes)
    supports = _supports(counts, sizes)
    best = _log_posterior(new, supports)
    assert best >= _log_posterior(old, supports)
    assert new.log_prob(counts, sizes) >= old.log_prob(counts, sizes)
    for _ in range(40):
        a, b, c, background = np.array([new.a, new.b, new.c, new.background]) * np.exp(rng.normal(0, 0.3, 4))
        inside = BOUNDS[0][0] <= np.log(a) <= BOUNDS[0][1] and BOUNDS[1][0] <= np.log(b) <= BOUNDS[1][1]
        assert not inside or _log_posterior(Spectrum(a, b, c, background), supports) <= best + 1e-4


def random_supports(seed):
    rng = np.random.default_rng(seed)
    J = int(rng.integers(4, 200))
    counts = rng.binomial(J, rng.beta(*np.exp(rng.normal(0, 1, 2)), rng.integers(5, 80)))
    if seed % 3 == 1:  # all alike: the maximum lies on a ridge, at a bound
        counts = rng.binomial(J, rng.uniform(0.2, 0.9), rng.integers(5, 80))
    elif seed % 3 == 2:
        counts = np.full(rng.integers(5, 80), max(1, J // 3))
    counts = np.concatenate([counts[counts > 0], np.ones(rng.integers(0, J), dtype=np.int64), [1, J]])
    counts = counts[: -2 if seed % 3 else None]
    return _supports(counts, np.full(J, max(1, counts.sum() // J)))


@pytest.mark.parametrize("seed", range(60))
def test_no_climb_with_background_is_given_up_that_would_have_paid(seed, monkeypatch):
    supports = random_supports(seed)
    plain, found = climb.__wrapped__(supports, False), climb.__wrapped__(supports, True)
    monkeypatch.setattr(spectrum, "climb", lambda s, background: plain._replace(value=-np.inf))
    patient = climb.__wrapped__(supports, True)
    assert max(found.value, plain.value) >= max(patient.value, plain.value) - 1e-9


def test_background_is_believed_in_only_where_it_pays():
    rng = np.random.default_rng(0)
    shared = rng.binomial(50, 0.4, 20)
    sizes = np.full(50, 9)
    clean = Spectrum().learn(shared, sizes)
    assert clean.background == 0.0
    assert clean.background_probability(50) == 0.0
    noisy = Spectrum().learn(np.concatenate([shared, np.ones(30, dtype=np.int64)]), sizes)
    assert noisy.background == pytest.approx(30 / 50, rel=0.1)
    assert noisy.background_probability(50) > 0.9
    assert _fit(_supports(shared, sizes), background=True).background == 0.0


def test_clean_sets_lose_nothing():
    for seed in range(4):
        data = simulate.paper_figure(20, 1.0, seed=seed)
        fusion = fuse(data.values)
        assert fusion.K == data.K
        assert len(fusion.matching.excluded) == 0


def test_values_that_belong_to_no_atom_are_set_aside_and_kept():
    rng = np.random.default_rng(1)
    atoms = rng.normal(0, 5, (6, 4))
    sites = [np.vstack([atoms + rng.normal(0, 0.2, atoms.shape), rng.normal(0, 5, (1, 4))]) for _ in range(12)]
    fusion = fuse(sites)
    assert fusion.K == 6
    assert fusion.matching.excluded.tolist() == [7 * j + 6 for j in range(12)]
    assert len(fusion.atoms) == 18
    assert "12 excluded" in repr(fusion)


def test_a_climb_along_a_ridge_reaches_the_bound():
    """Forty atoms, each at half of eighty sites: a and b are large, and steps that leave the bounds must not end it."""
    counts = np.array([61, 57, 56, *[55] * 7, *[54] * 4, 53, *[52] * 4, 51, 51, *[50] * 4, 48, 47, 46, 46, *[45] * 4])
    counts = np.append(counts, [44, 43, 43, 43, 42, 41, 39])
    sizes = np.full(80, counts.sum() // 80) + (np.arange(80) < counts.sum() % 80)
    found = Spectrum().learn(counts, sizes)
    assert found.a == pytest.approx(np.exp(BOUNDS[0][1]))
    assert found.log_prob(counts, sizes) >= Spectrum(a=54.598, b=32.816, c=9.5622e26).log_prob(counts, sizes) - 1e-3
