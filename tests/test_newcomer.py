"""A consortium's accidents, as a new user meets them: docs/accidents.md leads from each finding to its test."""

import csv
import json
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

import modelweld
from modelweld import DuplicateWarning, InputError, LocalModel, NamesWarning, fuse, read
from modelweld.files import load, save
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_completion import complete, merge_components

FEATURES = ["age", "mass", "height"]
ROOT = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.4, 0.9]])
CENTRES = np.array([[0.0, 0.0, 0.0], [9.0, 1.0, 4.0], [0.0, 9.0, -6.0]])


def site(j, features=FEATURES, full=True, site=""):
    """Three components that every site has, a little elsewhere; those of these features alone."""
    rng = np.random.default_rng(j)
    own = [FEATURES.index(name) for name in features]
    means, spreads = CENTRES + 0.05 * rng.normal(size=(3, 3)), np.stack([(1 + 0.1 * j) * ROOT @ ROOT.T] * 3)
    spreads = spreads[:, own][:, :, own] if full else np.diagonal(spreads, axis1=1, axis2=2)[:, own]
    return mixture(means[:, own], spreads, [50, 70, 90 + j], counted=True, features=features, site=site or f"s{j}")


# --- sites that lack a feature ------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [True, False], ids=["covariances", "variances"])
@pytest.mark.parametrize("how", ["density", "moments", "atoms"])
def test_a_site_that_lacks_a_feature_is_fused_with_the_others(full, how):
    with pytest.warns(NamesWarning, match=r"'height' is not measured at 's3': it has no say in it"):
        lacking = fuse([*(site(j, full=full) for j in range(3)), site(3, ["age", "mass"], full)])
    whole = fuse([site(j, full=full) for j in range(4)])
    assert [labels.tolist() for labels in lacking.labels] == [labels.tolist() for labels in whole.labels]
    found, expected = lacking.model(how, like="GaussianMixture"), whole.model(how, like="GaussianMixture")
    assert found.feature_names_in_.tolist() == FEATURES
    assert np.allclose(found.means_, expected.means_, atol=0.1)
    assert np.allclose(found.covariances_, expected.covariances_, atol=0.3)
    assert "'height' is not measured at 's3'" in lacking.matching.reasons[0]
    said = fuse([*(site(j, full=full) for j in range(3)), read(site(3, ["age", "mass"], full), lacks="height")])
    assert said.objective == lacking.objective
    assert np.allclose(said.model(how, like="GaussianMixture").means_, found.means_)
    assert said.matching.reasons == ()


def test_moments_of_atoms_are_the_likeliest_given_what_was_seen():
    """One site has y, the other lacks it: y is regressed on x by who has both, and x is pooled."""
    means = np.array([[0.0, 10.0], [3.0, 0.0]])
    spreads = np.array([[[2.0, 1.0], [1.0, 4.0]], [[5.0, 0.0], [0.0, 0.0]]])
    counts, labels = np.array([30.0, 10.0]), np.zeros(2, dtype=int)
    seen = np.array([[True, True], [True, False]])
    (mean,), (spread,), _ = merge_components(*complete((means, spreads, counts), seen, labels), labels)
    slope, x, v = 1.0 / 2.0, 0.75, (30 * 2.0 + 10 * 5.0) / 40 + 0.75 * 0.25 * 9.0
    assert np.allclose(mean, [x, 10.0 + slope * x])
    assert np.allclose(spread, [[v, slope * v], [slope * v, (4.0 - slope) + slope**2 * v]])


def test_what_a_site_lacks_travels_in_files(tmp_path):
    paths = [save(site(j), tmp_path / f"{j}.safetensors") for j in range(2)]
    paths.append(save(read(site(2, ["mass", "age"]), lacks=["height"]), tmp_path / "2.safetensors"))
    fusion = fuse(paths)
    again = load(fusion.save(tmp_path / "fusion.safetensors"))
    assert np.array_equal(again.model("moments", like="GaussianMixture").means_, fusion.model("moments").means_)
    assert fusion._fit.models[2].coordinates["feature"] == tuple(FEATURES)
    assert fusion.density.union().model(like="GaussianMixture").n_components == 9
    assert np.isfinite(fusion.density.loss())


