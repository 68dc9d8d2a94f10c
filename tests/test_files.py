"""Files: what is written is read again, bit for bit; what is hostile, damaged or mixed up is refused in one line."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import adapted
import modelweld
from cases import collected
from modelweld import BetaBernoulli, BirthDeath, InputError, LocalModel, Spectrum, fuse
from modelweld.core.family import learn_from_values
from modelweld.files import load, read_any, read_sites, save
from modelweld.files.fusion_file import FAMILIES, PRIORS, from_fields, in_fields
from modelweld.files.manifest import schema, violation
from modelweld.inputs.local_model import OutOfRangeError
from modelweld.inputs.sets import check_units
from modelweld.kinds import hows, kind_of
from modelweld.kinds.class_table import class_table
from modelweld.kinds.components import components
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.network import network
from modelweld.kinds.sparse_gp import sparse_gp
from modelweld.kinds.topics import topic_vectors, topics
from shared.baselines import kmeans_matching


def bits(x):
    x = np.asarray(x)
    return x.dtype.str, x.shape, x.tobytes()


def assert_same(a, b):
    """Two LocalModels that no law could tell apart."""
    assert list(a.arrays) == list(b.arrays)
    for name in a.arrays:
        assert bits(a.arrays[name]) == bits(b.arrays[name])
    for role in ("variance", "weight"):
        mine, its = getattr(a, role), getattr(b, role)
        assert list(mine) == [name for name in a.arrays if name in mine] or set(mine) == set(its)
        assert {n: bits(x) for n, x in mine.items()} == {n: bits(x) for n, x in its.items()}
    for name in ("axes", "along", "auxiliary", "site", "coordinates", "partial", "kind", "sizes"):
        assert getattr(a, name) == getattr(b, name), name
    assert list(a.coordinates) == list(b.coordinates)
    assert dict(a.facts) == dict(b.facts)


def chain(rng, emissions, **names):
    moves = rng.gamma(1.0, 10.0, (3, 3))
    return hmm(moves, moves.sum(1), moves.sum(0), emissions, counted=True, **names).with_(site="south")


def by_kind(seed=0):
    """One model of every kind, built by hand; of each seed another site."""
    found = models_of(seed)
    return {kind: m.with_(site=f"{m.site} {seed}") if seed and m.site else m for kind, m in found.items()}


def models_of(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 2, 2))
    spreads = A @ np.swapaxes(A, 1, 2) + np.eye(2)
    means, features = rng.normal(0, 9, (3, 2)), ["age", "blood pressure (mmHg) ä"]
    weights = [rng.normal(size=(2, 4)), rng.normal(size=(4, 3)), rng.normal(size=(3, 2))]
    return {
        "mixture": mixture(means, spreads, [10, 20, 30], counted=True, features=features, site="north"),
        "mixture, diagonal": mixture(means, rng.gamma(2.0, 1.0, (3, 2)), [0.2, 0.3, 0.5], counted=False),
        "hmm": chain(rng, {"means": means, "covariances": spreads}, features=features),
        "hmm, symbols": chain(rng, {"symbols": rng.gamma(1.0, 5.0, (3, 4))}, symbols=["a", "b", "\t", ""]),
        "hmm, rates": chain(rng, {"rates": rng.gamma(1.0, 5.0, (3, 2))}),
        "network": network(
            weights,
            [w[0] for w in weights],
            activation="relu",
            classes=[3, 7],
            counts=[40, 0],
            inputs=rng.normal(size=(2, 2)) ** 2,
            features=features,
        ),
        "topics": topics(rng.gamma(0.3, 9.0, (4, 5)), ["a", "b", "naïve", "\u200b", "e"], documents=9),
        "sparse-gp": sparse_gp(
            means, means[:, 0], spreads[0][0, 0] * np.eye(3), lengthscales=[1.0, 2.0], outputscale=2.0, noise=0.1
        ),
        "class-table": class_table(
            means[:2], means[:2] ** 2, np.array([9.0, 7.0]), ["x", "y"], facts={"labels": {"x": 1, "y": 2}}
        ),
        "components": components(
            np.diag([9.0, 3.0]) @ np.array([[1.0, 1e-3 * seed], [-1e-3 * seed, 1.0]]),
            mean=means[0],
            noise=[0.5, 0.5],
            features=features,
            rows=40,
            orthogonal=True,
        ),
        "topic-vectors": topic_vectors(
            rng.normal(size=(3, 4)), [9, 8, 7], rng.gamma(1.0, 3.0, (3, 2)), ["a", "naïve"], labels=["x", "y", "z"]
        ),
        "none": LocalModel({"v": np.zeros((0, 3))}, {"v": ("atom", None)}, variance={"v": 0.25}, weight={"v": 2.0}),
        "odd": LocalModel(
            {"__metadata__": [[-0.0, 5e-324], [1.0, -1e120]], "a/../b": 3.0},
            {"__metadata__": ("set", "c"), "a/../b": ()},
            variance={"__metadata__": [1.0, 2.0]},
            coordinates={"unused": ["x"], "c": ["y", "x"]},
            partial=["unused"],
            facts={"a": [1, 2.5, None, {"b": True}], "units": {"age": "years"}, "big": 2**70},
        ),
    }


KINDS = list(by_kind())


@pytest.fixture(params=KINDS)
def model(request):
    return by_kind()[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "site.safetensors"


# -- round trips ------------------------------------------------------------------------------------------------------


def test_a_model_comes_back_bit_for_bit_also_by_the_stock_library(model, path, tmp_path):
    from safetensors.numpy import load_file

    assert save(model, path) == path
    assert_same(model, load(path))
    if model.site:
        assert_same(model, read_any(path))
    assert save(load(path), tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    tensors = load_file(path)
    assert all(bits(tensors[f"arrays/{name}"]) == bits(values) for name, values in model.arrays.items())


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[getattr(pytest.mark, case.marker)] if case.marker else [])
        for name, case in adapted.collected().items()
    ],
)
def test_models_of_every_library_travel(case, path):
    from modelweld.libraries import read, write

    X = case.data(np.random.default_rng(3))
    local = read(case.fit(X), site="north", **case.told(X))
    save(local, path)
    assert_same(local, load(path))
    assert np.array_equal(case.answers(write(load(path)), X), case.answers(write(local), X))


@pytest.mark.parametrize("kind", ["mixture", "hmm", "network", "topics", "sparse-gp", "components", "topic-vectors"])
def test_fused_models_travel(kind, path):
    fusion = fuse([by_kind(seed)[kind] for seed in range(3)])
    for how in hows()[kind]:
        fused = fusion.parameters(how)
        save(fused, path, force=True)
        assert_same(fused, load(path))


def test_files_fuse_like_the_models(tmp_path):
    for kind in ("mixture", "topics", "network"):
        sites = [by_kind(seed)[kind].with_(site=str(seed)) for seed in range(3)]
        files = [save(site, tmp_path / f"{kind}{j}.safetensors") for j, site in enumerate(sites)]
        expected, found = fuse(sites), fuse([str(files[0]), *files[1:]])
        assert found.objective == expected.objective
        for set_name, matching in expected.matchings.items():
            assert bits(found.matchings[set_name].stacked_labels) == bits(matching.stacked_labels)


words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=8).filter(
    str.isprintable
)
numbers = st.floats(-1e120, 1e120)
facts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def models(draw):
    """LocalModels of any arrays, axes and names."""
    axes_names = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    sizes = {name: draw(st.integers(0, 4)) for name in axes_names}
    spelt = draw(st.lists(st.sampled_from(axes_names), unique=True))
    coordinates = {n: draw(st.lists(st.text(), min_size=sizes[n], max_size=sizes[n], unique=True)) for n in spelt}
    held, axes, variance, weight = {}, {}, {}, {}
    for name in draw(st.lists(words, min_size=1, max_size=4, unique=True)):
        axes[name] = draw(st.lists(st.none() | st.sampled_from(axes_names), max_size=3))
        shape = tuple(draw(st.integers(0, 3)) if a is None else sizes[a] for a in axes[name])
        held[name] = draw(arrays(np.float64, shape, elements=numbers))
        for beside in (variance, weight):
            leading = draw(st.none() | st.integers(0, len(shape)))
            if leading is not None:
                beside[name] = draw(
                    arrays(np.float64, shape[:leading], elements=st.just(0.0) | st.floats(1e-200, 1e120))
                )
    return LocalModel(
        held,
        axes,
        variance,
        weight,
        auxiliary=draw(st.lists(st.sampled_from(sorted(held)), unique=True)) if held else [],
        site=draw(words | st.just("")),
        coordinates=coordinates,
        partial=[n for n in spelt if draw(st.booleans())],
        kind=draw(words | st.just("")),
        facts=draw(st.dictionaries(st.text(), facts, max_size=3)),
    )


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(models())
def test_any_model_comes_back(tmp_path_factory, model):
    file = tmp_path_factory.mktemp("any") / "site.safetensors"
    save(model, file)
    assert_same(model, load(file))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    arrays(
        st.sampled_from([np.float32, np.float64, np.int8, np.uint16, np.int64, np.bool_, ">f8", ">i4"]),
        array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4),
    ),
    st.booleans(),
    st.booleans(),
)
def test_any_array_of_numpy_is_read_or_refused(tmp_path_factory, values, fortran, packed):
    folder = tmp_path_factory.mktemp("npz")
    values = np.asfortranarray(values) if fortran else values
    (np.savez_compressed if packed else np.savez)(folder / "a.npz", values)
    np.save(folder / "a.npy", values)
    for file in (folder / "a.npz", folder / "a.npy"):
        try:
            expected = np.asarray(values, dtype=np.float64)
            LocalModel({"v": expected}, {"v": (None, None)})
        except OutOfRangeError:
            with pytest.raises(OutOfRangeError, match="must be finite"):
                read_any(file, centres=True)
        else:
            assert (read_any(file, centres=True).arrays["values"] == expected).all()


# -- the manifest and its schema --------------------------------------------------------------------------------------


def manifest_of(path):
    raw = Path(path).read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    return json.loads(header["__metadata__"]["modelweld"])


def test_manifests_follow_the_published_schema(model, path, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    jsonschema.Draft202012Validator.check_schema(schema())
    save(model, path)
    validator.validate(manifest_of(path))
    assert manifest_of(path)["version"] == "1.1"


def test_the_manifest_says_what_people_ask_for(path):
    local = by_kind()["mixture"].with_(facts={"counted": True, "class": "sklearn.GaussianMixture", "version": "1.9"})
    save(local, path)
    model = manifest_of(path)["model"]
    assert model["counts"] == {"counts": 10.0}
    assert model["library"] == {"class": "sklearn.GaussianMixture", "version": "1.9"}
    assert model["auxiliary"] == ["covariances", "counts"]


def leaves(value, at=()):
    """Every place in a JSON value."""
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(inner, (*at, key))


def changed(value, at, new):
    if not at:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = changed(value[at[0]] if at[1:] else None, at[1:], new)
    return copy


@pytest.mark.parametrize("name", ["site_file", "fusion_file", "slim_file", "json_model"])
def test_our_checks_agree_with_a_complete_validator(tmp_path, name):
    jsonschema = pytest.importorskip("jsonschema")
    sites = [by_kind(seed)["mixture"] for seed in range(2)]
    if name == "json_model":
        whole = {"arrays": {"v": [[1.0]]}, "axes": {"v": ["atom", None]}, "auxiliary": [], "site": "a", "facts": {}}
    else:
        things = {"site_file": sites[0], "fusion_file": fuse(sites), "slim_file": SLIM["plain"]()}
        whole = manifest_of(save(things[name], tmp_path / "a.safetensors"))
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]})
    tried = refused = 0
    for at in list(leaves(whole))[:: 5 if name == "fusion_file" else 1]:
        for new in (None, 5, -1, "", "x" * 300, [], [5], {}, {"float": "nan"}, {"float": "x"}, True, "1.0"):
            value = changed(whole, at, new)
            ours = violation(value, schema()["$defs"][name]) is None
            assert ours == validator.is_valid(value), (at, new)
            tried, refused = tried + 1, refused + (not ours)
    assert refused > tried / 4


def forged(path, model=None, **changes):
    """A file whose manifest was changed."""
    from safetensors.numpy import load_file, save_file

    save(by_kind()["mixture"] if model is None else model, path, force=True)
    manifest = manifest_of(path)
    for name, new in changes.items():
        at = tuple(int(part) if part.isdigit() else part for part in name.split("__"))
        manifest = changed(manifest, at, new)
    save_file(load_file(path), path, metadata={"modelweld": json.dumps(manifest)})
    return path


def test_a_newer_manifest_is_named(path):
    with pytest.raises(InputError, match=r"manifest of version 2\.0, and version 1 is read here. Install a newer"):
        load(forged(path, version="2.0", modelweld="9.9"))
    assert load(forged(path, version="1.7", new_thing={"x": 1})).site == "north"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "format must be one of"),
        ({"version": "one"}, "version must match"),
        ({"model__arrays": 5}, "arrays must be an array; found 5"),
        ({"model__arrays__0__tensor": "arrays/counts"}, "twice"),
        ({"model__arrays__0__tensor": "arrays/absent"}, "not there"),
        ({"model__arrays__0__axes": ["component"]}, "has 2 axes"),
        ({"model__arrays__0__name": "counts"}, "twice"),
        ({"model__arrays__0__name": "\x1b[31m"}, "printable"),
        ({"model__arrays__0__axes": ["\x00", "feature"]}, "printable"),
        ({"model__site": "\x1b]0;x\x07"}, "printable"),
        ({"model__kind": "\n"}, "printable"),
        ({"model__site": "x" * 201}, "characters"),
        ({"model__coordinates__0__names": ["age"]}, "has 1 names"),
        ({"model__coordinates__0__names": ["age", "age"]}, "more than once"),
        ({"model__partial": ["x"]}, "not"),
        ({"model__auxiliary": ["x"]}, "no"),
        ({"model__arrays": [], "model__auxiliary": []}, "does not say what tensor"),
        ({"sha256__arrays/means": "0" * 64}, "SHA-256 differs"),
        ({"sha256": {}}, "same tensors"),
    ],
)
def test_wrong_manifests_are_refused(path, changes, message):
    refused(forged(path, **changes), message)


def refused(path, *messages):
    """The file is refused in one line that names it."""
    with pytest.raises(InputError) as wrong:
        load(path, centres=True)
    text = str(wrong.value)
    assert text.startswith(repr(str(path))), text
    assert "\n" not in text
    assert text.isprintable()
    for message in messages:
        assert message in text, text


def read_or_refused(path):
    """The file is read, or refused in words of ours; nothing else happens."""
    try:
        load(path)
    except InputError as wrong:
        text = str(wrong)
    else:
        return
    assert text.startswith(repr(str(path)))


@pytest.mark.parametrize("kind", [kind for kind, model in by_kind().items() if model.kind])
def test_models_without_what_their_kind_needs_are_refused(path, kind):
    model = by_kind()[kind]
    layout = kind_of([model]).layout(model)
    refused(forged(path, model, model__facts={}), f"a {model.kind} states {next(iter(layout.facts))!r}")
    for name in {name for names in layout.needed for name in names.split("|")} & set(model.arrays):
        kept = {role: {n: x for n, x in getattr(model, role).items() if n != name} for role in ("variance", "weight")}
        axes = {n: tuple(c or a for c, a in zip(model.along[n], model.axes[n], strict=True)) for n in model.axes}
        without = model.with_(
            arrays={n: x for n, x in model.arrays.items() if n != name},
            axes={n: x for n, x in axes.items() if n != name},
            auxiliary=[n for n in model.auxiliary if n != name],
            **kept,
        )
        with pytest.raises(InputError, match=rf"a {model.kind} has an array .*{name}"):
            save(without, path, force=True)


def unchecked(path, model):
    """A site's file as a stranger may write it: tensors and hashes are right, the model need not be."""
    from modelweld.files.manifest import SITE, as_text, describe
    from modelweld.files.tensors import write

    content, tensors = describe(model)
    write(path, tensors, as_text(SITE, {"model": content}, tensors))
    return path


