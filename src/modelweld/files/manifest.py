"""The manifest of a file: as text, with a head (format and version) and that its tensors are those it was written for;
and a LocalModel in words and tensors, and the way back.

The manifest's JSON Schema, which is published, is also what manifests are checked by: one truth.

Of JSON Schema (2020-12) this knows the words that `schema.json` uses; a test compares it with a complete validator.

One file per site: its parameters as tensors, and what they are in the manifest; or, of tiny models, all in JSON.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

import modelweld
from modelweld.core.values import Array, Flags, Index
from modelweld.errors import InputError, first_repeated
from modelweld.files.limits import AGAIN, LARGEST_HEADER, LONGEST_NAME, check_name, check_words, parse, size_of
from modelweld.files.numpy_files import model_of
from modelweld.files.tensors import KEY, Entry, Tensor, Tensors, as_bytes, digest, save_as, storable
from modelweld.inputs.clock import Time
from modelweld.inputs.local_model import LocalModel, is_count
from modelweld.kinds import kind_named

TYPES: dict[str, tuple[type, ...]] = {  # of parsed JSON, whose truth values are no numbers
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


Rule = dict[str, Any]
"""An object of JSON Schema."""


class Violation(NamedTuple):
    """Where, which rule, and what was found instead."""

    at: str
    rule: str
    found: object


@cache
def schema() -> Rule:
    """The published schema."""
    text = files("modelweld.files").joinpath("schema.json").read_text(encoding="utf-8")
    found: Rule = json.loads(text)
    return found


def check(value: object, name: str, what: str) -> None:
    """Refuse a value that is no `name` of the schema, and say where.

    Examples
    --------
    >>> check("north", "site_name", "the manifest")
    >>> check(5, "site_name", "the manifest")
    Traceback (most recent call last):
    modelweld.errors.InputError: the manifest must be a string; found 5. It was not written by modelweld, or changed.
    """
    wrong = violation(value, schema()["$defs"][name])
    if wrong is not None:
        where, rule, found = wrong
        shown = json.dumps(found)
        shown = shown if len(shown) <= LONGEST_NAME else shown[:LONGEST_NAME] + "..."
        raise InputError(f"{what}{where} {rule}; found {shown}. It was not written by modelweld, or changed.")


def violation(value: object, rule: Rule) -> Violation | None:
    """The first way in which a value breaks a rule; None if it is as it should be."""
    return next(_violations(value, rule, ""), None)


def _violations(value: object, rule: Rule, at: str) -> Iterator[Violation]:
    """Ways in which a value breaks a rule."""
    while "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in rule and all(violation(value, part) for part in rule["anyOf"]):
        yield Violation(at, rule.get("description", "is of another kind"), value)
    kinds = [rule["type"]] if isinstance(rule.get("type"), str) else rule.get("type", ())
    if kinds and not any(type(value) in TYPES[kind] for kind in kinds):
        yield Violation(at, f"must be {' or '.join(('an ' if k[0] in 'aio' else 'a ') + k for k in kinds)}", value)
    if "enum" in rule and value not in rule["enum"]:
        yield Violation(at, f"must be one of {rule['enum']}", value)
    match value:
        case str():
            least, most = rule.get("minLength", 0), rule.get("maxLength")
            if len(value) < least or (most is not None and len(value) > most):
                yield Violation(at, f"must have {least} to {most or 'any'} characters", value)
            if "pattern" in rule and not re.search(rule["pattern"], value):
                yield Violation(at, f"must match {rule['pattern']}", value)
        case int() | float() if "minimum" in rule and value < rule["minimum"]:
            yield Violation(at, f"must be at least {rule['minimum']}", value)
        case list():
            if len(value) < rule.get("minItems", 0):
                yield Violation(at, f"must have at least {rule['minItems']} entries", value)
            for i, entry in enumerate(value if "items" in rule else ()):
                yield from _violations(entry, rule["items"], f"{at}[{i}]")
        case dict():
            for name in rule.get("required", ()):
                if name not in value:
                    yield Violation(at, f"must have {name!r}", sorted(value))
            known, other = rule.get("properties", {}), rule.get("additionalProperties")
            for name, entry in value.items():
                own = known.get(name, other)
                if own is False:
                    yield Violation(at, f"must have nothing but {sorted(known)}", sorted(value))
                elif own:
                    yield from _violations(entry, own, f"{at}.{name}")


VERSION: Final = "1.1"
"""Version of the manifest: files of another major version are not read; a newer minor one may say more than is read."""

SITE: Final = "modelweld-site"
FUSION: Final = "modelweld-fusion"
SLIM: Final = "modelweld-slim"


def as_text(form: str, content: Mapping[str, object], tensors: Mapping[str, Tensor]) -> str:
    """A manifest with head and hashes; the same content gives the same text."""
    head = {"format": form, "version": VERSION, "modelweld": modelweld.__version__}
    hashes = {name: digest(tensor) for name, tensor in tensors.items()}
    return json.dumps({**head, **content, "sha256": hashes}, allow_nan=False, separators=(",", ":"))


def manifest_of(file: Tensors) -> Entry | None:
    """The manifest of a file, checked; None if it has none."""
    if KEY not in file.words:
        return None
    found = parse(file.words[KEY].encode("utf-8", "surrogatepass"), "the manifest")
    check(found, "head", "the manifest")
    manifest = cast(Entry, found)  # what follows makes sure of that
    major, known = (int(version.partition(".")[0]) for version in (manifest["version"], VERSION))
    if major != known:
        raise InputError(
            f"it was written by modelweld {manifest.get('modelweld', '(version not said)')} with a manifest of version "
            f"{manifest['version']}, and version {known} is read here. "
            + ("Install a newer modelweld." if major > known else "Write it again with this modelweld.")
        )
    check(manifest, f"{manifest['format'].removeprefix('modelweld-')}_file", "the manifest")
    odd = sorted(set(manifest["sha256"]) ^ set(file.places))
    if odd:
        raise InputError(f"the manifest and the file do not have the same tensors: {odd[0]!r} is in one only. {AGAIN}")
    return manifest


class Ledger:
    """Tensors of a file by name, each read once, compared with its hash, and ticked off."""

    def __init__(self, file: Tensors, hashes: Mapping[str, str]) -> None:
        self.file = file
        self.hashes = hashes
        self.unread = set(hashes)

    def __call__(self, name: str) -> Tensor:
        """One tensor."""
        if name not in self.unread:
            what = "names tensor {!r} twice" if name in self.hashes else "names tensor {!r}, which is not there"
            raise InputError(f"the manifest {what.format(name)}. {AGAIN}")
        self.unread.discard(name)
        tensor = self.file.read(name)
        if digest(tensor) != self.hashes[name]:
            raise InputError(f"tensor {name!r} is not what was written: its SHA-256 differs. {AGAIN}")
        return tensor

    def reals(self, name: str, ndim: int) -> Array:
        """One tensor that must hold real numbers and have so many axes."""
        return np.asarray(self._check(name, "f", ndim), dtype=np.float64)

    def integers(self, name: str) -> Index:
        """One list of whole numbers."""
        return np.asarray(self._check(name, "i", 1), dtype=np.int64)

    def truths(self, name: str) -> NDArray[np.bool_]:
        """One list of yes and no."""
        return np.asarray(self._check(name, "b", 1), dtype=np.bool_)

    def _check(self, name: str, kind: str, ndim: int) -> Tensor:
        tensor = self(name)
        if tensor.dtype.kind != kind or tensor.ndim != ndim:
            raise InputError(f"tensor {name!r} must not be {tensor.dtype} of shape {tensor.shape}. {AGAIN}")
        return tensor

    def check_all_read(self) -> None:
        """Refuse tensors that nothing speaks of."""
        if self.unread:
            raise InputError(f"the manifest does not say what tensor {min(self.unread)!r} is. {AGAIN}")


def describe(model: LocalModel, prefix: str = "") -> tuple[Entry, dict[str, Tensor]]:
    """What the manifest says of a model, and its tensors by name.

    Examples
    --------
    >>> entry, tensors = describe(LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, variance={"v": 0.5}))
    >>> entry["arrays"]
    [{'name': 'v', 'axes': ['atom', None], 'tensor': 'arrays/v', 'variance': 'variance/v'}]
    >>> {name: tensor.tolist() for name, tensor in tensors.items()}
    {'arrays/v': [[1.0]], 'variance/v': 0.5}
    """
    tensors: dict[str, Tensor] = {}
    arrays = []
    for name, values in model.arrays.items():
        check_name(name, "an array")
        axes = [c if c is not None else a for c, a in zip(model.along[name], model.axes[name], strict=True)]
        for axis in filter(None, axes):
            check_name(axis, "an axis")
        entry: Entry = {"name": name, "axes": axes, "tensor": f"{prefix}arrays/{name}"}
        tensors[entry["tensor"]] = storable(values)
        for what, beside in (("variance", model.variance), ("weight", model.weight)):
            if name in beside:
                entry[what] = f"{prefix}{what}/{name}"
                tensors[entry[what]] = storable(_leading(np.asarray(beside[name])))
        arrays.append(entry)
    smallest = {name: float(n.min()) for name, n in counts_behind(model).items() if n.size}
    facts = {name: plain(fact, f"facts[{name!r}]") for name, fact in _check_words(model.facts, "facts").items()}
    when = {} if model.time is None else {"time": in_words(model.time)}
    return {
        "site": check_name(model.site, "a site", empty=True),
        "kind": check_name(model.kind, "a kind", empty=True),
        "arrays": arrays,
        "auxiliary": list(model.auxiliary),
        "coordinates": [
            {"name": check_name(name, "a coordinate"), "names": list(names)}
            for name, names in model.coordinates.items()
        ],
        "partial": list(model.partial),
        "facts": facts,
        "counts": smallest,
        "library": {name: facts[name] for name in ("class", "version") if name in facts},
        **when,
    }, tensors


def rebuild(entry: Entry, tensor: Callable[[str], Tensor]) -> LocalModel:
    """The model of an entry that follows the schema."""
    arrays = entry["arrays"]
    listed = {"array": [one["name"] for one in arrays], "coordinate": [one["name"] for one in entry["coordinates"]]}
    for what, found in listed.items():
        names = [check_name(name, f"an {what}" if what == "array" else f"a {what}") for name in found]
        twice = first_repeated(names)
        if twice is not None:
            raise InputError(f"the manifest names {what} {twice!r} twice.")
    for one in entry["coordinates"]:
        if "names" not in one:
            raise InputError(f"the manifest does not spell out the names along {one['name']!r}.")
        check_words(one["names"], f"names along {one['name']!r}")
    for axis in {axis for one in arrays for axis in one["axes"] if axis is not None}:
        check_name(axis, "an axis")
    return LocalModel(
        arrays={one["name"]: tensor(one["tensor"]) for one in arrays},
        axes={one["name"]: tuple(one["axes"]) for one in arrays},
        variance={one["name"]: tensor(one["variance"]) for one in arrays if "variance" in one},
        weight={one["name"]: tensor(one["weight"]) for one in arrays if "weight" in one},
        auxiliary=entry["auxiliary"],
        site=check_name(entry["site"], "a site", empty=True),
        coordinates={one["name"]: one["names"] for one in entry["coordinates"]},
        partial=entry["partial"],
        kind=check_name(entry["kind"], "a kind", empty=True),
        facts=entry["facts"],
        time=entry.get("time"),
    )


def in_words(time: Time) -> float | str:
    """A time as JSON has it: a number, or a date as it is written."""
    return str(time) if isinstance(time, np.datetime64) else float(time)


def _leading(beside: Array) -> Array:
    """A variance or weight without the trailing axes along which it is one number."""
    while beside.ndim and (beside.shape[-1] == 1 or (beside.strides[-1] == 0 and beside.shape[-1] > 0)):
        beside = beside[..., 0]
    return beside


def _check_words(facts: Mapping[str, object], where: str) -> Mapping[str, object]:
    """Facts whose keys are words."""
    odd = next((name for name in facts if not isinstance(name, str)), None)
    if odd is not None:
        raise InputError(f"{where}: keys must be words to travel in a file; found {odd!r}. Write them as words.")
    return facts


def plain(fact: object, where: str) -> object:
    """A fact as JSON has it: numbers, words, truth values, None, lists and dicts of these.

    Examples
    --------
    >>> plain({"labels": (np.int64(3), "a")}, "facts")
    {'labels': [3, 'a']}
    """
    if isinstance(fact, (np.generic, np.ndarray)):
        fact = fact.tolist()
    if isinstance(fact, Mapping):
        return {name: plain(value, f"{where}[{name!r}]") for name, value in _check_words(fact, where).items()}
    if isinstance(fact, (list, tuple)):
        return [plain(value, f"{where}[{i}]") for i, value in enumerate(fact)]
    if fact is None or isinstance(fact, (bool, int, str)) or (isinstance(fact, float) and math.isfinite(fact)):
        return fact
    raise InputError(
        f"{where}: only finite numbers, words, lists and dicts of these travel in a file; found {fact!r}. Drop it, or "
        "say it in words."
    )


def save_site(model: LocalModel, path: str | os.PathLike[str], *, force: bool) -> Path:
    """Write what leaves a site."""
    return save_as(path, lambda: _content(model), force=force)


def site_bytes(model: LocalModel) -> bytes:
    """The bytes of the file that `save_site` writes."""
    return as_bytes(*_content(model))


def _content(model: LocalModel) -> tuple[dict[str, Tensor], str]:
    """Tensors and manifest of what leaves a site."""
    if not model.arrays:
        raise InputError("the model has no arrays: there is nothing to write.")
    check_kind(model)
    entry, tensors = describe(model)
    return tensors, as_text(SITE, {"model": entry}, tensors)


def load_site(file: Tensors, manifest: Entry) -> LocalModel:
    """What a site has sent."""
    ledger = Ledger(file, manifest["sha256"])
    model = rebuild(manifest["model"], ledger)
    ledger.check_all_read()
    check_kind(model)
    return model


def check_kind(model: LocalModel) -> None:
    """Refuse a model without the arrays, axes, signs or facts of its kind; a kind that is not known needs nothing.

    Examples
    --------
    >>> check_kind(LocalModel({"means": [[1.0]]}, {"means": ("component", None)}, kind="mixture"))
    Traceback (most recent call last):
    modelweld.errors.InputError: a mixture has an array covariances or variances, and this one has ['means']. \
