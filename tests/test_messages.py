"""What people do at first, and what they are told: rule, fact and remedy, never somebody else's traceback."""

from operator import attrgetter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import modelweld
from modelweld import InputError

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(m, 1.0, (60, 2)) for m in (0, 9)])
FITTED = GaussianMixture(2, random_state=0).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        GaussianMixture(2),
        KMeans(2),
        LatentDirichletAllocation(2),
        make_pipeline(StandardScaler(), KMeans(2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_are_not_fitted(model):
    with pytest.raises(InputError, match=rf"^site 'north': the {type(model).__name__} is not fitted: fit it"):
        modelweld.read(model, site="north")


@pytest.mark.parametrize(
    "one", [FITTED, modelweld.read(FITTED), 3.0, X], ids=["model", "LocalModel", "number", "array"]
)
def test_one_model_instead_of_several(one):
    with pytest.raises(InputError, match=f"give one model per site, in a list .* found one {type(one).__name__}"):
        modelweld.fuse(one)


def test_a_mapping_names_sites():
    south = GaussianMixture(2, random_state=1).fit(X + 0.1)
    fusion = modelweld.fuse({"north": FITTED, "south": south})
    assert fusion.sites == ["north", "south"]
    assert [model.site for model in fusion._fit.models] == ["north", "south"]
    assert modelweld.fuse({"a": [[0.0]], "b": [[0.1]]}).sites == ["a", "b"]


@pytest.mark.parametrize("number", [99, 2, -3, -1, 0.5, None, True])
@pytest.mark.parametrize("ask", ["remove", "posterior.site", "posterior.conditional"])
def test_sites_that_are_not_there(number, ask):
    fusion = modelweld.fuse([[[0.0], [5.0]], [[0.1], [5.1]]])
    with pytest.raises(InputError, match=f"numbered from 0 to 1; there is no site {number}"):
        attrgetter(ask)(fusion)(number)
    with pytest.raises(InputError, match="there is no site 'north'; there are '0', '1'"):
        attrgetter(ask)(fusion)("north")


def test_vocabularies_without_names():
    topics = [LatentDirichletAllocation(2, random_state=0).fit(RNG.poisson(1.0, (30, D))) for D in (8, 9)]
    with pytest.raises(InputError, match=r"features=.*get_feature_names_out\(\)"):
        modelweld.fuse(topics)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(2)], ids=lambda given: type(given).__name__
)
def test_models_in_which_nothing_can_be_matched(model):
    model.fit(X, X[:, 0] > 4)
    with pytest.raises(InputError, match=r"^sklearn.\w+ cannot be read\. .*nothing to match: average the sites' pred"):
        modelweld.read(model)
    with pytest.raises(InputError, match=r"nothing to match"):
        modelweld.read(clone(model))  # nor would a fit help


def test_classes_are_no_models():
    with pytest.raises(InputError, match=r"^site 1: GaussianMixture cannot be read\. It is a class: give models of it"):
        modelweld.fuse([FITTED, GaussianMixture])


@pytest.mark.torch
def test_networks_of_ones_own():
    import torch

    class Net(torch.nn.Module):
        pass

    with pytest.raises(InputError, match="Net cannot be traced"):
        modelweld.read(Net())
    with pytest.raises(InputError, match="state_dict does not say which activations"):
        modelweld.read(torch.nn.Linear(2, 2).state_dict())
    with pytest.raises(InputError, match="state_dict does not say which activations"):
        modelweld.fuse(torch.nn.Linear(2, 2).state_dict())
    with pytest.raises(InputError, match="found one Sequential"):
        modelweld.fuse(torch.nn.Sequential(torch.nn.Linear(2, 2)))


def test_local_models_are_shown_by_their_shapes():
    local = modelweld.read(FITTED, site="north", features=["age", "mass"], n=120)
    assert repr(local) == (
        "<LocalModel of 'north', mixture: means (2 components, 2 features), "
        "covariances (2 components, 2 features, 2 features), counts (2 components)>"
    )
    assert repr(modelweld.LocalModel({"v": [[1.0]]}, {"v": ("atom", None)})) == "<LocalModel: v (1 atoms, 1)>"


def test_fusions_count_in_words_that_people_use():
    model = modelweld.LocalModel({"W": [[1.0], [9.0]]}, {"W": ("h0", None)})
    other = modelweld.LocalModel({"W": [[1.1], [9.2]]}, {"W": ("h0", None)})
    assert repr(modelweld.fuse([model, other])) == "<Fusion of 2 sites: 2 h0 units (2 shared) from 4>"


@pytest.mark.plot
def test_all_figures_on_one_sheet():
    import matplotlib

    matplotlib.use("agg")
    figure = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]]).plot()
    assert [bool(ax.get_title()) for ax in figure.axes] == [True] * 4


def test_the_command_line_says_its_version(run):
    assert run("--version")[:2] == (0, f"modelweld {modelweld.__version__}\n")


def test_a_folder_without_sites(run):
    code, _, complained = run("fuse", ".")
    assert code == 1
    assert "no file in this folder is a site's" in complained
