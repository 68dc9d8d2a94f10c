"""Training in parallel: the same bits as one by one, whoever does the work, and failures that have names."""

import os
import re
import threading
from functools import partial
from pathlib import Path
from time import sleep

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import modelweld
from modelweld.errors import InputError
from modelweld.site.train import FailureWarning, TrainingError, seed_of, train_and_fuse, train_site

HELD = {"north": [0, 9], "south": [9, -9], "east": [0, -9], "west": [0, 9, -9], "centre": [9, -9]}


def made(held=HELD):
    rng = np.random.default_rng(5)
    return {site: np.concatenate([rng.normal(m, 1.0, (40, 2)) for m in means]) for site, means in held.items()}


def same(one, other):
    """Bit for bit: sites, parameters that were sent, matching, atoms, objective."""
    assert one.sites == other.sites
    for a, b in zip(one._fit.models, other._fit.models, strict=True):
        assert a.facts == b.facts
        for part in ("arrays", "variance", "weight"):
            assert getattr(a, part).keys() == getattr(b, part).keys()
            assert all(np.array_equal(getattr(a, part)[name], v) for name, v in getattr(b, part).items())
    for a, b in zip(one.matchings.values(), other.matchings.values(), strict=True):
        assert np.array_equal(a.stacked_labels, b.stacked_labels)
        assert all(np.array_equal(a.values[key], values) for key, values in b.values.items())
    assert one.objective == other.objective


def one_by_one(estimator, data, seed=0):
    """What a user does without us: clone, fit, read, fuse."""
    with threadpool_limits(1):
        models = [modelweld.read(clone(estimator).fit(X), X=X, site=site) for site, X in data.items()]
    return modelweld.fuse(models, seed=seed)


def where(X):
    """A function for `estimator` that says who it is: the process in a fact."""
    model = modelweld.read(GaussianMixture(2, random_state=0).fit(X), X=X)
    return model.with_(facts={**model.facts, "process": os.getpid()})


def test_what_fuse_was_asked_for_is_kept():
    fusion = train_and_fuse(GaussianMixture(2, random_state=3), made(), search="plain", seed=5)
    assert fusion.diagnosis.settings == modelweld.fuse(fusion._fit.given, search="plain", seed=5).diagnosis.settings


def test_processes_give_the_bits_of_one_by_one_and_name_what_failed():
    data = made()
    rows = data["south"]
    told = []
    given = {**data, "south": lambda: rows, "empty": np.empty((0, 2))}  # south's rows are fetched by the worker
    with pytest.warns(FailureWarning, match="1 of 6 .*'empty' .ValueError") as caught:
        fusion = train_and_fuse(
            GaussianMixture(2, random_state=3), given, n_jobs=2, progress=lambda *news: told.append(news)
        )
    same(fusion, one_by_one(GaussianMixture(2, random_state=3), data))
    assert [failure.site for failure in fusion.failures] == ["empty"] == [f.site for f in caught[0].message.failures]
    assert "in fit" in fusion.failures[0].traceback
    assert told[:7] == [("training", done, 6) for done in range(7)]
    assert "matching sites" in {what for what, _, _ in told[7:]}
    elsewhere = train_and_fuse(where, data, n_jobs=2)
    assert all(model.facts["process"] != os.getpid() for model in elsewhere._fit.models)


@pytest.mark.parametrize("backend", ["threading", "sequential"])
@pytest.mark.parametrize("progress", [False, True])
def test_other_backends_give_the_same_bits(backend, progress):
    data = made()
    with joblib.parallel_config(backend=backend, n_jobs=3):
        fusion = train_and_fuse(GaussianMixture(2, random_state=3), data, progress=progress, seed=2)
    same(fusion, one_by_one(GaussianMixture(2, random_state=3), data, seed=2))


def test_a_backend_that_cannot_tell_what_is_done_serves_as_well():
    told = []
    with joblib.parallel_config(backend="multiprocessing", n_jobs=1):
        fusion = train_and_fuse(KMeans(2, n_init=2), made(), progress=lambda *news: told.append(news))
    assert [done for what, done, _ in told if what == "training"] == [0, 1, 2, 3, 4, 5]
    same(fusion, train_and_fuse(KMeans(2, n_init=2), made()))


