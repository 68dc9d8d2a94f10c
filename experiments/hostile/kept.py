"""A record that grows: written whole every now and then, and taken up where a run of the same library stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import modelweld
import provenance
from study import versions

Record = dict[str, Any]


def begun(path: Path | None, **same: Any) -> Record:
    """The record at `path` if it is of this library and has all of `same`, else one with these alone.

    Libraries are the same whose last commit is; with changes that are not committed, every run begins anew.
    """
    fresh: Record = {"versions": versions(modelweld), **same}
    if path is None or not path.exists() or fresh["versions"]["commit"].endswith("changes"):
        return fresh
    there: Record = json.loads(path.read_text())
    return there if all(there.get(key) == value for key, value in fresh.items()) else fresh


def keep(path: Path | None, record: Record) -> None:
    """Write the record: the old one or the new one is there, whenever the process ends."""
    if path is not None:
        provenance.keep(path, record, {name: record[name] for name in provenance.SAID if name in record})
