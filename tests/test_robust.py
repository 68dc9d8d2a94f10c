"""The filter before the fit: honest sets lose nothing, gross sites go, and neither order nor units matter."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelweld.core.values import Stack, offsets_of
from modelweld.fit.screening import outliers
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE, measure_distances
from modelweld.fit.screening.screens import FEWEST_OF_OVERSIZED, OVERSIZED, find_oversized
from modelweld.inputs.stacks import stack_arrays
from simulated_sets import SETS, sparse

POISONED = {"poisoned_gross", "poisoned_junk", "all_together"}


def stack_of(values, variance=None, weight=None):
    pile = [None if x is None else np.concatenate(x) for x in (variance, weight)]
    return Stack(np.concatenate(values), offsets_of([len(v) for v in values]), *pile)


@dataclass
class Found:
    """What `find_outliers` found: sites excluded whole, values of others by site, and limits of all values."""

    keep: np.ndarray
    reasons: list
    sites: tuple = ()
    values: dict = field(default_factory=dict)
    clean: bool = True
    limits: list = field(default_factory=list)


def found(stacks, sites=None, **options):
    result = Found(*outliers.find_outliers(stacks, sites, **options))
    parts = np.split(result.keep, stacks[0].offsets[1:-1])
    result.sites = tuple(j for j, keep in enumerate(parts) if keep.size and not keep.any())
    result.values = {j: np.flatnonzero(~k) for j, k in enumerate(parts) if j not in result.sites and not k.all()}
    result.clean, result.limits = bool(result.keep.all()), [d.limits for d in measure_distances(stacks)]
    return result


def honest_sites(rng, J=9, D=3, L=12, noise=0.1):
    atoms = rng.normal(size=(L, D))
    held = [rng.permutation(L)[: rng.integers(3, L + 1)] for _ in range(J)]
    return [atoms[h] + rng.normal(0, noise, (len(h), D)) for h in held]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", sorted(set(SETS) - POISONED))
def test_clean_sets_lose_nothing(name, seed):
    drawn = SETS[name](seed=seed)
    for variance in (None, drawn.variance):
        report = found([stack_of(drawn.values, variance)])
        assert report.clean
        assert (report.sites, report.values, report.reasons) == ((), {}, [])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", sorted(POISONED))
def test_poisoned_sets_lose_the_bad_site_and_nothing_else(name, seed):
    drawn = SETS[name](seed=seed)
    for variance in (None, drawn.variance):
        report = found([stack_of(drawn.values, variance)], [f"s{j}" for j in range(13)])
        assert report.sites == (12,)
        assert np.array_equal(report.keep, np.repeat(drawn.honest, [len(v) for v in drawn.values]))
        assert len(report.reasons) == 1
        assert "site 's12'" in report.reasons[0]
        assert "of 10 values" in report.reasons[0]


@pytest.mark.parametrize("shape", ["t", "cauchy", "lognormal", "two heaps", "one factor", "far atom"])
def test_atoms_of_any_shape_that_sites_share_are_kept(shape):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        atoms = {
            "t": rng.standard_t(3, (30, 4)),
            "cauchy": rng.standard_cauchy((30, 4)),
            "lognormal": np.exp(1.5 * rng.normal(size=(30, 4))),
            "two heaps": rng.normal(size=(30, 4)) + 50 * rng.integers(0, 2, (30, 1)),
            "one factor": rng.normal(size=(30, 1)) * np.ones(4),
            "far atom": np.vstack([rng.normal(size=(29, 4)), np.full((1, 4), 500.0)]),
        }[shape]
        held = [rng.random(30) < 0.6 for _ in range(10)]
        report = found([stack_arrays([atoms[h] + rng.normal(0, 0.1, (h.sum(), 4)) for h in held])])
        assert report.clean


@pytest.mark.parametrize("L", [1, 2, 4, 10])
@pytest.mark.parametrize("J", [4, 5, 7, 12])
def test_few_values_raise_no_alarm(J, L):
    rng = np.random.default_rng(J * 100 + L)
    for D in (1, 3, 10):
        assert all(found([stack_arrays(list(rng.normal(size=(J, L, D))))]).clean for _ in range(50))


@pytest.mark.parametrize("D", [1, 2, 3])
def test_in_few_dimensions_what_is_outside_goes(D):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sites = [*honest_sites(rng, D=D), rng.normal(0, 10, (10, D))]
        report = found([stack_arrays(sites)])
        bad = np.repeat(np.arange(10) == 9, [len(s) for s in sites])
        assert report.keep[~bad].all()
        size = np.sqrt(np.square(sites[-1]).mean(1))
        assert not report.keep[bad][size > 20].any()
        if not report.sites:
            assert np.array_equal(report.values.get(9, []), np.flatnonzero(~report.keep[bad]))


def test_one_site_with_very_many_values_has_one_vote():
    rng = np.random.default_rng(0)
    report = found([stack_arrays([*honest_sites(rng), rng.normal(0, 1000, (2000, 3))])])
    assert report.sites == (9,)
    assert report.keep[:-2000].all()


@pytest.mark.parametrize("bad", range(1, 8))
def test_up_to_the_breakdown_bad_sites_go_beyond_it_nothing_does(bad):
    rng = np.random.default_rng(bad)
    sites = [*honest_sites(rng, 10 - bad, 10), *(rng.normal(0, 1000, (10, 10)) for _ in range(bad))]
    report = found([stack_arrays(sites)])
    if bad < 5:
        assert report.sites == tuple(range(10 - bad, 10))
    else:
        assert report.clean


def test_when_too_many_would_go_it_says_so():
    rng = np.random.default_rng(0)  # three of eleven are far off in one array, three others in the other
    arrays = [[rng.normal(0, 1, (10, 2)) for _ in range(11)] for _ in range(2)]
    for j in range(3):
        arrays[0][5 + j] += 10.0 ** (4 + j)
        arrays[1][8 + j] += 10.0 ** (4 + j)
    report = found([stack_arrays(array) for array in arrays], list("abcdefghijk"))
    assert report.clean
    assert report.reasons == [
        "6 of 11 sites ('f', 'g', 'h', 'i', 'j', 'k') lie far from the others: which of them are honest is not "
        "known, so nothing was excluded."
    ]


def test_fewer_than_four_sites_are_left_alone():
    rng = np.random.default_rng(0)
    sites = [*honest_sites(rng, FEWEST_SITES_TO_COMPARE - 2), rng.normal(0, 1e6, (5, 3))]
    assert found([stack_arrays(sites)]).clean
    assert found([stack_arrays([*sites, np.zeros((0, 3)), np.zeros((0, 3))])]).clean  # who sends nothing has no vote


def test_a_single_bad_value_goes_alone_and_the_reason_names_it():
    sites = honest_sites(np.random.default_rng(0))
    sites[4][2, 1] = 5123.0
    report = found([stack_arrays(sites)], [f"s{j}" for j in range(9)])
    assert report.sites == ()
    assert {j: values.tolist() for j, values in report.values.items()} == {4: [2]}
    assert int((~report.keep).sum()) == 1
    assert report.reasons[0].startswith(f"site 's4': 1 of {len(sites[4])} values lie more than ")
    assert re.search(r"largest in dimension 1 \(about \de\+03 above\)", report.reasons[0])


def test_a_far_value_that_two_sites_send_is_an_atom_but_a_repeat_is_not():
    sites = honest_sites(np.random.default_rng(0))
    sites[0][0] = sites[1][0] = [300.0, -200.0, 100.0]
    assert sorted(found([stack_arrays(sites)]).values) == [0, 1]
    sites[1][0] += 0.1
    assert found([stack_arrays(sites)]).clean


@pytest.mark.parametrize("D", [1, 2, 5])
def test_sites_of_background_do_not_confirm_each_other(D):
    rng = np.random.default_rng(0)
    sites = [*honest_sites(rng, D=D), *(rng.normal(0, 1000, (1000, D)) for _ in range(3))]
    assert found([stack_arrays(sites)]).sites == (9, 10, 11)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-6, 1.0, 1e6]), offset=st.sampled_from([0.0, -30.0, 1e4]))
def test_order_and_units_do_not_matter(seed, scale, offset):
    rng = np.random.default_rng(seed)
    sites = [*honest_sites(rng), rng.normal(0, 30, (8, 3))]
    sites[0][0] *= 1000
    plain = found([stack_arrays(sites)])
    kept = np.split(plain.keep, np.cumsum([len(s) for s in sites])[:-1])
    order, rows = rng.permutation(10), [rng.permutation(len(s)) for s in sites]
    units = scale * np.array([1.0, 100.0, 0.01])
    other = found([stack_arrays([(sites[j][rows[j]] + offset) * units for j in order])])
    assert np.array_equal(other.keep, np.concatenate([kept[j][rows[j]] for j in order]))
    assert np.unique(other.limits) == pytest.approx(np.unique(plain.limits), rel=1e-6)


def test_what_was_not_seen_is_ignored():
    rng = np.random.default_rng(0)
    sites = honest_sites(rng)
    weight = [(rng.random(s.shape) < 0.7).astype(float) for s in sites]
    weight[0][0] = 0.0
    plain = stack_of(sites, weight=weight)
    wild = stack_of([np.where(w > 0, s, 1e9) for s, w in zip(sites, weight, strict=True)], weight=weight)
    assert found([plain]).clean
    assert found([wild]).clean
    assert np.array_equal(found([wild]).limits, found([plain]).limits)
    sites[3] = sites[3] * 1e4
    assert found([stack_of(sites, weight=weight)]).sites == (3,)


def test_uncertainty_excuses_distance():
    sites = honest_sites(np.random.default_rng(0))
    sites[2][0] += 100.0
    small = [np.full(s.shape, 1e-2) for s in sites]
    large = [v.copy() for v in small]
    large[2][0] = 100.0**2
    assert list(found([stack_of(sites, variance=small)]).values) == [2]
    assert found([stack_of(sites, variance=large)]).clean
    counts = [np.full(s.shape, 1e5) for s in sites]
    assert list(found([stack_of(sites, weight=counts)]).values) == [2]
    counts[2][0] = 1.0
    assert found([stack_of(sites, weight=counts)]).clean


def test_a_small_array_is_not_hidden_behind_a_large_one():
    rng = np.random.default_rng(0)
    large, small = honest_sites(rng, D=200), []
    small = [rng.normal(size=(len(s), 1)) for s in large]
    small[5][:] = 1e4 * rng.normal(size=small[5].shape)
    report = found([stack_arrays(large), stack_arrays(small)], arrays=["W", "b"])
    assert report.sites == (5,)
    assert "array 'b', dimension 0" in report.reasons[0]
    assert len(report.limits) == 2


def test_a_dimension_where_values_coincide_tells_nobody_apart():
    sites = honest_sites(np.random.default_rng(0))
    constant = [np.column_stack([s, np.full(len(s), 0.1)]) for s in sites]
    constant[0][0, 3] = 1.0
    assert found([stack_arrays(constant)]).clean
    same = found([stack_arrays([np.full((2, 1), 0.3)] * 6)])
    assert same.clean
    assert np.isinf(same.limits).all()


def test_sites_may_be_empty():
    drawn = sparse(20, 8, 4, 0.1, 2.0, 1.0, 1.0, seed=0)
    sites = [np.zeros((0, 4)), *drawn.values, np.zeros((0, 4)), np.random.default_rng(0).normal(0, 1e4, (3, 4))]
    assert found([stack_arrays(sites)]).sites == (10,)


@pytest.mark.parametrize("times", [0.9, 1.1])
@pytest.mark.parametrize("typical", [2, 20])
def test_a_oversized_is_thirty_times_the_typical_site_and_two_hundred(times, typical):
    limit = max(OVERSIZED * typical, FEWEST_OF_OVERSIZED)
    sizes = np.array([typical] * 5 + [round(times * limit)] * 4)
    assert find_oversized(sizes).tolist() == ([5, 6, 7, 8] if times > 1 else [])


def test_half_of_the_sites_are_no_oversized():
    assert find_oversized(np.array([7] * 4 + [1000] * 4)).tolist() == []
    assert find_oversized(np.array([7, 7, 1000])).tolist() == []
