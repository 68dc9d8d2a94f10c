"""Labels, counts and sums: whatever was done to a tally, counting anew gives the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelweld.families import Gaussian
from modelweld.families.base import sum_by_atom
from modelweld.inputs.stack import group_of_values, offsets_of
from modelweld.matching.algorithm1 import NEW
from modelweld.matching.tally import Tally

FAMILY = Gaussian(mean=[0.0], noise=[1.0], spread=[4.0])


def tally_of(sizes, seed=0, **options):
    """Values of groups of these sizes at atoms of their own choice, no atom twice in a group."""
    rng = np.random.default_rng(seed)
    group = group_of_values(offsets_of(sizes))
    labels = np.concatenate([rng.permutation(9)[:size] for size in sizes])
    rows = FAMILY.rows(rng.normal(0, 2, (len(group), 1)))
    return Tally([FAMILY], [rows], group, labels, **options)


def held(tally):
    """Which groups hold each atom, and its sum of rows: by hand."""
    placed = tally.labels != NEW
    atoms = range(len(tally.counts))
    groups = [set(tally.group[placed & (tally.labels == k)].tolist()) for k in atoms]
    return groups, np.array([tally.rows[0][placed & (tally.labels == k)].sum(0) for k in atoms])


def assert_counted(tally):
    groups, sums = held(tally)
    holds = np.ones(len(tally.labels), dtype=int) if tally.holds is None else tally.holds
    worth = {(int(k), int(g)): int(n) for k, g, n in zip(tally.labels, tally.group, holds, strict=True)}
    assert tally.counts.tolist() == [sum(worth[k, g] for g in of) for k, of in enumerate(groups)]
    np.testing.assert_allclose(tally.sums[0], sums, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 99), st.booleans(), st.data())
def test_groups_come_and_go(sizes, seed, room, data):
    tally = tally_of(sizes, seed, room=room)
    offsets = offsets_of(sizes)
    for _ in range(4):
        j = data.draw(st.integers(0, len(sizes) - 1))
        group = slice(offsets[j], offsets[j + 1])
        before = tally.labels.copy(), tally.counts.copy(), tally.sums[0].copy()
        held_there = tally.remember(group)
        tally.take(group)
        if data.draw(st.booleans()):
            tally.put_back(held_there)
            for found, expected in zip((tally.labels, tally.counts, tally.sums[0]), before, strict=True):
                assert np.array_equal(found, expected)  # to the last bit
            continue
        there = data.draw(st.permutations([*np.flatnonzero(tally.counts), *([NEW] * sizes[j])]))
        tally.put(group, tally.open(np.array(there[: sizes[j]])))
        assert_counted(tally)
        assert room is (len(tally.counts) == len(tally.labels)) or not room
    numbers = tally.labels.copy()
    tally.recount()
    assert_counted(tally)
    pairs = set(zip(numbers.tolist(), tally.labels.tolist(), strict=True))
    assert len(pairs) == len(set(numbers.tolist())) == np.count_nonzero(tally.counts)  # renamed, no more


def test_pieces_count_a_group_once():
    tally = tally_of([3, 2], may_repeat=True)
    tally.take(slice(0, 3))
    tally.put(slice(0, 3), tally.labels[[3, 3, 4]])
    assert_counted(tally)
    assert sorted(tally.pieces_held().tolist()) == [1, 1, 1, 2]
    one = np.array([0])
    tally.take(one, counted=False)  # its twin stays
    assert tally.counts[tally.labels[3]] == 2
    tally.put(one, tally.labels[[3]], counted=False)
    assert_counted(tally)


def test_values_may_stand_for_many_groups():
    holds = np.array([5, 1, 2, 7])
    tally = tally_of([2, 2], holds=holds)
    assert_counted(tally)
    assert tally.counts.sum() == holds.sum()
    tally.take(slice(2, 4))
    tally.put(slice(2, 4), tally.open(np.array([tally.labels[0], NEW])))
    assert_counted(tally)


def test_two_atoms_become_one():
    tally = tally_of([1, 1, 2], seed=3)
    a, b = tally.labels[0], tally.labels[2]
    tally.join(a, b, 2)
    assert tally.labels[2] == a
    assert tally.counts[b] == 0
    assert_counted(tally)


def test_values_that_are_new_are_in_no_sum():
    tally = tally_of([2, 2])
    tally.labels = np.array([NEW, 4, 4, NEW])
    tally.recount()
    assert tally.labels.tolist() == [NEW, 0, 0, NEW]
    assert tally.counts.tolist() == [2]
    np.testing.assert_array_equal(tally.sums[0], sum_by_atom(tally.rows[0], np.array([-1, 0, 0, -1])))


def test_gain_is_the_difference_of_evidences():
    tally = tally_of([2, 2, 2], seed=5)
    values = slice(0, 2)
    tally.take(values)
    atoms = np.flatnonzero(tally.counts)
    found = tally.gain(values, atoms, onto=np.full((2, len(atoms)), 3.0))
    for i in range(2):
        for c, k in enumerate(atoms):
            alone, both = tally.sums[0][[k]], tally.sums[0][[k]] + tally.rows[0][i]
            assert found[i, c] == pytest.approx(3.0 + tally.evidence([both]) - tally.evidence([alone]))
