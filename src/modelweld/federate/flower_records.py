"""Models and names as Flower's records, and back from whatever somebody sent."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from modelweld.errors import InputError
from modelweld.files.limits import check_name

RECORD, MODEL = "model", "safetensors"
"""Names of the record and of the only array in it: the bytes of a file, which Flower passes on in pieces."""


def as_record(data: bytes) -> ArrayRecord:
    """A packed model as a record of arrays."""
    return ArrayRecord({MODEL: Array(dtype="uint8", shape=(len(data),), stype=MODEL, data=data)})


def bytes_of(content: RecordDict) -> bytes:
    """The packed model among somebody's records; no bytes if there is none."""
    record = content.get(RECORD)
    array = record.get(MODEL) if isinstance(record, ArrayRecord) else None
    return bytes(array.data) if isinstance(array, Array) else b""


def as_name(site: str) -> RecordDict:
    """A site's name as records."""
    return RecordDict({"site": ConfigRecord({"name": site})})


def name_in(content: RecordDict) -> str:
    """The name among somebody's records; nothing if there is none, or none that can be shown."""
    record = content.get("site")
    name = record.get("name") if isinstance(record, ConfigRecord) else None
    try:
        return check_name(name, "a site") if isinstance(name, str) else ""
    except InputError:
        return ""
