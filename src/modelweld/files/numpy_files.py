"""npy and npz files: numbers, never pickles; what headers claim is compared with true sizes before anything is made.

Arrays without a manifest, known by their names: what npz files, tables and short JSON can say.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from struct import calcsize
from tokenize import TokenError
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError, first_repeated
from modelweld.files import limits
from modelweld.files.tensors import NamedArrays, Tensor
from modelweld.inputs.local_model import LocalModel, check_values
from modelweld.inputs.plain_tables import check_centres
from modelweld.kinds.kind import lay_out
from modelweld.kinds.mixture import mixture

CENTRES = ("centres", "centers", "means")
"""Names of arrays that say what rows are."""

SPREADS = {"covariances", "variances", "variance"}
"""What only parameters have beside them."""

REMEDY = "modelweld.load(path, centres=True), or how many in a column or array `counts`"

OTHERS = ("counts", "covariances", "variances", "variance", "weight", "features", "site", "time")

SHARES_SUM = 1e-6
"""Counts whose sum is this close to one are shares of points, not numbers."""


def model_of(given: Mapping[str, ArrayLike], *, centres: bool = False) -> LocalModel:
    """The model that named arrays make.

    One row per parameter (`values`, or one array of any name) and, beside it, what is known: `counts` (rows),
    `features` (names of columns), `variance` and `weight`. With `covariances` or `variances`, and `counts`, it is a
    mixture. Rows of which nothing says that they are parameters are refused unless they are said to be `centres`.

    Examples
    --------
    >>> model = model_of({"centres": [[0.0, 1.0], [5.0, 5.0]], "counts": [10, 30], "features": ["x", "y"]})
    >>> model.along["values"], model.auxiliary
    ((None, 'feature'), ('counts',))
    """
    parts = dict(given)
    alone = [name for name in parts if name not in OTHERS]
    if len(alone) != 1:
        raise InputError(
            f"without a manifest, one array has a row per parameter, and {', '.join(OTHERS)} may stand beside it; "
            f"found {sorted(parts)}. Name them so, or write the file with modelweld.files.save or modelweld.export."
        )
    values = check_values(parts.pop(alone[0]), f"array {alone[0]!r}")
    if values.ndim != 2:
        raise InputError(
            f"array {alone[0]!r} must have one row per parameter: two axes; found shape {values.shape}."
            + (" For one-dimensional parameters use shape (L, 1)." if values.ndim == 1 else "")
        )
    site = limits.check_name(str(parts.pop("site", "")), "a site", empty=True)
    time = _time(parts.pop("time", None))
    features = _features(parts.pop("features", None), values.shape[1])
    counts = check_values(parts.pop("counts"), "counts") if "counts" in parts else None
    if counts is not None and (counts.shape != values.shape[:1] or (counts < 0).any()):
        raise InputError(f"counts must be one number, not negative, for each of {len(values)} rows.")
    stated = counts is not None or alone[0] in CENTRES or bool(parts.keys() & SPREADS)
    check_centres(len(values), centres or stated, REMEDY)
    spreads = [name for name in ("covariances", "variances") if name in parts]
    if spreads:
        return _mixture(values, parts, counts, features, site).with_(time=time)
    arrays = {"values": values, **({} if counts is None else {"counts": counts})}
    return LocalModel(
        **lay_out(arrays, {"values": ("atom", "feature"), "counts": ("atom",)}, ["values"], "atom", feature=features),
        variance={"values": parts["variance"]} if "variance" in parts else {},
        weight={"values": parts["weight"]} if "weight" in parts else {},
        site=site,
        time=time,
    )


def _time(given: ArrayLike | None) -> object:
    """When it was trained: one number, or one date in words."""
    if given is None:
        return None
    found = np.asarray(given)
    if found.ndim:
        raise InputError(f"time must be one number or date; found an array of shape {found.shape}.")
    return found.item() if found.dtype.kind != "M" else found[()]


def _features(given: ArrayLike | None, D: int) -> list[str] | None:
    if given is None:
        return None
    names = given if isinstance(given, list) else np.asarray(given).tolist()
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names) and len(names) == D):
        raise InputError(f"features must be {D} names, one per column; found {str(given)[:60]!r}.")
    limits.check_words(names, "features")
    return names


def _mixture(
    values: Array, parts: NamedArrays, counts: Array | None, features: list[str] | None, site: str
) -> LocalModel:
    if len(parts) > 1 or counts is None:
        raise InputError(
            "a mixture has means, either covariances or variances, and counts (numbers of points, or shares that sum "
            f"to one), and nothing else; found {sorted(parts)} and {'no ' if counts is None else ''}counts."
        )
    ((name, given),) = parts.items()
    spreads = check_values(given, name)
    L, D = values.shape
    wanted = (L, D, D) if name == "covariances" else (L, D)
    if spreads.shape != wanted:
        raise InputError(f"{name} must have shape {wanted}, as the means have {values.shape}; found {spreads.shape}.")
    diagonal = np.diagonal(spreads, axis1=1, axis2=2) if spreads.ndim == 3 else spreads
    if (diagonal < 0).any():
        raise InputError(f"{name} must not be negative; found {diagonal.min():g}.")
    counted = abs(float(counts.sum()) - 1) > SHARES_SUM
    return mixture(values, spreads, counts, counted=counted, features=features, site=site)


DIRECTORY_END, ZIP64_LOCATOR = map(calcsize, ("<4s4H2LH", "<4sLQL"))
"""Bytes of the record that ends a zip archive without a comment, and of that before it in archives above 4 GiB."""

PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npy(path: Path) -> NamedArrays:
    """The one array of an npy file."""
    size = limits.size_of(path)
    with path.open("rb") as file:
        return {"values": _array(file, size, "it")}


def read_npz(path: Path) -> NamedArrays:
    """The arrays of an npz file by name."""
    size = limits.size_of(path)
    check_archive(path, size)
    found: dict[str, Tensor] = {}
    numbers = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise InputError(f"it holds {member.filename!r}, which is no array. Write it with numpy.savez.")
            try:
                with archive.open(member) as file:
                    found[name] = _array(file, member.file_size, f"array {name!r}")
            except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError):
                raise InputError(f"array {name!r} is damaged. {limits.AGAIN}") from None
            numbers += found[name].size
            limits.check_growth(8 * numbers, size)
    return {name: _as_words(array) for name, array in found.items()}


def _as_words(array: Tensor) -> ArrayLike:
    """Names and a site's name as words."""
    return array.tolist() if array.dtype.kind == "U" else array


