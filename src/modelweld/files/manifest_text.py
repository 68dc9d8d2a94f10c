"""The manifest of a file as text: its head (format and version), and that its tensors are those it was written for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.files.file_errors import AGAIN
from modelweld.files.limits import parsed
from modelweld.files.schema import check
from modelweld.files.tensors import KEY, Tensors, digest

MAJOR, MINOR = 1, 1
"""Version of the manifest: files of another major version are not read; a newer minor one may say more than is read."""

SITE, FUSION, SLIM = "modelweld-site", "modelweld-fusion", "modelweld-slim"


def as_text(form: str, content: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> str:
    """A manifest with head and hashes; the same content gives the same text."""
    from modelweld import __version__

    head = {"format": form, "version": f"{MAJOR}.{MINOR}", "modelweld": __version__}
    hashes = {name: digest(tensor) for name, tensor in tensors.items()}
    return json.dumps({**head, **content, "sha256": hashes}, allow_nan=False, separators=(",", ":"))


def manifest_of(file: Tensors) -> dict[str, Any] | None:
    """The manifest of a file, checked; None if it has none."""
    if KEY not in file.words:
        return None
    manifest: dict[str, Any] = parsed(file.words[KEY].encode("utf-8", "surrogatepass"), "the manifest")
    check(manifest, "head", "the manifest")
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

    def __call__(self, name: str) -> NDArray[Any]:
        """One tensor."""
        if name not in self.unread:
            what = "names tensor {!r} twice" if name in self.hashes else "names tensor {!r}, which is not there"
            raise InputError(f"the manifest {what.format(name)}. {AGAIN}")
        self.unread.discard(name)
        tensor = self.file.read(name)
        if digest(tensor) != self.hashes[name]:
            raise InputError(f"tensor {name!r} is not what was written: its SHA-256 differs. {AGAIN}")
        return tensor

    def kind(self, name: str, kinds: str, ndim: int) -> NDArray[Any]:
        """One tensor that must be of some of numpy's kinds and have so many axes."""
        tensor = self(name)
        if tensor.dtype.kind not in kinds or tensor.ndim != ndim:
            raise InputError(f"tensor {name!r} must not be {tensor.dtype} of shape {tensor.shape}. {AGAIN}")
        return np.asarray(tensor)

    def check_all_read(self) -> None:
        """Refuse tensors that nothing speaks of."""
        if self.unread:
            raise InputError(f"the manifest does not say what tensor {min(self.unread)!r} is. {AGAIN}")
