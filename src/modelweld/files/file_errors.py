"""What is wrong with a file, in one line that names it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.limits import LARGEST_FILE, LONGEST_NAME, spell_bytes

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
    if found.st_size > most:
        raise InputError(
            f"it has {spell_bytes(found.st_size)}, but at most {spell_bytes(most)} are read of such a file."
        )
    return found.st_size
