"""Networks: what a refit and a union are, classes that sites lack, and what is refused."""

import json
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from modelweld import InputError, fuse, read
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.errors import ModelweldWarning
from modelweld.families import Gaussian
from modelweld.kinds.network import DRAWS, HOWS, draw_inputs, network, outputs, shares
from modelweld.libraries import write
from programs import printed_by

APART = {
    "families": Gaussian(noise=1e-6, spread=1.0, shape="scalar", learning="nothing"),
    "prior": BetaBernoulli(),
    "screens": ["duplicates"],
}
"""Under these nothing that is not a copy to three digits is matched."""


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def some_network(rng, sizes, classes=None, activation="relu", **more):
    W = [rng.normal(size=shape) / np.sqrt(shape[0]) for shape in pairwise(sizes)]
    return network(W, [rng.normal(size=n) for n in sizes[1:]], activation=activation, classes=classes, **more)


def some_sites(rng, hidden, activation="relu"):
    """Three sites with two to four of the classes a, b, c, d."""
    held = ["abcd", "ab", "bcd"]
    return [
        some_network(rng, [3, *hidden, len(k)], list(k), activation, counts=rng.integers(1, 20, len(k))) for k in held
    ]


def ensemble(fusion, X):
    """Logits of all sites, weighted by class counts."""
    return sum(p * outputs(m, X) for p, m in zip(shares(fusion._fit.models), fusion._fit.models, strict=True))


