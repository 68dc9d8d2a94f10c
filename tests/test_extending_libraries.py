"""An adapter or a kind from outside the package is one file and one call: everything else follows."""

import re

import numpy as np
import pytest

from modelweld import InputError, adapters, export, fuse, kinds, libraries, load, read
from modelweld.errors import DisclosureWarning
from modelweld.files import save
from modelweld.kinds import hows
from modelweld.libraries import Adapter, write
from modelweld.libraries.known_classes import KNOWN
from outside import Blobs, TariffKind, Tariffs

BLOBS = Adapter("outside.Blobs", "mixture", "outside")
TARIFFS = Adapter("outside.Tariffs", "tariffs", "outside")

CENTRES = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
PRICES = np.array([[9.0, 1.0, 2.0], [1.0, 8.0, 3.0]])


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    before = dict(KNOWN)
    monkeypatch.setattr(kinds, "KINDS", dict(kinds.KINDS))
    yield
    KNOWN.clear()
    KNOWN.update(before)


@pytest.fixture
def tariffs_known():
    libraries.register(TARIFFS)
    kinds.register(TariffKind())


def blobs(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(3)[:2] if seed else np.arange(3)
    return Blobs(CENTRES[order] + rng.normal(0, 0.1, (len(order), 2)), np.ones(len(order)), np.full(len(order), 100.0))


def tariffs(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(2)
    return Tariffs(PRICES[order] + rng.normal(0, 0.01, (2, 3)), np.array([40.0, 60.0])[order], ["bread", "oil", "tea"])


def test_a_class_that_nobody_entered_is_refused():
    with pytest.raises(InputError, match="cannot be read"):
        read(blobs(0))


def test_a_class_from_outside_is_read_fused_saved_loaded_written_and_reported(tmp_path):
    libraries.register(BLOBS)
    fusion = fuse([blobs(seed) for seed in range(5)])
    assert fusion.K == 3
    fusion.save(tmp_path / "all.safetensors")
    model = load(tmp_path / "all.safetensors").model()
    assert isinstance(model, Blobs)
    assert np.allclose(model.centres[model.nearest(CENTRES)], CENTRES, atol=0.3)
    assert model.sizes.sum() == 1100
    export(blobs(1), tmp_path / "one.safetensors", site="one")
    assert np.array_equal(write(load(tmp_path / "one.safetensors")).centres, blobs(1).centres)
    page = fusion.report(tmp_path / "page.html").read_text()
    assert "Mixtures that were trained apart" in page


def test_classes_that_inherit_from_one_from_outside_are_read():
    class Blobs2(Blobs):
        pass

    libraries.register(BLOBS)
    ours = blobs(0)
    local = read(Blobs2(ours.centres, ours.variances, ours.sizes))
    assert local.facts["class"] == "outside.Blobs"


def test_adapters_are_listed_and_entered_once():
    before = adapters()
    libraries.register(BLOBS)
    libraries.register(BLOBS)
    assert adapters() == [*before, BLOBS]
    with pytest.raises(InputError, match="already"):
        libraries.register(Adapter("outside.Blobs", "mixture", "elsewhere"))
    with pytest.raises(InputError, match="already"):
        libraries.register(Adapter("sklearn.KMeans", "mixture", "outside"))


def test_a_module_that_cannot_be_imported_is_named():
    libraries.register(Adapter("outside.Blobs", "mixture", "nowhere_to_be_found"))
    with pytest.raises(InputError, match="'nowhere_to_be_found', which is not installed"):
        read(blobs(0))


@pytest.mark.usefixtures("tariffs_known")
def test_a_kind_from_outside_is_fused_saved_loaded_written_and_reported(tmp_path):
    fusion = fuse([tariffs(seed) for seed in range(4)])
    assert fusion.K == 2
    assert list(fusion.matching.families) == ["prices"]
    fusion.save(tmp_path / "all.safetensors")
    model = load(tmp_path / "all.safetensors").model(rounded=True)
    assert isinstance(model, Tariffs)
    assert sorted(model.prices.tolist()) == sorted(PRICES.tolist())
    assert model.visits.sum() == 400
    page = fusion.report(tmp_path / "page.html").read_text()
    assert "Tariffs of shops that were trained apart" in page
    assert re.search(r'\["bread",0\.7', page)


@pytest.mark.usefixtures("tariffs_known")
def test_ways_of_a_kind_from_outside_are_listed_and_others_refused():
    assert list(hows()["tariffs"]) == ["mean", "atoms"]
    fusion = fuse([tariffs(seed) for seed in range(3)])
    assert not np.array_equal(fusion.parameters("mean").arrays["prices"], fusion.parameters("atoms").arrays["prices"])
    with pytest.raises(InputError, match=r"how is one of \['mean', 'atoms'\] for a tariffs"):
        fusion.parameters("counts")


@pytest.mark.usefixtures("tariffs_known")
def test_files_of_a_kind_from_outside_are_checked_by_its_layout(tmp_path):
    wrong = read(tariffs(0)).with_(arrays={"prices": -PRICES, "visits": [40.0, 60.0]})
    with pytest.raises(InputError, match="'prices' of a tariffs must not be negative"):
        save(wrong, tmp_path / "wrong.safetensors")


@pytest.mark.usefixtures("tariffs_known")
def test_concerns_of_a_kind_from_outside_are_told_before_a_model_leaves(tmp_path):
    few = Tariffs(PRICES, np.array([3.0, 60.0]), ["bread", "oil", "tea"])
    with pytest.warns(DisclosureWarning, match="1 shops were visited by few"):
        export(few, tmp_path / "few.safetensors")


@pytest.mark.parametrize("name", kinds.KINDS)
def test_kinds_of_the_table_are_called_what_they_are_entered_as(name):
    assert kinds.kind_named(name).name == name


def test_a_kind_is_entered_once():
    kinds.register(TariffKind())
    kinds.register(TariffKind())

    class Mine(TariffKind):
        name = "mixture"

    with pytest.raises(InputError, match="there is a kind 'mixture' already"):
        kinds.register(Mine())