def check_archive(path: Path, size: int) -> None:
    """Refuse zip archives that are strange, hold too much, or would grow too much, by their directory alone."""
    with path.open("rb") as file:
        file.seek(max(size - DIRECTORY_END - ZIP64_LOCATOR, 0))
        tail = file.read()
    end, before = tail[-DIRECTORY_END:], tail[:-DIRECTORY_END]
    if not end.startswith(b"PK\x05\x06") or before.startswith(b"PK\x06\x07"):
        raise InputError(f"it is no whole {path.suffix} file: another format, or only a part. {limits.AGAIN}")
    if int.from_bytes(end[12:16], "little") > limits.LARGEST_HEADER:
        raise InputError(
            f"its list of members has more than {limits.spell_bytes(limits.LARGEST_HEADER)}; no model has so many."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise InputError(f"it is no zip archive, or damaged. {limits.AGAIN}") from None
    if len(members) > limits.MOST_TENSORS:
        raise InputError(f"it has {len(members):,} members, but at most {limits.MOST_TENSORS:,} are read.")
    twice = first_repeated(member.filename for member in members)
    if twice is not None:
        raise InputError(f"{twice!r} comes twice in it; which one is meant cannot be known.")
    for member in members:
        parts = member.filename.replace("\\", "/").split("/")
        if ".." in parts or "" in parts or not member.filename.isprintable():
            raise InputError(f"its member {member.filename!r} has no plain name. {limits.AGAIN}")
        if member.flag_bits & 1 or member.compress_type not in PLAIN:
            raise InputError(f"its member {member.filename!r} is encrypted or packed oddly. Write it plainly.")
    limits.check_growth(sum(member.file_size for member in members), size)


def _array(file: IO[bytes], size: int, what: str) -> Tensor:
    """An array whose header must claim exactly the bytes that follow it."""
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise InputError(f"{what} is of an unusual npy version, {version}. Write it with numpy.save.")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except InputError:
        raise
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, KeyError, EOFError, MemoryError):
        raise InputError(f"{what} has no header of an array. It may be a file of another kind, or damaged.") from None
    if dtype.hasobject:
        raise InputError(f"{what} holds Python objects (a pickle), which run code when loaded. Save numbers.")
    if dtype.kind not in "biufU" or dtype.fields or any(n < 0 for n in shape):
        raise InputError(f"{what} holds {str(dtype)[:60]}, but must hold real numbers. Save it as float64.")
    count = math.prod(shape)
    if count * dtype.itemsize != size - file.tell():
        claimed, there = limits.spell_bytes(count * dtype.itemsize), limits.spell_bytes(size - file.tell())
        raise InputError(f"{what} claims {claimed} but has {there}. {limits.AGAIN}")
    if 0 in shape and math.prod(max(n, 1) for n in shape) >= limits.MOST_ENTRIES:
        raise InputError(f"{what} has a shape that cannot be, {shape}. {limits.AGAIN}")
    flat = np.empty(count, dtype=dtype)
    view, at = flat.view(np.uint8).data if flat.nbytes else memoryview(b""), 0
    while at < len(view):
        part = file.read(min(limits.MiB, len(view) - at))
        if not part:
            raise InputError(f"{what} ends too early. {limits.AGAIN}")
        view[at : at + len(part)] = part
        at += len(part)
    file.read(1)  # the end of a member: only now its checksum is compared
    return flat.reshape(shape, order="F" if fortran else "C")