def test_seeds_belong_to_sites_not_to_order_or_company():
    data = made()
    fusion = train_and_fuse(KMeans(3, n_init=1, init="random"), data)
    sent = dict(zip(fusion.sites, fusion._fit.models, strict=True))
    fewer = train_and_fuse(KMeans(3, n_init=1, init="random"), dict(reversed(list(data.items())[:3])))
    assert fewer.sites == ["east", "south", "north"]
    for site, model in zip(fewer.sites, fewer._fit.models, strict=True):
        assert np.array_equal(model.arrays["means"], sent[site].arrays["means"])
        own = train_site(KMeans(3, n_init=1, init="random"), data[site], site=site)
        assert np.array_equal(own.arrays["means"], model.arrays["means"])


def test_an_open_random_state_is_seeded_and_a_given_one_kept():
    drawn = []

    class Draws(KMeans):
        def fit(self, X, y=None):
            drawn.append(self.random_state)
            return super().fit(X)

    X = made()["north"]
    for site, seed in (("north", 0), ("south", 0), ("north", 1)):
        train_site(Draws(2), X, site=site, seed=seed)
    assert len(set(drawn)) == 3
    assert None not in drawn
    drawn.clear()
    estimator = make_pipeline(StandardScaler(), Draws(2))
    train_site(estimator, X, site="north")
    train_site(Draws(2, random_state=7), X, site="north")
    assert isinstance(drawn[0], int)
    assert drawn[1] == 7
    assert estimator[-1].random_state is None  # a clone was trained


def test_functions_are_as_good_as_estimators():
    data = made()
    expected = train_and_fuse(GaussianMixture(2, random_state=3), data)
    same(train_and_fuse(lambda X: GaussianMixture(2, random_state=3).fit(X), data), expected)
    same(train_and_fuse(lambda part: modelweld.read(GaussianMixture(2, random_state=3).fit(part[0]), X=part[0]),
                        {site: (X, "a note", 3) for site, X in data.items()}), expected)  # fmt: skip


def test_functions_get_the_seed_they_ask_for():
    seeds = {}

    def train(X, seed):
        seeds[len(X)] = seed
        return GaussianMixture(1).fit(X)

    data = {"a": np.eye(4), "b": np.vstack([np.eye(4), np.eye(4)])}
    train_and_fuse(train, data, seed=3)
    assert seeds == {4: seed_of("a", 3), 8: seed_of("b", 3)}
    train_and_fuse(partial(train, seed=11), data)
    assert seeds == {4: 11, 8: 11}


def test_tuples_are_what_fit_takes_and_reading_is_told():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    mlp = MLPClassifier((4,), max_iter=5, random_state=0)
    with pytest.warns(match="Maximum iterations"):
        local = train_site(mlp, (X, y), site="north")
    with pytest.warns(match="Maximum iterations"):
        expected = modelweld.read(clone(mlp).fit(X, y), X=X, y=y, site="north")
    assert local.arrays.keys() == expected.arrays.keys()
    assert all(np.array_equal(local.arrays[name], v) for name, v in expected.arrays.items())
    bayes = train_site(GaussianNB(), {"X": X, "y": y, "sample_weight": np.full(60, 2.0)})
    assert bayes.arrays["counts"].tolist() == [40.0, 40.0, 40.0]
    with pytest.raises(InputError, match="takes in this order: X, y, sample_weight; found 4 entries"):
        train_site(GaussianNB(), (X, y, y, y))


