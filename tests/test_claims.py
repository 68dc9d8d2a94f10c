"""A site's claims about itself are bounded in what they can do."""

import warnings

import numpy as np
import pytest

import modelweld
from modelweld import LocalModel
from modelweld.fit.screening.clipping import FAR_MORE, MOST_COUNTED, clip_spreads, clip_weights
from modelweld.kinds.mixture import mixture


def _site(values, weight):
    return LocalModel({"v": values}, {"v": ("atom", None)}, weight={"v": weight})


@pytest.fixture
def places():
    return np.random.default_rng(0).normal(0, 4, (6, 4))


def _honest(places, weight, number=9):
    rng = np.random.default_rng(1)
    return [_site(places + rng.normal(0, 0.3, places.shape), weight) for _ in range(number)]


@pytest.mark.parametrize("claim", [1e8, 1e18, 1e60, 1e119])
def test_a_boundless_weight_breaks_nothing(places, claim):
    rng = np.random.default_rng(2)
    liar = _site(places + rng.normal(0, 0.3, places.shape), claim)
    with pytest.warns(modelweld.OutlierWarning, match="site '9': weights of 'v'"):
        fusion = modelweld.fuse([*_honest(places, 100.0), liar])
    assert len(places) == fusion.K


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_weights_are_compared_with_those_of_other_sites_alone(places, scale):
    sites = _honest(places, scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clip_weights(sites, [site.site for site in sites]) == (sites, ())


@pytest.mark.parametrize(("times", "bounded"), [(0.9 * FAR_MORE, False), (1.1 * FAR_MORE, True)])
def test_weights_up_to_the_bound_stay(places, times, bounded):
    sites = [*_honest(places, 3.0), _site(places, 3.0 * times)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if bounded else "error")
        found = clip_weights(sites, list(map(str, range(10)))).sites[-1].weight["v"].max()
    assert found == pytest.approx(3.0 * min(times, FAR_MORE))


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
@pytest.mark.parametrize("bad", [2, 6])
def test_false_weights_do_not_make_atoms_fall_together(bad):
    """Two fifths of the sites may claim a million times the weight: the others' atoms stay apart."""
    rng = np.random.default_rng(bad)
    atoms = rng.normal(0, 4, (12, 8))
    sites = [_site(atoms + rng.normal(0, 0.5, atoms.shape), 1.0 if j < 15 - bad else 1e6) for j in range(15)]
    with pytest.warns(modelweld.OutlierWarning):
        fusion = modelweld.fuse(sites)
    assert all(len(set(labels.tolist())) == 12 for labels in fusion.labels)


@pytest.mark.parametrize(("times", "bounded"), [(0.9 * MOST_COUNTED, False), (1.1 * MOST_COUNTED, True)])
def test_counts_up_to_the_bound_stay(times, bounded):
    sites = [mixture([[0.0], [9.0]], [[1.0], [1.0]], [n, n], counted=True) for n in [50.0] * 9 + [50.0 * times]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if bounded else "error")
        found = clip_weights(sites, list(map(str, range(10)))).sites[-1].arrays["counts"].max()
    assert found == pytest.approx(50.0 * min(times, MOST_COUNTED))


def test_a_boundless_count_leaves_the_others_a_voice():
    sites = [mixture([[0.0], [9.0]], [[1.0], [1.0]], [50.0, 50.0], counted=True, site=f"s{j}") for j in range(9)]
    sites.append(mixture([[0.0], [9.0]], [[1.0], [1.0]], [1e18, 1.0], counted=True, site="liar"))
    with pytest.warns(modelweld.OutlierWarning, match="site 'liar': 'counts' up to"):
        fused = modelweld.fuse(sites, screens=["outliers"]).parameters()
    assert np.min(fused.arrays["counts"]) > 400  # nine times fifty


def _mixtures(last, full=False, number=7):
    """Sites of three components of unit variance; the last one's are as wide as it says."""
    rng, places = np.random.default_rng(3), np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    widths = [np.ones((3, 2))] * (number - 1) + [np.broadcast_to(last, (3, 2))]
    spreads = [np.sqrt(w[:, :, None] * w[:, None, :]) * (0.5 + 0.5 * np.eye(2)) if full else w for w in widths]
    return [
        mixture(places + rng.normal(0, 0.1, (3, 2)), w, [100.0] * 3, counted=True, site=f"s{j}")
        for j, w in enumerate(spreads)
    ]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("claim", [1e6, 1e119])
def test_a_boundless_variance_does_not_cover_the_others(claim, full):
    sites = _mixtures(claim, full)
    with pytest.warns(modelweld.OutlierWarning, match=r"site 's6': '(co)?variances' up to"):
        fusion = modelweld.fuse(sites)
    assert fusion.K == 3
    assert any("site 's6': " in reason for reason in fusion.matching.reasons)
    [name] = [name for name in sites[0].arrays if "variances" in name]
    assert np.max(np.abs(fusion.parameters(how="moments").arrays[name])) < FAR_MORE


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("times", "bounded"),
    [
        (0.45 * FAR_MORE, False),
        (1.1 * FAR_MORE, True),
        (1.1 / FAR_MORE, False),
        (0.45 / FAR_MORE, True),
        (1e-119, True),
    ],
)
def test_variances_within_the_bounds_stay(times, bounded, full):
    sites = _mixtures([times, 2 * times], full)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if bounded else "error")
        found = clip_spreads(sites, [site.site for site in sites])
    assert found.sites[:-1] == sites[:-1]
    assert len(found.reasons) == bounded
    widths = np.asarray(next(a for name, a in found.sites[-1].arrays.items() if "variances" in name))
    if full and times > 1:  # as correlated as before
        assert np.allclose(widths[:, 0, 1] ** 2, 0.25 * widths[:, 0, 0] * widths[:, 1, 1])
    widths = np.diagonal(widths, axis1=1, axis2=2) if full else widths
    told = np.array([times, 2 * times])
    assert np.allclose(widths, told.clip(1 / FAR_MORE, FAR_MORE) if bounded else told)


