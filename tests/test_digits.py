"""Numbers have the digits they deserve: enough to tell values apart and to see errors, never more than is known."""

import re

import numpy as np
import pytest

import modelweld
from modelweld.inputs.notebook import ALIKE, DIGITS, HELD, MOST_DECIMALS, decimals_of, digits_of, spell
from modelweld.kinds.mixture import mixture
from modelweld.report import numbers_of
from modelweld.report.text import short
from modelweld.results.posterior.intervals import Intervals

SCALES = 10.0 ** np.arange(-12, 13)


def drawn(seed, size=1.0):
    """Values of a feature about something, with errors of any size beside how much they differ."""
    rng = np.random.default_rng(seed)
    values = rng.normal(rng.choice([0.0, 1.0, 30.0]), 1.0, rng.integers(2, 9))
    return size * values, size * rng.uniform(0.5, 2.0, len(values)) * 10 ** rng.uniform(-3, 3)


@pytest.mark.parametrize("size", SCALES)
@pytest.mark.parametrize("stated", [False, True])
def test_values_that_differ_look_different(size, stated):
    """Those farther apart than half of their deviation always do, in whatever unit."""
    for seed in range(30):
        values, errors = drawn(seed, size)
        decimals = decimals_of(values, errors if stated else None)
        for a in values:
            for b in values[np.abs(values - a) > values.std() / 2]:
                assert spell(a, decimals) != spell(b, decimals)


@pytest.mark.parametrize("seed", range(30))
def test_a_typical_error_or_deviation_is_two_to_twenty_of_the_last_digit(seed):
    values, errors = drawn(seed, 1e-3)
    last = 10.0 ** -decimals_of(values, errors)
    scale = min(np.median(errors), values.std())
    assert 2 * (1 - 1e-9) <= scale / last < 20 * (1 + 1e-9)


def test_errors_beyond_all_differences_hide_nothing():
    smoothness = np.array([0.094, 0.100, 0.093])
    shown = [spell(x, decimals_of(smoothness, np.full(3, 22.0))) for x in smoothness]
    assert shown == ["0.094", "0.100", "0.093"]
    assert decimals_of(np.array([0.06]), np.array([22.0])) == 2


@pytest.mark.parametrize(("share", "decimals"), [(0.9, 0), (1.1, DIGITS)])
def test_rounding_is_no_difference(share, decimals):
    values = 25.0 * (1 + share * ALIKE * np.array([-1.0, 1.0]))
    assert decimals_of(values, np.array([9.0, 9.0])) == decimals


@pytest.mark.parametrize(("error", "decimals"), [(3e-6, DIGITS), (3e-5, 5), (3e-9, DIGITS), (3e3, 0)])
def test_there_are_six_digits_after_the_point_at_most(error, decimals):
    assert decimals_of(np.array([5.0, 9000.0]), np.full(2, error)) == decimals


@pytest.mark.parametrize(
    ("largest", "most"), [(1.1, DIGITS), (0.11, DIGITS), (0.011, DIGITS + 1), (1.1e-9, DIGITS + 8)]
)
def test_or_six_of_a_number_below_one(largest, most):
    assert decimals_of(np.array([0.0, largest]), np.full(2, 1e-8 * largest)) == most


@pytest.mark.parametrize("first", [HELD - 1, HELD, HELD + 1, 40, 300])
def test_no_digit_is_shown_that_a_float_does_not_hold(first):
    values = np.array([1.0, 1.5]) * 10.0**first
    decimals = decimals_of(values, 1e-20 * values)
    assert first + decimals == HELD - 1
    assert spell(values[0], decimals) in ("100,000,000,000,000", f"1.{'0' * (HELD - 1)}e+{first}")
    assert spell(values[0], decimals_of(values)) in ("100,000,000,000,000", f"1.00e+{first}")


@pytest.mark.parametrize(("decimals", "text"), [(MOST_DECIMALS, "0.0012300"), (MOST_DECIMALS + 1, "1.23000e-3")])
def test_more_digits_are_written_as_powers_of_ten(decimals, text):
    assert spell(0.00123, decimals) == text


@pytest.mark.parametrize("decimals", [-3, 0, 2, 9])
def test_nothing_is_a_dash_and_nil_has_no_sign(decimals):
    assert spell(float("nan"), decimals) == "–"
    assert not spell(-1e-12, decimals).startswith("-")
    assert float(spell(0.0, decimals)) == 0


@pytest.mark.parametrize("values", [[], [np.nan], [0.0, 0.0], [5e-324], [1e-160, 2e-160], [1e308, -1e308]])
def test_any_numbers_have_some_digits(values):
    values = np.array(values)
    decimals = decimals_of(values)
    assert all(isinstance(spell(x, decimals), str) and len(spell(x, decimals)) < 25 for x in values)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_carried_is_spelt_as_what_there_is(seed):
    for size in SCALES:
        values, errors = drawn(seed, size)
        values = values + 1e4 * size
        decimals = decimals_of(values, errors)
        carried = np.array(short(values, digits_of(values, decimals)))
        assert (np.abs(carried - values) <= 0.06 * 10.0**-decimals).all()


def small_features():
    """Seven sites of three groups, in features as large as an area and as small as a fractal dimension."""
    rng, sites = np.random.default_rng(0), {}
    groups = np.array(
        [[500.0, 0.094, 0.0600, 1013.2], [1050.0, 0.100, 0.0612, 1013.5], [1700.0, 0.111, 0.0597, 1013.9]]
    )
    for j in range(7):
        means = groups + rng.normal(0, [20.0, 1e-3, 1e-4, 0.02], groups.shape)
        wide = np.tile([2e3, 2e3, 2e3, 1e3], (3, 1))
        sites[f"s{j}"] = mixture(means, wide, [50, 60, 70], counted=True, features=["area", "smooth", "fractal", "air"])
    return modelweld.fuse(sites)


def test_small_features_are_told_apart_wherever_they_are_shown():
    """Variances that are as large as those of the largest feature make errors larger than the small ones."""
    fusion = small_features()
    table, one = fusion.table(), numbers_of(fusion, draws=False)["sets"][0]
    assert fusion.K == 3
    assert (table.errors[:, 1:] > 0.5).all()
    _, rows = table.cells()
    own = np.array([re.findall(r"[\d.,]+", " ".join(row[-4:]))[:4] for row in rows])
    assert all(len(set(column)) == 3 for column in own.T)
    assert one["groups"]["decimals"] == list(table.decimals) == [0, 3, 4, 1]
    for d, decimals in enumerate(one["decimals"]):
        assert len({spell(row[d], decimals) for row in one["members"]}) >= 3
        assert decimals <= one["groups"]["decimals"][d] + 1


def test_large_numbers_that_differ_little_are_carried_whole():
    rng = np.random.default_rng(0)
    seconds = 1_700_000_000.0 + np.array([[100.0], [900.0]])
    fusion = modelweld.fuse([seconds + rng.normal(0, 5.0, (2, 1)) for _ in range(5)])
    one = numbers_of(fusion, draws=False)["sets"][0]
    assert np.allclose(np.diff(np.sort(np.array(one["groups"]["means"]).ravel())), 800, atol=10)
    assert np.allclose(np.array(one["atoms"]), fusion.atoms, atol=0.1, rtol=0)


def test_intervals_have_digits_by_their_width():
    values = np.array([[1013.2], [1013.9]])
    found = Intervals(values, values - 0.02, values + 0.02, 0.9)
    assert "1,013.900 (1,013.880 to 1,013.920)" in found._repr_html_()
