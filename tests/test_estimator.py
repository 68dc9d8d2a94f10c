"""SPAHM, the estimator: scikit-learn's own checks, groups, weights, pipelines."""

from itertools import product

import numpy as np
import pytest
import sklearn
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from modelweld import SPAHM, BetaBernoulli, Gaussian, NamesWarning, Spectrum, fuse
from modelweld.core.board import Board
from modelweld.demo.simulate import sparse
from modelweld.inputs.stacks import stack_arrays


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SPAHM(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    return sparse(12, 6, 4, 0.2, 4.0, 1.0, 1.0, seed=1)


@pytest.fixture(scope="module")
def table(drawn):
    X = np.concatenate(drawn.values)
    groups = np.repeat([f"s{j}" for j in range(len(drawn.values))], [len(v) for v in drawn.values])
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], groups[order], drawn.stacked_truth[order]


def test_groups_give_what_fuse_gives(drawn, table):
    X, groups, truth = table
    model = SPAHM(random_state=0).fit(X, groups=groups)
    fusion = fuse(drawn.values)
    assert len(model.cluster_centers_) == fusion.K
    assert np.allclose(np.sort(model.cluster_centers_, axis=0), np.sort(fusion.atoms[: fusion.K], axis=0))
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert adjusted_rand_score(model.labels_, model.predict(X)) > 0.95
    for site in np.unique(groups):
        held = model.labels_[groups == site]
        assert len(set(held)) == len(held)


def test_transform_is_the_distance_to_the_centres(table):
    X, groups, _ = table
    model = SPAHM(random_state=0).fit(X, groups=groups)
    distances = model.transform(X)
    assert np.allclose(distances[3], np.linalg.norm(X[3] - model.cluster_centers_, axis=1))
    assert list(model.get_feature_names_out())[:2] == ["spahm0", "spahm1"]


def test_groups_go_through_pipelines(table):
    X, groups, truth = table
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), SPAHM(random_state=0).set_fit_request(groups=True))
        labels = pipeline.fit(X, groups=groups)[-1].labels_
    assert adjusted_rand_score(truth, labels) > 0.95


def test_weights_are_precisions(table):
    X, groups, _ = table
    model = SPAHM(Gaussian(noise=0.04, spread=16.0, learning="nothing"), random_state=0)
    sure = model.fit(X, groups=groups, weight=np.full(len(X), 1e6)).cluster_centers_
    doubtful = model.fit(X, groups=groups, weight=np.full(len(X), 1e-2)).cluster_centers_
    assert np.abs(doubtful).mean() < np.abs(sure).mean()  # nearer to the common mean


def test_wrong_groups_are_named(table):
    X, groups, _ = table
    with pytest.raises(ValueError, match="groups must name the site of each"):
        SPAHM().fit(X, groups=groups[:-1])


OLD = [np.array([[0.0], [3.0]]), np.array([[3.3]]), np.array([[-0.4], [6.0]])]
HELD = np.array([0, 1, 1, 0, 2])
FAMILY = Gaussian(mean=2.0, noise=0.2, spread=9.0, learning="nothing")


def evidence(labels, sites, prior):
    return Board([stack_arrays(sites)], [FAMILY], prior, labels=np.asarray(labels)).objective()


def assignments(L):
    """Atoms of the three, or new ones of their own, for L values of one site."""
    for choice in product([0, 1, 2, None], repeat=L):
        taken = [k for k in choice if k is not None]
        if len(set(taken)) == len(taken):
            yield [3 + i if k is None else k for i, k in enumerate(choice)]


@pytest.mark.parametrize("prior", [BetaBernoulli(2.0, 1.5), Spectrum(0.7, 1.3, 2.0)], ids=["Beta", "Spectrum"])
@pytest.mark.parametrize("values", [[[2.9]], [[0.2], [3.1], [2.8]], [[-5.0], [6.2]]])
def test_the_score_is_the_exact_ratio_of_evidences(prior, values):
    model = SPAHM(FAMILY, prior=BetaBernoulli(), search="plain").fit(np.concatenate(OLD), groups=[0, 0, 1, 2, 2])
    board = Board([stack_arrays(OLD)], [FAMILY], prior, labels=HELD)
    # this matching and this prior, not what was found
    model.fusion_._fit._made["board", "atom"] = board
    new = np.array(values)
    with_it = [evidence([*HELD, *a], [*OLD, new], prior) for a in assignments(len(new))]
    exact = logsumexp(with_it) - evidence(HELD, OLD, prior)
    assert model.score(new, groups=np.zeros(len(new))) * len(new) == pytest.approx(exact, abs=1e-9)


def test_a_score_is_a_density_of_values_and_of_their_number():
    model = SPAHM(FAMILY, prior=BetaBernoulli(), search="plain").fit(np.concatenate(OLD), groups=[0, 0, 1, 2, 2])
    x = np.linspace(-13, 18, 250)
    one = trapezoid([np.exp(model.score([[v]])) for v in x], x)
    steps, counts = BetaBernoulli().increments(4), model.fusion_.counts
    odds, rate = np.exp(steps[counts]), np.exp(steps[0])
    assert one == pytest.approx((odds.sum() + rate) * np.exp(-rate) / np.prod(1 + odds), rel=1e-5)


def test_a_grid_search_over_held_out_sites_finds_the_noise_that_was_drawn(table):
    X, groups, _ = table
    families = [Gaussian(noise=noise, learning="nothing") for noise in (0.0025, 0.04, 1.0)]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(SPAHM(random_state=0), {"family": families}, cv=GroupKFold(3))
        search.fit(X, groups=groups)
        scores = cross_val_score(SPAHM(random_state=0), X, cv=GroupKFold(3), params={"groups": groups})
    assert search.best_params_["family"] is not families[0]
    assert search.best_params_["family"].noise == families[1].noise
    assert scores.mean() > search.best_score_ - 0.5  # learned, and not far from the truth


def test_a_search_that_does_not_hand_sites_on_is_told(table):
    X, groups, _ = table
    search = GridSearchCV(SPAHM(random_state=0), {"search": ["plain"]}, cv=GroupKFold(3))
    with pytest.warns(NamesWarning, match=r"every row is taken for a site of its own.*enable_metadata_routing=True"):
        search.fit(X, groups=groups)  # they reach the splits alone


@pytest.mark.dask  # the extra that brings pandas
def test_distances_come_as_a_table_where_that_is_asked_for(table):
    import pandas

    X, groups, _ = table
    model = SPAHM(random_state=0).set_output(transform="pandas")
    found = model.fit_transform(X, groups=groups)
    assert isinstance(found, pandas.DataFrame)
    assert list(found.columns) == list(model.get_feature_names_out())
    assert np.array_equal(found, model.set_output(transform="default").transform(X))
