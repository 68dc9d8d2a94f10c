"""A site in other units is named, with the feature and the factor; sites that merely differ are not."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import modelweld
from modelweld import UnitsWarning
from modelweld.fit.screening import unit_fit
from modelweld.fit.screening.unit_fit import explain, find_other_units, find_swapped
from modelweld.fit.screening.units import EACH_MORE, Sites, Totals, may_differ, totals_of_stack, totals_of_values
from modelweld.inputs.plain_tables import stack_arrays
from modelweld.kinds.hmm import hmm

WINE = load_wine()


def models(factor=1.0, *, last=None, J=5, feature=4, **facts):
    """Models of J parts of the wine table, the third with one feature in another unit."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(WINE.data)), J)
    result = []
    for j, rows in enumerate(parts):
        X = WINE.data[rows].copy()
        X[:, feature] *= factor if j == 2 else 1.0
        one = make_pipeline(StandardScaler(), last or GaussianMixture(3, covariance_type="diag", random_state=0))
        result.append(modelweld.read(one.fit(X), site=f"site {j}", features=WINE.feature_names, **facts))
    return result


def named(sites, **options):
    """What `fuse` says of units."""
    return said_by(lambda: modelweld.fuse(sites, **options))


def said_by(call):
    """What a call that makes a fusion says of units."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fusion = call()
    said = [str(w.message) for w in caught if w.category is UnitsWarning]
    assert said == [reason for reason in fusion.matching.reasons if "mean and deviation alike" in reason]
    return said


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1000, "times larger than elsewhere, mean and deviation alike: grams for kilograms?"),
        (1 / 1000, "times smaller than elsewhere, mean and deviation alike: kilograms for grams?"),
        (7, "larger than elsewhere, mean and deviation alike: mmHg for kPa, or days for weeks?"),
        (1 / 12, "smaller than elsewhere"),
        (30.4, "larger than elsewhere, mean and deviation alike: days for months?"),
    ],
)
@pytest.mark.parametrize("last", [None, KMeans(3, n_init=1, random_state=0)], ids=["mixture", "k-means"])
def test_a_site_in_other_units_is_named(factor, words, last):
    (said,) = named(models(factor, last=last))
    assert said.startswith("site 'site 2': 'magnesium' is about ")
    assert last is not None or words in said


def test_at_three_sites_and_without_scalers_too():
    (said,) = named(models(10.0, J=3))
    assert "'site 2'" in said
    plain = [KMeans(3, n_init=1, random_state=0).fit(np.random.default_rng(j).normal(9, 1, (50, 2))) for j in range(4)]
    plain[1].cluster_centers_[:, 1] *= 25.4
    (said,) = named(plain)
    assert said.startswith("site '1': dimension 1 is about 25 times larger")


def test_hidden_markov_models_too():
    def site(scale, rng):
        means = rng.normal([20.0, 3.0], [5.0, 1.0], (3, 2)) * [1.0, scale]
        variances = np.tile([4.0, scale**2], (3, 1))
        emissions = {"means": means, "variances": variances}
        return hmm(np.full((3, 3), 10.0), np.ones(3), np.full(3, 30.0), emissions, counted=True)

    rng = np.random.default_rng(1)
    (said,) = named([site(1000.0 if j == 3 else 1.0, rng) for j in range(6)])
    assert said.startswith("site '3': dimension 1 is about ")


@pytest.mark.parametrize("J", [3, 5, 10])
def test_clean_sites_are_left_in_peace(J):
    assert named(models(J=J)) == []


def test_units_that_are_stated_on_both_sides_rule():
    sites = models(1000.0)
    units = {"magnesium": "mg"}
    assert len(named([m.with_(facts={**m.facts, "units": units}) if j == 2 else m for j, m in enumerate(sites)])) == 1
    assert named([m.with_(facts={**m.facts, "units": units}) for m in sites]) == []


def test_features_that_a_site_lacks_are_not_compared():
    sites = models(1000.0)
    weight = np.ones((3, 13))
    weight[:, 4] = 0
    assert named([m.with_(weight={"means": weight if j == 2 else np.ones((3, 13))}) for j, m in enumerate(sites)]) == []


def one_feature(*sites):
    return [Totals(np.array([m]), np.array([s]), 100, 100) for m, s in sites]


ALIKE = [(20.0, 8.0), (17.0, 7.0), (22.0, 8.5), (19.0, 9.0)]


@pytest.mark.parametrize(
    ("site", "factor"),
    [
        ((20 * 7.0, 8 * 7.0), 7.0),
        ((20 * 1.8 + 32, 8 * 1.8), 1.8),
        ((20.0, 8 * 7.0), None),  # a long tail: wider, and no larger
        ((60.0, 2.0), None),  # another place, as tropical stations have
        ((20 * 5.4, 8 * 5.4), None),  # least factor 6
        ((20 * 6.6, 8 * 6.6), 6.6),
    ],
)
def test_mean_and_deviation_must_agree(site, factor):
    found = find_other_units(one_feature(*ALIKE, site))
    assert [one.site for one in found] == ([] if factor is None else [4])
    assert all(one.factor == pytest.approx(factor, rel=0.1) for one in found)


def test_of_two_sites_both_are_named():
    assert len(find_other_units(one_feature((20.0, 8.0), (20_000.0, 8_000.0)))) == 1
    assert find_other_units(one_feature((20.0, 8.0), (50.0, 20.0))) == []
    (said,) = named(models(1000.0, J=3)[1:])
    assert "'site 1'" in said
    assert "'site 2'" in said


def test_sites_that_differ_widely_hide_a_small_factor_but_not_a_large_one():
    wide = [(10.0, 4.0), (100.0, 40.0), (30.0, 12.0), (300.0, 120.0), (55.0, 20.0)]
    assert find_other_units(one_feature(*wide, (55 * 7.0, 20 * 7.0))) == []
    (found,) = find_other_units(one_feature(*wide, (55_000.0 * 10, 20_000.0 * 10)))
    assert found.site == 5


def centres(J, *, factor=1.0, seed=0):
    """Plain values about places far from zero; the last site has one dimension in another unit."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal([70.0, 170.0, 30.0], [8.0, 9.0, 5.0], (8, 3))
    sites = [atoms + rng.normal(0, 0.5, atoms.shape) for _ in range(J)]
    sites[-1][:, 1] *= factor
    return sites


