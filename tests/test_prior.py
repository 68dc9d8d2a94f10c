"""The prior is the probability of matchings under the generative process, and its steps are its differences."""

from itertools import product
from math import comb, exp, factorial, lgamma, log

import numpy as np
import pytest

from modelweld import BetaBernoulli, InputError, Spectrum


def poisson(n, rate):
    return exp(-rate) * rate**n / factorial(n)


def sequential_probability(sets, alpha, gamma0):
    """P of an ordered list of atom sets under the Indian buffet, atoms named in order of appearance."""
    probability, counts = 1.0, []
    for j, (old, new) in enumerate(sets):
        for k, m in enumerate(counts):
            p = m / (alpha + j)
            probability *= p if k in old else 1 - p
        probability *= poisson(new, alpha * gamma0 / (alpha + j))
        for k in old:
            counts[k] += 1
        counts += [1] * new
    return probability, counts


def enumerated(J, most):
    """All outcomes of the sequential process with at most `most` new atoms per group."""

    def grow(j, K):
        if j == J:
            yield []
            return
        for chosen in product([False, True], repeat=K):
            for new in range(most + 1):
                for rest in grow(j + 1, K + new):
                    yield [([k for k in range(K) if chosen[k]], new), *rest]

    return grow(0, 0)


@pytest.mark.parametrize(("alpha", "gamma0"), [(1.0, 1.0), (0.4, 1.7), (3.0, 0.6)])
@pytest.mark.parametrize("J", [1, 2, 3])
def test_exact_form_is_the_generative_process(J, alpha, gamma0):
    # One outcome of the buffet stands for many labelled matchings: the new atoms of a group are interchangeable
    # (new_j! names each), and its values come in any of L_j! orders. Per labelled matching the probability is
    # P(outcome) * prod new_j! / prod L_j!.
    prior = BetaBernoulli(alpha, gamma0)
    for sets in enumerated(J, most=2):
        probability, counts = sequential_probability(sets, alpha, gamma0)
        sizes = np.array([len(old) + new for old, new in sets])
        names = sum(lgamma(new + 1) for _, new in sets)
        expected = log(probability) + names - sum(lgamma(size + 1) for size in sizes)
        assert prior.log_prob(np.array(counts, dtype=int), sizes) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("alpha", "gamma0"), [(1.0, 1.0), (0.4, 1.7)])
def test_probabilities_of_supports_add_to_one(alpha, gamma0):
    # numbers of atoms by support m are independent Poisson with mean C(J, m) exp R(m), whatever the labels
    J, prior = 4, BetaBernoulli(alpha, gamma0)
    R = [log(alpha * gamma0) + lgamma(m) + lgamma(J - m + alpha) - lgamma(J + alpha) for m in range(1, J + 1)]
    rate = sum(comb(J, m) * exp(R[m - 1]) for m in range(1, J + 1))
    assert rate == pytest.approx(gamma0 * sum(alpha / (alpha + j) for j in range(J)))
    steps = prior.increments(J)
    assert np.allclose(np.cumsum(steps), R)


@pytest.mark.parametrize("prior", [*(BetaBernoulli(a, 2.0) for a in (0.3, 1.0, 4.0)), Spectrum(0.7, 2.0, 3.0)])
def test_steps_are_differences_of_log_prob(prior):
    J = 5
    sizes = np.full(J, 3)
    steps = prior.increments(J)
    base = np.array([2, 3])
    for m in range(1, J):
        rise = prior.log_prob(np.append(base, m + 1), sizes) - prior.log_prob(np.append(base, m), sizes)
        assert steps[m] == pytest.approx(rise)
    assert steps[0] == pytest.approx(prior.log_prob(np.append(base, 1), sizes) - prior.log_prob(base, sizes))


def test_forms_differ_as_the_errata_say():
    exact, paper, authors = (BetaBernoulli(form=form) for form in ("exact", "paper", "authors"))
    assert not exact.surcharge(4).any()
    assert np.allclose(paper.surcharge(4), np.log([1, 2, 3, 4]))
    assert np.allclose(exact.increments(40), paper.increments(40))
    assert np.allclose(authors.increments(40)[:11], paper.increments(40)[:11])
    assert np.allclose(authors.increments(40)[10:], paper.increments(40)[10])
    assert authors.most_new(30, 690) == 10
    assert authors.most_new(30, 900) == 1
    assert exact.most_new(30, 900) == 30


@pytest.mark.parametrize("wrong", [{"alpha": 0}, {"gamma0": -1}, {"alpha": np.nan}, {"form": "other"}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        BetaBernoulli(**wrong)


@pytest.mark.parametrize("seed", range(10))
def test_empirical_bayes_never_lowers_and_finds_the_maximum(seed):
    rng = np.random.default_rng(seed)
    J = int(rng.integers(2, 30))
    counts, sizes = rng.integers(1, J + 1, rng.integers(1, 40)), np.full(J, 5)
    old = BetaBernoulli(*np.exp(rng.normal(0, 1, 2)), learning=True)
    new = old.learn(counts, sizes)
    best = new.log_prob(counts, sizes)
    assert best >= old.log_prob(counts, sizes)
    for _ in range(30):
        alpha, gamma0 = np.array([new.alpha, new.gamma0]) * np.exp(rng.normal(0, 0.2, 2))
        if -7 <= np.log(alpha) <= 7:
            assert BetaBernoulli(alpha, gamma0).log_prob(counts, sizes) <= best + 1e-4
    fixed = BetaBernoulli()
    assert fixed.learn(counts, sizes) is fixed