def test_a_site_that_comes_later_may_lack_features_too():
    fusion = fuse([site(j) for j in range(3)])
    with pytest.warns(NamesWarning, match="'mass' is not measured at 'late'"):
        larger = fusion.add(site(7, ["height", "age"], site="late"))
    assert larger.labels[-1].tolist() == larger.labels[0].tolist()
    assert larger.remove("late").sites == fusion.sites


def test_states_of_a_chain_may_lack_features():
    def chain(j, features):
        own = [FEATURES.index(name) for name in features]
        means = (CENTRES + 0.05 * np.random.default_rng(j).normal(size=(3, 3)))[:, own]
        numbers = np.full((3, 3), 20.0), np.ones(3), np.full(3, 60.0)
        emissions = {"means": means, "variances": np.ones(means.shape)}
        return hmm(*numbers, emissions, counted=True, features=features).with_(site=f"s{j}")

    whole = fuse([chain(j, FEATURES) for j in range(3)]).parameters()
    sites = [chain(0, FEATURES), chain(1, FEATURES), read(chain(2, ["age", "mass"]), lacks=["height"])]
    fused = fuse(sites).parameters()
    assert fused.coordinates["feature"] == tuple(FEATURES)
    assert np.allclose(fused.arrays["means"], whole.arrays["means"], atol=0.1)
    assert np.allclose(fused.arrays["variances"], whole.arrays["variances"], atol=0.1)


def test_variances_with_a_lack_go_with_covariances():
    whole = fuse([site(0), site(1), site(2, full=False)])
    lacking = fuse([site(0), site(1), read(site(2, ["age", "mass"], full=False), lacks=["height"])])
    assert np.allclose(
        lacking.parameters("moments").arrays["means"], whole.parameters("moments").arrays["means"], atol=0.1
    )
    chains = []
    for j, name in enumerate(["covariances", "variances"]):
        spreads = np.stack([np.eye(2)] * 2) if j == 0 else np.ones((2, 2))
        emissions = {"means": np.array([[0.0, 0.0], [9.0, 9.0]]) + 0.1 * j, name: spreads}
        chain = hmm(np.full((2, 2), 20.0), np.ones(2), np.full(2, 40.0), emissions, counted=True, features=["x", "y"])
        chains.append(chain.with_(site=str(j)))
    full = read(chains[0].with_(coordinates={"feature": ["x", "z"]}), lacks=["y"])
    fused = fuse([full, read(chains[1], lacks=["z"])]).parameters()
    assert np.linalg.eigvalsh(fused.arrays["covariances"]).min() > 0
    assert np.allclose(fused.arrays["means"], [[0.05, 0.1, 0.0], [9.05, 9.1, 9.0]], atol=0.2)


def test_k_means_may_lack_features():
    rng = np.random.default_rng(0)
    X = [np.concatenate([c + rng.normal(size=(40, 3)) for c in CENTRES]) for _ in range(3)]
    columns = [[0, 1, 2], [0, 1, 2], [2, 0]]
    models = [KMeans(3, n_init=1, random_state=0).fit(x[:, own]) for x, own in zip(X, columns, strict=True)]
    sites = [read(m, features=[FEATURES[i] for i in own]) for m, own in zip(models, columns, strict=True)]
    with pytest.warns(NamesWarning):
        fused = fuse(sites).model()
    assert isinstance(fused, KMeans)
    assert np.allclose(np.sort(fused.cluster_centers_, axis=0), np.sort(CENTRES, axis=0), atol=0.5)


@pytest.mark.parametrize("held", [2, 1])
def test_a_site_must_have_half_of_all_features_or_say_what_it_lacks(held):
    names = list("abcd")[: 2 * held + (held == 1)]  # two of four will do, one of three will not
    whole, part = np.random.default_rng(0).normal(size=(2, 3, len(names)))
    model = LocalModel({"v": part[:, :held]}, {"v": ("atom", "feature")}, coordinates={"feature": names[:held]})
    sites = [LocalModel({"v": whole}, {"v": ("atom", "feature")}, coordinates={"feature": names}), model]
    if held == 2:
        with pytest.warns(NamesWarning, match=r"'c' is not measured at '1'; feature 'd' is not .* they have no say"):
            assert fuse(sites).atoms.shape[1] == 4
    else:
        with pytest.raises(InputError, match=r"site 1: .*it lacks 'b', 'c', more than half of 3.*lacks=\[\.\.\.\]"):
            fuse(sites)
    assert fuse([sites[0], read(model, lacks=names[held:])]).atoms.shape[1] == len(names)