def with_array(model, name, values, axes):
    """The model with another array in the place of one, and nothing beside it."""
    spelt = {n: tuple(c or a for c, a in zip(model.along[n], model.axes[n], strict=True)) for n in model.axes}
    beside = {role: {n: x for n, x in getattr(model, role).items() if n != name} for role in ("variance", "weight")}
    return model.with_(arrays={**model.arrays, name: values}, axes={**spelt, name: axes}, **beside)


@pytest.mark.parametrize(
    ("kind", "name", "values", "axes", "message"),
    [
        ("mixture", "means", np.ones(3), ("component",), "has the axes (component, feature)"),
        ("mixture", "means", np.ones((3, 2)), ("component", "blob"), "has the axes (component, feature)"),
        ("mixture", "covariances", np.ones((3, 2)), ("component", "feature"), "(component, feature, feature)"),
        ("mixture", "covariances", -np.ones((3, 2, 2)), ("component", "feature", "feature"), "must be covariances"),
        ("mixture", "covariances", np.triu(np.ones((3, 2, 2))), ("component", "feature", "feature"), "symmetric"),
        ("mixture", "counts", [1.0, -1.0, 3.0], ("component",), "must not be negative; found -1"),
        ("mixture", "counts", [1.0, 5e-324, 3.0], ("component",), "zero or at least 1e-200"),
        ("mixture", "extra", np.ones(5), ("person",), "has the set 'person'"),
        ("mixture, diagonal", "variances", np.ones((3, 7)), ("component", None), "has 7 features, but array 'means'"),
        ("hmm", "moves", np.ones((3, 2)), ("state", None), "has the axes (state, state)"),
        ("hmm, symbols", "symbols", -np.ones((3, 4)), ("state", "symbol"), "must not be negative"),
        ("topics", "words", np.ones((5, 4)), ("word", "topic"), "has the axes (topic, word)"),
        ("network", "W1", np.ones((4, 9)), ("h0", None), "has the axes (h0, h1)"),
        ("network", "W3", np.ones((2, 2)), ("class", None), "has an array b3"),
        ("sparse-gp", "lengthscales", [1.0, 0.0], (None,), "must be positive; found 0"),
        ("sparse-gp", "lengthscales", np.ones(5), (None,), "has 5 features, but array 'inputs' has 2"),
        ("sparse-gp", "noise", np.ones(3), (None,), "has the axes ()"),
        ("class-table", "variances", np.ones((3, 2)), (None, None), "has 3 classs, but array 'means' has 2"),
    ],
)
def test_wrong_arrays_of_a_kind_are_refused_by_name(path, kind, name, values, axes, message):
    model = with_array(by_kind()[kind], name, values, axes)
    unchecked(path, model)
    refused(path, message, f"array {name!r}" if name != "W3" else "W3")
    with pytest.raises(InputError, match=r"modelweld\.export, or leave the kind out"):
        save(model, path, force=True)


