"""The manifest of a file as text: its head (format and version), and that its tensors are those it was written for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.files.limits import AGAIN, parse
from modelweld.files.schema import check
from modelweld.files.tensors import KEY, Entry, Tensor, Tensors, digest
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

MAJOR, MINOR = 1, 1
"""Version of the manifest: files of another major version are not read; a newer minor one may say more than is read."""

SITE: Final = "modelweld-site"
FUSION: Final = "modelweld-fusion"
SLIM: Final = "modelweld-slim"


def as_text(form: str, content: Mapping[str, object], tensors: Mapping[str, Tensor]) -> str:
    """A manifest with head and hashes; the same content gives the same text."""
    from modelweld import __version__

    head = {"format": form, "version": f"{MAJOR}.{MINOR}", "modelweld": __version__}
    hashes = {name: digest(tensor) for name, tensor in tensors.items()}
    return json.dumps({**head, **content, "sha256": hashes}, allow_nan=False, separators=(",", ":"))


def manifest_of(file: Tensors) -> Entry | None:
    """The manifest of a file, checked; None if it has none."""
    if KEY not in file.words:
        return None
    found = parse(file.words[KEY].encode("utf-8", "surrogatepass"), "the manifest")
    check(found, "head", "the manifest")
    manifest = cast(Entry, found)  # what follows makes sure of that
    major = int(manifest["version"].split(".")[0])
    if major != MAJOR:
        raise InputError(
            f"it was written by modelweld {manifest.get('modelweld', '(version not said)')} with a manifest of version "
            f"{manifest['version']}, and version {MAJOR} is read here. "
            + ("Install a newer modelweld." if major > MAJOR else "Write it again with this modelweld.")
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