def test_what_may_be_other_words_for_the_same_is_refused():
    other = site(2).with_(coordinates={"feature": ["age", "weight", "height"]})
    with pytest.raises(InputError, match=r"site s2: .*lacks 'mass' and has 'weight', which no other site has"):
        fuse([site(0), site(1), other])
    with pytest.raises(InputError, match="no site has measured feature 'ward'"):
        fuse([read(site(j), lacks=["ward"]) for j in range(2)])
    with pytest.raises(InputError, match="the site has 'age'"):
        read(site(0), lacks=["age"])
    with pytest.raises(InputError, match=r"have no names.*features=\[\.\.\.\]"):
        read(LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}), lacks=["age"])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_networks_need_all_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = MLPClassifier((3,), max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="a network cannot lack features"):
        read(net, features=["a", "b"], lacks=["c"])
    fusion = fuse([read(net, features=["a", "b"], y=y)])
    turned = fusion.model(how="mean", features=["b", "a"])
    assert np.allclose(turned.predict_proba(X[:, ::-1]), fusion.model(how="mean").predict_proba(X))
    with pytest.raises(InputError, match="needs all of its features; 'a' is not there"):
        fusion.model(how="mean", features=["b"])


# --- columns of a table in any order ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("make", [GaussianMixture, KMeans, GaussianNB], ids=lambda make: make.__name__)
def test_fused_models_have_the_columns_of_any_table(make):
    rng = np.random.default_rng(0)
    data = [np.concatenate([c + rng.normal(size=(40, 3)) for c in CENTRES]) for _ in range(2)]
    y = np.repeat([0, 1, 2], 40)
    options = {} if make is GaussianNB else {"random_state": 0, "n_init": 1}
    fitted = [make(*[3] * bool(options), **options).fit(X, y) for X in data]
    fusion = fuse([read(m, features=FEATURES) for m in fitted])
    order = [2, 0, 1]
    model = fusion.model(features=[FEATURES[i] for i in order])
    assert list(model.feature_names_in_) == [FEATURES[i] for i in order]
    assert np.array_equal(model.predict(data[0][:, order]), fusion.model().predict(data[0]))
    some = fusion.model(features=["height", "mass"])
    assert (some.predict(data[0][:, [2, 1]]) == fusion.model().predict(data[0])).mean() > 0.9
    with pytest.raises(InputError, match="chosen among 'age', 'height', 'mass', each once; found 'ward'"):
        fusion.model(features=["ward"])


# --- codes of categories ------------------------------------------------------------------------------------------


def categories(codes, named, seed=0):
    table = np.random.default_rng(seed).integers(5, 90, (2, codes)).astype(float)
    return hmm(
        np.full((2, 2), 9.0),
        np.ones(2),
        table.sum(axis=1),
        {"symbols": table},
        counted=True,
        symbols=[str(i) for i in range(codes)],
        facts={"named_symbols": named},
    )


def test_codes_need_names():
    with pytest.raises(InputError, match="site 1 has 5 codes without names and site 0 has 4 without names"):
        fuse([categories(4, False), categories(5, False)])
    with pytest.raises(InputError, match=r"site 1 names its codes and site 0 has 4 without names.*features=\[\.\.\.\]"):
        fuse([categories(4, False), categories(4, True, 1)])
    with pytest.warns(NamesWarning, match="code 3 of one site is taken for code 3 of the others") as said:
        fuse([categories(4, False), categories(4, False, 1)])
    assert len(said) == 1
    assert fuse([categories(4, True), categories(5, True, 1)]).parameters().arrays["symbols"].shape[1] == 5


@pytest.mark.hmm
def test_codes_of_hmmlearn_need_names():
    from hmmlearn.hmm import CategoricalHMM

    def model(codes, seed):
        found = CategoricalHMM(2)
        found.startprob_, found.transmat_ = np.full(2, 0.5), np.full((2, 2), 0.5)
        found.emissionprob_ = np.random.default_rng(seed).dirichlet(np.ones(codes), 2)
        return found

    with pytest.raises(InputError, match="codes without names"):
        fuse([model(4, 0), model(5, 1)])
    names = [list("abcd"), list("ebcad")]
    fused = fuse([read(model(len(own), j), features=own, lengths=[90]) for j, own in enumerate(names)])
    assert fused.parameters().coordinates["symbol"] == tuple("abcde")