TINY = {"hmm": ("starts", "moves", "counts"), "hmm, symbols": ("symbols",), "topics": ("words", "counts")}


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in TINY.items() for name in names])
def test_what_em_has_given_up_travels_and_fuses(path, kind, name):
    """Probabilities of 1e-250 come out of honest fits."""
    models = [by_kind(seed)[kind].with_(site=str(seed)) for seed in range(3)]
    values = np.array(models[0].arrays[name], float)
    values.reshape(len(values), -1)[:, 0] = [5e-324, *[1e-250] * (len(values) - 1)]
    honest = models[0].with_(arrays={**models[0].arrays, name: values})
    save(honest, path)
    np.testing.assert_array_equal(load(path).arrays[name], values)
    fused = modelweld.fuse([load(path), *models[1:]])
    assert np.isfinite(fused.atoms).all()
    assert np.isfinite(fused.objective)


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
@pytest.mark.parametrize("kind", [kind for kind, model in by_kind().items() if model.kind])
def test_strange_models_of_a_kind_are_refused_or_fused(path, kind):
    rng = np.random.default_rng(0)
    model, others = by_kind()[kind], [by_kind(seed)[kind].with_(site=str(seed)) for seed in (1, 2)]
    spelt = {n: tuple(c or a for c, a in zip(model.along[n], model.axes[n], strict=True)) for n in model.axes}
    changes = [
        lambda a: a[..., None], lambda a: a.sum(-1) if a.ndim else a, lambda a: -a - 1, np.zeros_like, lambda a: a.T,
        lambda a: a[:0] if a.ndim else a, lambda a: a[..., :0] if a.ndim else a, lambda a: a * 1e119,
    ]  # fmt: skip
    was_refused = 0
    for name in model.arrays:
        for change in changes:
            values = change(np.asarray(model.arrays[name]))
            axes = [*spelt[name], None, None][: values.ndim]
            try:
                unchecked(path, with_array(model, name, values, rng.permutation(np.array(axes, object)).tolist()))
                fused = fuse([*others, path]).parameters()
            except InputError:
                was_refused += 1
                continue
            assert all(np.isfinite(np.asarray(x)).all() for x in fused.arrays.values())
    assert was_refused > len(model.arrays)


