from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelweld.demo.metrics import adjusted_rand, hausdorff
from shared.measures import hamming

MEASURES = [adjusted_rand, hamming]


@st.composite
def labelings(draw, longest=12, names=4):
    size = draw(st.integers(1, longest))
    flat = st.lists(st.integers(0, names - 1), min_size=size, max_size=size)
    return np.array(draw(flat)), np.array(draw(flat))


def test_hausdorff_by_hand():
    square = [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert hausdorff(square, [[0, 0]]) == pytest.approx(2**0.5)
    assert hausdorff([[0, 0]], square) == pytest.approx(2**0.5)
    assert hausdorff(square, square[::-1]) == 0


def test_adjusted_rand_by_hand():
    # Of 15 pairs 6 are together in the truth, 3 in the labels, 2 in both: 6 * 3 / 15 expected.
    assert adjusted_rand([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]) == pytest.approx((2 - 1.2) / (4.5 - 1.2))


def test_hamming_by_hand():
    # Aligning the name 0 with itself has 2 right and leaves 0 for the other; crosswise 2 + 2 are right.
    truth, labels = [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0]
    assert hamming(truth, labels) == pytest.approx(2 / 6)
    assert hamming([0, 1, 2], [4, 4, 4]) == pytest.approx(2 / 3)


@given(labelings(longest=8, names=3))
def test_hamming_is_the_best_over_all_alignments(pair):
    truth, labels = pair
    # Three true names and three names that no truth has: the latter stand for labels left without a meaning.
    best = min(np.mean(truth != np.array(meaning)[labels]) for meaning in permutations(range(6), 3))
    assert hamming(truth, labels) == pytest.approx(best)


@given(labelings(), st.permutations(range(4)), st.permutations(range(4)))
def test_names_do_not_matter(pair, first, second):
    truth, labels = pair
    renamed = np.array(first)[truth] - 9, 10 * np.array(second)[labels]
    for measure in MEASURES:
        assert measure(*renamed) == pytest.approx(measure(truth, labels))


@pytest.mark.parametrize("measure", MEASURES)
def test_labels_must_name_the_same_values(measure):
    with pytest.raises(ValueError, match=r"lengths \[3\] and \[2\] per site"):
        measure([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match="per site"):
        measure([[0, 1], [0]], [[0], [0, 1]])
    with pytest.raises(ValueError, match="at least one"):
        measure([], [])


@pytest.mark.parametrize("other", [[[0.0]], [0.0, 0.0], np.empty((0, 2))])
def test_hausdorff_refuses_sets_that_do_not_fit(other):
    with pytest.raises(ValueError, match="shapes"):
        hausdorff([[0.0, 0.0]], other)
