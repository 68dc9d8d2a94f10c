"""Names from a catalogue: known groups are named, others are new, unused entries cost nothing."""

import numpy as np
import pytest

import modelweld
from modelweld.kinds.components import components
from modelweld.kinds.mixture import mixture

D, KNOWN, UNKNOWN = 12, 5, 3


def unit(values):
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def plain(rng, atoms):
    return [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(6)]


def groups(rng, atoms):
    ones = np.ones_like(atoms)
    counts = np.full(len(atoms), 50.0)
    return [mixture(a + rng.normal(0, 0.14, a.shape), ones, counts, counted=True) for a in plain(rng, atoms)]


def parts(signed):
    def make(rng, atoms):
        sites = (unit(atoms) + rng.normal(0, 0.02, atoms.shape) for _ in range(6))
        turned = (site * (1 if signed else rng.choice([-1.0, 1.0], (len(atoms), 1))) for site in sites)
        return [components(site, signed=signed) for site in turned]

    return make


SITES = {"plain": plain, "mixtures": groups, "components": parts(True), "axial components": parts(False)}


@pytest.fixture(params=SITES)
def sites(request):
    return SITES[request.param]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unused", [10, 60])
def test_known_groups_are_named_and_others_are_new(sites, seed, unused):
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 4, (KNOWN + UNKNOWN, D))
    fusion = modelweld.fuse(sites(rng, atoms))
    assert len(fusion.atoms) == len(atoms)
    catalogue = {f"known {k}": atoms[k] for k in range(KNOWN)}
    catalogue |= {f"unused {k}": rng.normal(0, 4, D) for k in range(unused)}
    found = modelweld.name_groups(fusion, catalogue)
    assert sorted(found.names) == sorted([f"known {k}" for k in range(KNOWN)] + ["new"] * UNKNOWN)
    assert np.allclose(found.table.sum(axis=1), 1)
    assert (found.probability > 0.9).all()
    assert repr(found).startswith(f"group 0: {found.names[0]} (")


def test_the_order_of_the_catalogue_does_not_matter(sites):
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 4, (KNOWN, D))
    fusion, entries = modelweld.fuse(sites(rng, atoms)), {str(k): row for k, row in enumerate(atoms)}
    one, other = (modelweld.name_groups(fusion, dict(order)) for order in (entries.items(), reversed(entries.items())))
    assert one.names == other.names
    assert np.allclose(one.probability, other.probability)


def test_two_equal_entries_share_the_name():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 4, (KNOWN, D))
    catalogue = {**{str(k): row for k, row in enumerate(atoms)}, "again": atoms[0]}
    found = modelweld.name_groups(modelweld.fuse(plain(rng, atoms)), catalogue)
    k = next(k for k, name in enumerate(found.names) if name in ("0", "again"))
    assert np.allclose(found.table[k, [0, KNOWN]], 0.5, atol=0.05)


class Table:
    """What a table of pandas has."""

    def __init__(self, index, columns, values):
        self.index, self.columns, self.values = index, columns, values

    def to_numpy(self):
        return self.values


def test_columns_of_a_table_are_aligned_by_name():
    rng = np.random.default_rng(0)
    atoms, names = rng.normal(0, 4, (KNOWN, D)), [f"f{d}" for d in range(D)]
    sent = [mixture(a, np.ones_like(a), np.full(KNOWN, 50.0), counted=True, features=names) for a in plain(rng, atoms)]
    table = Table([f"t{k}" for k in range(KNOWN)], names[::-1], atoms[:, ::-1])
    fusion = modelweld.fuse(sent)
    assert sorted(modelweld.name_groups(fusion, table).names) == [f"t{k}" for k in range(KNOWN)]
    with pytest.raises(modelweld.InputError, match="lacks features of the sites: 'f0'"):
        modelweld.name_groups(fusion, Table(table.index, names[:0:-1], atoms[:, :0:-1]))


REFUSED = {
    "no names": (np.zeros((3, D)), "named rows.*found a ndarray"),
    "no entries": ({}, "the sites' features"),
    "other features": ({"a": np.zeros(3)}, r"\(12,\); found \{\(3,\)\}"),
    "missing values": ({"a": np.full(D, np.nan)}, "must be finite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_catalogues_are_refused(case):
    fusion = modelweld.fuse(plain(np.random.default_rng(0), np.random.default_rng(1).normal(0, 4, (3, D))))
    catalogue, says = REFUSED[case]
    with pytest.raises(modelweld.InputError, match=says):
        modelweld.name_groups(fusion, catalogue)


def test_words_are_not_named():
    counts = np.random.default_rng(0).poisson(9.0, (3, 2, 5)).astype(float)
    fusion = modelweld.fuse(list(counts), modelweld.Counts())
    with pytest.raises(modelweld.InputError, match="real values and directions"):
        modelweld.name_groups(fusion, {"a": np.ones(5)})