# -- hostile and damaged safetensors ----------------------------------------------------------------------------------


def written(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype="F64", shape=(1,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        ({"v": entry(offsets=(0, 800), shape=(100,))}, b"x" * 8, "ends too early"),
        ({"v": entry()}, b"x" * 9, "something follows"),
        ({"v": entry(shape=(2,))}, b"x" * 8, "another size"),
        ({"v": entry(shape=(2**62, 4))}, b"x" * 8, "another size"),
        ({"v": entry(shape=(-1,))}, b"x" * 8, "cannot be"),
        ({"v": entry(shape=(1.5,))}, b"x" * 8, "cannot be"),
        ({"v": entry(shape=(True,))}, b"x" * 8, "cannot be"),
        ({"v": entry(shape=(1,) * 40)}, b"x" * 8, "cannot be"),
        ({"v": entry(), "w": entry()}, b"x" * 8, "over another"),
        ({"v": entry(), "w": entry(offsets=(16, 24))}, b"x" * 24, "leaves a gap"),
        ({"v": entry("C64")}, b"x" * 8, "of type 'C64'"),
        ({"v": entry("F8_E4M3", (8,))}, b"x" * 8, "Save it as F64"),
        ({"v": 5}, b"", "something else"),
        ({"v": {**entry(), "more": 1}}, b"x" * 8, "something else"),
        ({"__metadata__": {"a": 5}}, b"", "must be words"),
        ({"__metadata__": []}, b"", "must be words"),
        ({"__metadata__": {"modelweld": "{"}}, b"", "is not JSON"),
        ({"__metadata__": {"modelweld": '{"a": NaN}'}}, b"", "NaN"),
        ({"__metadata__": {"modelweld": '{"a": 1, "a": 2}'}}, b"", "comes twice"),
        ({"__metadata__": {"modelweld": "[" * 500 + "]" * 500}}, b"", "deeper than 32"),
        ({"__metadata__": {"modelweld": "[" * 90_000 + "]" * 90_000}}, b"", "deeper than 32"),
        ({"__metadata__": {"modelweld": "1" * 5000}}, b"", "is not JSON"),
        (b'{"v": 1, "v": 2}', b"", "comes twice"),
        (b'{"a":' * 100_000, b"", "deeper"),
        (b'{"a":' + b"[]," * 1_200_000, b"", "lists and objects"),
        (b'{"\xff": 1}', b"", "UTF-8"),
        (b"[]", b"", "no safetensors file"),
        ({}, b"", "without a manifest"),
    ],
)
def test_lying_headers_are_refused(path, header, data, message):
    refused(written(path, header, data), message)


def test_headers_that_are_too_long_are_refused_unread(path):
    refused(written(path, b"{}", length=2**63), "no safetensors file")
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 2**30))
        file.truncate(2**30 + 8)
    refused(path, "header has 1.0 GiB")
    many = {f"t{i}": entry(shape=(0,), offsets=(0, 0)) for i in range(70_000)}
    refused(written(path, many), "70,000 tensors")


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(["safetensors", "npz", "packed", "npy"]))
def test_damaged_files_are_refused_or_harmless(tmp_path_factory, data, how):
    file = tmp_path_factory.mktemp("damaged") / f"a.{'npz' if how == 'packed' else how}"
    if how == "safetensors":
        save(by_kind()["mixture"], file)
    else:
        {"npz": np.savez, "packed": np.savez_compressed, "npy": np.save}[how](file, np.arange(6.0).reshape(3, 2))
    whole = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(whole)
    read_or_refused(file)


def test_values_that_are_no_numbers_are_refused(path):
    from safetensors.numpy import save_file

    save_file({"values": np.array([[1.0, np.nan]])}, path)
    refused(path, "must be finite", "found nan at (0, 1)")
    save_file({"values": np.array([[1.0], [2.0]], dtype=np.float16)}, path)
    assert read_any(path, centres=True).arrays["values"].tolist() == [[1.0], [2.0]]


def test_mixed_up_files_are_named(path, tmp_path):
    np.savez(tmp_path / "a.npz", np.ones((2, 2)))
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    others = {(tmp_path / "a.npz").read_bytes(): "zip archive", b'{"values": [[1, 2]]}': "JSON"}
    for content, said in {**others, pickle.dumps(np.ones((30, 30))): "a pickle, which runs code"}.items():
        path.write_bytes(content)
        refused(path, said)
    for name, kind in (("a.npz", "a zip archive"), ("a.npy", "an npy file")):
        for other in {".npz", ".npy", ".csv", ".parquet", ".json"} - {name[1:]}:
            file = tmp_path / f"b{other}"
            file.write_bytes((tmp_path / name).read_bytes())
            refused(file, f"called {other} but looks like {kind}")


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.pt", "m.skops"])
def test_files_of_objects_are_not_touched(tmp_path, name):
    refused(tmp_path / name, "never read here", "modelweld export" if name == "m.skops" else "modelweld.export")


def test_paths_that_are_no_files_are_refused(tmp_path):
    refused(tmp_path / "absent.csv", "no such file")
    refused(tmp_path / "odd.xyz", "files are .safetensors")
    refused(Path("/dev/zero.json"), "no such file")
    (tmp_path / "folder.npz").mkdir()
    refused(tmp_path / "folder.npz", "not a file")
    (tmp_path / "device.npy").symlink_to("/dev/zero")
    refused(tmp_path / "device.npy", "not a file")


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facts": {"a": float("nan")}}, "only finite numbers"),
        ({"facts": {"a": {1: 2}}}, "keys must be words"),
        ({"facts": {"a": [object()]}}, r"facts\['a'\]\[0\]"),
        ({"site": "a\nb"}, "printable"),
        ({"kind": "x" * 300}, "printable"),
        ({"arrays": {}, "axes": {}, "variance": {}}, "no arrays"),
    ],
)
def test_what_cannot_travel_is_refused_before(path, change, message):
    with pytest.raises(InputError, match=message):
        save(by_kind()["odd"].with_(**change), path)
    assert not path.exists()


def test_places_that_cannot_be_written_are_named(tmp_path):
    if Path("/proc").is_dir():
        with pytest.raises(InputError, match="cannot be written"):
            save(by_kind()["mixture"], "/proc/a.safetensors")
    with pytest.raises(InputError, match="neither a LocalModel nor a Fusion"):
        save([1, 2], tmp_path / "a.safetensors")


