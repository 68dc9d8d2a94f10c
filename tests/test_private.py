"""Differential privacy of clusters: one row moves the statistic by no more than is said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from modelweld import InputError
from modelweld.site.private import COUNT_STEPS, SENSITIVITY, STEPS, private_centres, statistic

CENTRES = np.array([[0.0, 0.0], [9.0, 9.0], [-9.0, 5.0]])


@settings(max_examples=60, deadline=None)
@given(
    arrays(float, st.tuples(st.integers(0, 6), st.just(2)), elements=st.floats(-1e6, 1e6)),
    arrays(float, (1, 2), elements=st.floats(-1e9, 1e9)),
    st.floats(1e-3, 1e6),
)
def test_one_row_more_moves_the_statistic_by_no_more_than_is_said(rows, row, clip):
    with_it = statistic(np.concatenate([rows, row]), CENTRES, clip)
    moved = with_it - statistic(rows, CENTRES, clip)
    assert sum(int(x) ** 2 for x in moved) <= COUNT_STEPS**2 + STEPS**2  # in whole numbers: nothing is rounded
    assert SENSITIVITY**2 >= COUNT_STEPS**2 + STEPS**2


def test_the_bound_is_reached():
    moved = statistic([[1e9, 0.0]], CENTRES[:1], 1.0)
    assert np.sqrt((moved.astype(float) ** 2).sum()) == pytest.approx(SENSITIVITY, rel=1e-5)


def test_without_noise_it_is_counts_and_sums():
    rng = np.random.default_rng(0)
    X = np.concatenate([centre + rng.uniform(-1, 1, (5, 2)) for centre in CENTRES])
    found = statistic(X, CENTRES, clip=2.0)
    assert (found[:3] / COUNT_STEPS).tolist() == [5, 5, 5]
    sums = [(X[5 * k : 5 * k + 5] - CENTRES[k]).sum(axis=0) for k in range(3)]
    np.testing.assert_allclose(found[3:].reshape(3, 2) * 2.0 / STEPS, sums, atol=1e-4)


@pytest.mark.parametrize(
    ("X", "centres", "clip", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], 1.0, "found shapes"),
        ([[1.0]], [[1.0]], 0.0, "above zero"),
        ([[np.nan]], [[1.0]], 1.0, "finite"),
    ],
)
def test_what_makes_no_sense_is_refused(X, centres, clip, message):
    with pytest.raises(InputError, match=message):
        statistic(X, centres, clip)


def test_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match=r"modelweld\[dp\]"):
        private_centres([[0.0, 0.0]], CENTRES, clip=1.0, epsilon=1.0, delta=1e-6)
