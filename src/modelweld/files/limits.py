"""What a file may ask for, decided before anything is allocated; and JSON read within these limits.

What is wrong with a file, in one line that names it.

Files to be written: what is there already is replaced if that is asked for, and there is a whole file or none.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from modelweld.errors import InputError, first_repeated

MiB = 2**20

LARGEST_FILE = 16 * 1024 * MiB
"""Bytes of a file of tensors. They are read as they are, so that no file takes more memory than its size."""

LARGEST_HEADER = 16 * MiB
"""Bytes of a manifest, or of a model in JSON: a million names of features or words. Parsed JSON takes up to about ten
times its size."""

LARGEST_TABLE = 64 * MiB
"""Bytes of a table in text; larger ones come as Parquet or safetensors."""

FREE_EXPANSION, MOST_EXPANSION = 64 * MiB, 20
"""A compressed file may grow to 64 MiB, every number counted as the eight bytes it becomes, or to twenty times its size
if that is more: what a second reads. Parameters, being noisy, hardly shrink at all (to .9 or so); bombs shrink a
thousandfold."""

MOST_TENSORS = 65_536
"""Tensors of a file: three for each array of some thousand sites of a fusion."""

MOST_AXES, MOST_ENTRIES = 32, 2**60
"""Of a tensor: numpy's own limit for long, and what it can count in bytes, an axis of none counted as one."""

MOST_SITES = 5_000
"""Sites of one table: each becomes a model of its own, which takes a hundred times as long as its row."""

DEEPEST, MOST_BRACKETS = 32, 1_000_000
"""Levels of JSON within each other, of which a manifest needs about six; and objects and lists of a text: each takes
some 60 bytes in memory, but two in the file."""

NESTS = (dict, list)
"""What of parsed JSON has something within."""

LONGEST_NAME, LONGEST_WORD = 200, 1_000
"""Characters of a name of a site, kind, array, set or coordinate, and of what others say that is passed on; and of a
feature or word: columns of a survey are called by whole questions."""


