"""Safetensors files: written under another name and then renamed; read after every claim of the header is checked.

The format is eight bytes with the length of a header, the header (JSON: where each tensor lies, and words for people),
and the tensors. Because their bytes must fill the file exactly, a checked header cannot ask for more memory than there
is file; tensors are read straight into the arrays that are handed out, so that nothing is ever held twice, unless the
file is small.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import safetensors.numpy
from numpy.typing import ArrayLike, NDArray

from modelweld.errors import InputError
from modelweld.files import limits

Tensor = NDArray[np.generic]
"""Numbers of any type that a file may hold."""

NamedArrays = dict[str, ArrayLike]
"""Arrays without a manifest, and names of features and of the site beside them."""

Number = float | dict[str, str]
"""A number, or one that JSON lacks, spelt out: ``{"float": "inf"}``."""

Spelt = str | list[str]
"""The name of an array, or names of several."""

Entry = dict[str, Any]
"""What a manifest says of a model, an array, a family or itself: the published `schema.json`, by which it is checked
before it is read, has its layout."""


SMALL = 1 * limits.MiB
"""Bytes of a file that is read at once: opening it for each of its tensors would take longer."""

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
"""The format's names of types -> numpy's. Complex and eight-bit floats are no parameters of ours."""

SIZES = {dtype: np.dtype(dtype).itemsize for dtype in DTYPES.values()}
"""Bytes of a number."""

KEY = "modelweld"
"""Of the manifest among the words for people."""

SAID = {"dtype", "shape", "data_offsets"}
"""What a header says of every tensor."""


class Place(NamedTuple):
    """Where a tensor lies: bytes counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Tensors:
    """A safetensors file, or its bytes, whose header has been checked."""

    source: Path | bytes
    start: int
    places: dict[str, Place]
    words: dict[str, str]

    def read(self, name: str) -> Tensor:
        """One tensor, read into an array of its own."""
        place = self.places[name]
        if isinstance(self.source, bytes):
            return np.ndarray(place.shape, place.dtype, self.source, self.start + place.begin).copy()
        count = math.prod(place.shape)
        found = np.fromfile(self.source, dtype=place.dtype, count=count, offset=self.start + place.begin)
        if found.size != count:
            raise InputError(f"tensor {name!r} ends too early: the file was changed while it was read. {limits.AGAIN}")
        return found.reshape(place.shape)


def open_tensors(source: Path | bytes) -> Tensors:
    """The header of a safetensors file, or of its bytes, all of its claims checked against their number."""
    if not isinstance(source, bytes) and limits.size_of(source) <= SMALL:
        with source.open("rb", buffering=0) as small:
            source = small.read(SMALL + 1)
    size = len(source) if isinstance(source, bytes) else limits.size_of(source)
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > size - 8 or length < 2:
            raise InputError(f"it is no safetensors file, or only a part of one{_seeming(first)}. {limits.AGAIN}")
        limits.check_bytes(length, limits.LARGEST_HEADER, "its header")
        text = file.read(length)
    if not text.startswith(b"{"):
        raise InputError(f"it is no safetensors file{_seeming(first)}. {limits.AGAIN}")
    header = limits.parse(text, "its header")
    assert isinstance(header, dict)  # it begins with a brace
    words = header.pop("__metadata__", {})
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        raise InputError(f"the metadata of its header must be words. {limits.AGAIN}")
    if len(header) > limits.MOST_TENSORS:
        raise InputError(f"it has {len(header):,} tensors, but at most {limits.MOST_TENSORS:,} are read.")
    places = {name: _place(name, entry) for name, entry in header.items()}
    _check_filled(places, size - 8 - length)
    return Tensors(source, 8 + length, places, words)


def _place(name: str, entry: object) -> Place:
    """One line of the header."""
    if not isinstance(entry, dict) or entry.keys() != SAID:
        raise InputError(
            f"its header says of tensor {name!r} something else than type, shape and place. {limits.AGAIN}"
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InputError(f"tensor {name!r} is of type {dtype!r}, but must be of {', '.join(DTYPES)}. Save it as F64.")
    if not (_naturals(shape) and len(shape) <= limits.MOST_AXES and _naturals(offsets) and len(offsets) == 2):
        raise InputError(f"its header gives tensor {name!r} a shape or a place that cannot be. {limits.AGAIN}")
    place = Place(DTYPES[dtype], tuple(shape), *offsets)
    if math.prod(place.shape) * SIZES[place.dtype] != place.end - place.begin:
        raise InputError(
            f"its header gives tensor {name!r} another size than its shape {place.shape} has. {limits.AGAIN}"
        )
    if 0 in place.shape and math.prod(max(n, 1) for n in place.shape) >= limits.MOST_ENTRIES:
        raise InputError(f"its header gives tensor {name!r} a shape that cannot be, {place.shape}. {limits.AGAIN}")
    return place


def _naturals(given: object) -> TypeGuard[list[int]]:
    return isinstance(given, list) and all(type(n) is int and 0 <= n < 2**63 for n in given)


def _check_filled(places: Mapping[str, Place], size: int) -> None:
    """Refuse tensors that overlap, leave gaps, or do not end where the file does."""
    at = 0
    for name, place in sorted(places.items(), key=lambda item: (item[1].begin, item[1].end)):
        if place.begin != at:
            raise InputError(
                f"its header places tensor {name!r} over another, or leaves a gap before it. {limits.AGAIN}"
            )
        at = place.end
    if at != size:
        what = "it ends too early" if at > size else "something follows its last tensor"
        taken, there = limits.spell_bytes(at), limits.spell_bytes(size)
        raise InputError(f"{what}: tensors take {taken}, the file has {there} for them. {limits.AGAIN}")


def _seeming(first: bytes) -> str:
    found = limits.looks_like(first)
    return "" if found is None else f"; it looks like {found[0]}"


def digest(tensor: Tensor) -> str:
    """SHA-256 of the bytes of a tensor."""
    return hashlib.sha256(tensor.data if tensor.size else b"").hexdigest()


def storable(array: ArrayLike) -> Tensor:
    """The same numbers, little-endian and one after the other; not copied if they already are."""
    found = np.asarray(array)
    return np.asarray(found, dtype=found.dtype.newbyteorder("<"), order="C")


def as_bytes(tensors: Mapping[str, Tensor], manifest: str) -> bytes:
    """What `write` writes, to be sent."""
    data: bytes = safetensors.numpy.save(dict(tensors), metadata={KEY: manifest})
    open_tensors(data)  # what cannot be read should not be sent
    return data


def save_as(
    path: str | os.PathLike[str], content: Callable[[], tuple[Mapping[str, Tensor], str]], *, force: bool
) -> Path:
    """Write the tensors and the manifest that `content` makes; errors, also its own, name the file."""
    where = Path(path)
    with limits.naming(where):
        if where.suffix != ".safetensors":
            raise InputError(f"such files are called something.safetensors; found {where.name!r}. Rename it.")
    with limits.whole_file(where, force=force) as part:
        write(part, *content())
    return where


def write(path: Path, tensors: Mapping[str, Tensor], manifest: str) -> None:
    """Write a file, and look whether it can be read."""
    try:
        safetensors.numpy.save_file(dict(tensors), path, metadata={KEY: manifest})
    except safetensors.SafetensorError as wrong:
        raise InputError(f"it cannot be written: {limits.first_line(wrong)}.") from None
    open_tensors(path)  # what cannot be read should not be sent
