"""What is particular to Counts: sparse rows, vocabularies, starts, the density's normalisation, messages."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, gammaln

from modelweld import InputError, LocalModel, fuse
from modelweld.core.family import subtract_evidence, sum_by_atom
from modelweld.core.values import Stack, offsets_of
from modelweld.demo.metrics import adjusted_rand
from modelweld.families.counts import Counts
from modelweld.families.math import simplex as rising
from modelweld.families.math.event_densities import freedom, log_freedom
from modelweld.inputs.stacks import stack_arrays


def topics(D, base, between, seed, kind="probabilities", J=8, L=6, K=10):
    """Sites that hold L of K topics each, and which."""
    rng = np.random.default_rng(seed)
    theta = np.maximum(rng.dirichlet(np.full(D, base), K), 1e-300)
    values, labels = [], []
    for _ in range(J):
        held = rng.choice(K, L, replace=False)
        g = np.maximum(rng.standard_gamma(between * theta[held]), 1e-200)
        p = g / g.sum(1, keepdims=True)
        if kind == "counts":
            p = np.array([rng.multinomial(between, t / t.sum()) for t in theta[held]]).astype(float)
        values.append(p)
        labels.append(held)
    return values, np.concatenate(labels)


@pytest.mark.parametrize("kind", ["probabilities", "counts"])
@pytest.mark.parametrize(("D", "base", "between"), [(5, 0.5, 300), (50, 0.1, 60), (400, 1.0, 400), (400, 0.05, 80)])
def test_topics_are_found_whatever_their_number_of_words(D, base, between, kind):
    values, truth = topics(D, base, between, 1, kind)
    found = fuse(values, Counts())
    assert adjusted_rand(truth, np.concatenate(found.labels)) > (0.9 if D > 5 else 0.8)
    assert abs(found.K - len(np.unique(truth))) <= 1


@pytest.mark.parametrize(("D", "base", "between"), [(5, 2.0, 60.0), (50, 0.2, 100.0), (400, 0.05, 300.0)])
def test_what_a_row_is_worth_is_learned_where_the_matching_is_known(D, base, between):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 6)
    theta = rng.dirichlet(np.full(D, base), 30)[labels]
    g = np.maximum(rng.standard_gamma(between * theta), 1e-200)
    stack = Stack(g / g.sum(1, keepdims=True), offsets_of([len(g)]))
    family = Counts(base=np.full(D, base), between=between / 3)
    for _ in range(10):
        family = family.learn(stack, labels, sum_by_atom(family.rows(stack.values), labels))
    assert between / 1.5 < family.between < between * 1.5


@pytest.mark.parametrize("lam", [0.03, 0.3, 1.0, 5.0, 40.0])
def test_degrees_of_freedom_are_right_on_average(lam):
    # of x ~ Gamma(lam), against the expected divergence; in s = log x the density has no pole
    def weighed(s):
        return float(freedom(np.exp(s))) * np.exp(lam * s - np.exp(s) - gammaln(lam))

    found = quad(weighed, -700, np.log(lam + 40 * np.sqrt(lam) + 40), points=[-20.0, 0.0], limit=500)[0]
    assert found == pytest.approx(lam * (digamma(lam + 1) - np.log(lam)), rel=0.1)


def test_density_of_dense_rows_integrates_to_one():
    family = Counts(base=np.array([6.0, 5.0, 7.0]), between=200.0)
    at = (np.arange(300) + 0.5) / 300
    x, y = (z.ravel() for z in np.meshgrid(at, at))
    inside = x + y < 1
    p = np.column_stack([x, y, 1 - x - y])[inside]
    assert np.exp(family.log_evidence(family.rows(p))).sum() / 300**2 == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_compiled_sums_are_those_of_scipy(monkeypatch, density):
    rng = np.random.default_rng(3)
    X = rng.gamma(0.5, 4.0, (7, 90)) * (rng.random((7, 90)) < density)
    C = rng.gamma(0.3, 20.0, (11, 90)) + 1e-6
    plain = rising.log_rising_pairs(X, C), rising.log_rising(X, C[0])
    monkeypatch.setattr(rising, "COMPILED_FROM", 0)
    assert np.allclose(rising.log_rising_pairs(X, C), plain[0], rtol=1e-10, atol=1e-8)
    assert np.allclose(rising.log_rising(X, C[0]), plain[1], rtol=1e-10, atol=1e-8)


def test_probabilities_with_weight_are_counts():
    family = Counts(base=[1.0, 2.0, 3.0], between=40.0)
    x = np.array([[3.0, 5.0, 2.0], [30.0, 1.0, 9.0]])
    weight = np.repeat(x.sum(1, keepdims=True), 3, axis=1)
    assert np.allclose(family.rows(x), family.rows(x / weight, None, weight))
    unknown = family.rows(x / weight)
    assert np.allclose(unknown[:, 3], 40.0)
    assert np.allclose(unknown, family.rows(x / weight, None, np.ones_like(x)))


def test_a_single_observation_is_no_probability_among_counts():
    family = Counts(base=[1.0, 2.0, 3.0], between=40.0)
    x = np.array([[3.0, 5.0, 2.0], [0.0, 1.0, 0.0], [0.2, 0.5, 0.3]])
    worth = family.rows(x)[:, 3]
    assert np.allclose(worth, [1 / (1 / 10 + 1 / 40), 1 / (1 + 1 / 40), 40.0])  # only what is not whole is unknown
    assert np.allclose(family.rows(x[1:])[:, 3], 40.0)  # all sum to one: probabilities
    told = Counts(base=[1.0, 2.0, 3.0], between=40.0, counted=True)
    assert np.allclose(told.rows(x[1:2])[:, 3], 1 / (1 + 1 / 40))
    assert Counts().starts(stack_arrays([x[:1], x[1:2]]))[0].counted is True
    assert Counts().starts(stack_arrays([x[2:], x[1:2]]))[0].counted is False


# ---------------------------------------------------------------- vocabularies


def test_a_vocabulary_that_all_rows_share_is_as_if_there_were_no_other_words():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 9, (5, 4)).astype(float)
    base = np.array([0.7, 2.0, 0.4, 1.1])
    seen = np.array([1.0, 1.0, 0.0, 1.0])
    weight = np.repeat(seen[None], 5, axis=0)
    part, whole = Counts(base=base, between=50.0), Counts(base=base[seen > 0], between=50.0)
    found = part.log_evidence(part.rows(x, None, weight).cumsum(0))
    assert np.allclose(found, whole.log_evidence(whole.rows(x[:, seen > 0]).cumsum(0)))


def mixed(D=6, seed=5):
    rng = np.random.default_rng(seed)
    base = rng.gamma(2.0, 1.0, D) + 0.3
    theta = rng.dirichlet(base)
    weight = (rng.random((4, D)) < 0.7).astype(float)
    weight[:, 0] = 1.0
    x = np.array([rng.multinomial(30, theta * v / (theta @ v)) for v in weight]).astype(float)
    return base, x, weight


@pytest.mark.parametrize("seed", range(4))
def test_evidence_of_different_vocabularies_is_near_the_integral(seed):
    base, x, weight = mixed(seed=seed)
    family = Counts(base=base, between=np.inf)
    rows = family.rows(x, None, weight)
    theta = np.random.default_rng(0).dirichlet(base + x.sum(0), 200_000)  # importance sampling about the posterior
    a = base + x.sum(0)
    prior = gammaln(base.sum()) - gammaln(base).sum() + np.log(theta) @ (base - 1)
    proposal = gammaln(a.sum()) - gammaln(a).sum() + np.log(theta) @ (a - 1)
    terms = np.log(theta) @ x.sum(0) - sum(n * np.log(theta @ v) for n, v in zip(x.sum(1), weight, strict=True))
    log_weight = terms + prior - proposal
    expected = log_weight.max() + np.log(np.exp(log_weight - log_weight.max()).mean()) + rows[:, base.size + 1].sum()
    assert float(family.log_evidence(rows.sum(0))) == pytest.approx(expected, abs=2.5)
    plain = subtract_evidence(family, rows, rows[:2])
    assert np.allclose(family.log_predictive(rows, rows[:2]), plain)


def test_learning_with_different_vocabularies_never_lowers_the_evidence():
    base, x, weight = mixed()
    stack, labels = Stack(x, offsets_of([4]), None, weight), np.array([0, 0, 1, 1])
    for start in (Counts(base=base, between=30.0), Counts(base=np.ones(6), between=np.inf)):
        family = start
        history = []
        for _ in range(6):
            sums = sum_by_atom(family.rows(x, None, weight), labels)
            history.append(float(family.log_evidence(sums).sum()))
            family = family.learn(stack, labels, sums)
        assert (np.diff(history) >= -1e-9).all()
        assert history[1] > history[0]


def test_sites_with_different_vocabularies_are_fused():
    values, truth = topics(40, 0.3, 300, 2)
    rng = np.random.default_rng(0)
    models = []
    for p in values:
        known = (rng.random(40) < 0.8).astype(float)
        seen = np.repeat(known[None], len(p), axis=0)
        own = p * seen
        models.append(
            LocalModel(
                {"topics": own / own.sum(1, keepdims=True)}, {"topics": ("topic", None)}, weight={"topics": seen}
            )
        )
    found = fuse(models, Counts())
    assert adjusted_rand(truth, np.concatenate(found.labels)) > 0.9
    assert np.allclose(found.atoms.sum(1), 1.0)


def test_a_site_that_shares_hardly_any_words_is_refused():
    rng = np.random.default_rng(0)
    known = [[1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 1]]
    models = []
    for seen in np.array(known, dtype=float):
        p = rng.dirichlet([1.0, 1.0, 0.02, 1.0, 1.0, 1.0], 2) * seen
        models.append(
            LocalModel({"v": p / p.sum(1, keepdims=True)}, {"v": ("topic", None)}, weight={"v": seen + 0 * p})
        )
    with pytest.raises(InputError, match=r"site 2.*words that another site knows; found \d\.\d%"):
        fuse(models, Counts())
    fuse(models[:2], Counts())


# ---------------------------------------------------------------- messages


def test_values_that_are_no_counts_are_refused():
    with pytest.raises(InputError, match="not negative"):
        fuse([[[1.0, -2.0]], [[1.0, 2.0]]], Counts())
    with pytest.raises(InputError, match="row of zeros"):
        fuse([[[1.0, 2.0]], [[0.0, 0.0]]], Counts())
    with pytest.raises(InputError, match="needs counts"):
        fuse([[[0.5, 0.5]], [[0.2, 0.8]]], Counts(between=np.inf))


def test_bases_of_another_length_are_refused():
    with pytest.raises(InputError, match="3 entries"):
        Counts(base=[1.0, 1.0, 1.0]).starts(stack_arrays([[[0.5, 0.5]]]))


def test_log_freedom_has_freedom_as_its_slope():
    x = np.geomspace(1e-6, 1e6, 50)
    slope = (log_freedom(x * 1.0001) - log_freedom(x / 1.0001)) / (2 * np.log(1.0001))
    assert np.allclose(slope, freedom(x), atol=1e-6)


def test_counts_too_small_for_an_inverse_were_not_seen():
    rows = np.array([[5e-324] * 4, [28.0, 20.0, 49.0, 10.0], [40.0, 1.0, 2.0, 2.0]])
    fusion = fuse([rows, rows[1:], rows[1:]], Counts(), screens=["outliers"])
    assert np.isfinite(fusion.objective)
    assert fusion.K >= 2
