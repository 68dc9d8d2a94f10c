"""Bare models: what the centre takes them to be worth, how finely it tells them apart, and that nothing travels."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from modelweld import Gaussian, LocalModel, fuse, load, read
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import error_variances, mean_width


def drawn(J, seed, rows=300, D=6, K=12, held=6):
    """Rows of sites that hold some of K components of one population, and which component each is of."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 4, (K, D))
    sites = []
    for _ in range(J):
        label = rng.choice(rng.permutation(K)[:held], rows)
        sites.append((centres[label] + rng.normal(size=(rows, D)), label))
    return sites


def truth_of(model, X, label):
    """The component that most of each local one's rows are of."""
    found = model.predict(X)
    return [np.bincount(label[found == k]).argmax() if (found == k).any() else -1 for k in range(len(model.means_))]


@pytest.mark.parametrize("seed", range(3))
def test_bare_mixtures_with_surplus_components_fuse_like_counted_ones(seed):
    sites = drawn(10, seed)
    models = [GaussianMixture(8, random_state=0).fit(X) for X, _ in sites]  # two too many: components in fragments
    truth = np.concatenate([truth_of(m, *site) for m, site in zip(models, sites, strict=True)])
    bare = fuse(models)
    counted = fuse([read(m, X=X) for m, (X, _) in zip(models, sites, strict=True)])
    for fusion in (bare, counted):
        assert abs(fusion.K - len(np.unique(truth))) <= 1
        assert adjusted_rand_score(np.concatenate(fusion.labels), truth) > 0.9


def test_what_is_made_at_the_centre_does_not_travel(tmp_path):
    [(X, _), (Y, _)] = drawn(2, 7)
    models = [GaussianMixture(6, random_state=0).fit(rows) for rows in (X, Y)]
    local = read(models[0])
    assert local.variance == {}
    fusion = fuse([local, models[1]])
    assert local.variance == {}
    shares = np.asarray(local.arrays["counts"])
    own = error_variances(models[0].covariances_, 100 * shares)
    np.testing.assert_allclose(fusion._fit.models[0].variance["means"], own)
    assert not fusion.parameters().facts["counted"]
    fusion.save(tmp_path / "fusion.safetensors")
    assert load(tmp_path / "fusion.safetensors").K == fusion.K


def test_who_names_families_gets_what_was_sent():
    models = [GaussianMixture(3, random_state=0).fit(X) for X, _ in drawn(4, 8, held=3)]
    assert all(m.variance == {} for m in fuse(models, {"means": Gaussian()})._fit.models)


def test_counted_and_bare_sites_fuse_and_give_a_model():
    sites = drawn(6, 9, held=4)
    models = [GaussianMixture(4, random_state=0).fit(X) for X, _ in sites]
    mixed = [read(m, X=X) if j % 2 else m for j, (m, (X, _)) in enumerate(zip(models, sites, strict=True))]
    fusion = fuse(mixed)
    model = fusion.model()
    all_counted = fuse([read(m, X=X) for m, (X, _) in zip(models, sites, strict=True)]).model()
    rows = np.concatenate([X for X, _ in sites])
    assert abs(model.score(rows) - all_counted.score(rows)) < 0.1
    assert [m.facts.get("nominal", False) for m in fusion._fit.models] == [True, False] * 3
    assert np.sum(fusion._fit.models[0].arrays["counts"]) == pytest.approx(
        300
    )  # as many points as a typical counted site


def test_a_bare_site_is_added_as_it_would_be_fused():
    models = [GaussianMixture(4, random_state=0).fit(X) for X, _ in drawn(6, 11, held=4)]
    more, whole = fuse(models[:-1]).add(models[-1], site="late"), fuse(models)
    np.testing.assert_allclose(more._fit.models[-1].variance["means"], whole._fit.models[-1].variance["means"])
    assert adjusted_rand_score(np.concatenate(more.labels), np.concatenate(whole.labels)) == 1.0


def test_a_variational_mixture_remembers_its_points():
    [(X, _)] = drawn(1, 11, held=3)
    model = BayesianGaussianMixture(n_components=6, random_state=0, max_iter=500).fit(X)
    local = read(model)
    assert local.facts["counted"]
    used = model.predict_proba(X).sum(0) > 1
    np.testing.assert_allclose(local.arrays["counts"], model.predict_proba(X).sum(0)[used], rtol=0.05, atol=0.5)
    assert np.sum(local.arrays["counts"]) == pytest.approx(len(X), rel=0.01)


