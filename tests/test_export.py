"""Export: what leaves is what was shown, nothing that describes a person does, and noise is accounted for."""

import zipfile

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from modelweld import InputError, LocalModel, fuse, read
from modelweld.errors import DisclosureWarning
from modelweld.files import load
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.network import network
from modelweld.kinds.sparse_gp import sparse_gp
from modelweld.kinds.topics import topics
from modelweld.site.export import export


@pytest.fixture
def path(tmp_path):
    return tmp_path / "site.safetensors"


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (0, 9, -9)])


def small(count=3.0):
    return mixture([[0.0], [9.0]], [[1.0], [1.0]], [40.0, count], counted=True)


def test_what_is_written_is_what_is_read(X, path):
    model = GaussianMixture(3, random_state=0).fit(X)
    report = export(model, path, site="north", features=["age", "weight"], n=len(X), units={"age": "years"})
    sent, expected = load(path), read(model, site="north", features=["age", "weight"], n=len(X))
    for name, values in expected.arrays.items():
        assert np.array_equal(sent.arrays[name], values)
    assert np.array_equal(sent.variance["means"], expected.variance["means"])
    assert sent.facts == {**expected.facts, "units": {"age": "years"}}
    assert sent.coordinates == {"feature": ("age", "weight")}
    assert report.path == path
    assert report.smallest == pytest.approx(60, abs=2)
    assert {a.name: a.shape for a in report.arrays} == {n: np.shape(v) for n, v in sent.arrays.items()}
    assert report.concerns == ()


def test_the_report_shows_every_array(X):
    text = str(export(KMeans(3, n_init=1, random_state=0).fit(X), None, site="[bold]north", features=["[red]", "y"]))
    assert all(word in text for word in ("[bold]north", "means", "variances", "counts", "names of 2 features"))
    assert "Nothing was written" in text


def test_nothing_of_the_data_leaves(X, path):
    model = make_pipeline(StandardScaler(), GaussianMixture(3, random_state=0)).fit(X)
    export(model, path, X=X)
    assert path.stat().st_size < X.nbytes
    raw = path.read_bytes()
    assert not any(row.tobytes() in raw for row in X)
    assert load(path).facts["undone"] == ["StandardScaler"]


# -- small components -------------------------------------------------------------------------------------------------


def test_small_components_are_refused(path):
    with pytest.raises(InputError, match=r"1 of 2 numbers of points are below 5 \(smallest: 3\).*allow_small=True"):
        export(small(), path)
    assert not path.exists()
    report = export(small(), path, allow_small=True)
    assert report.smallest == 3.0
    assert load(path).arrays["counts"].tolist() == [40.0, 3.0]
    assert export(small(5.0), None).smallest == 5.0


def test_small_states_and_classes_are_refused_unseen_ones_are_not():
    moves = np.full((2, 2), 5.0)
    chain = hmm(moves, np.zeros(2), np.array([40.0, 2.0]), {"rates": np.ones((2, 1))}, counted=True)
    with pytest.raises(InputError, match="'counts': 1 of 2"):
        export(chain, None)
    weights, biases = [np.ones((2, 3)), np.ones((3, 2))], [np.ones(3), np.ones(2)]
    for counts, fits in (([50, 2], False), ([50, 0], True), ([50, 9], True)):
        local = network(weights, biases, activation="relu", classes=["a", "b"], counts=counts)
        if fits:
            assert export(local, None).smallest == min(n for n in counts if n)
        else:
            with pytest.raises(InputError, match="below 5"):
                export(local, None)


def chain(moves, starts, counted=True):
    moves = np.asarray(moves, dtype=float)
    return hmm(moves, np.asarray(starts, dtype=float), moves.sum(1) + 9, {"rates": np.eye(2)}, counted=counted)


@pytest.mark.parametrize(
    ("moves", "starts", "message"),
    [
        ([[9, 2], [7, 8]], [6, 6], r"'moves': 1 of 4 cells that are not empty are below 5 \(smallest: 2\).*drop_small"),
        ([[9, 0.4], [7, 8]], [6, 1], "'starts': 1 of 2 cells"),
        ([[9, 0.4], [7, 8]], [6, 0], None),
        ([[9, 5], [5, 8]], [5, 5], None),
    ],
)
def test_small_cells_of_tables_are_refused(path, moves, starts, message):
    if message is None:
        export(chain(moves, starts), path)
        return
    with pytest.raises(InputError, match=message):
        export(chain(moves, starts), path)
    assert not path.exists()
    assert export(chain(moves, starts), path, allow_small=True).facts == ("counted",)
    assert load(path).arrays["moves"].tolist() == np.asarray(moves, dtype=float).tolist()


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")
def test_small_cells_are_dropped_when_asked(path):
    report = export(chain([[9, 2], [4.9, 8]], [6, 1]), path, drop_small=True)
    assert "dropped" in report.facts
    sent = load(path)
    assert sent.arrays["moves"].tolist() == [[9.0, 0.0], [0.0, 8.0]]
    assert sent.arrays["starts"].tolist() == [6.0, 0.0]
    assert sent.facts["dropped"] == ["moves", "starts"]
    model = fuse([sent, sent.with_(site="b")]).parameters()
    assert np.asarray(model.arrays["moves"]).sum() == 2 * 17


def test_shares_have_no_small_cells():
    with pytest.warns(DisclosureWarning, match="not known"):
        export(chain([[0.9, 0.1], [0.5, 0.5]], [0.5, 0.5], counted=False), None)


def test_empty_topics_may_leave():
    assert export(topics([[50.0, 30.0], [0.0, 0.2]], ["a", "b"]), None).smallest == 80.0