# --- the same site twice ------------------------------------------------------------------------------------------


def test_a_name_is_one_site(tmp_path):
    with pytest.raises(InputError, match="site 's0' comes more than once, with different values"):
        fuse([site(0), site(1, site="s0")])
    with pytest.warns(DuplicateWarning, match=r"'s0' and 's0 \(2\)' sent the same values"):
        fusion = fuse([site(0), site(1), site(0)])
    assert fusion.sites == ["s0", "s1", "s0 (2)"]
    path = save(site(0), tmp_path / "s0.safetensors")
    with pytest.raises(InputError, match="is named more than once"):
        fuse([path, str(path)])


# --- one rule for files -------------------------------------------------------------------------------------------


def test_one_sentence_about_files_that_are_there(tmp_path):
    from modelweld.files.fused_model import save_model

    fusion = fuse([[[0.0], [5.0]], [[0.1], [5.1]]])
    writers = {
        "a.safetensors": lambda path, **force: fusion.save(path, **force),
        "b.safetensors": lambda path, **force: save(site(0), path, **force),
        "c.html": lambda path, **force: fusion.report(path, **force),
        "d.safetensors": lambda path, **force: modelweld.export(site(0), path, **force),
        "e.skops": lambda path, **force: save_model(KMeans(1), path, **force),
    }
    for name, write in writers.items():
        (tmp_path / name).write_text("precious")
        with pytest.raises(
            InputError, match=r": is there already\. Choose another name, or say force=True to replace it"
        ):
            write(tmp_path / name)
        assert (tmp_path / name).read_text() == "precious"
        write(tmp_path / name, force=True)
        assert (tmp_path / name).read_bytes()[:8] != b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(writers)


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def pool(run, tmp_path):
    for j in range(3):
        save(site(j), tmp_path / f"s{j}.safetensors")
    assert run("fuse", ".")[0] == 0
    (tmp_path / "page.html").write_text("<!doctype html>")
    return tmp_path


def test_sites_get_the_fused_model(run, pool):
    from joblib import load as unpickle
    from skops.io import load as unpack

    expected = fuse([site(j) for j in range(3)]).model(like="GaussianMixture")
    code, said, complained = run("model", "fusion.safetensors", "--out", "fused.skops")
    assert (code, complained) == (0, "")
    assert "GaussianMixture written to fused.skops\nload it: skops.io.load('fused.skops')" in said
    assert np.allclose(unpack("fused.skops").means_, expected.means_)
    assert run("model", "fusion.safetensors", "--out", "fused.skops")[0] == 1
    words = ["--how", "moments", "--features", "mass,age"]
    code, said, complained = run("model", "fusion.safetensors", "--out", "west.joblib", *words)
    assert code == 0
    assert "its columns: mass, age" in said
    assert "is a pickle: loading it runs whatever code it holds" in complained
    assert unpickle("west.joblib").feature_names_in_.tolist() == ["mass", "age"]
    (pool / "west.csv").write_text("age,mass\n0,0\n9,1\n")
    assert "--features" in run("apply", "fusion.safetensors", "west.csv")[2]
    code, said, _ = run("apply", "fusion.safetensors", "west.csv", "--features", "age,mass")
    assert code == 0
    assert [row["label"] for row in csv.DictReader(said.splitlines())] == [
        str(label) for label in fuse([site(j) for j in range(3)]).labels[0][:2]
    ]


@pytest.mark.torch
def test_sites_get_the_weights_of_a_network(run, tmp_path):
    import torch
    from safetensors.torch import load_file

    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)) for _ in range(2)]
    fusion = fuse([read(net, class_counts=[9, 9], site=str(j)) for j, net in enumerate(nets)])
    fusion.save(tmp_path / "fusion.safetensors")
    assert "call the file something.safetensors" in run("model", "fusion.safetensors", "--how", "mean")[2]
    code, said, _ = run("model", "fusion.safetensors", "--how", "mean", "--out", "net.safetensors")
    assert code == 0
    assert "Sequential(Linear(in_features=3" in said
    expected = fusion.model("mean")
    found = load_file("net.safetensors")
    assert all(torch.equal(found[name], value) for name, value in expected.state_dict().items())


