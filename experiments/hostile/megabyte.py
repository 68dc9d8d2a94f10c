"""A megabyte of anything is read or refused within a second of CPU, however hard it was made to read.

python experiments/hostile/megabyte.py             # a few seconds
"""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import asked  # isort: skip; first: it sets the threads

import numpy as np

import modelweld
from modelweld import InputError
from modelweld.files import read_sites, save
from provenance import keep

SIZE = 2**20
MANY = 100_000


def main() -> None:
    """Read every file, print how long it took and what was said, and write the record."""
    limit, out = (1.0, "seconds of CPU that are too many"), ({"type": Path}, "a JSON file for the record")
    given = asked(__doc__, limit=limit, out=out)
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, ending, data in files():
            path = Path(folder, f"x.{ending}")
            path.write_bytes(data)
            began = time.process_time()
            try:
                said = f"read: {len(read_sites(path, centres=True))} sites"
            except InputError as wrong:
                said = f"refused: {str(wrong).partition(': ')[2]}"[:160]
            took = time.process_time() - began
            rows.append({"file": name, "bytes": len(data), "cpu": round(took, 2), "said": said})
            print(f"{took:6.2f} s  {len(data):9,} bytes  {name}: {said}")
    slow = [row["file"] for row in rows if float(str(row["cpu"])) > given.limit]
    print(f"{len(rows)} files, {len(slow)} slow")
    if given.out:
        keep(given.out, {"rows": rows, "slow": slow}, {"limit": given.limit})
    sys.exit(bool(slow))


def files() -> Iterator[tuple[str, str, bytes]]:
    """Name, ending and bytes of files that are hard to read: about a megabyte each, or what fits into that."""
    names = [f"{i:x}" for i in range(MANY)]
    keys = ",".join(f'"{name}":0' for name in names)
    yield "JSON, a hundred thousand keys", "json", f"{{{keys}}}".encode()
    yield "JSON, the last key twice", "json", f'{{{keys},"{names[-1]}":0}}'.encode()
    yield "JSON, brackets", "json", b"[" * SIZE
    yield "JSON, lists in a list", "json", b"[" + b"[]," * (SIZE // 3) + b"[]]"
    yield "JSON, a number", "json", b'{"values": ' + b"9" * SIZE + b"}"
    yield "JSON, a text", "json", b'{"values": "' + b"\\u0000" * (SIZE // 6) + b'"}'
    twice = {"values": [[1.0]], "features": [*names, names[-1]]}
    yield "JSON, features, the last twice", "json", json.dumps(twice).encode()
    head = f'{{{keys},"{names[-1]}":0}}'.encode()
    yield "safetensors, the last key twice", "safetensors", len(head).to_bytes(8, "little") + head
    entries = ",".join(f'"{n}":{{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}' for n in names[: SIZE // 60])
    head = f"{{{entries}}}".encode()
    yield "safetensors, empty tensors", "safetensors", len(head).to_bytes(8, "little") + head
    yield "safetensors, a manifest with a name twice", "safetensors", _manifest(names)
    yield "csv, columns", "csv", (",".join(names) + "\n" + ",".join("1" for _ in names) + "\n").encode()
    yield "csv, the last column twice", "csv", (",".join([*names, names[-1]]) + "\n").encode()
    yield "csv, a site in every row", "csv", ("v,site\n" + "".join(f"1,{name}\n" for name in names)).encode()
    yield "csv, commas", "csv", b"," * SIZE
    yield "csv, quotes", "csv", b'a\n"' + b'""' * (SIZE // 2)
    yield "csv, lines", "csv", b"\n" * SIZE
    yield "csv, lines of one digit", "csv", b"v\r" + b"1\r" * (SIZE // 2)
    yield "csv, cells of nothing", "csv", b"a,b\n" + b",\n" * (SIZE // 2)
    yield "csv, numbers", "csv", b"v\n" + b"1e-5\n" * (SIZE // 5)
    yield "npz, members, one twice", "npz", _archive(10_000)
    yield "npz, zeros that grow", "npz", _archive(1, np.zeros((2**23 - 16, 1)))
    yield "npz, truth values that grow", "npz", _archive(1, np.ones((2**23, 1), dtype=bool))
    for ending in ("json", "safetensors", "csv", "npy", "npz", "parquet"):
        yield f"{ending}, noise", ending, random.Random(0).randbytes(SIZE)


def _manifest(names: list[str]) -> bytes:
    """A site's file whose features have a name twice, and forty thousand of them."""
    some = names[:40_000]
    values = np.zeros((1, len(some)))
    model = modelweld.LocalModel({"v": values}, {"v": ("atom", "feature")}, coordinates={"feature": some})
    with tempfile.TemporaryDirectory() as folder:
        data = save(model, Path(folder, "x.safetensors")).read_bytes()
    return data.replace(f'\\"{some[-1]}\\"'.encode(), f'\\"{some[-2]}\\"'.encode())


def _archive(members: int, array: np.ndarray | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        content = io.BytesIO()
        np.save(content, np.zeros(0) if array is None else array)
        for i in range(members):
            archive.writestr(f"{i:x}.npy", content.getvalue() if array is not None else b"")
        if members > 1:
            archive.writestr("0.npy", b"")
    return out.getvalue()


if __name__ == "__main__":
    main()
