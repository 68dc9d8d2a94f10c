"""What K costs: prices of mixtures as densities, and the warning where they are high."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest

from modelweld import InputError, fuse
from modelweld.errors import DensityWarning
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_completion import merge_components, stack_components
from modelweld.kinds.mixture_reduction import HIGH_PRICE, cheap_size, gauge


def sites(widths, J=8, D=3, points=2000.0, seed=0, counted=True):
    """Sites that hold six atoms well apart, with variances of their own between 1 / widths and widths."""
    rng = np.random.default_rng(seed)
    atoms = 12 * rng.permuted(np.tile(np.arange(6.0), (D, 1)), axis=1).T
    counts = np.full(6, points / 6 if counted else 1 / 6)
    return [
        mixture(
            atoms + rng.normal(0, 0.3, atoms.shape),
            np.exp(np.log(widths) * rng.uniform(-1, 1, (6, D))),
            counts,
            counted=counted,
            site=str(j),
        )
        for j in range(J)
    ]


@pytest.fixture(scope="module")
def fusion():
    return fuse(sites(30.0))


def test_a_price_is_the_divergence():
    """Of two Gaussians it has a closed form; one component has all points, so that drawing does no harm."""
    one = mixture([[5.0], [9.0]], [[1.0], [1.0]], [100.0, 0.0], counted=True)
    by = gauge(fuse([one, one], screens=["outliers"])._fit)
    other = np.array([[6.0]]), np.array([[4.0]]), np.ones(1)
    assert by.price(other) == pytest.approx(0.5 * (1 / 4 + 1 / 4 - 1 + np.log(4)), abs=1e-9)


def test_the_union_costs_nothing_and_less_costs_more(fusion):
    N = sum(map(len, fusion.labels))
    prices = [fusion.density.loss(K=K) for K in (1, 2, 4, 6, 12, 24, N)]
    assert prices[-1] == pytest.approx(0, abs=1e-9)
    assert min(prices) > -1e-9
    assert prices == sorted(prices, reverse=True)


def test_order_and_units_of_sites_do_not_matter(fusion):
    there = sites(30.0)
    scale = np.array([1e-3, 1.0, 50.0])
    rescaled = [
        mixture(m.arrays["means"] * scale, m.arrays["variances"] * scale**2, m.arrays["counts"], counted=True)
        for m in there
    ]
    assert fuse(there[::-1]).density.loss() == pytest.approx(fusion.density.loss(), abs=1e-9)
    assert fuse(rescaled).density.loss() == pytest.approx(fusion.density.loss(), abs=1e-6)
    assert fuse(there).density.loss() == fusion.density.loss()


def test_a_high_price_is_named_with_a_size_that_is_not(fusion):
    with pytest.warns(DensityWarning) as caught:
        fusion.model(like="GaussianMixture")
    message = str(caught[0].message)
    enough, little = cheap_size(fusion._fit, gauge(fusion._fit))
    assert f"{fusion.density.loss():.2f} nats" in message
    assert f"fusion.model(K={enough})" in message
    assert f"{little:.2f} or less" in message
    assert fusion.K < enough < sum(map(len, fusion.labels))
    assert fusion.density.loss(K=enough) < little + 1e-3


def test_the_size_named_is_the_least_on_the_way_down(fusion):
    by, path, parts = gauge(fusion._fit), fusion.density.reduction(), stack_components(fusion._fit)
    enough, little = cheap_size(fusion._fit, by)
    prices = [by.price(merge_components(*parts, path.labels(K))) for K in (enough - 1, enough)]
    assert [by.is_high(cost, K) for cost, K in zip(prices, (enough - 1, enough), strict=True)] == [True, False]
    assert little == prices[1]


def test_what_was_asked_for_is_not_warned_of(fusion):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusion.model(K=6, like="GaussianMixture")
        fusion.model(how="moments", like="GaussianMixture")
        fusion.density.reduce(6).model(like="GaussianMixture")
        fusion.density.union().model(like="GaussianMixture")


@pytest.mark.parametrize("J", [3, 12])
@pytest.mark.parametrize("n", [60, 400])
def test_sites_that_differ_by_chance_are_not_warned_of(J, n):
    """One population of three components in five dimensions, estimated by every site from a few points."""
    rng = np.random.default_rng(3)
    centres = 15.0 * np.eye(3, 5)
    drawn = [[rng.normal(c, 1.0, (n, 5)) for c in centres] for _ in range(J)]
    there = [mixture([x.mean(0) for x in X], [np.cov(x.T) for x in X], [n] * 3, counted=True) for X in drawn]
    fusion = fuse(there)
    assert fusion.K == 3
    fusion.model(like="GaussianMixture")  # warnings are errors here
    assert fusion.density.loss() < gauge(fusion._fit).chance(3)


@pytest.mark.parametrize(("widths", "high"), [(8.0, False), (12.0, True)])
def test_a_price_is_high_from_a_quarter_of_a_nat_beyond_chance(widths, high):
    fusion = fuse(sites(widths))
    assert fusion.K == 6
    beyond = fusion.density.loss() - gauge(fusion._fit).chance(6)
    assert beyond == pytest.approx(HIGH_PRICE, abs=0.1)
    with pytest.warns(DensityWarning, match="as a density" if high else "^the fused mixture fits rows of site"):
        fusion.model(like="GaussianMixture")


def test_a_site_of_another_shape_is_named():
    """On average little is lost: the others are many. Its own rows are half a nat and more less probable."""
    J = 20
    means = 12 * np.eye(3, 4) + np.random.default_rng(0).normal(0, 0.1, (J, 3, 4))
    there = [mixture(x, np.full((3, 4), 4.0 if j == 2 else 1.0), [200] * 3, counted=True) for j, x in enumerate(means)]
    fusion = fuse(there)
    by = gauge(fusion._fit)
    with pytest.warns(DensityWarning, match=f"^the fused mixture fits rows of site {fusion.sites[2]!r}"):
        mixed = fusion.model(like="GaussianMixture")
    mixture_ = mixed.means_, mixed.covariances_, mixed.weights_
    lost = by.prices(mixture_)
    assert lost.argmax() == 2
    assert lost[2] > 0.5
    assert by.price(mixture_) == pytest.approx(lost.mean())


@pytest.mark.parametrize(("widths", "high"), [(9.0, False), (30.0, True)])
def test_sites_without_numbers_are_taken_for_small(widths, high):
    fusion = fuse(sites(widths, counted=False))
    with pytest.warns(DensityWarning, match="100 points") if high else nullcontext():
        fusion.model(like="GaussianMixture")


def test_what_is_no_density_has_no_price():
    flat = mixture([[0.0], [9.0]], [[0.0], [1.0]], [1.0, 50.0], counted=True)
    fusion = fuse([flat, flat], screens=["outliers"])
    with pytest.raises(InputError, match="no volume"):
        fusion.density.loss()
    fusion.parameters("density")
    with pytest.raises(InputError, match="other models"):
        fuse([[[0.0]], [[0.1]]]).density.loss()