@pytest.mark.parametrize("odd", [[[1.0, 1.0], [1.0, 1.0], [1e-9, 1e-9]], [1e9, 1.0], [1e-9, 1.0]])
def test_one_narrow_component_or_one_feature_is_none_of_ours(odd):
    """A group that is all alike, and a feature that is the same for nearly everybody: pixels at the edge of digits."""
    sites = _mixtures(odd)
    assert clip_spreads(sites, [site.site for site in sites]) == (sites, ())


def test_among_three_sites_nobody_is_typical():
    sites = _mixtures(1e6, number=3)
    assert clip_spreads(sites, "abc") == (sites, ())


def test_a_feature_without_variance_at_most_sites_is_not_what_is_told():
    axes = {"means": ("component", None), "variances": ("component", None)}
    widths = [[1.0, 1.0, 0.0]] * 6 + [[1e6, 1e6, 1.0]]
    sites = [LocalModel({"means": np.eye(3), "variances": [w] * 3}, axes, auxiliary=["variances"]) for w in widths]
    found, [reason] = clip_spreads(sites, list("abcdefg"))
    assert "up to about 1e+06 in a feature, and 1 at a typical site" in reason
    assert np.allclose(found[-1].arrays["variances"], [[FAR_MORE, FAR_MORE, 1.0]] * 3)


@pytest.mark.parametrize("shape", [(2,), (2, 3, 4), (2, 2, 3, 3)])
def test_what_is_called_variances_and_is_none_is_left_alone(shape):
    """A model of one's own may call anything so, and only some sites may send it."""
    axes = {"v": ("atom", None), "variances": ("atom", *[None] * (len(shape) - 1))}
    sites = [
        LocalModel({"v": np.eye(2), "variances": np.full(shape, 10.0**j)}, axes, auxiliary=["variances"])
        for j in range(0, 50, 10)
    ]
    sites.append(LocalModel({"v": np.eye(2)}, {"v": ("atom", None)}))
    assert clip_spreads(sites, list("abcdef")) == (sites, ())
