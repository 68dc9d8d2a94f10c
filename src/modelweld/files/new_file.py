"""Files to be written: what is there already is replaced if that is asked for, and there is a whole file or none."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.file_errors import naming

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
        part = where.with_name(f".{secrets.token_hex(8)}.part{where.suffix}")
        try:
            yield part
            if force:
                os.replace(part, where)
            else:
                _rename(part, where)
        finally:
            part.unlink(missing_ok=True)


def _rename(part: Path, path: Path) -> None:
    """Rename without replacing: a link fails where a file has come meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise InputError(TAKEN) from None
    except OSError:  # no links on this file system
        _check_free(path, force=False)
        os.replace(part, path)