class Table:
    """A table with named columns."""

    columns = ("weight", "height", "age")

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return self.values


@pytest.mark.parametrize("J", [3, 6])
def test_plain_values_too_by_number_or_by_name(J):
    assert named(centres(J)) == []
    (said,) = named(centres(J, factor=0.1))
    assert said.startswith(f"site '{J - 1}': dimension 1 is about 10 times smaller")
    assert "centimetres for millimetres?" in said
    (said,) = named([Table(values) for values in centres(J, factor=0.1)])
    assert f"site '{J - 1}': 'height' is about" in said
    assert named(centres(J, factor=0.1), search="plain") == []


def test_sites_that_differ_in_most_dimensions_are_another_matter():
    sites = centres(6)
    sites[-1] = sites[-1] * 10
    assert named(sites) == []


@pytest.mark.parametrize(("values", "compared"), [(3, False), (4, True)])
def test_plain_values_are_compared_from_four_of_a_site_on(values, compared):
    assert (totals_of_values(centres(1)[0][:values]) is not None) is compared


@pytest.mark.parametrize(("J", "compared"), [(200, True), (201, False)])
def test_plain_values_are_compared_up_to_two_hundred_sites(J, compared):
    found = totals_of_stack(stack_arrays([centres(1)[0]] * J))
    assert (found[0] is not None) is compared


def test_a_site_that_is_added_is_compared():
    *old, new = centres(5, factor=1000.0)
    fusion = modelweld.fuse(old)
    (said,) = said_by(lambda: fusion.add(new, site="late"))
    assert said.startswith("site 'late': dimension 1")
    assert said_by(lambda: fusion.add(centres(5)[-1])) == []


STATIONS = [(22.0, 9.0, 12.0, 8.0), (31.0, 21.0, 6.0, 3.0), (3.0, -6.0, 14.0, 12.0), (14.0, 4.0, 10.0, 9.0)]


def station(high, low, wide, narrow, *, factor=1.0, offset=0.0):
    """Winter, spring and summer at a station; the second feature, nights, perhaps in other degrees."""
    places = np.array([[high - wide, low - wide], [high, low], [high + wide, low + wide]], dtype=float)
    places[:, 1] = factor * places[:, 1] + offset
    deviation = np.sqrt([wide**2 * 2 / 3 + narrow**2, factor**2 * (wide**2 * 2 / 3 + narrow**2)])
    return Totals(places.mean(0), deviation, 300, 300, places, np.ones(3) / 3)


def test_degrees_are_found_by_the_other_features_of_unlike_stations():
    clean = [station(*one) for one in STATIONS]
    assert find_other_units(clean) == []
    (found,) = find_other_units([*clean, station(20.0, 8.0, 11.0, 8.0, factor=1.8, offset=32.0)])
    assert (found.site, found.feature, found.offset) == (4, 1, 32.0)


def sites_of(seed):
    """Sites of six features that differ by themselves; some, in some features, as a unit or an order does."""
    rng = np.random.default_rng(seed)
    J, D = int(rng.integers(4, 30)), 6
    mean, deviation = rng.normal(rng.normal(20, 30, D), 5, (J, D)), np.exp(rng.normal(2, 0.3, (J, D)))
    for j in range(int(rng.integers(3))):
        factor, offset, d = (1.8, 32.0, int(rng.integers(1, D))) if j else (np.exp(rng.normal(0, 2)), 0.0, 1)
        mean[j, :d], deviation[j, :d] = mean[j, :d] * factor + offset, deviation[j, :d] * factor
    if rng.random() < 0.5:
        order = rng.permutation(D)
        mean[-1], deviation[-1] = mean[-1, order], deviation[-1, order]
    return Sites(mean, deviation, np.full((J, 2), 1 / rng.integers(5, 200)))


def test_bounds_spare_nobody_who_would_be_named(monkeypatch):
    """Named are the same where all are looked at whom a bound says not to look at, and some are named."""

    def named():
        gains = [explain(sites, predict=False)[0] for sites in drawn]
        return [found.factor[found.gain > 0].tolist() for found in gains], [find_swapped(sites) for sites in drawn]

    drawn = [sites_of(seed) for seed in range(200)]
    found = named()
    monkeypatch.setattr(unit_fit, "may_be_other_units", lambda misfit: misfit > EACH_MORE)
    monkeypatch.setattr(unit_fit, "may_be_swapped", lambda sites: np.arange(len(sites.mean)))
    assert named() == found
    assert all(10 < sum(map(bool, kind)) < 190 for kind in found)


@pytest.mark.parametrize("plain", [False, True])
def test_where_the_first_look_finds_nothing_no_site_is_named(plain):
    """And that look spares most clean sites."""
    clean = []
    for seed in range(400):
        sites = sites_of(seed)
        totals = [
            Totals(m, s, 1 / c[0], 1 / c[1]) for m, s, c in zip(sites.mean, sites.deviation, sites.chance, strict=True)
        ]
        if not may_differ(totals, plain=plain):
            assert not find_other_units(totals, plain=plain)
            assert not find_swapped(sites)
            clean.append(seed)
    assert 20 < len(clean) < 380
