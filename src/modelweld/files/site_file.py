"""One file per site: its parameters as tensors, and what they are in the manifest; or, of tiny models, all in JSON."""

from __future__ import annotations

import os
from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.limits import LARGEST_HEADER, check_name, parse, size_of
from modelweld.files.manifest import SITE, Ledger, as_text, check, describe, rebuild
from modelweld.files.numpy_files import model_of
from modelweld.files.tensors import Entry, Tensor, Tensors, as_bytes, save_as
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import kind_named


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