# -- numpy's files ----------------------------------------------------------------------------------------------------


class Planted:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (open, (self.mark, "w"))


def test_named_arrays_make_models(tmp_path):
    file = tmp_path / "north.npz"
    np.savez(file, means=[[0.0, 1.0]], covariances=[np.eye(2)], counts=[9], features=["x", "y"])
    found = read_any(file)
    assert (found.kind, found.site, found.coordinates) == ("mixture", "north", {"feature": ("x", "y")})
    assert found.facts["counted"]
    np.savez(file, centers=[[0.0, 1.0]], counts=[9], weight=[[1, 0]], site="west")
    found = read_any(file)
    assert (found.kind, found.site, found.auxiliary) == ("", "west", ("counts",))
    assert found.weight["values"].tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"a": [[1.0]], "b": [[1.0]]}, "found ['a', 'b']"),
        ({"counts": [1.0]}, "found ['counts']"),
        ({"values": [1.0, 2.0]}, "(L, 1)"),
        ({"values": [[1.0]], "counts": [1, 2]}, "counts must be one number"),
        ({"values": [[1.0]], "counts": [-1]}, "not negative"),
        ({"values": [[1.0]], "features": ["a", "b"]}, "features must be 1 names"),
        ({"values": [[1.0]], "features": [1]}, "features must be 1 names"),
        ({"values": [[1.0 + 2j]]}, "must hold real numbers"),
        ({"values": [["a"]]}, "must be an array of real numbers"),
        ({"values": np.zeros((1, 2), dtype=[("a", "f8")])}, "must hold real numbers"),
        ({"values": [[np.inf]]}, "must be finite"),
        ({"values": [[1.0]], "variance": [[-1.0]]}, "must not be negative"),
        ({"means": [[1.0]], "covariances": [[[1.0]]]}, "no counts"),
        ({"means": [[1.0]], "variances": [[1.0, 2.0]], "counts": [1]}, "variances must have shape (1, 1)"),
        ({"means": [[1.0]], "variances": [[-1.0]], "counts": [1]}, "not be negative"),
        ({"values": [[1.0]], "site": "\x1b[2J"}, "printable"),
    ],
)
def test_arrays_that_make_no_model_are_refused(tmp_path, named, message):
    np.savez(tmp_path / "a.npz", **named)
    refused(tmp_path / "a.npz", message)


def test_planted_pickles_do_not_run(tmp_path):
    mark = tmp_path / "mark"
    trap = np.empty((1, 1), dtype=object)
    trap[0, 0] = Planted(mark)
    np.savez(tmp_path / "a.npz", values=trap)
    np.save(tmp_path / "a.npy", trap)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("values.npy", pickle.dumps(Planted(mark)))
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Planted(mark)))
    for name in ("a.npz", "a.npy"):
        refused(tmp_path / name, "Python objects (a pickle)")
    refused(tmp_path / "b.npz", "no header of an array")
    refused(tmp_path / "b.npy", "looks like a pickle")
    assert not mark.exists()


def npy_bytes(shape, descr="<f8", data=b"", header=None):
    buffer = io.BytesIO()
    if header is None:
        np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    else:
        text = header + b" " * (-(10 + len(header) + 1) % 64) + b"\n"
        buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
    return buffer.getvalue() + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy_bytes((10**12, 8)), "claims 59604.6 GiB but has 0 bytes"),
        (npy_bytes((2, 2), data=b"x" * 31), "claims 32 bytes but has 31"),
        (npy_bytes((2, 2), data=b"x" * 33), "claims 32 bytes but has 33"),
        (npy_bytes((-1, 8)), "real numbers"),
        (npy_bytes(None, header=b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"(" * 9000), "no header"),
        (npy_bytes(None, header=b"__import__('os').system('true')"), "no header"),
        (b"\x93NUMPY\x03\x00" + b"\x00" * 200, "unusual npy version"),
        (b"\x93NUMPY\x01", "no header"),
        (b"", "empty"),
    ],
)
def test_lying_npy_files_are_refused(tmp_path, content, message):
    (tmp_path / "a.npy").write_bytes(content)
    refused(tmp_path / "a.npy", message)
    if content:
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("values.npy", content)
        refused(tmp_path / "a.npz", message)


def test_bombs_are_refused_by_their_directory(tmp_path):
    file = tmp_path / "a.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("values.npy", "w") as member:
        member.write(npy_bytes((40_000_000, 1)))
        for _ in range(320):
            member.write(bytes(1_000_000))
    refused(file, "unpacks to 305.2 MiB", "numpy.savez")


def test_strange_archives_are_refused(tmp_path):
    file, good = tmp_path / "a.npz", npy_bytes((1, 1), data=bytes(8))

    def archive(*names, content=good, **options):
        with zipfile.ZipFile(file, "w", **options) as made:
            for name in names:
                made.writestr(name, content)
        return file

    for odd in ("../../values.npy", "/etc/values.npy", "..\\values.npy", "\x1b[31m.npy"):
        refused(archive(odd), "no plain name")
    refused(archive("values.pkl"), "which is no array")
    refused(archive("values.npy", compression=zipfile.ZIP_LZMA), "packed oddly")
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive("values.npy", "values.npy")
    refused(file, "comes twice")
    whole = archive("values.npy").read_bytes()
    for length in range(1, len(whole)):
        file.write_bytes(whole[:length])
        refused(file)
    damaged = bytearray(whole)
    damaged[whole.index(bytes(8), 100)] ^= 1
    file.write_bytes(damaged)
    refused(file, "damaged")
    file.write_bytes(whole.replace(b"values.npy", b"values.np\x00"))
    refused(file)


# -- tables -----------------------------------------------------------------------------------------------------------


def table(tmp_path, text, name="a.csv"):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_tables_make_models(tmp_path):
    found = read_any(table(tmp_path, "\ufeffage;weight;counts\n40.5;70;30\n\n61; ;12\n", "north.csv"))
    assert found.site == "north"
    assert found.coordinates == {"feature": ("age", "weight")}
    assert found.arrays["values"].tolist() == [[40.5, 70.0], [61.0, 0.0]]
    assert found.weight["values"].tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert found.arrays["counts"].tolist() == [30.0, 12.0]
    assert found.auxiliary == ("counts",)


