"""Whether sites share anything: what the verdict may not depend on, how often it errs, and what it must see."""

import numpy as np
import pytest

from modelweld import (
    BetaBernoulli,
    Counts,
    Directions,
    Gaussian,
    InputError,
    LocalModel,
    OutlierWarning,
    Scatter,
    fuse,
)
from modelweld.results.diagnostics import pair_scan, sharing
from modelweld.results.diagnostics.pair_scan import place


def unrelated(seed=0, J=4, L=10, D=3, draw=None):
    rng = np.random.default_rng([seed, J, L, D])
    return [2.5 * (draw or np.random.Generator.standard_normal)(rng, (L, D)) for _ in range(J)]


def related(seed=0, J=4, L=10, D=3, shared=5, noise=0.3):
    rng = np.random.default_rng([seed, J, L, D])
    atoms = 2.5 * rng.standard_normal((shared, D))
    own = 2.5 * rng.standard_normal((J, L - shared, D))
    return [np.concatenate([atoms + noise * rng.standard_normal((shared, D)), own[j]]) for j in range(J)]


def named(values, weight=None):
    return [
        LocalModel({"v": v}, {"v": ("atom", None)}, site=f"s{j}", weight={} if weight is None else {"v": weight[j]})
        for j, v in enumerate(values)
    ]


def quick(values):
    """A fit that costs little: the verdict does not depend on it."""
    family = Gaussian(mean=0.0, noise=0.1, spread=6.0, learning="nothing")
    return fuse(values, family, BetaBernoulli(), search="plain", screens=["duplicates"])


def p_values(fusion, **settings):
    verdict = fusion.worth_merging(**settings)
    return [verdict.p_value, *(site.p_value for site in verdict.sites)]


@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("sites", [unrelated, related])
def test_order_does_not_matter(sites, D):
    given = sites(3, D=D, L=8)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(given))
    other = [given[j][rng.permutation(len(given[j]))] for j in order]
    p, *of_sites = p_values(fuse(given))
    q, *of_others = p_values(fuse(other))
    assert q == p
    assert of_others == [of_sites[j] for j in order]


@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("sites", [unrelated, related])
def test_units_do_not_matter(sites, D):
    given = sites(5, D=D)
    scale, origin = np.geomspace(1e-3, 1e4, D), np.linspace(-50, 1000, D)
    assert p_values(fuse([scale * v + origin for v in given])) == p_values(fuse(given))


@pytest.mark.slow
def test_p_values_of_sites_that_share_nothing_are_no_smaller_than_chance():
    found = np.array([p_values(quick(unrelated(seed)), draws=39) for seed in range(60)])
    for p in (found[:, 0], found[:, 1:].ravel()):
        assert (p <= 0.05).mean() <= 0.07
        assert (p <= 0.2).mean() <= 0.28
        assert 0.4 <= p.mean() <= 0.7
        assert p.min() >= 1 / 40
        assert p.max() <= 1


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: np.exp(rng.standard_normal(shape)),
        lambda rng, shape: rng.standard_t(3, shape),
        lambda rng, shape: rng.uniform(-1, 1, shape),
        lambda rng, shape: (
            rng.standard_normal((shape[0], 2)) @ np.ones((2, shape[1]))  # almost on a line
            + 0.2 * rng.standard_normal(shape)
        ),
        lambda rng, shape: np.round(1.2 * rng.standard_normal(shape)) / 2.5,
        lambda rng, shape: np.exp(0.5 * rng.standard_normal(shape)) * (rng.random(shape) > 0.3),
        lambda rng, shape: rng.standard_normal(shape) / np.sqrt(rng.chisquare(2, (shape[0], 1))),
    ],
    ids=["lognormal", "t3", "uniform", "correlated", "rounded", "zeros", "radii"],
)
def test_the_distribution_of_values_is_no_reason_for_a_yes(draw):
    yes = [quick(unrelated(seed, J=6, draw=draw)).worth_merging(draws=39).worth for seed in range(40)]
    assert sum(map(bool, yes)) <= 4