def test_components_that_a_variational_mixture_has_emptied_are_no_groups():
    rng = np.random.default_rng(0)
    X = np.concatenate([atom + rng.normal(size=(60, 4)) for atom in rng.normal(0, 4, (4, 4))])
    model = BayesianGaussianMixture(n_components=15, random_state=0, max_iter=500).fit(X)
    assert (model.weights_ > 1e-3).sum() > len(read(model).arrays["means"]) == 4


def test_the_mean_width_is_that_of_all_points():
    two = mixture([[0.0, 0.0], [9.0, 9.0]], [[2.0, 1.0], [4.0, 1.0]], [30.0, 10.0], counted=True)
    np.testing.assert_allclose(mean_width([two]), [2.5, 1.0])


@pytest.mark.parametrize(("points", "width"), [(1.0, 0.001), (1.0, 3.0), (200.0, 0.001)])
def test_a_narrow_component_of_few_points_is_not_believed_to_the_last_digit(points, width):
    """Its variance is drawn towards that of the site, by three points; a wide one's is not."""
    found = error_variances(np.array([[width], [1.0]]), np.array([points, 100.0]))
    mean = (points * width + 100.0) / (points + 100.0)
    own = max(width, (points * width + 3 * mean) / (points + 3))
    np.testing.assert_allclose(found[0], own / points)


def test_bare_chains_have_standard_errors_where_no_site_counts_frames():
    rng = np.random.default_rng(3)

    def chain(counted):
        emissions = {"means": rng.normal(0, 9, (3, 2)), "variances": np.ones((3, 2))}
        return hmm(np.ones((3, 3)) / 9, np.ones(3) / 3, np.ones(3) / 3, emissions, counted=counted)

    assert all("means" in m.variance for m in fuse([chain(False) for _ in range(4)])._fit.models)


@pytest.mark.parametrize("weight", [1e-4, 1.0, 1e4])
def test_the_unit_of_weights_does_not_matter(weight):
    rng = np.random.default_rng(5)
    atoms = rng.normal(0, 3, (12, 5))
    held = [rng.permutation(12)[:8] for _ in range(15)]
    sites = [atoms[h] + rng.normal(0, 0.3, (8, 5)) for h in held]
    fusion = fuse([LocalModel({"v": x}, {"v": ("atom", None)}, weight={"v": weight}) for x in sites])
    assert adjusted_rand_score(np.concatenate(fusion.labels), np.concatenate(held)) == 1.0


def test_two_large_sites_that_coincide_do_not_set_the_first_noise():
    rng = np.random.default_rng(6)
    atoms = rng.normal(0, 3, (12, 6))
    held = [rng.permutation(12)[:8] for _ in range(50)]
    background = rng.normal(0, 3, (40, 6))
    fusion = fuse(
        [*(atoms[h] + rng.normal(0, 0.3, (8, 6)) for h in held), background, background], screens=["outliers"]
    )
    assert adjusted_rand_score(np.concatenate(fusion.labels[:50]), np.concatenate(held)) == 1.0


@pytest.mark.parametrize("J", [2, 4, 10])
def test_centres_of_one_heap_are_one_atom(J):
    assert fuse([KMeans(1).fit(X) for X, _ in drawn(J, J, D=5, K=1, held=1)]).K == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fitted", ["kmeans", "bare", "counted"])
def test_one_variance_for_all_features_does_not_hide_the_small_ones(fitted, seed):
    models = []
    for X, _ in drawn(10, seed, D=3, K=6):
        model = KMeans(6, n_init=3) if fitted == "kmeans" else GaussianMixture(6, covariance_type="spherical")
        model.set_params(random_state=0).fit(X * [1.0, 10.0, 1000.0])
        models.append(read(model, n=len(X)) if fitted == "counted" else model)
    fusion = fuse(models, site_effects=False)  # cuts of one long feature look like offsets of sites
    centres, labels = np.concatenate([m.arrays["means"] for m in fusion._fit.models]), np.concatenate(fusion.labels)
    means = np.stack([centres[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
    assert (fusion.parameters.estimate("means").std(axis=0) >= 0.8 * means.std(axis=0)).all()