def test_a_table_of_several_sites(tmp_path):
    file = table(tmp_path, "site,x\nb,1\na,2\nb,3\n")
    sites = read_sites(file, centres=True)
    assert [(s.site, s.arrays["values"].tolist()) for s in sites] == [("b", [[1.0], [3.0]]), ("a", [[2.0]])]
    refused(file, "holds 2 sites")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n3\n", "line 3 has 1 cells"),
        ("x,y\n1,abc\n", "line 2, column 'y': 'abc' is no number"),
        ("x,y\n1,nan\n", "'nan' is no number"),
        ("x,y\n1,1e999\n", "no number"),
        ("x,y\n1,1_000\n", "no number"),
        ("x,x\n1,2\n", "column 'x' comes twice"),
        (",x\n1,2\n", "has no name"),
        ("1.5,2\n3,4\n", "The first line must name the columns"),
        ("site,count\na,2\n", "no column of a feature"),
        ("x,count,counts\n1,2,3\n", "two columns of counts"),
        ("x,y\n", "no rows"),
        ("x,count\n1,-2\n", "not negative"),
        ("x,count\n1,\n", "must be finite"),
        (b"x,y\n\xff,1\n", "UTF-8"),
        (b"x,y\n1,\x00\n", "no"),
        ("x,site\n1,\x1b[31mred\n", "printable"),
        ('x,y\n"' + "a" * 200_000 + '",1\n', "it is no table"),
        ("\n", "no"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, message):
    refused(table(tmp_path, text), message)


def test_long_lines_and_large_tables_are_refused(tmp_path):
    refused(table(tmp_path, "x,y\n" + "1," * 9_000_000), "a line of it has more than 16.0 MiB")
    with (tmp_path / "b.csv").open("wb") as file:
        file.truncate(2**27)
    refused(tmp_path / "b.csv", "at most 64.0 MiB")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200))
@example("x\n1\n\n")
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    file = table(tmp_path_factory.mktemp("text"), text.encode("utf-8", "replace"))
    for name in ("a.csv", "a.json"):
        other = file.rename(file.with_name(name))
        read_or_refused(other)
        file = other


@pytest.fixture
def parquet():
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    return pyarrow


def test_parquet_tables_make_models(tmp_path, parquet):
    file = tmp_path / "north.parquet"
    columns = {"x": [1.0, None], "y": parquet.array([2, 3], parquet.int32()), "count": [5, 6], "site": ["w", "w"]}
    parquet.parquet.write_table(parquet.table(columns), file)
    found = read_any(file)
    assert (found.site, found.coordinates) == ("w", {"feature": ("x", "y")})
    assert found.arrays["values"].tolist() == [[1.0, 2.0], [0.0, 3.0]]
    assert found.weight["values"].tolist() == [[1.0, 1.0], [0.0, 1.0]]
    for columns, message in (
        ({"x": [1.0, float("nan")]}, "row 1, column 'x': nan"),
        ({"x": ["a"]}, "must hold numbers"),
        ({"x": [[1.0]]}, "must hold numbers"),
        ({"x": [True]}, "must hold numbers"),
        ({"site": ["a"]}, "no column of a feature"),
        ({"x": parquet.array([], parquet.float64())}, "no rows"),
        ({"x": parquet.array(np.zeros(40_000_000))}, "unpacks to 305.2 MiB"),
    ):
        parquet.parquet.write_table(parquet.table(columns), file)
        refused(file, message)
    file.write_bytes(file.read_bytes()[:-9])
    refused(file, "no Parquet table")


def test_parquet_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    refused(tmp_path / "a.parquet", "pip install modelweld[tables]")


# -- JSON -------------------------------------------------------------------------------------------------------------


def test_tiny_models_in_json(tmp_path):
    found = load(table(tmp_path, '{"values": [[1, 2.5]], "features": ["x", "y"], "site": "e"}', "a.json"), centres=True)
    assert (found.site, found.arrays["values"].tolist()) == ("e", [[1.0, 2.5]])
    whole = {
        "arrays": {"m": [[1.0]], "n": [3]},
        "axes": {"m": ["state", "feature"], "n": ["state"]},
        "variance": {"m": 0.5},
        "auxiliary": ["n"],
        "coordinates": {"feature": ["x"]},
        "site": "e",
    }
    assert_same(load(table(tmp_path, json.dumps(whole), "a.json")), LocalModel(**whole))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be an object"),
        ("5", "must be an object"),
        ("{", "is not JSON"),
        ('{"values": [[NaN]]}', "NaN"),
        ('{"values": [[1e999]]}', "too large for a number"),
        ('{"values": [[1], [2, 3]]}', "real numbers"),
        ('{"values": [["a"]]}', "real numbers"),
        ('{"values": [[null]]}', "real numbers"),
        ('{"values": {}}', "real numbers"),
        ('{"values": [[1]], "values": [[2]]}', "comes twice"),
        ('{"values": [[1]], "extra": 5, "more": 6}', "without a manifest"),
        ('{"values": [[1]], "features": 5}', "features must be 1 names"),
        ('{"values": [[1]], "features": {"a": 1}}', "features must be 1 names"),
        ('{"arrays": 5, "axes": {}}', "arrays must be an object"),
        ('{"arrays": {}, "axes": {"v": 5}}', "must be an array"),
        ('{"arrays": {"v": [1]}, "axes": {"v": [5]}}', "name or null"),
        ('{"arrays": {"v": [1]}, "axes": {"v": ["a"]}, "sizes": 1}', "nothing but"),
        ('{"arrays": {"v": [1]}, "axes": {"v": ["a"]}, "coordinates": {"a": "x"}}', "must be an array"),
        ('{"arrays": {"\\u001b": [1]}, "axes": {"\\u001b": ["a"]}}', "printable"),
        ("[" * 100_000, "deeper"),
        ('{"arrays": {"v": [1]}, "axes": {"v": ["a"]}, "facts": {"f": ' + "[" * 40 + "]" * 40 + "}}", "deeper"),
    ],
)
def test_wrong_json_is_refused(tmp_path, text, message):
    refused(table(tmp_path, text, "a.json"), message)


# -- fusions ----------------------------------------------------------------------------------------------------------


def plain_sites(rng, J=6):
    atoms = rng.normal(0, 10, (5, 2))
    return [atoms[rng.permutation(5)[:3]] + rng.normal(0, 0.2, (3, 2)) for _ in range(J)]


def fusions():
    rng = np.random.default_rng(0)
    plain = plain_sites(rng)
    mixtures = [
        mixture(site, rng.gamma(9.0, 0.2, (3, 2)), rng.integers(20, 90, 3), counted=True, site=f"s{j}", features="xy")
        for j, site in enumerate(plain)
    ]
    far = [*plain, np.array([[1e5, 1e5], [0.0, 0.0], [-1e6, 3.0]])]
    return {
        "plain": lambda: fuse(plain),
        "lists, one empty": lambda: fuse([*(site.tolist() for site in plain), []]),
        "compiled": lambda: fuse(plain, search=modelweld.Search(engine="compiled")),
        "preset": lambda: fuse(plain, preset="paper"),
        "full": lambda: fuse(plain, modelweld.Gaussian(shape="full")),
        "mixtures": lambda: fuse(mixtures),
        "mixtures of one dimension": lambda: fuse(
            [mixture([[j / 9], [9.0]], [[1.0], [2.0]], [90, 50], counted=True) for j in range(3)]
        ),
        "reduced": lambda: fuse(mixtures).density.reduce(3),
        "baseline": lambda: kmeans_matching(plain, 5),
        "pair": lambda: fuse(
            [m.with_(auxiliary=["counts"], variance={}) for m in (by_kind(s)["mixture"] for s in range(4))],
            {("means", "covariances"): modelweld.Moments()},
        ),
        "outliers": lambda: fuse(far),
    } | {
        kind: lambda kind=kind: fuse([by_kind(s)[kind] for s in range(3)])
        for kind in ("topics", "network", "hmm", "hmm, rates", "sparse-gp")
    }


