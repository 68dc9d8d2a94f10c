"""Fields of another type or length, in files and in fitted models: refused where they are read, or harmless."""

import copy
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, LatentDirichletAllocation
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import modelweld
from modelweld import InputError
from test_minorities import TABLE

pytestmark = pytest.mark.filterwarnings("ignore")


def odd_values(D):
    return [None, "x", -1.0, np.nan, 1e300, np.ones(D + 1), np.zeros(0), np.full((D, D), np.nan), 1e300 * np.ones(D)]


def sites_of(drawn):
    rng = np.random.default_rng(0)
    atoms = drawn.atoms(rng, 4)
    return [drawn.model(drawn.values(rng, atoms[: 3 + j % 2], 1.0)) for j in range(4)]


def changed(family):
    """The family with each of its fields something else, as no constructor would have it."""
    for field in fields(family):
        for value in odd_values(np.size(family.mean) if np.ndim(getattr(family, "mean", None)) else 8):
            other = copy.copy(family)
            object.__setattr__(other, field.name, value)
            yield other


@pytest.mark.parametrize("name", ["gaussian", "normal gamma", "counts", "directions", "rates, exposed", "scatter"])
def test_a_loaded_fusion_takes_another_site_or_is_refused(name, tmp_path):
    drawn = TABLE[name]
    *sites, later = sites_of(drawn)
    fusion = modelweld.fuse(sites, drawn.family)
    [(set_name, matching)] = fusion.matchings.items()
    [(key, family)] = matching.families.items()
    for other in changed(family):
        fusion.matchings[set_name] = replace(matching, families={key: other})
        with suppress(InputError):
            modelweld.load(fusion.save(tmp_path / "fusion.safetensors", force=True)).add(later)


@pytest.mark.parametrize("name", ["gaussian", "normal gamma", "directions", "factors"])
def test_a_loaded_slim_fusion_takes_another_site_or_is_refused(name, tmp_path):
    drawn = TABLE[name]
    *sites, later = sites_of(drawn)
    slim = modelweld.fuse(sites, drawn.family).slim()
    [(key, family)] = slim.families.items()
    for other in changed(family):
        with suppress(InputError):
            path = replace(slim, families={key: other}).save(tmp_path / "slim.safetensors", force=True)
            modelweld.load(path).add(later)


ROWS = np.random.default_rng(0).normal(size=(40, 4)) + 5 * np.repeat([[0], [1]], 20, axis=0)

MODELS = [
    KMeans(2, n_init=1, random_state=0),
    GaussianMixture(2, random_state=0),
    GaussianMixture(2, covariance_type="diag", random_state=0),
    BayesianGaussianMixture(n_components=2, random_state=0),
    GaussianNB(),
    PCA(2),
    LatentDirichletAllocation(2, max_iter=2, random_state=0),
    *(make_pipeline(s(), KMeans(2, n_init=1)) for s in (StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler)),
]

ODD = [None, "x", -1.0, np.nan, np.ones(3), np.ones((2, 3)), np.zeros(0), np.array(["a", "b"]), [[1, 2], [3]], object()]


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: type(model[0] if len(getattr(model, "steps", ())) else model).__name__
)
def test_a_model_with_odd_parameters_is_read_or_refused(model):
    model = model.fit(np.abs(ROWS), np.repeat([0, 1], 20))
    first = model[0] if hasattr(model, "steps") else model
    rows = {} if isinstance(model, GaussianNB | PCA | LatentDirichletAllocation) else {"X": np.abs(ROWS)}
    for name, was in [(name, x) for name, x in vars(first).items() if name.endswith("_") or name == "covariance_type"]:
        for value in ODD:
            setattr(first, name, value)
            with suppress(InputError):
                modelweld.read(model)
            with suppress(InputError):
                modelweld.read(model, **rows)
        setattr(first, name, was)