def test_sites_export_with_their_data(run, tmp_path):
    from skops.io import dump

    rng = np.random.default_rng(0)
    X = np.concatenate([c + rng.normal(size=(30, 3)) for c in CENTRES])
    model = GaussianMixture(3, random_state=0).fit(X)
    dump(model, tmp_path / "model.skops")
    code, said, complained = run("export", "model.skops", "--out", "bare.safetensors")
    assert (code, complained) == (0, "")  # what there is to take care of stands in the report, once
    assert said.count("how many points stand behind each component is not known") == 1
    assert "Say --n or --X." in said
    with open("X.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", *FEATURES], *([i, *row] for i, row in enumerate(X))])
    np.save(tmp_path / "X.npy", X)
    expected = read(model, X=X, features=FEATURES)
    names, units = ",".join(FEATURES), "age=years, mass=kg"
    assert run("export", "model.skops", "--X", "X.csv")[0] == 1  # which of its four columns?
    code, said, _ = run(
        "export", "model.skops", "--X", "X.csv", "--features", names, "--units", units, "--lacks", "dose"
    )
    assert code == 0
    assert "Beside them: names of 4 features; whether counts are numbers of points, or shares; units of" in said
    sent = load("site.safetensors")
    assert sent.coordinates["feature"] == (*FEATURES, "dose")
    assert sent.facts["units"] == {"age": "years", "mass": "kg"}
    assert np.allclose(np.asarray(sent.variance["means"])[:, :3], expected.variance["means"])
    assert run("export", "model.skops", "--X", "X.npy", "--features", names, "--out", "npy.safetensors")[0] == 0
    assert np.allclose(load("npy.safetensors").arrays["counts"], expected.arrays["counts"])


def test_what_fuse_is_told_on_the_command_line(run, pool):
    sites = [f"s{j}.safetensors" for j in range(3)]
    for path in sites:
        save(load(path).with_(variance={}), path, force=True)  # of which the paper knows nothing
    asked = {
        ("--preset", "paper"): {"preset": "paper"},
        ("--prior", "spectrum"): {"prior": modelweld.Spectrum()},
        ("--family", "gaussian", "--prior", "betabernoulli"): {
            "families": modelweld.Gaussian(),
            "prior": modelweld.BetaBernoulli(),
        },
    }
    for words, options in asked.items():
        code, said, _ = run("fuse", *sites, *words, "--out", "told.safetensors", "--force", "--json")
        assert code == 0
        assert json.loads(said)["objective"] == pytest.approx(fuse(sites, **options).objective)


def test_families_on_the_command_line_are_those_there_are():
    from modelweld.cli.arguments import FAMILIES, parse_family
    from modelweld.families.capabilities import FAMILIES as REGISTRY

    ours = [name for name, cls in REGISTRY.items() if cls.__module__.startswith("modelweld.families.")]
    made = [
        name for name in ours if name not in ("Quadrature", "Laplace", "Drift", "FadingCounts", "FadingDirections")
    ]  # of one's own, and by --times
    assert set(FAMILIES.split(", ")) == set(made)
    assert all(type(parse_family(name)).__name__ == name for name in made)


@pytest.mark.parametrize("out", ["fusion.safetensors", "again.safetensors"])
def test_fuse_runs_again_in_its_own_folder(run, pool, out):
    everything = sorted(path.name for path in pool.iterdir())  # what a shell makes of *
    for given in (["."], ["*.safetensors"], everything):
        code, said, complained = run("fuse", *given, "--out", out, "--force")
        assert code == 0
        assert "fusion of 3 sites" in said
        assert "fusion.safetensors: this is a fusion: left out." in complained
    assert "page.html: this is a report: left out." in complained


def test_warnings_are_said_once_in_the_command_lines_words(run, pool):
    save(site(9, ["age", "mass"]), pool / "west.safetensors")
    save(site(0), pool / "copy.safetensors")
    code, said, complained = run("fuse", ".", "--out", "new.safetensors")
    assert code == 0
    said_once = {"'height' is not measured": "export --lacks", "sent the same values": "--screens outliers"}
    for warning, words in said_once.items():
        assert (said + complained).count(warning) == 1
        assert words in complained
    assert "=" not in complained
    assert "'height' is not measured" in run("inspect", "new.safetensors")[1]