@pytest.fixture(params=list(fusions()))
def fusion(request):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", modelweld.ModelweldWarning)
        return fusions()[request.param]()


def assert_same_fields(a, b):
    assert type(a) is type(b)
    for field in fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        x, y = (v.item() if isinstance(v, np.generic) else v for v in (x, y))
        assert bits(x) == bits(y) if isinstance(x, np.ndarray) else repr(x) == repr(y), field.name


def assert_same_fusion(a, b):
    assert a.sites == b.sites
    assert a.diagnosis.settings == b.diagnosis.settings
    assert repr(a) == repr(b)
    for mine, its in zip(a._fit.models, b._fit.models, strict=True):
        assert_same(mine, its)
    assert list(a.matchings) == list(b.matchings)
    for m, n in zip(a.matchings.values(), b.matchings.values(), strict=True):
        for name in ("stacked_labels", "offsets", "counts", "objective", "history", "changes"):
            assert bits(getattr(m, name)) == bits(getattr(n, name)), name
        assert (m.kept is None) == (n.kept is None)
        assert m.kept is None or bits(m.kept) == bits(n.kept)
        for name in ("converged", "engine", "delta", "reasons", "splits", "duplicates", "K"):
            assert getattr(m, name) == getattr(n, name), name
        assert {k: bits(v) for k, v in m.values.items()} == {k: bits(v) for k, v in n.values.items()}
        assert list(m.values) == list(n.values)
        assert list(m.families) == list(n.families)
        for key in m.families:
            assert_same_fields(m.families[key], n.families[key])
        assert (m.prior is None) == (n.prior is None)
        if m.prior is not None:
            assert m.prior == n.prior


def test_a_fusion_comes_back_bit_for_bit(fusion, path, tmp_path):
    assert fusion.save(path) == path
    again = modelweld.load(path)
    assert_same_fusion(fusion, again)
    assert save(again, tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_a_fusion_says_what_was_asked_for(path):
    sites = plain_sites(np.random.default_rng(0))
    family, prior = modelweld.Gaussian(shape="full", noise=0.5), BetaBernoulli(gamma0=3.0)
    fusion = fuse(sites, family, prior, seed=7, search=modelweld.Search("plain", max_sweeps=50))
    again = load(save(fusion, path))
    assert again.diagnosis.settings == fusion.diagnosis.settings
    assert fusion.diagnosis.settings["families"] == "Gaussian(noise=0.5, shape='full')"
    assert fusion.diagnosis.settings["prior"] == "BetaBernoulli(gamma0=3.0)"
    assert fusion.diagnosis.settings["search"] == "Search(effort='plain', max_sweeps=50)"
    plain = {
        name: value for name, value in fusion.diagnosis.settings.items() if name not in ("families", "prior", "search")
    }
    assert_same_fusion(fuse(sites, family, prior, search=modelweld.Search("plain", max_sweeps=50), **plain), again)
    assert again.remove(0).add(sites[0]).diagnosis.settings == {**fusion.diagnosis.settings, "revised": 2}
    assert kmeans_matching(sites, 5).diagnosis.settings == {}


def test_settings_of_families_by_array_are_words(path):
    models = [by_kind(seed)["mixture"].with_(auxiliary=["counts"], variance={}) for seed in range(4)]
    fusion = fuse(models, {"component": {("means", "covariances"): modelweld.Moments()}})
    assert fusion.diagnosis.settings["families"] == {"component": {"means and covariances": "Moments()"}}
    assert load(save(fusion, path)).diagnosis.settings == fusion.diagnosis.settings


def test_a_loaded_fusion_goes_on(path):
    fusion = fusions()["mixtures"]()
    again = load(save(fusion, path))
    assert_same_fusion(fusion.remove("s2"), again.remove("s2"))
    late = fusion._fit.models[0].with_(site="late")
    with pytest.warns(modelweld.DuplicateWarning):
        assert_same_fusion(fusion.add(late), again.add(late))
    assert [c.tolist() for c in fusion.confidence()] == [c.tolist() for c in again.confidence()]
    assert bits(fusion.parameters().arrays["means"]) == bits(again.parameters().arrays["means"])


def test_fragments_come_back(path):
    from modelweld.fusion import Fusion

    fusion = fusions()["mixtures"]()
    ((name, matching),) = fusion.matchings.items()
    fusion = Fusion(fusion._fit.with_(matchings={name: replace(matching, delta=0.07)}, settings={}))
    assert_same_fusion(fusion, load(save(fusion, path)))


SLIM = {
    "plain": lambda: fuse(plain_sites(np.random.default_rng(0))).slim(),
    "named": lambda: fuse([m.with_(variance={}) for m in (by_kind(s)["mixture"] for s in range(1, 5))]).slim(),
    "two arrays": lambda: fuse(
        [
            LocalModel({"a": v, "b": v[:, :1] ** 2}, {"a": ("atom", None), "b": ("atom", None)})
            for v in plain_sites(np.random.default_rng(0))
        ],
        {"a": modelweld.Gaussian(shape="scalar"), "b": modelweld.Gaussian()},
    ).slim(),
    "after": lambda: fuse(plain_sites(np.random.default_rng(0))).slim().add([[50.0, 50.0], [0.0, 0.0]]),
}


@pytest.mark.parametrize("name", SLIM)
def test_a_slim_fusion_comes_back_bit_for_bit(path, tmp_path, name):
    slim = SLIM[name]()
    again = load(slim.save(path))
    assert repr(again) == repr(slim)
    assert_same(slim.pattern, again.pattern)
    for field in ("counts", "sizes", "names"):
        assert bits(getattr(slim, field)) == bits(getattr(again, field))
    assert again.opened == slim.opened
    assert again.prior == slim.prior
    assert {k: bits(v) for k, v in slim.sums.items()} == {k: bits(v) for k, v in again.sums.items()}
    for key in slim.families:
        assert_same_fields(slim.families[key], again.families[key])
    assert again.save(tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": "sizes", "sizes": "counts"}, "do not fit together"),
        ({"opened": 0}, "do not fit together"),
        ({"opened": 2**80}, "do not fit together"),
        ({"families__0__family__fields__near": "far"}, "which it cannot be"),
        ({"families": []}, "does not say"),
        ({"families__0__key": "other"}, "do not fit together"),
        ({"families__0__family__class": "os.system"}, "not known here"),
        ({"prior__class": "Gaussian"}, "not known here"),
        ({"counts": "sums/0", "families__0__sums": "counts"}, "must not be"),
        ({"pattern__arrays__0__axes": [None, None]}, "do not fit together"),
        ({"format": "modelweld-fusion"}, "must have"),
    ],
)
def test_wrong_slim_fusions_are_refused(path, changes, message):
    refused(forged(path, SLIM["plain"](), **changes), message)


