"""One file per site: its parameters as tensors, and what they are in the manifest."""

from __future__ import annotations

import os
from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.entries import Entry, Tensor
from modelweld.files.kind_checks import check_kind
from modelweld.files.manifest import describe, rebuild
from modelweld.files.manifest_text import SITE, Ledger, as_text
from modelweld.files.tensors import Tensors, as_bytes, save_as
from modelweld.inputs.local_model import LocalModel


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