def spell_bytes(number: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> spell_bytes(5), spell_bytes(3 * 2**20)
    ('5 bytes', '3.0 MiB')
    """
    for unit, size in (("GiB", 1024 * MiB), ("MiB", MiB), ("KiB", 1024)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} bytes"


def check_bytes(number: int, most: int, what: str = "it") -> None:
    """Refuse what has more bytes than are read."""
    if number > most:
        raise InputError(f"{what} has {spell_bytes(number)}, but at most {spell_bytes(most)} are read.")


def check_growth(total: int, size: int) -> None:
    """Refuse a compressed file of this size that would take far more memory than it has bytes."""
    most = max(FREE_EXPANSION, MOST_EXPANSION * size)
    if total > most:
        raise InputError(
            f"it has {spell_bytes(size)} but unpacks to {spell_bytes(total)}, and {spell_bytes(most)} are read of a "
            "file of that size. Write it uncompressed: numpy.savez, or modelweld.files.save."
        )


def check_name(name: str, what: str, *, empty: bool = False) -> str:
    """A name that can be shown on a terminal and in a page as it is: printable, not too long.

    Examples
    --------
    >>> check_name("means", "array")
    'means'
    """
    if not (name or empty) or len(name) > LONGEST_NAME or not name.isprintable():
        shown = f"{name[:20]!r}..." if len(name) > LONGEST_NAME else repr(name)
        raise InputError(
            f"the name of {what} must be 1 to {LONGEST_NAME} printable characters; found {shown}. Rename it."
        )
    return name


def check_words(names: Sequence[str], what: str) -> Sequence[str]:
    """Names of features or words: any text that can be written again, none too long to be shown.

    Examples
    --------
    >>> check_words(["age", "état"], "features")
    ['age', 'état']
    """
    longest = max(names, key=len, default="")
    if len(longest) > LONGEST_WORD:
        raise InputError(
            f"{what} must have at most {LONGEST_WORD:,} characters each; found {longest[:20]!r}... with "
            f"{len(longest):,}. Rename it."
        )
    try:
        "".join(names).encode()
    except UnicodeEncodeError as wrong:
        raise InputError(f"{what} must be text; found half a character, {wrong.object[wrong.start]!r}.") from None
    return names


def parse(text: bytes, what: str) -> object:
    """Strict JSON within limits: every key once, no NaN, not too deep.

    Examples
    --------
    >>> parse(b'{"a": [1, 2.5, null]}', "the manifest")
    {'a': [1, 2.5, None]}
    """
    check_bytes(len(text), LARGEST_HEADER, what)
    if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
        raise InputError(f"{what} has more than {MOST_BRACKETS:,} lists and objects. Send parameters as tensors.")
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except InputError as wrong:
        raise InputError(f"in {what}, {wrong}") from None
    except RecursionError:
        raise InputError(f"{what} is nested deeper than {DEEPEST} levels; no model is.") from None
    except UnicodeDecodeError:
        raise InputError(f"{what} is not text in UTF-8. It may be a file of another kind, or damaged.") from None
    except ValueError as wrong:
        where = f"line {wrong.lineno}, column {wrong.colno}" if isinstance(wrong, json.JSONDecodeError) else "a number"
        raise InputError(f"{what} is not JSON (at {where}). It may be a file of another kind, or damaged.") from None
    level = [value] if type(value) in NESTS else []
    for _ in range(DEEPEST):
        level = [y for x in level for y in (x.values() if type(x) is dict else x) if type(y) in NESTS]
        if not level:
            return value
    raise InputError(f"{what} is nested deeper than {DEEPEST} levels; no model is.")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = first_repeated(name for name, _ in pairs) or ""
        raise InputError(f"key {twice[:LONGEST_NAME]!r} comes twice; which one is meant cannot be known.")
    return found


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise InputError(f"{number[:LONGEST_NAME]} is too large for a number. Leave out what is not known.")
    return value


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"{constant} is no number of JSON. Leave out what is not known.")


AGAIN = "Ask the site to send it again."
FAULT = "It may be damaged; if it is not, this is a fault of modelweld's: please report it."
BEGINNINGS = {
    b"PK\x03\x04": ("a zip archive (npz, skops)", ".npz"),
    b"\x93NUMPY": ("an npy file", ".npy"),
    b"PAR1": ("a Parquet table", ".parquet"),
    b"\x1f\x8b": ("a gzip file", ""),
    b'{"': ("JSON", ".json"),
    **{
        bytes([0x80, n]): ("a pickle, which runs code when it is loaded and is never read here", "")
        for n in range(2, 6)
    },
}
"""First bytes of files -> what they are, and how such files are called."""


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Errors raised within begin with the name of the file, or of who sent it; all others become ours."""
    try:
        yield
    except InputError as wrong:
        raise type(wrong)(f"{str(path)!r}: {wrong}") from None
    except MemoryError:
        raise InputError(f"{str(path)!r}: it does not fit into memory. Use a machine with more.") from None
    except OSError as wrong:
        raise InputError(f"{str(path)!r}: it cannot be used: {wrong.strerror or first_line(wrong)}.") from None
    except Warning:  # made an error by whoever runs us
        raise
    except Exception as wrong:
        cause = f"{type(wrong).__name__}: {first_line(wrong)}"
        raise InputError(f"{str(path)!r}: it cannot be used ({cause}). {FAULT}") from wrong


def first_line(wrong: Exception) -> str:
    """The first line of a message, cut, without control characters."""
    lines = str(wrong).splitlines() or [type(wrong).__name__]
    return "".join(c if c.isprintable() else "?" for c in lines[0])[:LONGEST_NAME].rstrip(". ")


def looks_like(first: bytes) -> tuple[str, str] | None:
    """What a file seems to be by its first bytes, and the ending of such files; None if nothing is known."""
    return next((found for magic, found in BEGINNINGS.items() if first.startswith(magic)), None)


def check_beginning(path: Path) -> None:
    """Refuse a file whose first bytes are those of another format than its name says."""
    size_of(path)
    with path.open("rb") as file:
        found = looks_like(file.read(8))
    if found is not None and found[1] != path.suffix.lower():
        raise InputError(f"it is called {path.suffix} but looks like {found[0]}. Rename or convert it.")


def size_of(path: Path, most: int = LARGEST_FILE) -> int:
    """Bytes of a regular file; pipes, devices, folders, empty and very large files are refused unopened."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise InputError("there is no such file. Look at the path.") from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError("it is not a file. Give the path of a file, not of a folder or a device.")
    if found.st_size == 0:
        raise InputError(f"it is empty. {AGAIN}")
    check_bytes(found.st_size, most)
    return found.st_size


PART = ".modelweld-part-"
"""How a file is called until it is whole."""

LEFT = 3600.0
"""Seconds since the last byte after which such a file is taken for a killed writer's."""

TAKEN = "is there already. Choose another name, or say force=True to replace it."
"""The one sentence about it, whatever is written."""


def check_free(path: str | os.PathLike[str], *, force: bool) -> Path:
    """The path, if it may be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_free(f"{folder}/page.html", force=False).name
    'page.html'
    """
    where = Path(path)
    with naming(where):
        _check_free(where, force)
    return where


def _check_free(path: Path, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r}. Make it first.")
    if not force and os.path.lexists(path):
        raise InputError(TAKEN)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """A place to write a file to, which becomes the file at `path` when all went well; errors name that file."""
    where = Path(path)
    with naming(where):
        _check_free(where, force)
        _clean(where.parent)
        part = where.with_name(f"{PART}{secrets.token_hex(8)}{where.suffix}")
        try:
            yield part
            if where.is_file() and not where.is_symlink():  # what is replaced keeps its mode; others have the umask's
                os.chmod(part, stat.S_IMODE(os.stat(where).st_mode))
            _sync(part)
            if force:
                os.replace(part, where)
            else:
                _rename(part, where)
        finally:
            part.unlink(missing_ok=True)


def _sync(part: Path) -> None:
    """Have it on the disk before it takes another's name: a disk that is full says so now."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _clean(folder: Path) -> None:
    """Remove what writers left that were killed."""
    for left in folder.glob(f"{PART}*"):
        with contextlib.suppress(OSError):  # another's, or gone meanwhile
            if time.time() - left.stat().st_mtime > LEFT:
                left.unlink()


def _rename(part: Path, path: Path) -> None:
    """Rename without replacing: a link fails where a file has come meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise InputError(TAKEN) from None
    except OSError:  # no links on this file system
        _check_free(path, force=False)
        os.replace(part, path)