def test_unknown_counts_are_a_concern(X):
    with pytest.warns(DisclosureWarning, match=r"not known.*n=, counts= or X="):
        report = export(GaussianMixture(3, random_state=0).fit(X), None)
    assert report.smallest is None
    assert "Take care" in str(report)


# -- rows that could be rebuilt ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("points", "concern"), [(5, True), (6, False)])
def test_covariances_of_few_points_are_a_concern(points, concern):
    D = 4
    local = mixture(np.zeros((1, D)), [np.eye(D)], [points], counted=True)
    if concern:
        with pytest.warns(DisclosureWarning, match="full covariances of 4 features from 5 points"):
            export(local, None)
    else:
        assert export(local, None).concerns == ()
    assert export(mixture(np.zeros((1, D)), np.ones((1, D)), [points], counted=True), None).concerns == ()


def test_rows_with_noise_are_no_rows(X):
    local = mixture(X[:2], np.ones((2, 2)), [50, 50], counted=True)
    assert export(local, None, X=X, noise=0.1, seed=1).concerns == ()


def test_inducing_inputs_are_compared_where_the_data_is_at_hand(X):
    local = sparse_gp(X[:3] + 0.25, X[:3, 0], lengthscales=1.0, outputscale=1.0, noise=0.1)
    with pytest.warns(DisclosureWarning, match="inducing inputs must not be rows"):
        export(local, None)
    assert export(local, None, X=X).concerns == ()
    chosen = sparse_gp(X[:3], X[:3, 0], lengthscales=1.0, outputscale=1.0, noise=0.1)
    with pytest.raises(InputError, match="'inputs' has a row"):
        export(chosen, None, X=X)


def test_gaussian_processes_are_compared_with_what_they_keep(X):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    model = GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None).fit(X, X[:, 0])
    assert export(model, None, X=X, features=["a", "b"]).concerns == export(model, None).concerns == ()


def test_rare_words_are_a_concern():
    with pytest.warns(DisclosureWarning, match="1 of 3 words occur fewer than 5 times; names of persons"):
        export(topics([[50.0, 30.0, 1.0], [0.0, 20.0, 0.0]], ["a", "b", "Schmidt"]), None)


# -- noise ------------------------------------------------------------------------------------------------------------


def test_noise_has_the_variance_it_says(path):
    K = 4000
    local = mixture(np.zeros((K, 2)), np.ones((K, 2)), np.full(K, 50.0), counted=True)
    report = export(local, path, noise={"means": [0.5, 3.0]})
    sent = load(path)
    assert np.allclose(np.std(sent.arrays["means"], axis=0), [0.5, 3.0], rtol=0.1)
    assert np.allclose(sent.variance["means"], 1 / 50 + np.array([0.25, 9.0]))
    assert np.array_equal(sent.arrays["variances"], local.arrays["variances"])
    assert np.array_equal(sent.arrays["counts"], local.arrays["counts"])
    assert sent.facts["noisy"] == ["means"]
    assert next(a for a in report.arrays if a.name == "means").noise == "0.5 to 3"


def test_noise_is_new_each_time_unless_seeded(tmp_path):
    def means(name, **options):
        export(small(9.0), tmp_path / f"{name}.safetensors", noise=1.0, **options)
        return load(tmp_path / f"{name}.safetensors").arrays["means"].tolist()

    assert means("a") != means("b")
    assert means("c", seed=3) == means("d", seed=3)
    assert b"seed" not in (tmp_path / "c.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"counts": 1.0}, "means; found 'counts'"),
        ({"variances": 1.0}, "found 'variances'"),
        ({"absent": 1.0}, "found 'absent'"),
        ({"means": -1.0}, "not negative"),
        ({"means": np.nan}, "finite"),
        ({"means": [1.0, 2.0, 3.0]}, "fit its shape"),
        ({"means": "much"}, "must be a number"),
    ],
)
def test_noise_that_cannot_be_accounted_for_is_refused(noise, message):
    with pytest.raises(InputError, match=message):
        export(small(9.0), None, noise=noise)


@pytest.mark.parametrize(("noise", "says"), [(1.0, "this model has none"), ({"words": 1.0}, "none; found 'words'")])
def test_counts_of_words_take_no_noise(noise, says):
    with pytest.raises(InputError, match=says):
        export(topics([[50.0, 30.0]], ["a", "b"]), None, noise=noise)


# -- what is handed in ------------------------------------------------------------------------------------------------


def test_facts_that_do_not_fit_are_named(X):
    local = LocalModel({"v": [[1.0]]}, {"v": ("atom", None)})
    with pytest.raises(InputError, match="says everything itself"):
        export(local, None, counts=[9])
    with pytest.raises(InputError, match="no feature 'x'"):
        export(local, None, units={"x": "m"})
    with pytest.raises(InputError, match="cannot be read"):
        export(object(), None)
    with pytest.raises(InputError, match=r"unexpected keyword"):
        export(KMeans(2, n_init=1, random_state=0).fit(X), None, lengths=[3])


def test_skops_files_of_untrusted_types_bombs_and_pickles_are_refused(tmp_path):
    io_ = pytest.importorskip("skops.io")
    io_.dump(Unknown(), tmp_path / "odd.skops")
    with pytest.raises(InputError, match="skops does not load it"):
        export(tmp_path / "odd.skops", None)
    bomb = zipfile.ZipFile(tmp_path / "bomb.skops", "w", zipfile.ZIP_DEFLATED)
    with bomb, bomb.open("schema.json", "w") as member:
        for _ in range(300):
            member.write(bytes(1_000_000))
    with pytest.raises(InputError, match=r"unpacks to"):
        export(tmp_path / "bomb.skops", None)
    with pytest.raises(InputError, match="may run code when loaded"):
        export(tmp_path / "model.pkl", None)


class Unknown:
    """A type that skops does not trust."""

    def __init__(self):
        self.value = 1
