"""Groups of any clustering: rows and labels in, a mixture out, with names, standard errors and clear refusals."""

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import modelweld
from modelweld.cli import app

CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def site(rng, groups=(0, 1, 2), rows=60):
    labels = rng.permutation(np.repeat(groups, rows))
    return CENTRES[labels] + rng.normal(size=(len(labels), 2)), labels


def test_groups_are_those_of_the_rows(rng):
    X, labels = site(rng)
    local = modelweld.read(X=X, labels=labels, features=["a", "b"], site="north")
    assert (local.site, local.kind, local.coordinates["feature"]) == ("north", "mixture", ("a", "b"))
    for k in range(3):
        own = X[labels == k]
        assert np.allclose(local.arrays["means"][k], own.mean(axis=0))
        assert np.allclose(local.arrays["covariances"][k], np.cov(own.T))
        assert np.allclose(local.variance["means"][k], own.var(axis=0, ddof=1) / len(own), rtol=0.1)
    assert local.arrays["counts"].tolist() == [60, 60, 60]


FORMS = {
    "words": lambda labels: np.array(["b-cell", "nk", "t-cell"])[labels],
    "objects": lambda labels: [f"type {k}" for k in labels],
    "texts": lambda labels: labels.astype(str),
    "floats": lambda labels: labels.astype(float),
    "later numbers": lambda labels: labels + 9,
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_may_be_anything_that_names_a_group(rng, form):
    X, labels = site(rng)
    local, plain = (modelweld.read(X=X, labels=given) for given in (FORMS[form](labels), labels))
    assert np.array_equal(local.arrays["means"], plain.arrays["means"])
    assert len(local.facts["labels"]) == 3


def test_noise_and_missing_labels_stay_out(rng):
    X, labels = site(rng)
    far = np.full((5, 2), 1e6)
    expected = modelweld.read(X=X, labels=labels)
    for noise in (np.append(labels, [-1] * 5), np.append(labels.astype(float), [np.nan] * 5), [*labels, *[None] * 5]):
        found = modelweld.read(X=np.vstack([X, far]), labels=noise)
        assert np.array_equal(found.arrays["means"], expected.arrays["means"])


def test_sparse_rows_and_few_rows_send_variances(rng):
    X, labels = site(rng, rows=15)
    dense, sparse = (modelweld.read(X=x, labels=labels) for x in (X, scipy.sparse.csr_matrix(X)))
    assert "variances" in dense.arrays
    assert np.allclose(dense.arrays["variances"], sparse.arrays["variances"])


def test_sites_with_labels_fuse_and_keep_names(rng):
    sites = []
    for j, groups in enumerate([(0, 1), (1, 2), (0, 2), (0, 1, 2)]):
        X, labels = site(rng, groups)
        sites.append(modelweld.read(X=X, labels=np.array(["red", "green", "blue"])[labels], site=str(j)))
    fusion = modelweld.fuse(sites)
    assert fusion.K == 3
    assert {words[0] for words in fusion.table().words} == {"red", "green", "blue"}
    model = fusion.model()
    assert type(model).__name__ == "GaussianMixture"
    assert sorted(model.predict(CENTRES)) == [0, 1, 2]
    assert "labels" not in fusion.parameters().facts


REFUSED = {
    "other length": ({"labels": [0, 1]}, r"one per row of X: found 2 labels, and X of shape \(6, 2\)"),
    "one label": ({"labels": [7] * 6}, "all labelled rows are '7'.*Cluster the rows first"),
    "noise alone": ({"labels": [-1] * 6}, "no row has one: all are noise"),
    "two axes": ({"labels": np.zeros((6, 2))}, "one axis"),
    "no rows": ({"labels": [0, 1], "X": None}, "labels go with their rows"),
    "missing values": ({"labels": [0, 1] * 3, "X": np.full((6, 2), np.nan)}, "must be finite"),
    "words for rows": ({"labels": [0, 1] * 3, "X": np.full((6, 2), "a")}, "real numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_labels_are_refused(case):
    given, says = REFUSED[case]
    facts = {"X": np.arange(12.0).reshape(6, 2), **given}
    with pytest.raises(modelweld.InputError, match=says):
        modelweld.read(**{name: fact for name, fact in facts.items() if fact is not None})


def test_a_model_beside_labels_is_refused(rng):
    X, labels = site(rng)
    with pytest.raises(modelweld.InputError, match="with no model"):
        modelweld.read(X, X=X, labels=labels)


def test_a_clusterer_without_its_rows_is_refused(rng):
    from sklearn.cluster import AgglomerativeClustering

    X, _ = site(rng)
    with pytest.raises(modelweld.InputError, match="give the rows it was fitted to, X=X"):
        modelweld.read(AgglomerativeClustering(3).fit(X))
    with pytest.raises(modelweld.InputError, match="is not fitted"):
        modelweld.read(AgglomerativeClustering(3), X=X)
    with pytest.raises(modelweld.InputError, match="found 180 labels, and X of shape"):
        modelweld.read(AgglomerativeClustering(3).fit(X), X=X[:9])


def test_small_groups_do_not_leave(rng):
    X, labels = site(rng)
    labels[0] = 9
    with pytest.raises(modelweld.InputError, match="below 5"):
        modelweld.export(None, None, X=X, labels=labels)


def test_the_command_line_exports_labelled_rows(rng, tmp_path):
    X, labels = site(rng)
    words = np.array(["low", "high", "none"])[labels]
    table = tmp_path / "data.csv"
    rows = [f"{a},{word},{b}" for (a, b), word in zip(X.tolist(), words, strict=True)]
    table.write_text("\n".join(["age,group,pressure", *rows, "1.0,,2.0"]))
    out = tmp_path / "site.safetensors"
    ran = CliRunner().invoke(app, ["export", str(table), "--labels", "group", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    local = modelweld.load(out)
    assert local.coordinates["feature"] == ("age", "pressure")
    assert local.facts["labels"] == ["high", "low", "none"]
    assert local.arrays["counts"].sum() == 180
    assert CliRunner().invoke(app, ["export", str(table), "--labels", "kind", "--out", str(out)]).exit_code == 1
