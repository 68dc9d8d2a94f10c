"""What a stranger's file or values once broke, each as it was found; the law behind it is tested where it belongs."""

import json

import numpy as np
import pytest

import modelweld
from modelweld import Gaussian, InputError, LocalModel
from modelweld.cli.points import csv_text
from modelweld.federate import Answers, pack, unpack
from modelweld.files import load, read_sites, save
from modelweld.files.limits import MiB
from modelweld.kinds.mixture import mixture
from modelweld.report.page import OBEYED, text_of
from test_files import entry, forged, manifest_of, written

pytestmark = pytest.mark.filterwarnings("ignore::modelweld.errors.ModelweldWarning")


def weighted(values, weight):
    return LocalModel({"v": values}, {"v": ("atom", None)}, weight={"v": weight})


@pytest.fixture(scope="module")
def places():
    """Twelve atoms in eight dimensions, and twenty sites that hold some of them."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 4, (12, 8))
    sites = [(atoms + rng.normal(0, 0.5, atoms.shape))[rng.random(12) < 0.6] for _ in range(20)]
    return atoms, sites, rng


def test_weights_of_any_size_match_alike(places):
    _, sites, _ = places
    assert [modelweld.fuse([weighted(s, w) for s in sites]).K for w in (1.0, 100.0)] == [12, 12]


def test_two_sites_that_nearly_coincide_do_not_keep_the_others_apart(places):
    atoms, sites, rng = places
    duplicate = atoms + rng.normal(0, 0.5, atoms.shape)
    assert modelweld.fuse([*sites[:18], duplicate, duplicate + rng.normal(0, 0.02, duplicate.shape)]).K == 12


def test_one_site_that_splits_its_atoms_does_not_split_the_others(places):
    atoms, sites, rng = places
    fragments = np.repeat(atoms, 8, axis=0) + rng.normal(0, 0.5, (96, 8))
    assert modelweld.fuse([*sites[:19], fragments]).K == 12


def test_one_boundless_weight_ends_nothing(places):
    atoms, sites, _ = places
    assert modelweld.fuse([*(weighted(s, 100.0) for s in sites[:19]), weighted(atoms + 1.0, 1e18)]).K == 12


@pytest.mark.parametrize("values", [[[0, 1], [2, 3]], [[0, 0]], [[1, 1], [1, 1]]])
def test_full_covariances_take_few_and_identical_values(values):
    """They failed in numpy's linear algebra, and so did a site that was added."""
    site = np.array(values, dtype=np.float64)
    fusion = modelweld.fuse([site] * 3, Gaussian(shape="full"))
    larger = fusion.add(site, site="fourth")
    assert fusion.K == larger.K == len(np.unique(site, axis=0))
    assert np.isfinite([fusion.objective, larger.objective]).all()


def test_one_wide_component_of_one_feature_is_fused():
    """The scatter of a single mean is zero, and zero times a boundless ratio was no number (soak, seed 1586)."""
    sites = [mixture([[3.0]], [[wide]], [50.0], counted=True) for wide in (4e12, 5e12)]
    assert modelweld.fuse(sites).K == 1


@pytest.mark.parametrize(("power", "fine"), [(-100, True), (-121, False), (-157, False), (-300, False)])
def test_values_too_small_for_their_squares_are_refused(power, fine):
    """At 1e-157 they gave twelve atoms for four, without a word."""
    rng = np.random.default_rng(1)
    atoms = rng.normal(0, 4, (4, 3))
    sites = [(atoms + rng.normal(0, 0.1, atoms.shape)) * 10.0**power for _ in range(4)]
    if fine:
        assert modelweld.fuse(sites).K == 4
        return
    with pytest.raises(InputError, match="too little for their squares"):
        modelweld.fuse(sites)


