"""Components: what the contract of adapters (test_adapters.py) does not ask."""

import numpy as np
import pytest
from sklearn.decomposition import NMF, PCA, DictionaryLearning, FactorAnalysis, FastICA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adapted import collected
from modelweld import InputError, export, fuse, load, read
from modelweld.kinds.components import components
from modelweld.libraries.decompositions import decoder

CASES = {name.split(": ")[1]: case for name, case in collected().items() if name.startswith("sklearn_components")}


def sites(name, number=4, size=3, rows=(137, 300, 90, 211)):
    rng = np.random.default_rng(5)
    data = [CASES[name].data(rng, rows[j]) for j in range(number)]
    return data, [CASES[name].fit(X, size) for X in data]


@pytest.mark.parametrize("cls", [PCA, TruncatedSVD])
def test_principal_axes_of_all_rows_are_those_of_the_sites_added_up(cls):
    rng = np.random.default_rng(1)
    shift = rng.normal(size=(3, 5))
    data = [rng.normal(size=(n, 5)) * [5, 4, 3, 2, 1] + s for n, s in zip((40, 90, 25), shift, strict=True)]
    size = 5 if cls is PCA else 4  # which is why the second is near alone
    fusion = fuse([read(cls(size).fit(X), X=X) for X in data])
    fused, pooled = fusion.model(K=size), cls(size).fit(np.concatenate(data))
    exact = 1e-9 if cls is PCA else 0.05
    assert np.allclose(np.abs((fused.components_ * pooled.components_).sum(axis=1)), 1.0, atol=exact)
    assert np.allclose(fused.singular_values_, pooled.singular_values_, rtol=exact)
    if cls is PCA:
        assert np.allclose(fused.explained_variance_ratio_, pooled.explained_variance_ratio_)
        assert fused.score(data[0]) == pytest.approx(pooled.score(data[0]))


def test_axes_left_out_are_noise_in_every_direction_across():
    data, models = sites("PCA")
    fused = fuse(models).model(K=2)
    assert fused.get_covariance().trace() == pytest.approx(PCA(2).fit(np.concatenate(data)).get_covariance().trace())


@pytest.mark.parametrize("K", [0, 9])
def test_there_are_as_many_axes_as_features_at_most(K):
    _, models = sites("PCA")
    with pytest.raises(InputError, match="1 to 8 axes; found K="):
        fuse(models).model(K=K)


def test_only_principal_axes_say_what_the_covariance_is():
    _, models = sites("FastICA")
    with pytest.raises(InputError, match="from principal axes alone"):
        fuse(models).model(how="covariances")
    with pytest.raises(InputError, match="K is for how='covariances'"):
        fuse(models).model(K=2)


def test_planted_components_are_found_whatever_their_signs():
    from adapted.sklearn_components import PLANTED

    rng = np.random.default_rng(2)
    signs = [rng.choice([-1.0, 1.0], 4) for _ in range(4)]
    fusion = fuse([components(PLANTED * s[:, None] + 0.05 * rng.normal(size=PLANTED.shape)) for s in signs])
    truth = PLANTED / np.linalg.norm(PLANTED, axis=1, keepdims=True)
    assert fusion.K == 4
    assert np.abs(fusion.atoms @ truth.T).max(axis=1).min() > 0.98
    assert all(np.array_equal(found, given) for found, given in zip(fusion.parameters.signs, signs, strict=True))


def test_lengths_are_weighed_by_rows():
    north, south = components([[3.0, 0.0]], rows=300), components([[1.0, 0.0]], rows=100)
    assert fuse([north, south]).parameters().arrays["lengths"] == pytest.approx([np.sqrt(7.0)])
    assert fuse([north, south.with_(facts={**south.facts, "rows": 0})]).parameters().facts["rows"] == 0


def test_settings_are_those_of_most_sites():
    X = CASES["NMF"].data(np.random.default_rng(0))
    losses = ["kullback-leibler", "frobenius", "kullback-leibler"]
    models = [NMF(2, init="nndsvda", solver="mu", beta_loss=loss, max_iter=1000).fit(X) for loss in losses]
    assert fuse([read(m, n=100 + j) for j, m in enumerate(models)]).model().beta_loss == "kullback-leibler"


def test_components_that_were_given_up_are_left_out():
    assert read(_nmf([[1.0, 2.0], [0.0, 0.0]])).sizes == {"pattern": 1}
    with pytest.raises(InputError, match="all vectors are zero"):
        read(_nmf([[0.0, 0.0]]))


def _nmf(factors):
    model = NMF(len(factors))
    model.components_ = np.array(factors)
    return model


def test_components_of_other_classes_are_refused():
    X = CASES["NMF"].data(np.random.default_rng(0))
    ica, nmf = CASES["FastICA"].fit(X), CASES["NMF"].fit(X)
    with pytest.raises(
        InputError, match="components of site s have signs that mean something, but not those of site n"
    ):
        fuse([read(ica, site="n"), read(nmf, site="s")])
    with pytest.raises(InputError, match="components of site s are said to be principal axes"):
        fuse([read(ica, site="n"), read(PCA(2).fit(X), site="s")])


