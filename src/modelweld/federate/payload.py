"""What travels between sites and server: the bytes of a site's file, so that a message is checked as a file is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from modelweld.errors import InputError
from modelweld.files.limits import AGAIN, LARGEST_FILE, naming, spell_bytes
from modelweld.files.manifest import SITE, manifest_of
from modelweld.files.site_file import load_site, site_bytes
from modelweld.files.tensors import open_tensors
from modelweld.inputs.local_model import LocalModel
from modelweld.site.export import Report, export


def packed(model: LocalModel) -> bytes:
    """A model as bytes: those of the file `modelweld.files.save` writes.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", None)}, site="north")
    >>> unpacked(packed(site), "north").arrays["v"].tolist()
    [[1.0, 2.0]]
    """
    with naming(model.site or "the model"):
        return site_bytes(model)


def exported(made: object, site: str, options: Mapping[str, Any]) -> tuple[bytes, Report]:
    """What leaves a site that takes part in a round, as `modelweld.export` would write it, and what that is.

    Parameters
    ----------
    made : fitted model, LocalModel, or pair of one and a mapping
        What was trained, perhaps with options of `export` that are known only now.
    site : str
        Its name.
    options : mapping
        Of `export`.
    """
    model, more = made if isinstance(made, tuple) else (made, {})
    with TemporaryDirectory() as folder:
        file = Path(folder, "site.safetensors")
        report = export(model, file, site=site, **{**options, **more})
        return file.read_bytes(), report


def unpacked(data: bytes, sender: str) -> LocalModel:
    """The model in bytes that `packed` made, or an `InputError` that begins with who sent them.

    Everything is checked that is checked of a file: size, header, hashes, names, and that all values are finite.

    Examples
    --------
    >>> unpacked(b"no model at all", "north")
    Traceback (most recent call last):
    modelweld.errors.InputError: 'north': it is no safetensors file, or only a part of one. Ask the site to send it \
again.
    """
    with naming(sender):
        if not isinstance(data, bytes):
            raise InputError(f"a model travels as bytes; found {type(data).__name__}. {AGAIN}")
        if len(data) > LARGEST_FILE:
            raise InputError(f"it has {spell_bytes(len(data))}, but at most {spell_bytes(LARGEST_FILE)} are read.")
        file = open_tensors(data)
        manifest = manifest_of(file)
        if manifest is None or manifest["format"] != SITE:
            raise InputError("it is not a site's model. Make it with modelweld.federate.packed.")
        return load_site(file, manifest)
