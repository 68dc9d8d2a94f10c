"""A fit that is asked a few sites at a time says what it says of all at once."""

import numpy as np
import pytest

from modelweld import Fusion, LocalModel, fuse, simulate
from modelweld.families.directions import Directions
from modelweld.fit.search.parts import Parts
from modelweld.results.posterior.conditional import conditional, confidences


def plain():
    return fuse([*simulate.sparse(12, 9, 4, 1.5, 5, 1, 1, seed=1).values, np.zeros((0, 4))])


def in_fragments():
    drawn = simulate.over_segmented(0.3, seed=1)
    errors = [LocalModel({"v": v}, {"v": ("atom", None)}, variance={"v": np.full(v.shape, 0.05)}) for v in drawn.values]
    return fuse(errors)


def directions():
    values = simulate.sparse(8, 6, 5, 1.0, 5, 1, 1, seed=2).values
    return fuse([v / np.linalg.norm(v, axis=1, keepdims=True) for v in values], Directions())


FITS = {"plain": plain, "in fragments": in_fragments, "directions": directions}


def cut(fusion, largest):
    """The same fusion, asked in smaller parts."""
    other = fusion._fit.with_()
    [name] = other.matchings
    other._made["parts", name] = Parts(other.stacks(name), *other._model(name), other.matching.stacked_labels, largest)
    return Fusion(other)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("largest", [1, 100])
@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_parts_say_what_the_whole_says(fit, largest):
    whole = FITS[fit]()
    parts = cut(whole, largest)
    assert len(parts._fit.parts()) > len(whole._fit.parts()) == 1
    for a, b in zip(whole.diagnosis.sites(), parts.diagnosis.sites(), strict=True):
        assert (a.site, a.parameters, a.unshared, a.warning) == (b.site, b.parameters, b.unshared, b.warning)
        assert [b.score, b.influence, b.surprise] == pytest.approx([a.score, a.influence, a.surprise])
        assert b.shift == pytest.approx(a.shift, nan_ok=True)
        assert b.shift_z == pytest.approx(a.shift_z, nan_ok=True)
    for a, b in zip(whole.worth_merging().sites, parts.worth_merging().sites, strict=True):
        assert (a.site, a.shared, b.gain) == (b.site, b.shared, pytest.approx(a.gain))
    for a, b in zip(whole.confidence(how="conditional"), parts.confidence(how="conditional"), strict=True):
        assert b == pytest.approx(a)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_confidences_are_what_the_tables_say(fit):
    """Those of all sites at once, beside the table of each; and asking moves nothing."""
    fusion = FITS[fit]()
    board, labels = fusion._fit.board(), fusion.matching.stacked_labels
    before = [sums.copy() for sums in board.sums], board.counts.copy()
    for j, found in enumerate(confidences(board)):
        table, own = conditional(board, j), labels[board.values_of(j)]
        once = np.bincount(own, minlength=len(board.counts))[own] == 1
        column = np.where((board.counts[own] == 1) & once, -1, own)
        assert found == pytest.approx(table[np.arange(len(own)), column], abs=1e-9)
    assert np.array_equal(before[1], board.counts)
    assert all(np.array_equal(a, b) for a, b in zip(before[0], board.sums, strict=True))
