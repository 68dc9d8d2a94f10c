"""A model trained again on nearly the same rows is named; sites with rows of their own never are, however alike."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture

from modelweld import DuplicateWarning, LocalModel, fuse, read
from modelweld.core.values import Stack
from modelweld.fit.screening.shared_rows import SAME_ERRORS, sharing

K, D, ROWS = 4, 6, 200


def rows_of(sites, seed, flat=0):
    """Rows of one population, and the group of each, site by site; the last columns are the same everywhere."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 5, (K, D))
    drawn = []
    for _ in range(sites):
        group = np.repeat(np.arange(K), ROWS // K)
        rows = atoms[group] + rng.normal(size=(ROWS, D))
        rows[:, D - flat :] = 0.0
        drawn.append((rows, group))
    return drawn


def summary(site, *, overstated=1.0):
    """Means of the groups of a site, and their standard errors."""
    rows, group = site
    parts = [rows[group == k] for k in range(K)]
    means = np.array([part.mean(0) for part in parts])
    errors = np.array([(part.var(0) + 1e-6) / len(part) for part in parts])
    return LocalModel({"v": means}, {"v": ("atom", None)}, variance={"v": overstated * errors})


def told(models, **options):
    """What is said of sites that repeat each other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fusion = fuse(models, **options)
    said = [str(w.message) for w in caught if issubclass(w.category, DuplicateWarning)]
    assert all(text in fusion.matching.reasons for text in said)
    return said, fusion


def without(site, number, seed=0):
    rows, group = site
    left = np.random.default_rng(seed).permutation(ROWS)[number:]
    return rows[left], group[left]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fewer", [8, 20])
def test_a_model_trained_again_on_fewer_rows_is_named_and_counted(seed, fewer):
    """It was taken for a further site without a word."""
    sites = rows_of(5, seed)
    said, fusion = told([*map(summary, sites), summary(without(sites[1], fewer))])
    assert len(said) == 1
    assert said[0].startswith("sites '1' and '5' agree better than sites with rows of their own do")
    assert fusion.matching.counts.tolist() == [6] * K


@pytest.mark.parametrize("seed", range(30))
def test_sites_of_one_population_are_not_named(seed):
    assert told(list(map(summary, rows_of(3 + seed % 10, seed))))[0] == []


@pytest.mark.parametrize("seed", range(5))
def test_standard_errors_that_all_overstate_name_nobody(seed):
    """With errors ten times too wide all sites agree too well, and one that is off must not hide that."""
    models = [summary(site, overstated=100.0) for site in rows_of(6, seed)]
    models[5] = models[5].with_(arrays={"v": models[5].arrays["v"] + 3.0})
    assert not any("agree better" in text for text in told(models)[0])


def test_columns_that_are_the_same_everywhere_say_nothing():
    assert told(list(map(summary, rows_of(5, 0, flat=D - 1))))[0] == []


def test_three_of_a_kind_are_named_together():
    sites = rows_of(6, 3)
    again = [summary(without(sites[2], 12, seed)) for seed in (1, 2)]
    said, _ = told([*map(summary, sites), *again])
    assert len(said) == 1
    assert said[0].startswith("sites '2', '6' and '7' agree")


def test_who_says_that_sites_are_independent_hears_nothing():
    sites = rows_of(5, 1)
    assert told([*map(summary, sites), summary(without(sites[1], 12))], screens=["outliers"])[0] == []


def test_two_sites_say_nothing_of_what_is_typical():
    (site,) = rows_of(1, 0)
    assert told([summary(site), summary(without(site, 12))])[0] == []


def test_wine_of_a_grower_who_trained_twice():
    """As it was found: five growers, one of which comes again with two rows fewer under another name."""
    X = load_wine().data
    X = (X - X.mean(0)) / X.std(0)
    deal = np.array_split(np.random.default_rng([511, 5000]).permutation(len(X)), 5)

    def grower(rows, name):
        model = GaussianMixture(3, covariance_type="diag", n_init=3, random_state=0).fit(X[rows])
        return read(model, X=X[rows], site=name)

    honest = [grower(rows, f"s{j}") for j, rows in enumerate(deal)]
    assert told(honest)[0] == []
    said, _ = told([*honest, grower(deal[0][2:], "again")])
    assert len(said) == 1
    assert "'s0' and 'again'" in said[0]


def test_models_without_numbers_of_points_are_not_judged():
    """Their standard errors are made up."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (300, 6)) + 8 * rng.integers(2, size=(300, 1))
    models = [GaussianMixture(2, random_state=0).fit(rows) for rows in (X[:100], X[100:200], X[200:], X[2:100])]
    assert told(models)[0] == []


def test_nothing_is_looked_for_where_nothing_is_held():
    from modelweld.core.values import Stack

    stack = Stack(np.zeros((0, 2)), np.zeros(4, dtype=np.int64), variance=np.zeros((0, 2)))
    assert sharing([stack], np.zeros(0, dtype=np.int64), {}) == {}


@pytest.mark.parametrize("known", [20, 30])
def test_values_that_are_known_beyond_doubt_say_nothing(known):
    """Standard errors of zero, at most values or at all: nothing can be closer than they allow."""
    rng = np.random.default_rng(0)
    values, variance = rng.normal(size=(6, 5)), np.ones((6, 5))
    variance.ravel()[:known] = 0.0
    stack = Stack(values, np.arange(7), variance=variance)
    assert sharing([stack], np.zeros(6, dtype=int), {}) == {}


@pytest.mark.parametrize(("times", "named"), [(0.9 * SAME_ERRORS, True), (1.1 * SAME_ERRORS, False), (1e6, False)])
def test_standard_errors_of_the_same_rows_are_alike(times, named):
    """A site that claims to know next to nothing agreed with everybody better than it allowed."""
    values = np.random.default_rng(0).normal(size=(5, 40))
    values[4] = values[0] + 1e-3
    variance = np.ones((5, 40))
    variance[4] = times
    found = sharing([Stack(values, np.arange(6), variance=variance)], np.zeros(5, dtype=int), {})
    assert list(found) == ([(0, 4)] if named else [])