Make it with modelweld.export, or leave the kind out.
    """
    kind = kind_named(model.kind)
    if kind is not None:
        kind.layout(model).check(model)


def read_json(path: Path, *, centres: bool = False) -> LocalModel:
    """The model of a JSON file: the fields of a LocalModel, or named arrays."""
    size_of(path, LARGEST_HEADER)
    given = parse(path.read_bytes(), "it")
    if not isinstance(given, dict):
        raise InputError('it must be an object, such as {"values": [[0.5, 1.5]], "features": ["x", "y"]}.')
    if "arrays" not in given and "axes" not in given:
        return model_of(given, centres=centres)
    check(given, "json_model", "it")
    for name in (*given["arrays"], *given.get("coordinates", {})):
        check_name(name, "an array or a coordinate")
    for name in ("site", "kind"):
        check_name(given.get(name, ""), f"a {name}", empty=True)
    model = LocalModel(**given)
    check_kind(model)
    return model


def counts_behind(model: LocalModel) -> dict[str, Array]:
    """Arrays that count points, without members that were not seen; none if counts are but shares.

    Such arrays are called `counts`, or something that ends so. A member of a set was not seen if all its values have
    weight zero; a class was not, if its count is zero.

    Examples
    --------
    >>> from modelweld.kinds.mixture import mixture
    >>> counts_behind(mixture([[0.0], [5.0]], [[1.0], [4.0]], [10.0, 40.0], counted=True))
    {'counts': array([10., 40.])}
    """
    if not model.facts.get("counted", True):
        return {}
    found = {}
    for name, values in model.arrays.items():
        if not is_count(name) or np.ndim(values) == 0:
            continue
        counts, first = np.asarray(values, dtype=np.float64), model.axes[name][0]
        seen = counts > 0 if first is None else _find_seen(model, first)
        found[name] = counts[seen]
    return found


def _find_seen(model: LocalModel, set_name: str) -> Flags:
    """Which members of a set have a value of weight above zero in some array that has weights, or there is none."""
    seen = np.zeros(model.sizes[set_name], dtype=bool)
    weighted = [name for name in model.weight if set_name in model.axes[name]]
    for name in weighted:
        rows = np.moveaxis(np.asarray(model.weight[name]), model.axes[name].index(set_name), 0)
        seen |= (rows > 0).any(axis=tuple(range(1, rows.ndim)))
    return seen if weighted else ~seen
