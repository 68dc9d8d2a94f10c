"""One numbering: labels, table, page, predict and the command line call the same group by the same number."""

import csv
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld.errors import DensityWarning
from modelweld.kinds import hows
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture_completion import merge_components
from modelweld.kinds.mixture_density import warn_of_moved
from modelweld.kinds.mixture_reduction import densest

RNG = np.random.default_rng(5)
CENTRES = RNG.normal(0, 15, (5, 3))
HELD = [RNG.permutation(5)[:n] for n in (3, 4, 5, 4)]
DATA = [np.concatenate([RNG.normal(CENTRES[k], 1.0, (40 + 10 * k, 3)) for k in held]) for held in HELD]

WORDS = [f"w{i}" for i in range(24)]

FITTED = {
    "full": lambda K: GaussianMixture(K, random_state=0),
    "diagonal": lambda K: GaussianMixture(K, covariance_type="diag", random_state=0),
    "k-means": lambda K: KMeans(K, n_init=3, random_state=0),
}


def of_points(name):
    fits = [FITTED[name](len(held)).fit(X) for held, X in zip(HELD, DATA, strict=True)]
    return modelweld.fuse([modelweld.read(fit, X=X) for fit, X in zip(fits, DATA, strict=True)])


@pytest.fixture(scope="module", params=FITTED)
def fusion(request):
    return of_points(request.param)


@pytest.mark.parametrize("how", [None, *hows()["mixture"]])
def test_a_sites_points_have_the_numbers_of_its_labels(fusion, how):
    predicted = fusion.model(how).predict(np.concatenate(DATA))
    origin = np.concatenate([np.repeat(held, 40 + 10 * held) for held in HELD])
    for k in range(5):
        (number,) = np.unique(predicted[origin == k])
        assert fusion.counts[number] == sum(k in held for held in HELD)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(4), np.ones(6)) + 0.01
    topics /= topics.sum(1, keepdims=True)
    drawn = [rng.multinomial(60, topics[rng.permutation(4)[:3].repeat(30)]) for _ in range(4)]
    fits = [LatentDirichletAllocation(3, random_state=0, max_iter=10).fit(X) for X in drawn]
    return modelweld.fuse([modelweld.read(fit, features=WORDS) for fit in fits])


@pytest.mark.parametrize("how", hows()["topics"])
def test_texts_of_a_topic_have_its_number(texts, how):
    model = texts.model(how)
    for k, own in enumerate(texts.table().words):
        text = np.isin(WORDS, own[:6]) * 20.0
        assert model.transform(text[None]).argmax() == k


def chains():
    means, rng = CENTRES, np.random.default_rng(2)
    return modelweld.fuse([
        hmm(np.full((len(h), len(h)), 25.0) + 75 * np.eye(len(h)), np.ones(len(h)), np.full(len(h), 99.0),
            {"means": means[h] + rng.normal(0, 0.1, (len(h), 3)), "variances": np.ones((len(h), 3))}, counted=True)
        for h in HELD
    ])  # fmt: skip


@pytest.mark.hmm
def test_frames_of_a_state_have_its_number():
    fusion = chains()
    for k, mean in enumerate(fusion.table().means):
        assert set(fusion.model(like="GaussianHMM").predict(np.tile(mean, (5, 1)))) == {k}


def test_the_command_line_says_the_same(run, tmp_path):
    fusion = of_points("full")
    fusion.save(tmp_path / "fusion.safetensors")
    means = fusion.table().means
    with open(tmp_path / "points.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c"], *means.tolist()])
    code, said, _ = run("apply", "fusion.safetensors", "points.csv")
    assert code == 0
    assert [line.split(",")[0] for line in said.split()[1:]] == [str(k) for k in range(fusion.K)]
    _, shown, _ = run("inspect", "fusion.safetensors")
    assert str(fusion.table()) in shown


def split_and_joined():
    """Parts of three groups whose density needs two components for the first and one for the others together."""
    means = np.array([[-30.0], [30.0], [100.0], [100.5]])
    return (means, np.ones((4, 1)), np.array([50.0, 50.0, 20.0, 19.0])), np.array([0, 0, 1, 2])


def test_a_density_that_moves_groups_says_so_and_names_them():
    parts, labels = split_and_joined()
    found = densest(*parts, labels, 3)
    np.testing.assert_allclose(np.sort(found[0].ravel()), [-30, 30, 100.2], atol=0.1)
    assert found[0][1] == pytest.approx(100.2, abs=0.1)  # the larger of the two keeps its number
    with pytest.warns(DensityWarning, match="group 2 go to another component"):
        warn_of_moved(found, parts, labels, 3)


def test_components_of_the_groups_own_moments_move_nothing():
    parts, labels = split_and_joined()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_moved(merge_components(*parts, labels), parts, labels, 3)
