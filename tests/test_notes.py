"""Notes for the owners of sites name the right parameters."""

import numpy as np
import pytest

from modelweld import OutlierWarning, Search, fuse
from modelweld.results.diagnostics import notes


def test_fragments_are_named():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 6, (5, 4))
    sites = [atoms + rng.normal(0, 0.3, atoms.shape) for _ in range(8)]
    sites[3] = np.vstack([sites[3], atoms[[2]] + rng.normal(0, 0.3, (1, 4))])
    fusion = fuse(sites, search=Search(splits=True))
    (found,) = notes.fragments(fusion)
    assert (found.site, found.rows) == ("3", (2, 5))
    assert found.atom == fusion.labels[0][2]
    assert "parameters 2 and 5" in found.sentence
    assert fusion.matching.delta > 0
    assert notes.fragments(fuse(sites[:3])) == []


def sites_with_outliers():
    """Each holds the same six heaps, and two of them in their last row something far from all others."""
    rng = np.random.default_rng(1)
    atoms = rng.normal(0, 5, (6, 4))
    sites = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(12)]
    for j in (3, 8):
        sites[j] = np.vstack([sites[j], 1000.0 * rng.normal(0, 1, (1, 4))])
    return sites


def test_excluded_values_are_named_with_the_nearest_atom():
    with pytest.warns(OutlierWarning):
        fusion = fuse(sites_with_outliers())
    found = notes.excluded(fusion)
    assert [(note.site, note.row) for note in found] == [("3", 6), ("8", 6)]
    for note in found:
        own = fusion.atoms[fusion.labels[int(note.site)][6]]
        distance = ((fusion.atoms[: fusion.K] - own) ** 2 / fusion.diagnosis.family.noise).sum(1)
        assert note.nearest == distance.argmin()
        assert repr(note.site) in note.sentence