@pytest.mark.parametrize("seed", range(5))
def test_sites_that_share_half_get_a_yes_and_strangers_a_no(seed):
    verdict = quick([*related(seed), *unrelated(seed, J=1)]).worth_merging()
    assert verdict.worth
    assert verdict.p_value == pytest.approx(1 / 200)
    assert str(verdict) == verdict.sentence
    assert verdict.sentence.startswith("yes: ")
    assert [site.worth for site in verdict.sites[:4]] == [True] * 4
    assert "4" in [site.site for site in verdict.strangers] or verdict.sites[4].p_value <= 0.05


def test_a_stranger_among_sites_that_share_is_found_no_more_often_than_it_says():
    """The others lie in lumps: a stranger that meets one meets all, which must not count as many wonders."""
    found = [quick([*related(s, J=6), *unrelated(s, J=1)]).worth_merging(draws=39).sites[-1] for s in range(40)]
    assert np.mean([site.p_value <= 0.05 for site in found]) <= 0.1


def test_no_is_said_in_words():
    verdict = fuse(unrelated(2)).worth_merging()
    assert verdict.worth is False
    assert verdict.sentence.startswith(
        "no: values of different sites lie no closer together than chance explains (p = "
    )
    assert "do not rely on that" in verdict.sentence
    assert verdict.gain > 0  # which is why gains cannot be asked
    doubted = [site for site in verdict.sites if site.shared and site.gain > 0]
    assert all("than chance explains" in site.sentence for site in doubted if site.p_value > 0.05)


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
@pytest.mark.parametrize("seed", range(8))
def test_lacking_the_same_features_is_not_sharing(seed):
    given = unrelated(seed, J=6, D=6)
    weight = [np.ones(v.shape) for v in given]
    for w in weight[:3]:
        w[:, 3:] = 0.0
    assert not fuse(named(given, weight), site_effects=False).worth_merging().worth
    shared = related(seed, J=6, D=6)
    assert fuse(named(shared, weight), site_effects=False).worth_merging().worth


def test_what_was_not_seen_does_not_matter():
    given = related(0, D=4)
    weight = [np.ones(v.shape) for v in given]
    weight[1][:, 2] = weight[2][::2, 0] = 0.0
    other = [np.where(w > 0, v, 7.0) for v, w in zip(given, weight, strict=True)]
    assert p_values(fuse(named(given, weight))) == p_values(fuse(named(other, weight)))


def test_outliers_are_left_out():
    given = unrelated(1, J=6)
    with pytest.warns(OutlierWarning):
        fusion = fuse([np.concatenate([v, [[1e6, 1e6, 1e6]]]) if j < 2 else v for j, v in enumerate(given)])
    assert fusion.worth_merging().p_value == fuse(given).worth_merging().p_value


def test_several_arrays_are_asked_together():
    given = related(2, D=4, shared=3)
    cut = [
        LocalModel({"a": v[:, :1], "b": v[:, 1:]}, {"a": ("atom", None), "b": ("atom", None)}, site=str(j))
        for j, v in enumerate(given)
    ]
    assert p_values(fuse(cut)) == p_values(fuse(given))


def topics(seed, shared):
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(30, 0.3), shared)
    own = rng.dirichlet(np.full(30, 0.3), (4, 8 - shared))
    return [rng.multinomial(400, np.concatenate([common, own[j]])).astype(float) for j in range(4)]


def directions(seed, shared):
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal((shared, 4)), rng.standard_normal((4, 8 - shared, 4))
    rows = [np.concatenate([common + 0.05 * rng.standard_normal(common.shape), own[j]]) for j in range(4)]
    return [r / np.linalg.norm(r, axis=1, keepdims=True) for r in rows]


