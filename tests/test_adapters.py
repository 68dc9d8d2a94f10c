"""The contract of every adapter, run over the table in adapted/."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from adapted import ROWS, collected
from modelweld import InputError, adapters, fuse, read
from modelweld.libraries import write
from modelweld.libraries.known_classes import TABLE

ADAPTED = collected()


def cases(applies=lambda case: True):
    """The cases to which a law applies, each with the mark of the extra it needs."""
    return [
        pytest.param(case, id=name, marks=[getattr(pytest.mark, case.marker)] if case.marker else [])
        for name, case in ADAPTED.items()
        if applies(case)
    ]


@pytest.fixture(params=cases())
def case(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def sites(case, rng, sizes=(3, 3, 3, 3)):
    data = [case.data(rng) for _ in sizes]
    return data, [fitted(case, X, size) for X, size in zip(data, sizes, strict=True)]


FITTED = {}
"""Models by case, data and size: most tests begin with the same data."""


def fitted(case, X, size=3):
    """The model fitted to the data, which all who ask share: to read, to shuffle and to write leave it as it is."""
    key = id(case), X.tobytes(), size
    if key not in FITTED:
        FITTED[key] = case.fit(X, size)
    return FITTED[key]


def local(case, model, X, **more):
    return read(model, **case.told(X), **more)


def test_written_models_answer_like_those_read(case, rng):
    X = case.data(rng)
    model = fitted(case, X)
    again = write(local(case, model, X))
    assert np.allclose(case.answers(again, X), case.answers(model, X), rtol=case.exactly, atol=case.exactly)


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")  # copies are what the law is about
@pytest.mark.parametrize("case", cases(lambda case: case.itself is not None))
def test_a_model_and_its_shuffled_copies_fuse_into_itself(case, rng):
    X = case.data(rng)
    model = fitted(case, X)
    splits = [local(case, case.shuffled(model, rng), X) for _ in range(3)]
    fused = fuse([local(case, model, X), *splits]).model(how=case.how)
    assert np.allclose(case.answers(fused, X), case.answers(model, X), rtol=case.itself, atol=case.itself)


def test_order_of_sites_does_not_matter(case, rng):
    data, models = sites(case, rng)
    locals_ = [local(case, m, X, site=str(j)) for j, (m, X) in enumerate(zip(models, data, strict=True))]
    X = case.data(rng)
    expected = case.answers(fuse(locals_).model(), X)
    found = case.answers(fuse([locals_[j] for j in (2, 0, 3, 1)]).model(), X)
    assert np.allclose(found, expected, rtol=case.exactly, atol=case.exactly)


def test_sizes_may_differ(case, rng):
    data, models = sites(case, rng, sizes=(2, 3, 4, 3))
    fusion = fuse([local(case, m, X) for m, X in zip(models, data, strict=True)])
    assert np.isfinite(case.answers(fusion.model(), data[0])).all()


def test_nothing_as_long_as_the_training_data_leaves(case, rng):
    X = case.data(rng)
    sent = local(case, fitted(case, X), X)
    held = [*sent.arrays.values(), *sent.variance.values(), *sent.weight.values()]
    assert all(ROWS not in np.shape(a) for a in held)
    for fact in sent.facts.values():
        assert not isinstance(fact, (list, tuple, np.ndarray)) or len(fact) < ROWS


@pytest.mark.parametrize("case", cases(lambda case: case.named))
def test_mixed_feature_sets_are_refused(case, rng):
    data, models = sites(case, rng, sizes=(3, 3))
    names = [f"f{i}" for i in range(case.features)]
    a = local(case, models[0], data[0], features=names, site="north")
    b = local(case, models[1], data[1], features=[*names[:-1], "other"], site="south")
    with pytest.raises(InputError, match=r"south.*lacks 'f.'.*has 'other'"):
        fuse([a, b])


@pytest.mark.parametrize("case", cases(lambda case: case.named and case.refits))
def test_features_in_another_order_are_put_right(case, rng):
    data, models = sites(case, rng, sizes=(3, 3))
    names = [f"f{i}" for i in range(case.features)]
    a = local(case, models[0], data[0], features=names)
    b = local(case, models[1], data[1], features=names)
    order = [*[2, 0, 1][: case.features], *range(3, case.features)]
    turned = local(case, case.fit(data[1][:, order]), data[1][:, order], features=[names[i] for i in order])
    expected, found = fuse([a, b]), fuse([a, turned])
    assert found.objective == pytest.approx(expected.objective, rel=1e-3)


@pytest.mark.parametrize("case", cases(lambda case: case.scales))
@pytest.mark.parametrize("scaler", [StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler])
def test_scalers_are_undone(case, rng, scaler):
    X = case.data(rng) * [1.0, 10.0, 0.1] + [5.0, 0.0, -2.0]
    first = scaler().fit(X)
    model = case.fit(first.transform(X))
    pipeline = make_pipeline(first, model)
    again = write(local(case, pipeline, X))
    jacobian = float(np.log(np.abs(first.transform([[1.0] * 3]) - first.transform([[0.0] * 3]))).sum())
    found, expected = case.in_data_units(again, X, pipeline, jacobian)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert read(pipeline, **case.told(X)).facts["undone"] == [scaler.__name__]


def test_every_adapter_of_an_installed_library_has_a_case():
    tried = {type(fitted(case, case.data(np.random.default_rng(3)))).__name__ for case in ADAPTED.values()}
    assert {a.name.split(".")[-1] for a in TABLE if a.installed} <= tried


def test_adapters_are_listed():
    assert {a.name for a in adapters()} >= {"sklearn.KMeans", "sklearn.GaussianMixture"}
    assert all(a.version for a in adapters() if a.installed)


def test_unknown_models_say_what_to_do():
    says = r"dict cannot be read. Give its parameters.*write an adapter.* modelweld.adapters\(\) lists"
    with pytest.raises(InputError, match=says):
        read({})


def test_unknown_facts_are_named():
    from sklearn.cluster import KMeans

    with pytest.raises(InputError, match=r"sklearn.KMeans.*lengths.*help"):
        read(KMeans(1, n_init=1).fit([[0.0], [1.0]]), lengths=[2])


def test_steps_that_are_no_scaling_are_refused(rng):
    from sklearn.cluster import KMeans
    from sklearn.decomposition import FastICA

    pipeline = make_pipeline(FastICA(2, whiten_solver="eigh"), KMeans(2, n_init=1)).fit(rng.normal(size=(20, 3)))
    with pytest.raises(InputError, match=r"'fastica'.*FastICA.*cannot be undone.*Fit one FastICA for all"):
        read(pipeline)


@pytest.mark.parametrize("whiten", [False, True])
def test_principal_axes_are_undone(rng, whiten):
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    X = rng.choice(np.array([[0.0, 0, 0], [6, 0, 3], [0, 7, -3]]), 300) * [1, 10, 0.1] + rng.normal(size=(300, 3))
    names = ["a", "b", "c"]
    for kept in (3, 2):
        steps = StandardScaler(), PCA(kept, whiten=whiten), GaussianMixture(3, random_state=0)
        pipeline = make_pipeline(*steps).fit(X)
        local, rows = read(pipeline, n=300, features=names), pipeline.predict_proba(X)
        means = rows.T @ X / rows.sum(axis=0)[:, None]
        assert local.coordinates["feature"] == tuple(names)
        assert local.facts["undone"] == ["StandardScaler", "PCA"]
        errors = np.abs(np.asarray(local.arrays["means"]) - means) / np.sqrt(local.variance["means"])
        assert errors.max() < (1e-3 if kept == 3 else 3)  # what the projection lost is among the standard errors


def test_different_libraries_fuse_in_one_call(rng):
    from sklearn.cluster import KMeans
    from sklearn.mixture import GaussianMixture

    X = [ADAPTED["sklearn_mixtures: KMeans"].data(rng) for _ in range(4)]
    models = [read(KMeans(3, n_init=3, random_state=0).fit(x)) for x in X[:1]]
    models += [read(GaussianMixture(3, random_state=0).fit(x), n=len(x)) for x in X[1:]]
    fusion = fuse(models)
    assert fusion.K == 3
    assert type(fusion.model()) is GaussianMixture
    assert type(fusion.model(like=KMeans)) is KMeans
    assert fusion.model(like="GaussianMixture").score(X[0]) > -10


DRAWN = (
    "sklearn_mixtures: KMeans",
    "sklearn_mixtures: GaussianMixture full",
    "sklearn_mixtures: BayesianGaussianMixture diag",
    "sklearn_lda: LatentDirichletAllocation",
    "sklearn_mlp: MLPClassifier",
)
"""A case of every class of which models of draws are made."""

UNDRAWN = {
    "sklearn_mlp: MLPClassifier, two hidden layers": r"one set was matched; this fusion matched \['h0', 'h1'\]",
    "sklearn_gp: SparseGP": "the fused process states its own uncertainty",
    "sklearn_naive_bayes: GaussianNB": "nothing was matched",
}
"""Cases of which none are, and what is said."""


def drawn(models):
    fusion = fuse(models, screens=["outliers"])
    return fusion.posterior.sample(draws=6, chains=2, warm_up=6, set_name=next(iter(fusion.matchings), None))


@pytest.mark.parametrize("name", DRAWN)
def test_models_of_draws_answer_and_differ_less_with_more_sites(name, rng):
    case = ADAPTED[name]
    data, models = sites(case, rng)
    few = [local(case, m, X) for m, X in zip(models[:2], data, strict=False)]

    def answers(posterior, seed=0):
        return np.stack([case.answers(model, data[0]) for model in posterior.models(8, how=case.how, seed=seed)])

    posterior = drawn(few)
    found = answers(posterior)
    assert np.isfinite(found).all()
    assert np.array_equal(found, answers(posterior))
    assert not np.array_equal(found, answers(posterior, seed=1))
    assert 0 < answers(drawn(5 * few)).std(axis=0).mean() < found.std(axis=0).mean()
    with pytest.raises(InputError, match="there are 12 draws: ask for 1 to 12 models"):
        posterior.models(13)


@pytest.mark.parametrize("name", UNDRAWN)
def test_models_of_draws_are_refused_with_a_reason(name, rng):
    case = ADAPTED[name]
    data, models = sites(case, rng, sizes=(3, 3))
    with pytest.raises(InputError, match=UNDRAWN[name]):
        drawn([local(case, m, X) for m, X in zip(models, data, strict=True)]).models(4)


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")
def test_what_was_sent_twice_counts_once_in_models_of_draws(rng):
    case = ADAPTED[DRAWN[0]]
    data, models = sites(case, rng)
    once = [local(case, m, X, site=str(j)) for j, (m, X) in enumerate(zip(models, data, strict=True))]
    twice = fuse([*once, once[0].with_(site="again")])
    assert twice.matching.duplicates == {4: 0}
    found, expected = (f.posterior.sample(draws=4, chains=1, warm_up=4).models(3) for f in (twice, fuse(once)))
    for one, other in zip(found, expected, strict=True):  # what is told apart depends on all sites' widths, a little
        assert np.allclose(one.cluster_centers_, other.cluster_centers_, atol=0.2)