def test_a_shape_beyond_all_numbers_is_refused(tmp_path):
    """numpy raised ValueError, in a callback of the round: a tensor without entries whose shape is boundless."""
    path = save(weighted(np.zeros((1, 2)), 1.0).with_(site="north"), tmp_path / "x.safetensors")
    said = {"__metadata__": {"modelweld": json.dumps(manifest_of(path))}}
    written(path, {**said, "v": entry(shape=(0, 2**62, 2**62), offsets=(0, 0))})
    with pytest.raises(InputError, match=r"x\.safetensors"):
        load(path)
    with pytest.raises(InputError, match="north"):
        unpack(path.read_bytes(), "north")
    answers = Answers(expected=["north"])
    answers.accept("north", path.read_bytes())
    assert list(answers.refused) == ["north"]


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_names_that_are_no_text_are_refused_in_words(tmp_path, suffix):
    """Names are read late: of an archive's members a second time, of a table's sites when they are asked for."""
    path = tmp_path / f"site.{suffix}"
    if suffix == "npz":
        np.savez(path, **{"é": np.eye(2)})
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"age": [1.0, 2.0], "site": ["é", "é"]})
        from pyarrow import parquet

        parquet.write_table(table, path, compression="none", use_dictionary=False)
    assert read_sites(path, centres=True)
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\x98\x98", 1 if suffix == "npz" else -1))
    with pytest.raises(InputError, match=r"is damaged|or damaged") as wrong:
        read_sites(path, centres=True)
    assert "fault of modelweld" not in str(wrong.value)


@pytest.mark.parametrize("features", [[["a"], "b"], [["a"]], [1, 2], "ab", {}])
def test_features_that_are_no_names_are_refused_in_words(tmp_path, features):
    path = tmp_path / "site.json"
    path.write_text(json.dumps({"values": [[1, 2]], "features": features}))
    with pytest.raises(InputError, match="features must be 2 names, one per column"):
        read_sites(path, centres=True)


@pytest.mark.parametrize("noise", [[0.5, 0.5, 0.5], "wide", None, [0.5, float("nan")]])
def test_a_fusion_whose_family_does_not_fit_its_values_is_refused_when_loaded(tmp_path, noise):
    """It loaded, and failed at the first question."""
    sites = [np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10 for j in range(3)]
    change = {"matchings__0__families__0__family__fields__noise": noise}
    path = forged(tmp_path / "fusion.safetensors", modelweld.fuse(sites), **change)
    with pytest.raises(InputError, match=r"fusion\.safetensors"):
        load(path)


@pytest.mark.parametrize("word", ["=cmd|' /C calc'!A0", "@SUM(1+1)", "+1+1", "-1+1", "\t=1"])
def test_no_class_is_a_formula(word):
    assert csv_text([["label"], [word]]).splitlines()[1].lstrip('"').startswith("'")


@pytest.mark.parametrize(
    ("name", "fine"), [("x" * 1000, True), ("x" * 1001, False), ("\u200c", True), ("\ud800", False)]
)
@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_a_feature_can_be_shown_and_written(tmp_path, suffix, name, fine):
    """One of 300,000 letters came back whole from `inspect`; half a character broke the page of all."""
    path = tmp_path / f"site.{suffix}"
    if suffix == "json":
        path.write_text(json.dumps({"values": [[1, 2]], "features": ["age", name]}))
    else:
        axes, features = {"v": ("atom", "feature")}, {"feature": ["age", "size"]}
        model = LocalModel({"v": [[1.0, 2.0]]}, axes, coordinates=features, site="north")
        forged(path, model, model__coordinates__0__names=["age", name])
    if fine:
        assert load(path, centres=True).coordinates["feature"] == ("age", name)
        return
    with pytest.raises(InputError, match=r"must have at most 1,000 characters|must be text; found half") as wrong:
        load(path)
    assert len(str(wrong.value)) < 300


def test_no_name_turns_the_text_of_a_page_round():
    name = "age\u202e\u2066\x1b[2J\x00\u2028"
    axes = {"v": ("atom", "feature")}
    sites = [LocalModel({"v": [[0.0 + j], [9.0 + j]]}, axes, coordinates={"feature": [name]}) for j in range(3)]
    page = text_of(modelweld.fuse(sites), draws=False)
    assert "age\ufffd\ufffd" in page
    assert not OBEYED.search(page)


