"""What goes wrong at first contact is said of the right site, in the same words everywhere; clean tables are silent."""

import json
import warnings

import numpy as np
import pytest
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import modelweld
from modelweld.demo.hospitals import HOSPITALS, load_hospital
from modelweld.errors import DataWarning, sites_named
from modelweld.libraries.own_rows import doubt_columns
from modelweld.report import numbers_of, page_of

GUILTY, FEATURE = 2, 1
TABLES = {"wine": (datasets.load_wine, [0, 2, 6, 9, 12]), "cancer": (datasets.load_breast_cancer, [0, 1, 4, 7])}
"""Of each table the columns that are taken."""


@pytest.fixture(params=TABLES)
def sites(request):
    load, columns = TABLES[request.param]
    X = load().data[:, columns]
    return [X[rows].copy() for rows in np.array_split(np.random.default_rng(8001).permutation(len(X)), 4)]


def listen(rows, names=None, given=None, model=None):
    """What is said when sites fit, read and fuse; and the fusion."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sent = {}
        for j, X in enumerate(rows):
            fitted = (model or (lambda: GaussianMixture(3, covariance_type="diag", random_state=0)))().fit(X)
            own = (names or {}).get(j, [f"f{d}" for d in range(X.shape[1])])
            sent[f"site {j}"] = modelweld.read(fitted, X=(given or {}).get(j, X), features=own, site=f"site {j}")
        fusion = modelweld.fuse(sent)
    return [
        str(w.message) for w in caught if issubclass(w.category, (modelweld.ModelweldWarning, RuntimeWarning))
    ], fusion


def named(said):
    return {name for text in said for name in sites_named(text, {repr(f"site {j}"): f"site {j}" for j in range(9)})}


def missing_as(value, share=0.25):
    def spoil(sites):
        gone = np.arange(len(sites[GUILTY])) < share * len(sites[GUILTY])
        sites[GUILTY][gone, FEATURE] = value(sites[GUILTY][~gone, FEATURE])
        return listen(sites)

    return spoil


def foreign_rows(sites):
    return listen(sites, given={GUILTY: sites[0]})


def unscaled_rows(sites):
    scaled = [StandardScaler().fit_transform(X) for X in sites]
    return listen([scaled[GUILTY]] * 3, given={GUILTY: sites[GUILTY]})


def number_at_one(sites):
    sites[GUILTY] = np.column_stack([sites[GUILTY], np.arange(1.0, len(sites[GUILTY]) + 1)])
    return listen(sites, names={GUILTY: [*(f"f{d}" for d in range(sites[0].shape[1])), "patient"]})


ONE_SITE = {
    "coded -999": (missing_as(lambda _: -999.0), "f1"),
    "coded 0": (missing_as(lambda _: 0.0), "f1"),
    "filled in": (missing_as(np.mean), "f1"),
    "rows of another site": (foreign_rows, "X is not what the model was fitted on"),
    "rows before scaling": (unscaled_rows, "X is not what the model was fitted on"),
    "running number": (number_at_one, "patient"),
}


@pytest.mark.parametrize("accident", ONE_SITE)
def test_the_site_is_named_and_no_other_the_same_everywhere(sites, accident):
    spoil, word = ONE_SITE[accident]
    said, fusion = spoil(sites)
    about = [text for text in said if word in text]
    assert named(about) == {f"site {GUILTY}"}
    finding = about[-1]
    assert finding in fusion.matching.reasons
    assert any(finding in one.findings for one in fusion.diagnosis.sites())
    numbers = numbers_of(fusion, draws=False)
    assert finding in [alert["text"] for alert in numbers["sets"][0]["alerts"]]
    assert f"site {GUILTY}" in numbers["sets"][0]["warned"]
    assert json.dumps(finding)[1:-1] in page_of(numbers)


def test_a_running_number_at_all_sites_is_named(sites):
    numbered = [np.column_stack([X, np.arange(len(X))]) for X in sites]
    said, _ = listen(numbered)
    (text,) = [text for text in said if "running number" in text]
    assert named([text]) == {f"site {j}" for j in range(4)}
    assert repr(f"f{sites[0].shape[1]}") in text


MODELS = {
    "mixture": None,
    "full": lambda: GaussianMixture(2, random_state=0),
    "variational": lambda: GaussianMixture(4, covariance_type="spherical", random_state=0),
    "k-means": lambda: KMeans(4, n_init=1, random_state=0),
    "scaled": lambda: make_pipeline(StandardScaler(), GaussianMixture(3, covariance_type="diag", random_state=0)),
}


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_said_of_clean_tables(sites, model):
    said, fusion = listen(sites, model=MODELS[model])
    assert said == []
    assert not any(one.findings for one in fusion.diagnosis.sites())


@pytest.mark.parametrize("load", [datasets.load_digits, datasets.load_wine, datasets.load_breast_cancer])
@pytest.mark.parametrize(
    "model", [lambda: GaussianMixture(6, covariance_type="diag", random_state=0), MODELS["k-means"]]
)
def test_whole_tables_are_silent_also_where_columns_never_vary(load, model):
    X = load().data
    for seed in (8300, 8302):
        rows = np.array_split(np.random.default_rng(seed).permutation(len(X)), 5 + seed % 8)
        assert listen([X[own] for own in rows], model=model)[0] == []


def test_codes_that_all_sites_share_are_none():
    """Sex is 0 or 1 everywhere, and some components hold one of them alone."""
    rng = np.random.default_rng(0)
    sites = [np.column_stack([rng.normal(0, 1, 90) + 6 * np.repeat([0, 1, 2], 30), np.repeat([0.0, 1.0, 1.0], 30)])
             for _ in range(4)]  # fmt: skip
    assert listen(sites)[0] == []
    sites[GUILTY][:, 1] += 1.0
    said = [text for text in listen(sites)[0] if "'f1' is coded 1 or 2, and 0 or 1 at most sites" in text]
    assert named(said) == {f"site {GUILTY}"}


def test_a_code_that_mixtures_hardly_use_is_named(sites):
    rng = np.random.default_rng(1)
    said = listen([np.column_stack([X, rng.integers(0, 2, len(X)) + (j == GUILTY)]) for j, X in enumerate(sites)])[0]
    assert f"site {GUILTY}" in named(text for text in said if "is coded 1 or 2" in text)


@pytest.mark.parametrize("n", [50, 100, 300])
def test_amounts_that_are_often_zero_are_no_codes(n):
    rng = np.random.default_rng(0)
    none, X = (
        rng.random(n) < 0.3,
        np.column_stack([rng.gamma(1.0, 12.0, n), np.exp(rng.normal(size=n)), rng.poisson(5, n)]),
    )
    X[none] = 0.0
    assert not list(doubt_columns(X, None))
    assert not list(doubt_columns(-X, None))
    X[none] = -9.0
    assert len(list(doubt_columns(X, None))) == len(list(doubt_columns(-X, None))) == 3


def test_four_hospitals_that_differ_are_left_in_peace():
    """Scores of four sites agree by chance; what two or three components scatter by anyway is no surprise."""
    measured = [0, 1, 3, 4]
    for seed in (8312, 8325):
        rng = np.random.default_rng([seed, 4])
        tables = [load_hospital(hospital)[0][:, measured] for hospital in HOSPITALS]
        said, fusion = listen([X[np.isfinite(X).all(1) & (rng.random(len(X)) < 0.8)] for X in tables])
        assert not said
        assert not any(one.findings for one in fusion.diagnosis.sites())


def test_findings_can_be_made_errors(sites):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        fitted = GaussianMixture(3, covariance_type="diag", random_state=0).fit(sites[0])
        with pytest.raises(DataWarning, match="X is not what the model was fitted on"):
            modelweld.read(fitted, X=sites[1], site="north")
