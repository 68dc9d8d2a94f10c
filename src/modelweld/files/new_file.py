"""Files to be written: what is there already is replaced if that is asked for, and there is a whole file or none."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.limits import naming

PART = ".modelweld-part-"
"""How a file is called until it is whole."""

LEFT = 3600.0
"""Seconds since the last byte after which such a file is taken for a killed writer's."""

MODE = 0o600
"""Of a new file. Fusions, pages and models hold what sites sent: who else may read them is for their owner to say, and
a file that is replaced keeps its mode."""

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
            os.chmod(part, _mode(where))
            _sync(part)
            if force:
                os.replace(part, where)
            else:
                _rename(part, where)
        finally:
            part.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    """That of the file which is replaced, else for its owner alone."""
    return stat.S_IMODE(os.stat(path).st_mode) if path.is_file() and not path.is_symlink() else MODE


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
