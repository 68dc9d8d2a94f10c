"""SPAHM, the estimator: scikit-learn's own checks, groups, weights, pipelines."""

import numpy as np
import pytest
import sklearn
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from modelweld import SPAHM, Gaussian, fuse
from modelweld.studies.simulate import sparse

NOT_KEPT = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a weight is a precision: a row of weight two is one parameter known twice as well, not parameters of two sites"
    ),
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SPAHM(random_state=0)], expected_failed_checks=lambda _: NOT_KEPT)
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
    sure = model.fit(X, groups=groups, sample_weight=np.full(len(X), 1e6)).cluster_centers_
    doubtful = model.fit(X, groups=groups, sample_weight=np.full(len(X), 1e-2)).cluster_centers_
    assert np.abs(doubtful).mean() < np.abs(sure).mean()  # nearer to the common mean


def test_wrong_groups_are_named(table):
    X, groups, _ = table
    with pytest.raises(ValueError, match="groups must name the site of each"):
        SPAHM().fit(X, groups=groups[:-1])
