"""Fitted models that a site saved with skops: read at the site, for export. Only types that skops trusts are built."""

from __future__ import annotations

from pathlib import Path

from modelweld.errors import InputError
from modelweld.files.file_errors import first_line, naming, size_of
from modelweld.files.numpy_files import check_archive


def read_skops(path: Path) -> object:
    """A fitted model from a skops file, whose size is checked first: skops itself has no limit."""
    with naming(path):
        check_archive(path, size_of(path))
        try:
            from skops import io
        except ImportError:
            raise InputError("skops files need 'skops', which is not installed: pip install modelweld[safe].") from None
        try:
            return io.load(path, trusted=[])
        except Exception as wrong:
            raise InputError(f"skops does not load it: {first_line(wrong)}.") from None
