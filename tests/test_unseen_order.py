"""What was not seen stands nowhere: an answer is the same in all units and from every origin."""

import numpy as np
import pytest

from modelweld import DuplicateWarning, LocalModel, fuse
from modelweld.core.algorithm1 import is_same_partition
from modelweld.families.wishart.scatter import Scatter
from modelweld.kinds.topics import topics


def sites(seed, shift=0.0, factor=1.0):
    """Six sites of three atoms with cells that were not seen."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 3, (3, 2))
    found = []
    for _ in range(6):
        values, seen = atoms + rng.normal(size=(3, 2)), (rng.random((3, 2)) < 0.7).astype(float)
        found.append(LocalModel({"v": factor * values + shift}, {"v": ("atom", None)}, weight={"v": seen}))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("shift", "factor"), [(1000.0, 1.0), (-1000.0, 1.0), (0.0, 1e-3)])
def test_neither_units_nor_origin_matter(shift, factor):
    for seed in range(12):
        one, other = fuse(sites(seed)), fuse(sites(seed, shift, factor))
        assert is_same_partition(np.concatenate(one.labels), np.concatenate(other.labels))
        assert one.matching.duplicates == other.matching.duplicates


def test_cells_that_were_not_seen_make_no_near_copies(recwarn):
    """Far from zero they once stood for a noise in which all sites seemed to coincide."""
    for seed in range(12):
        fuse(sites(seed, shift=1e6))
    assert not [w for w in recwarn if issubclass(w.category, DuplicateWarning)]


def test_sites_that_hold_nothing_are_fused_and_saved(tmp_path):
    empty = LocalModel({"v": np.zeros((0, 2, 2))}, {"v": ("atom", None, None)}, weight={"v": np.zeros(0)})
    assert fuse([empty, empty], Scatter()).K == 0
    nothing = topics(np.zeros((0, 2)), ["a", "b"])
    assert fuse([nothing, nothing]).K == 0
    words = [topics(np.array([[5.0, 9.0], [20.0, 1.0]]), ["a", "b"], site="n"), topics(np.zeros((0, 2)), ["a", "b"])]
    assert fuse(words).save(tmp_path / "x.safetensors").exists()