def test_classes_of_components_mix_where_they_mean_the_same():
    data, models = sites("FastICA")
    loadings = CASES["FactorAnalysis"].fit(data[0])
    fusion = fuse([*models, loadings])
    assert "noise" not in fusion.parameters().arrays
    assert type(fusion.model()) is FastICA
    assert fusion.model(like=DictionaryLearning).transform(data[0]).shape == (137, fusion.K)
    assert fusion.model(like="FactorAnalysis").transform(data[0]).shape == (137, fusion.K)
    assert type(fuse([loadings, CASES["FactorAnalysis"].fit(data[1])]).model()) is FactorAnalysis


def test_scalers_before_components_are_refused():
    X = CASES["PCA"].data(np.random.default_rng(0))
    with pytest.raises(InputError, match="scalers before a components cannot be undone"):
        read(make_pipeline(StandardScaler(), PCA(2)).fit(X))


def test_axial_values_are_averaged_the_way_round_of_their_atoms():
    from modelweld import Directions

    fusion = fuse([[[0.6, 0.8]], [[-0.6, -0.8]], [[0.8, 0.6]]], Directions(axial=True), screens=["outliers"])
    assert fusion.K == 1
    assert np.allclose(fusion.table().means, [[2 / 3, 2.2 / 3]])


def test_site_files_and_pages(tmp_path):
    data, models = sites("NMF")
    paths = [tmp_path / f"{j}.safetensors" for j in range(4)]
    for X, model, path in zip(data, models, paths, strict=True):
        export(model, path, site=path.stem, n=len(X), features=list("abcdefgh"))
    fusion = fuse([load(path) for path in paths])
    assert fusion.model().components_.shape == (fusion.K, 8)
    page = fusion.report(tmp_path / "page.html", draws=False).read_text()
    assert "Largest entries" in page
    assert fusion.table().words[0][0] in "abcdefgh"


@pytest.mark.parametrize("damaged", ["lengths", "signed"])
def test_files_of_what_are_no_components_are_refused(damaged, tmp_path):
    from modelweld.files import save

    model = components([[1.0, 2.0]], site="north")
    wrong = (
        model.with_(arrays={**model.arrays, "lengths": np.array([-1.0])})
        if damaged == "lengths"
        else model.with_(facts={**model.facts, "signed": "perhaps"})
    )
    with pytest.raises(InputError, match=rf"{damaged}.* of a components"):
        save(wrong, tmp_path / "wrong.safetensors")


def test_decoders_are_read_from_states_and_files(tmp_path):
    from safetensors.numpy import save_file

    rng = np.random.default_rng(0)
    weights, bias = rng.normal(size=(6, 4)), rng.normal(size=4)
    path = tmp_path / "sae.safetensors"
    save_file({"decoder.weight": weights.T.copy(), "decoder.bias": bias}, path)
    rows = decoder({"W_dec": weights, "b_dec": bias}, "W_dec", features="rows", bias="b_dec", counts=np.arange(6))
    columns = decoder(path, "decoder.weight", features="columns", bias="decoder.bias")
    assert np.array_equal(rows.arrays["directions"], columns.arrays["directions"])
    assert np.array_equal(columns.arrays["mean"], bias)
    assert rows.arrays["counts"].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match=r"no tensor 'W_enc'; there are .*'W_dec': \(6, 4\)"):
        decoder({"W_dec": weights}, "W_enc", features="rows")
    with pytest.raises(InputError, match="features is 'rows' or 'columns'"):
        decoder({"W_dec": weights}, "W_dec", features="both")
    with pytest.raises(InputError, match="is a matrix of features and dimensions"):
        decoder({"W_dec": bias}, "W_dec", features="rows")
    with pytest.raises(InputError, match="no safetensors file that can be read"):
        decoder(tmp_path / "none", "W_dec", features="rows")


@pytest.mark.torch
def test_decoders_are_read_from_tensors():
    import torch

    layer = torch.nn.Linear(6, 4).to(torch.bfloat16)
    local = decoder(layer.state_dict(), "weight", features="columns", bias="bias")
    assert local.sizes == {"pattern": 6}
    assert np.allclose(local.arrays["mean"], layer.bias.detach().double())


def test_counts_of_features_are_added_through_the_matching():
    states = [{"W": [[1.0, 0.0], [0.0, 1.0]]}, {"W": [[0.0, 1.0]]}]
    sites = [decoder(s, "W", features="rows", counts=n) for s, n in zip(states, ([5, 7], [20]), strict=True)]
    fusion = fuse(sites)
    assert fusion.parameters().arrays["counts"].tolist() == [27.0, 5.0]
    assert fusion.table().points.tolist() == [27.0, 5.0]
