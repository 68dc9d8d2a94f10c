"""A consensus of many runs on the same rows: groups, votes, frequencies, one model, and clear refusals."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.mixture import GaussianMixture

import modelweld

CENTRES = 7.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), 60)
    return CENTRES[truth] + rng.normal(size=(300, 3)), truth


def agreement(found, truth):
    return modelweld.metrics.adjusted_rand(found, truth)


@pytest.fixture(scope="module")
def runs(rows):
    return [
        KMeans(k, n_init=1, init="random", random_state=10 * j + k).fit(rows[0])
        for j, k in enumerate((4, 5, 6, 7, 5, 6, 5, 8, 5, 6))
    ]


FORMS = {
    "models and rows": lambda runs, X: (runs, X),
    "models alone": lambda runs, X: (runs, None),
    "labels and rows": lambda runs, X: ([run.labels_ for run in runs], X),
    "labels do not say": lambda runs, X: ([run.labels_ for run in runs], None),
    "words": lambda runs, X: ([[f"c{k}" for k in run.labels_] for run in runs], X),
}


@pytest.mark.parametrize("form", FORMS)
def test_runs_of_any_form_find_the_groups(rows, runs, form):
    X, truth = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error", modelweld.ModelweldWarning)  # copies are what runs are
        found = modelweld.consensus(*FORMS[form](runs, X))
    mean = np.mean([agreement(run.labels_, truth) for run in runs])
    assert agreement(found.labels, truth) > max(mean, 0.9)
    assert len(found.frequency) == len(np.unique(found.labels))
    assert (np.diff(found.found) <= 0).all()
    assert ((found.frequency > 0) & (found.frequency < 1)).all()
    assert f"Consensus of 10 runs: {len(found.frequency)} groups" in repr(found)


def test_the_same_run_many_times_is_itself(rows):
    run = AgglomerativeClustering(5).fit(rows[0])
    for X in (rows[0], None):
        found = modelweld.consensus([run.labels_] * 6, X)
        assert agreement(found.labels, run.labels_) == 1
        assert found.found.tolist() == [6] * 5
        assert (found.votes == 1).all()


def test_rows_that_no_run_places_have_no_group(rows):
    X = np.vstack([rows[0], [[99.0, 99.0, 99.0]]])
    runs = [DBSCAN(eps, min_samples=4).fit(X) for eps in (2.0, 2.2, 2.4)]
    found = modelweld.consensus(runs, X)
    assert (found.labels[-1], found.votes[-1]) == (-1, 0)


@pytest.mark.parametrize("model", [KMeans(5, n_init=1), GaussianMixture(5), AgglomerativeClustering(5)])
def test_one_model_comes_back(rows, model):
    X, given = rows[0], model.get_params()
    seeds = [{"random_state": j} if "random_state" in given else {} for j in range(4)]
    runs = [type(model)(**{**given, **seed}).fit(X) for seed in seeds]
    found = modelweld.consensus(runs, X)
    written = found.model()
    assert type(written).__name__ == ("GaussianMixture" if hasattr(model, "linkage") else type(model).__name__)
    assert agreement(written.predict(X), found.labels) > 0.95
    assert type(found.model(like="KMeans")) is KMeans


def parts(kind):
    rng = np.random.default_rng(1)
    if kind is NMF:
        truth = rng.gamma(0.2, 1.0, (5, 40))
        X = rng.poisson(5 * rng.gamma(0.4, 1.0, (150, 5)) @ truth).astype(float)
        return truth, [
            NMF(k, init="random", random_state=j, max_iter=800).fit(X) for j, k in enumerate([4, 5, 5, 6, 7, 5])
        ]
    truth = rng.dirichlet([0.05] * 60, 5)
    X = np.array([rng.multinomial(80, share @ truth) for share in rng.dirichlet([0.2] * 5, 150)])
    return truth, [LatentDirichletAllocation(k, random_state=j).fit(X) for j, k in enumerate([4, 5, 5, 6, 7, 5])]


@pytest.mark.parametrize("kind", [NMF, LatentDirichletAllocation])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parts_of_many_runs(kind):
    truth, runs = parts(kind)
    found = modelweld.consensus(runs)
    model = found.model()
    assert type(model) is kind
    assert found.labels is None
    assert len(model.components_) == len(found.frequency)
    assert (found.frequency >= 0.5).all()
    lengths = [np.linalg.norm(x, axis=1, keepdims=True) for x in (truth, model.components_)]
    assert ((truth / lengths[0]) @ (model.components_ / lengths[1]).T).max(axis=1).min() > 0.9


def test_a_page_is_written(rows, runs, tmp_path):
    page = modelweld.consensus(runs, rows[0]).report(tmp_path / "runs.html").read_text()
    assert "Consensus of 10 runs" in page


REFUSED = {
    "one run": (lambda X: ([[0, 1] * 150], X), "two runs or more; found 1"),
    "other rows": (lambda X: ([[0, 1] * 150, [0, 1] * 149], X), "the same rows; found 298 and 300"),
    "fewer rows": (lambda X: ([[0, 1] * 150, [1, 0] * 150], X[:9]), "the same rows; found 9 and 300"),
    "one group": (lambda X: ([[0, 1] * 150, [0] * 300], X), "run 1: .*all labelled rows are '0'"),
    "no model": (lambda X: ([{}, {}], X), "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_runs_are_refused(rows, case):
    given, says = REFUSED[case]
    with pytest.raises(modelweld.InputError, match=says):
        modelweld.consensus(*given(rows[0]))


def test_labels_alone_give_no_model(rows, runs):
    with pytest.raises(modelweld.InputError, match="give the rows"):
        modelweld.consensus([run.labels_ for run in runs]).model()
