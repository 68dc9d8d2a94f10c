"""Notes for the owners of sites name the right parameters."""

import numpy as np

from modelweld import NormalGamma, fuse
from modelweld.results.diagnostics import notes


def test_fragments_are_named():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 6, (5, 4))
    sites = [atoms + rng.normal(0, 0.3, atoms.shape) for _ in range(8)]
    sites[3] = np.vstack([sites[3], atoms[[2]] + rng.normal(0, 0.3, (1, 4))])
    fusion = fuse(sites, splits=True)
    (found,) = notes.fragments(fusion)
    assert (found.site, found.rows) == ("3", (2, 5))
    assert found.atom == fusion.labels[0][2]
    assert "parameters 2 and 5" in found.sentence
    assert fusion.matching.delta > 0
    assert notes.fragments(fuse(sites[:3])) == []


def sites_with_background():
    """Each holds the same six heaps, and in its last row something that no other has."""
    rng = np.random.default_rng(1)
    atoms = rng.normal(0, 5, (6, 4))
    sites = [np.vstack([atoms + rng.normal(0, 0.2, atoms.shape), atoms[[j % 6]] + 3.0]) for j in range(12)]
    for j, site in enumerate(sites):
        site[-1] += rng.normal(0, 1.0, 4) * (1 + j % 2)
    return sites


def test_values_set_aside_are_named_with_the_nearest_atom():
    fusion = fuse(sites_with_background())
    found = notes.excluded(fusion)
    assert len(found) == len(fusion.matching.excluded) > 6
    for note in found:
        assert note.row == 6
        assert note.probability > 0.5
        shrunk = fusion.atoms[fusion.labels[int(note.site)][6]]
        distance = ((fusion.atoms[: fusion.K] - shrunk) ** 2 / fusion.diagnosis.family.noise).sum(1)
        assert note.nearest == distance.argmin()
        assert repr(note.site) in note.sentence


def test_where_every_atom_has_a_noise_of_its_own_distances_are_plain():
    fusion = fuse(sites_with_background(), NormalGamma())
    found = notes.excluded(fusion)
    assert found
    for note in found:
        own = fusion.atoms[fusion.labels[int(note.site)][note.row]]
        assert note.nearest == np.square(fusion.atoms[: fusion.K] - own).sum(1).argmin()