@pytest.mark.parametrize("hidden", [(5,), (5, 4), (4, 3, 5)])
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_the_union_is_the_ensemble_weighted_by_class_counts(rng, hidden, activation):
    fusion = fuse(some_sites(rng, hidden, activation), **APART)
    X = rng.normal(size=(50, 3))
    assert np.allclose(outputs(fusion.parameters("union"), X), ensemble(fusion, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("hidden", [(5,), (5, 4)])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_refit_with_all_units_kept_is_the_ensemble_too(rng, hidden, activation):
    fusion = fuse(some_sites(rng, hidden, activation), **APART)
    assert all((m.counts == 1).all() for m in fusion.matchings.values())
    X = 0.5 * rng.normal(size=(50, 3))
    refit = fusion.parameters("refit", ridge=1e-12)
    assert np.allclose(outputs(refit, X), ensemble(fusion, X), atol=1e-4)


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_polishing_only_brings_outputs_nearer(rng, activation):
    fusion = fuse([some_network(rng, [3, 4, 3, 2], activation=activation, counts=5) for _ in range(3)])
    X = draw_inputs(fusion._fit.models, DRAWS, 0)
    off = [
        np.square(outputs(fusion.parameters("polish", steps=n), X) - ensemble(fusion, X)).sum() for n in (0, 1, 5, 100)
    ]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(off))
    refit = fusion.parameters("refit")
    assert np.array_equal(outputs(fusion.parameters("polish", steps=0), X), outputs(refit, X))


def test_shares_are_those_of_rows_by_class(rng):
    fusion = fuse(some_sites(rng, (4,)), **APART)
    counts = np.array([m.arrays["counts"] for m in fusion._fit.models])
    assert np.allclose(shares(fusion._fit.models), counts / counts.sum(axis=0))
    assert fusion._fit.models[1].coordinates["class"] == ("a", "b", "c", "d")
    assert (shares(fusion._fit.models)[1, 2:] == 0).all()


def test_without_counts_sites_that_have_a_class_share_it_alike(rng):
    sites = [some_network(rng, [3, 4, 2], classes) for classes in (["a", "b"], ["b", "c"])]
    fusion = fuse(sites, **APART)
    assert shares(fusion._fit.models).tolist() == [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]


def test_without_counts_it_is_said_what_is_lost_and_what_to_send(rng):
    sites = [some_network(rng, [3, 4, 2], ["a", "b"]) for _ in range(2)]
    for how in HOWS:
        with pytest.warns(ModelweldWarning, match=r"how many rows of each class.*same weight.*read\(net, y=y\)"):
            fuse(sites, **APART).parameters(how)


@pytest.mark.parametrize("counts", [{"counts": [3, 5]}, {}])
def test_the_default_is_the_refit(rng, counts):
    fusion = fuse([some_network(rng, [3, 4, 2], ["a", "b"], **counts) for _ in range(2)], **APART)
    with nullcontext() if counts else pytest.warns(ModelweldWarning):
        found = [outputs(fusion.parameters(how), np.eye(3)) for how in (None, "refit")]
    assert np.array_equal(*found)


def sites_of_copies(rng, depth, activation):
    """Sites that hold some of the same six units in their last hidden layer, each with its own outgoing weights."""
    sizes = [3, *[4] * (depth - 1), 6]
    W, b = [rng.normal(size=shape) for shape in pairwise(sizes)], [rng.normal(size=n) for n in sizes[1:]]
    sites = []
    for held, classes in zip(([0, 1, 2, 3], [5, 3], [2, 4, 1]), ("abcd", "ab", "bcd"), strict=True):
        last = rng.normal(size=(len(held), len(classes))), rng.normal(size=len(classes))
        own = [*W[:-1], W[-1][:, held], last[0]], [*b[:-1], b[-1][held], last[1]]
        counts = rng.integers(1, 20, len(classes))
        sites.append(network(*own, activation=activation, classes=list(classes), counts=counts))
    return sites


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_of_copies_the_mean_is_the_ensemble(rng, depth, activation):
    incoming = {f"h{i}": {f"W{i}": APART["families"], f"b{i}": APART["families"]} for i in range(depth)}
    fusion = fuse(sites_of_copies(rng, depth, activation), **{**APART, "families": incoming, "screens": []})
    assert sorted(fusion.matchings[f"h{depth - 1}"].counts) == [1, 1, 1, 2, 2, 2]
    X = rng.normal(size=(50, 3))
    assert np.allclose(outputs(fusion.parameters("mean"), X), ensemble(fusion, X), rtol=1e-9, atol=1e-9)


def test_a_mean_unit_receives_what_its_members_receive_on_average(rng):
    fusion = fuse([some_network(rng, [3, 4, 2], counts=9) for _ in range(3)])
    labels = np.concatenate(fusion.labels)
    assert max(fusion.counts) > 1
    own = np.hstack([m.arrays["W0"] for m in fusion._fit.models])
    wanted = np.column_stack([own[:, labels == k].mean(axis=1) for k in range(len(fusion.counts))])
    assert np.allclose(fusion.parameters("mean").arrays["W0"], wanted)


def test_sites_with_one_two_and_three_classes_make_one_classifier(rng):
    X = rng.normal(size=(300, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[np.arange(300) % 3]
    labels = np.array([2, 10, 33])[np.arange(300) % 3]
    nets, told = [], []
    for seed, classes in enumerate(([2, 10, 33], [10, 33], [2, 10], [2])):
        held = np.isin(labels, classes)
        net = MLPClassifier((6,), solver="lbfgs", alpha=0.1, random_state=seed, max_iter=1000)
        nets.append(net.fit(X[held], labels[held]))
        told.append(labels[held])
    locals_ = [read(net, y=y) for net, y in zip(nets, told, strict=True)]
    for net, local in zip(nets, locals_, strict=True):
        again = write(local)
        assert np.allclose(again.predict_proba(X), net.predict_proba(X))
        assert (again.predict(X) == net.predict(X)).all()
    fused = fuse(locals_[:3]).model()
    assert fused.classes_.tolist() == [2, 10, 33]
    assert fused.score(X, labels) > 0.9
    assert np.allclose(fused.predict_proba(X).sum(axis=1), 1.0)


@pytest.fixture(scope="module")
def digits():
    """Five sites with different shares of the classes, and test rows."""
    rng = np.random.default_rng(1)
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    X, y = X[order] / 16, y[order]
    shares_of_sites = rng.dirichlet([0.5] * 5, 10)
    site = np.array([rng.choice(5, p=shares_of_sites[c]) for c in y])
    site[1300:] = -1
    return [(X[site == j], y[site == j]) for j in range(5)], (X[1300:], y[1300:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("how", ["refit", "polish"])
@pytest.mark.parametrize("hidden", [(20,), (20, 15)])
def test_fused_digits_beat_every_local_network(digits, hidden, how):
    sites, test = digits
    nets = [
        MLPClassifier(hidden, batch_size=32, max_iter=20, random_state=j).fit(X, y) for j, (X, y) in enumerate(sites)
    ]
    fusion = fuse([read(net, y=y, X=X) for net, (X, y) in zip(nets, sites, strict=True)])
    best = max(net.score(*test) for net in nets)
    assert fusion.model(how, draws=1000).score(*test) > best + 0.05


def test_regressors_fuse_into_their_weighted_mean(rng):
    X = rng.uniform(-1, 1, (400, 2))
    parts = [X[:300], X[300:]]
    nets = [
        MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", solver="lbfgs", random_state=j, max_iter=3000).fit(
            x, x.prod(axis=1)
        )
        for j, x in enumerate(parts)
    ]
    fusion = fuse([read(net, n=len(x)) for net, x in zip(nets, parts, strict=True)], **APART)
    wanted = 0.75 * nets[0].predict(X) + 0.25 * nets[1].predict(X)
    assert np.allclose(fusion.model("union").predict(X), wanted)
    assert np.allclose(fusion.model(ridge=1e-10).predict(X), wanted, atol=0.05)


def test_scalers_say_where_inputs_are_drawn(rng):
    X = rng.normal(size=(80, 2)) * [1.0, 50.0] + [10.0, -300.0]
    y = (X[:, 0] > 10).astype(int)
    pipeline = make_pipeline(StandardScaler(), MLPClassifier((3,), solver="lbfgs", random_state=0)).fit(X, y)
    scaler = pipeline[0]
    assert np.allclose(read(pipeline, y=y).arrays["inputs"], [scaler.mean_, 0.5 * scaler.scale_])
    assert np.allclose(read(pipeline, y=y, X=X).arrays["inputs"], [scaler.mean_, scaler.scale_])


NARROW = [3, 4, 2]
ROWS = np.random.default_rng(0).normal(size=(30, 2))


def fuse_networks(*sites, **options):
    rng = np.random.default_rng(0)
    return fuse([some_network(rng, *layers, **more) for *layers, more in sites], **options)


def some_classifier(y):
    return MLPClassifier((3,), solver="lbfgs", random_state=0, max_iter=500).fit(ROWS, y)


REFUSED = {
    r"site 1.*same activation.*'tanh'.*'relu'": lambda: fuse_networks((NARROW, {}), (NARROW, {"activation": "tanh"})),
    "activation is one of .*'swish'": lambda: fuse_networks((NARROW, {"activation": "swish"})),
    "site 1: all sites must send the same arrays": lambda: fuse_networks((NARROW, {}), ([3, 4, 4, 2], {})),
    "no units to match": lambda: fuse_networks(([3, 2], {})),
    "site 1: its class '0' is 0 elsewhere": lambda: fuse_networks(
        (NARROW, [0, 1], {"counts": 5}), (NARROW, ["0", "1"], {"counts": 5}), **APART
    ).parameters(),
    r"each of 2 outputs; found shape \(3,\)": lambda: read(some_classifier(ROWS[:, 0] > 0), class_counts=[1, 2, 3]),
    r"each of 2 outputs; found shape \(\)": lambda: read(some_classifier(ROWS[:, 0] > 0), n=30),
    "with classes cannot be written as MLPRegressor": lambda: write(
        read(some_classifier(ROWS[:, 0] > 0), class_counts=[10, 20]), like=MLPRegressor
    ),
    "several labels per row": lambda: read(some_classifier((ROWS > 0).astype(int))),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_no_such_network_is_refused(words):
    with pytest.raises(InputError, match=words):
        REFUSED[words]()


def torch_network(*modules):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(*(getattr(torch.nn, name)(*given) for name, *given in modules))


TWO_LAYERS = (("Linear", 3, 4), ("ReLU",), ("Linear", 4, 2))


@pytest.mark.torch
@pytest.mark.parametrize(
    "modules",
    [
        (("Linear", 3, 4), ("Linear", 4, 2)),
        (("Linear", 3, 4), ("ReLU",), ("Linear", 4, 3), ("Tanh",), ("Linear", 3, 2)),
        (("Linear", 3, 4), ("ReLU",), ("Linear", 4, 2), ("ReLU",)),
        (("Conv2d", 1, 4, 3), ("ReLU",), ("Flatten",), ("Linear", 4, 2)),
    ],
)
def test_sequentials_of_other_forms_are_deep_networks(modules):
    assert read(torch_network(*modules)).kind == "deep-network"
    assert read(torch_network(*TWO_LAYERS)).kind == "network"


@pytest.mark.torch
def test_the_end_of_a_sequential_is_written_again(rng):
    model = torch_network(*TWO_LAYERS, ("LogSoftmax", 1))
    import torch

    X = torch.from_numpy(rng.normal(size=(5, 3))).float()
    again = write(read(model, class_counts=[3, 4]))
    assert torch.allclose(again(X), model(X), atol=1e-6)
    assert again[0].weight.dtype == torch.float32


@pytest.mark.torch
def test_counts_and_classes_of_a_sequential():
    model = torch_network(*TWO_LAYERS)
    assert read(model, y=[1, 1, 0]).arrays["counts"].tolist() == [1.0, 2.0]
    assert read(model, classes=["no", "yes"]).coordinates["class"] == ("no", "yes")
    assert "class" not in read(model, n=7).coordinates
    with pytest.raises(InputError, match="classes must be one for each of 2 outputs; found shape"):
        read(model, classes=[0, 1, 2])


@pytest.mark.torch
def test_networks_of_two_libraries_fuse_in_one_call(rng):
    model = torch_network(*TWO_LAYERS)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    nets = [MLPClassifier((4,), solver="lbfgs", random_state=seed, max_iter=500).fit(X, y) for seed in (0, 1)]
    fusion = fuse([*(read(net, y=y) for net in nets), read(model, y=y)])
    assert isinstance(fusion.model(), MLPClassifier)
    assert type(fusion.model(like="Sequential")).__name__ == "Sequential"


@pytest.mark.slow
def test_the_experiment_runs(tmp_path):
    script = Path(__file__).parents[1] / "experiments" / "networks" / "run.py"
    printed_by(script, "--smoke", "--jobs", 1, "--out", tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    for methods in (result["methods"] for result in results.values()):
        assert methods["ours, refit"][1] <= methods["class-weighted logit ensemble"][1]
        assert all(0 <= accuracy <= 1 for accuracy, _ in methods.values())