@pytest.mark.hmm
def test_hidden_markov_models_train_with_lengths():
    from hmmlearn.hmm import GaussianHMM

    data = {site: (X, [len(X) // 2, len(X) - len(X) // 2]) for site, X in made().items()}
    fusion = train_and_fuse(GaussianHMM(2, n_iter=5, random_state=1), data)
    models = [
        modelweld.read(GaussianHMM(2, n_iter=5, random_state=1).fit(X, lengths), X=X, lengths=lengths, site=site)
        for site, (X, lengths) in data.items()
    ]
    same(fusion, modelweld.fuse(models))
    assert fusion.parameters.total("starts").sum() == pytest.approx(10)  # two sequences at each of five sites


def test_scalers_are_undone_and_features_named():
    data = made()
    fusion = train_and_fuse(
        make_pipeline(StandardScaler(), KMeans(2, n_init=3)), data, features=["age", "pressure"], search="plain"
    )
    assert fusion._fit.models[0].coordinates["feature"] == ("age", "pressure")
    assert np.abs(np.sort(fusion._fit.models[0].arrays["means"][:, 0]) - [0, 9]).max() < 1


def test_too_few_partitions_are_an_error_that_names_them():
    data = made()
    with pytest.raises(TrainingError, match=r"0 of 2 .* at least 1 .*'a' .*'b'") as caught:
        train_and_fuse(KMeans(2), {"a": np.empty((0, 2)), "b": np.empty((0, 2))})
    assert [failure.site for failure in caught.value.failures] == ["a", "b"]
    with pytest.raises(TrainingError, match=r"5 of 6 .* at least 6 must. Failed: 'bad'"):
        train_and_fuse(KMeans(2), {**data, "bad": np.full((9, 2), np.nan)}, minimum=6)
    many = {f"site {j}": np.empty((0, 2)) for j in range(30)}
    with pytest.warns(FailureWarning, match="'site 4' .*; and 25 more") as caught:
        fusion = train_and_fuse(KMeans(2, n_init=1), {**data, **many})
    assert len(fusion.failures) == 30
    assert "'site 5'" not in str(caught[0].message)


def test_models_that_hold_no_numbers_fail_at_their_own_partition():
    def train(X):
        model = GaussianMixture(2, random_state=0).fit(X)
        model.means_[0, 0] = np.nan if len(X) == 120 else model.means_[0, 0]
        return model

    with pytest.warns(FailureWarning, match=r"'west' \(OutOfRangeError: .*found nan"):
        fusion = train_and_fuse(lambda X: modelweld.read(train(X), n=len(X)), made())
    assert fusion.sites == ["north", "south", "east", "centre"]


@pytest.mark.parametrize(
    ("estimator", "partitions", "names", "words"),
    [
        (KMeans, [np.eye(2)], None, "such as KMeans"),
        (3, [np.eye(2)], None, "found 3"),
        (KMeans(2), np.eye(2), None, "found one ndarray"),
        (KMeans(2), [], None, "nothing to train on"),
        (KMeans(2), {"a": np.eye(2)}, ["a"], "leave sites out"),
        (KMeans(2), [np.eye(2), np.eye(2)], ["a", "a"], "2 partitions have 1 different"),
        (KMeans(2), [np.eye(2), np.eye(2)], ["a"], "2 partitions have 1 different"),
    ],
)
def test_what_cannot_be_trained_is_refused_at_once(estimator, partitions, names, words):
    with pytest.raises(InputError, match=words):
        train_and_fuse(estimator, partitions, sites=names)


def test_options_that_nobody_knows_are_refused_before_training():
    def train(X):
        raise AssertionError("too late")

    with pytest.raises(InputError, match="has an option 'serch'"):
        train_and_fuse(train, made(), serch="plain")


def test_long_words_are_cut_in_messages_and_kept_in_failures():
    def train(X):
        raise ValueError("x " * 10_000)

    with pytest.raises(TrainingError) as caught:
        train_and_fuse(train, made())
    assert len(str(caught.value)) < 2500
    assert len(caught.value.failures[0].message) == 20_000


def test_lists_have_numbers_or_the_names_given():
    data = list(made().values())
    assert train_and_fuse(KMeans(2), data).sites == ["0", "1", "2", "3", "4"]
    assert train_and_fuse(KMeans(2), iter(data), sites="abcde").sites == list("abcde")


def test_workers_that_are_threads_use_one_thread_each_and_leave_the_number_as_it_was():
    """The first to come leaves while the second is at work: its limit must not go with it."""
    first_in, second_in, seen = threading.Event(), threading.Event(), {}

    def blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    def train(name):
        if name == "first":
            first_in.set()
            assert second_in.wait(10)
        else:
            assert first_in.wait(10)
            second_in.set()
            sleep(0.3)
        seen[name] = blas()
        return GaussianMixture(1).fit(np.eye(3))

    with threadpool_limits(limits=2, user_api="blas"):
        with joblib.parallel_config(backend="threading", n_jobs=2):
            train_and_fuse(train, ["first", "second"])
        assert seen == {"first": {1}, "second": {1}}
        assert blas() == {2}


def test_the_guide_runs(monkeypatch):
    monkeypatch.setattr(modelweld, "train_and_fuse", train_and_fuse, raising=False)
    guide = (Path(__file__).parents[1] / "docs" / "federate.md").read_text(encoding="utf-8")
    block = re.search(r"^## joblib$.*?^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)[1]
    names = {}
    exec(compile(block, "docs/federate.md", "exec"), names)
    assert names["fusion"].K == 3
    same(names["fusion"], names["same"])