def covariances(seed, shared):
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((4, 8, 3, 3)) + np.eye(3)
    L[:, :shared] = L[0, :shared] + 0.02 * rng.standard_normal((4, shared, 3, 3))
    S = L @ np.swapaxes(L, -1, -2) + 0.1 * np.eye(3)
    return [
        LocalModel({"S": S[j]}, {"S": ("state", None, None)}, weight={"S": np.full(S[j].shape, 200.0)})
        for j in range(4)
    ]


@pytest.mark.parametrize(
    ("sites", "family"), [(topics, Counts()), (directions, Directions()), (covariances, Scatter())]
)
def test_other_families_have_points_too(sites, family):
    assert fuse(sites(0, 4), family).worth_merging().worth
    assert sum(bool(fuse(sites(s, 0), family).worth_merging(draws=39).worth) for s in range(8)) <= 1


class Odd(Gaussian):
    """A family whose values have no distances."""

    has_places = False


def test_where_nothing_can_be_said_that_is_said():
    verdict = fuse(related(), Odd()).worth_merging()
    assert verdict.worth is None
    assert np.isnan(verdict.p_value)
    assert "no verdict: the family Odd has no distances between values" in verdict.sentence
    assert all(site.worth is None for site in verdict.sites)
    alone = fuse(unrelated(J=1)).worth_merging()
    assert alone.worth is None
    same = fuse([np.ones((1, 2)), np.ones((1, 2))], Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="nothing"))
    assert "all values coincide" in same.worth_merging().sentence


@pytest.mark.parametrize(("level", "draws"), [(0.0, 9), (1.0, 9), (0.05, 0)])
def test_levels_and_draws_are_checked(level, draws):
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        fuse(related()).worth_merging(level=level, draws=draws)


def test_sites_beyond_the_limit_are_not_judged(monkeypatch):
    monkeypatch.setattr(sharing, "MOST_VALUES", 40)
    monkeypatch.setattr(sharing, "MOST_OF_SITE", 9)
    verdict = fuse(related(J=8)).worth_merging()
    judged = [np.isfinite(site.p_value) for site in verdict.sites]
    assert sum(judged) == 4
    assert all((site.worth is None) is not j for site, j in zip(verdict.sites, judged, strict=True))


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**600])
def test_values_whose_squares_are_beyond_all_numbers_lie_where_they_lie(unit):
    values = np.random.default_rng(0).normal(size=(40, 3))
    found, expected = place(values * unit), place(values)
    assert np.array_equal(found.points, expected.points)


@pytest.mark.parametrize("D", [1, 3])
def test_pairs_are_counted_one_by_one(D):
    given = related(4, J=3, L=6, D=D)
    places, offsets = place(np.concatenate(given)), np.array([0, 6, 12, 18])
    count = pair_scan._counter(places, offsets)
    found = count(places.points, places.points)
    for r, radius in enumerate(pair_scan.RADII):
        for j in range(3):
            near = 0
            for a in range(6 * j, 6 * j + 6):
                for b in set(range(18)) - set(range(6 * j, 6 * j + 6)):
                    if D == 1:
                        gap = abs(places.points[a] - places.points[b])
                        near += min(gap, 1 - gap) <= radius / np.sqrt(6)
                    else:
                        gap = (places.points[a] - places.points[b]) @ places.back
                        near += np.linalg.norm(gap) <= radius * np.sqrt(2 * np.square(places.back).sum())
            assert found[j, r] == near


def test_the_statistic_is_that_of_the_equation():
    n = np.array([[3.0, 9.0], [0.0, 4.0], [0.0, 2.0]])
    expected = n.mean(0) + 0.05
    for row, found in zip(n, pair_scan._statistic(n[:, None], np.inf)[:, 0], strict=True):
        terms = [a * np.log(a / e) - a + e for a, e in zip(row, expected, strict=True) if a > e]
        assert found == pytest.approx(sum(terms))
