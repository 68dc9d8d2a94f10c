"""Tiny models in JSON: either the fields of a LocalModel, or named arrays."""

from __future__ import annotations

from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.file_errors import size_of
from modelweld.files.kind_checks import check_kind
from modelweld.files.limits import LARGEST_HEADER, check_name, parse
from modelweld.files.named_arrays import model_of
from modelweld.files.schema import check
from modelweld.inputs.local_model import LocalModel


def read_json(path: Path, *, centres: bool = False) -> LocalModel:
    """The model of a JSON file."""
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