@pytest.mark.parametrize("name", [n for n, case in collected().items() if type(case.family).__name__ in FAMILIES])
def test_every_family_comes_back_bit_for_bit(name):
    case = collected()[name]
    drawn = case.draw([3, 2, 2], np.random.default_rng(0))
    learned = learn_from_values(case.family, drawn.stack, drawn.labels, drawn.sums(case.family))
    for family in (case.family, learned, case.untaught()):
        kept = {}

        def keep(name, array, kept=kept):
            kept[name] = array.copy()
            return name

        text = json.dumps(in_fields(family, FAMILIES, keep), allow_nan=False)
        assert violation(json.loads(text), schema()["$defs"]["object_of_class"]) is None
        assert_same_fields(from_fields(json.loads(text), FAMILIES, kept.__getitem__), family)


def test_every_family_of_the_package_is_in_the_table():
    public = {name: getattr(modelweld, name) for name in modelweld.__all__}
    families = {name: x for name, x in public.items() if isinstance(x, type) and issubclass(x, modelweld.Family)}
    assert {**FAMILIES, "Family": modelweld.Family} == families
    assert set(PRIORS) == {type(p).__name__ for p in (BetaBernoulli(), Spectrum(), BirthDeath())}


def test_families_of_ones_own_cannot_be_saved(path):
    class Mine(modelweld.Gaussian):
        pass

    fusion = fuse(plain_sites(np.random.default_rng(0)), Mine())
    with pytest.raises(InputError, match=r"a Mine of your own .* cannot be saved"):
        save(fusion, path)
    assert not path.exists()


@pytest.mark.jax
def test_families_from_a_density_cannot_be_saved(path):
    from jax.scipy.stats import norm

    family = modelweld.from_density(
        lambda v, theta, h: norm.logpdf(v, theta, h["noise"]),
        lambda theta, h: norm.logpdf(theta, 0.0, h["spread"]),
        {"noise": 0.2, "spread": 10.0},
        factorises=True,
        positive=("noise", "spread"),
    )
    with pytest.raises(InputError, match="from_density"):
        save(fuse(plain_sites(np.random.default_rng(0)), family), path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sites": ["a"]}, "names 1 sites but holds 6"),
        ({"matchings__0__families__0__family__class": "os.system"}, "not known here"),
        ({"matchings__0__families__0__family__class": "LocalModel"}, "not known here"),
        ({"matchings__0__prior__class": "Gaussian"}, "not known here"),
        ({"matchings__0__prior__fields": {"alpha": 1}}, "has no 'alpha'"),
        ({"matchings__0__families__0__family__fields__noise": "much"}, "which it cannot be"),
        ({"matchings__0__families__0__family__fields__trust": {"float": "x"}}, "must be"),
        ({"matchings__0__families__0__family__fields__noise": -1.0}, "must be a positive number"),
        ({"matchings__0__labels": "matchings/0/history"}, "must not be"),
        ({"matchings__0__counts": "matchings/0/changes"}, "do not fit together"),
        ({"matchings__0__offsets": "matchings/0/changes"}, "must rise from 0"),
        ({"matchings__0__values__0__tensor": "matchings/0/labels"}, "twice"),
        ({"matchings__0__set": "other", "values": "sites/absent"}, "not there"),
        ({"matchings__0__kept": "matchings/0/history"}, "must not be"),
        ({"matchings": []}, "does not say"),
        ({"matchings__0__delta": -1}, "at least 0"),
        ({"matchings__0__families__0__key": "other"}, "not of the sites it holds"),
        ({"matchings__0__values__0__key": ["a", "b"]}, "not of the sites it holds"),
    ],
)
def test_wrong_fusions_are_refused(path, changes, message):
    refused(forged(path, fuse(plain_sites(np.random.default_rng(0)), screens=["duplicates"]), **changes), message)


def test_names_along_coordinates_are_written_once(path):
    vocabulary = [f"word{i:05d}" for i in range(1000)]
    rng = np.random.default_rng(0)
    sites = [topics(rng.gamma(0.3, 9.0, (2, 1000)), vocabulary, site=str(j)) for j in range(4)]
    fusion = fuse(sites)
    save(fusion, path)
    assert path.read_bytes().count(b"word00777") == 1
    assert_same_fusion(fusion, load(path))
    refused(forged(path, fusion, models__0__coordinates__0__list=7), "does not spell out the names")


# -- units and memory -------------------------------------------------------------------------------------------------


def test_units_must_agree():
    def site(name, **units):
        return LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, site=name, facts={"units": units} if units else {})

    check_units([site("a"), site("b", age="years"), site("c", age="years", weight="kg")])
    with pytest.raises(InputError, match="site c: 'age' is in 'days', but in 'years' at site b"):
        check_units([site("a"), site("b", age="years"), site("c", age="days")])


PEAK = """
import sys, numpy as np
from modelweld.files import load
from modelweld.inputs.local_model import LocalModel

def peak():  # of this process alone: getrusage begins with that of the one that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

base = peak()
model = load(sys.argv[1], centres=True)
print(peak() - base)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured by Linux")
@pytest.mark.parametrize("kind", ["safetensors", "npz", "npy"])
def test_large_files_are_held_once(tmp_path, kind):
    values = np.random.default_rng(0).normal(size=(5_000_000, 1))
    file = tmp_path / f"large.{kind}"
    if kind == "safetensors":
        save(LocalModel({"v": values}, {"v": ("atom", None)}), file)
    else:
        {"npz": np.savez, "npy": np.save}[kind](file, values)
    found = subprocess.run([sys.executable, "-c", PEAK, file], capture_output=True, text=True, check=True)
    assert 0.9 * values.nbytes < int(found.stdout) < 1.3 * values.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured by Linux")
def test_lies_cost_no_memory(tmp_path):
    files = [tmp_path / "a.npy", tmp_path / "a.npz", tmp_path / "a.safetensors"]
    files[0].write_bytes(npy_bytes((10**9, 1)))
    with zipfile.ZipFile(files[1], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", npy_bytes((10**8, 1), data=bytes(10**8)))
    written(files[2], {"v": entry(shape=(10**9,), offsets=(0, 8 * 10**9))})
    quiet = PEAK.replace(
        "model = load(sys.argv[1], centres=True)", "try: load(sys.argv[1], centres=True)\nexcept ValueError: pass"
    )
    for file in files:
        found = subprocess.run([sys.executable, "-c", quiet, file], capture_output=True, text=True, check=True)
        assert int(found.stdout) < 2**23