@pytest.mark.parametrize(("shape", "fine"), [((0, 2**50), True), ((0, 2**60), False), ((2**62, 0), False)])
def test_an_array_of_nothing_has_a_shape_that_can_be(tmp_path, shape, fine):
    path = tmp_path / "site.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    if fine:
        assert read_sites(path, centres=True)[0].arrays["values"].shape == shape
        return
    with pytest.raises(InputError, match="a shape that cannot be"):
        read_sites(path, centres=True)


@pytest.mark.parametrize(("rows", "fine"), [(8 * MiB, True), (8 * MiB + 1, False)])
def test_a_small_archive_is_counted_as_the_numbers_it_becomes(tmp_path, rows, fine):
    """A hundred kilobytes of truth values were a gigabyte of numbers."""
    np.savez_compressed(tmp_path / "site.npz", values=np.ones((rows, 1), dtype=bool))
    if fine:
        assert read_sites(tmp_path / "site.npz", centres=True)[0].sizes == {"atom": rows}
        return
    with pytest.raises(InputError, match=r"unpacks to 64\.0 MiB"):
        read_sites(tmp_path / "site.npz", centres=True)


def test_words_of_parquet_are_held_once_and_times_beyond_all_dates_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = pyarrow.array(["north", "south", "north", None]).dictionary_encode()
    parquet.write_table(pyarrow.table({"site": names, "age": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "a.parquet")
    assert {site.site: len(site.arrays["values"]) for site in read_sites(tmp_path / "a.parquet", centres=True)} == {
        "north": 2,
        "south": 1,
        "None": 1,
    }
    late = pyarrow.array([2**62], pyarrow.timestamp("us"))
    parquet.write_table(pyarrow.table({"time": late, "age": [1.0]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet.*out of range") as wrong:
        read_sites(tmp_path / "b.parquet")
    assert "fault of modelweld" not in str(wrong.value)


def test_a_word_by_a_number_that_no_word_has_is_refused(tmp_path):
    """Seeds 30010815 and 30012315 of the fuzzed tables: the last net alone caught them."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"age": [1.5, 2.5], "site": ["a", "b"]})
    parquet.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=["site"])
    data, numbers = (tmp_path / "a.parquet").read_bytes(), b"\x01\x03\x02\x15"
    if data.count(numbers) != 1:
        pytest.skip("this version of Parquet writes another layout")
    (tmp_path / "b.parquet").write_bytes(data.replace(numbers, b"\x01nu\x15"))
    with pytest.raises(InputError, match="it is no Parquet table, or damaged"):
        read_sites(tmp_path / "b.parquet", centres=True)


def test_a_name_of_a_hundred_thousand_letters_does_not_come_back(tmp_path):
    path = tmp_path / "site.json"
    path.write_text(json.dumps({"values": [[1, 2]], "site": "x" * 100_000}))
    with pytest.raises(InputError) as wrong:
        read_sites(path, centres=True)
    assert len(str(wrong.value)) < 300
    model = weighted(np.zeros((1, 2)), 1.0)
    answers = Answers(expected=["north"])
    answers.refuse("north", "y" * 100_000 + "\n\x1b[2J")
    answers.accept("south", pack(model.with_(site="south")))
    text = json.dumps(answers.as_dict())
    assert len(text) < 3_000
    assert answers.refused["north"].isprintable()


def test_full_covariances_take_values_whose_fourth_powers_are_beyond_all_numbers():
    """Shrinking a covariance takes them: of a value of 1e119 among others scikit-learn made NaN, and refused it."""
    rng = np.random.default_rng(0)
    sites = [rng.normal([[0, 0], [9, 9], [-9, 9]], 3, (3, 2)) for _ in range(4)]
    sites[2][0] = [1e119, 0.0]
    fusion = modelweld.fuse(sites, Gaussian(shape="full"), screens=["duplicates"])
    assert np.isfinite(fusion.objective)
    assert np.isfinite(fusion.remove(0).objective)
