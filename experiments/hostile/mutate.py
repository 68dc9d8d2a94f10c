"""What a stranger might send: valid files of every format, damaged at random in bytes, in words and in structure."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import modelweld
from modelweld import Counts, Directions, Gaussian, LocalModel, NormalGamma, Proportions, Rates, Spectrum
from modelweld.files import save
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.network import network
from modelweld.kinds.topics import topics

NUMBERS = (0, -1, 1, 2, 2**31, 2**62, 2**63, -(2**63), 1e18, 1e119, 1e308, 1e-320, 0.5, 7)
WORDS = (
    "", " ", "site", "values", "=1+1", "\u202e", "\x1b[2J", "a" * 5000, "../../x", "\x00", "count", "NaN", "é", "means",
)  # fmt: skip
VALUES = (*NUMBERS, *WORDS, None, True, [], {}, [[]], [["a"], "b"], {"float": "nan"}, {"float": "inf"}, {"tensor": "x"})
"""What a leaf of a tree is replaced by."""

BYTES = (
    b"\x00", b"\xff", b"{", b"}", b"[", b'"', b",", b"\n", b"\x80", b"1e999", b"null", b"-", b"PK\x03\x04", b"\x93NUMPY"
)  # fmt: skip


def seeds() -> dict[str, list[bytes]]:
    """Valid files by format."""
    rng = np.random.default_rng(0)
    sites = [rng.normal([[0, 0], [9, 9], [-9, 9]], 3, (3, 2)) for _ in range(4)]
    axes = {"v": ("atom", None)}
    weighted = [
        LocalModel({"v": s}, axes, site=f"s{j}", weight={"v": 2.0}, variance={"v": 0.1}) for j, s in enumerate(sites)
    ]
    named = [
        mixture(s, np.ones((3, 2)), [30.0, 20.0, 10.0], counted=True, site=f"s{j}", features=["age", "bmi"])
        for j, s in enumerate(sites)
    ]
    often = np.full(3, 9.0)
    states = [{"means": s, "variances": np.ones((3, 2))} for s in sites]
    moves, biases, shapes = np.full((3, 3), 9.0), [np.zeros(3), np.zeros(2)], ((2, 3), (3, 2))
    chains = [hmm(moves, often, often, s, counted=True).with_(site=f"h{j}") for j, s in enumerate(states)]
    layers = [[rng.normal(size=shape) for shape in shapes] for _ in range(3)]
    nets = [network(of, biases, activation="relu", site=f"n{j}") for j, of in enumerate(layers)]
    words = [topics(rng.integers(1, 50, (3, 4)).astype(float), list("abcd"), site=f"t{j}") for j in range(3)]
    positive = [np.abs(s) + 1 for s in sites]
    dated = [model.with_(time=f"202{j}-03-31") for j, model in enumerate(named)]
    fusions = [
        modelweld.fuse(sites),
        *(modelweld.fuse(of[:2]) for of in (named, weighted, chains, nets, words, dated)),
        modelweld.fuse([*sites, sites[0] * 1e6, sites[1]]),  # one set aside, one twice
        modelweld.fuse([1 / (1 + np.exp(-s)) for s in sites[:3]], Proportions()),
        modelweld.fuse(sites, Gaussian(shape="full"), Spectrum()),
        modelweld.fuse(sites, NormalGamma()),
        modelweld.fuse(positive, Rates()),
        modelweld.fuse([np.round(p) for p in positive], Counts()),
        modelweld.fuse([s / np.linalg.norm(s, axis=1, keepdims=True) for s in sites], Directions()),
    ]
    found: dict[str, list[bytes]] = {"site": [_saved(m) for m in (weighted[0], named[0], chains[0], nets[0], words[0])]}
    found["message"] = found["site"]
    found["fusion"] = [_saved(f) for f in fusions]
    found["slim"] = [_saved(f.slim()) for f in (fusions[0], fusions[-4], fusions[-1])]
    table = b"age,bmi,count,site\n1.5,2.5,30,a\n4,,12,b\n5.5,6,9,a\n"
    found["csv"] = [table, b"x;y\n1;2\n3;4\n"]
    found["json"] = [
        b'{"values": [[1, 2], [3, 4]], "features": ["age", "bmi"], "site": "north", "counts": [5, 6]}',
        b'{"values": [[1.5], [2.5]], "variance": [[0.1], [0.2]], "weight": [[1], [0]]}',
    ]
    found["npy"] = [_written(np.save, x) for x in (sites[0], sites[0].astype("<f4").T)]
    beside = {"counts": np.ones(3)}, {"features": np.array(["age", "bmi"])}
    found["npz"] = [_written(np.savez, values=sites[0], **more) for more in beside]
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return found
    rows = pyarrow.table({"age": [1.5, None], "bmi": [2.0, 3.0], "site": ["a", "b"]})
    return {**found, "parquet": [_written(lambda out: parquet.write_table(rows, out))]}


def mutated(format_name: str, seeds_of: list[bytes], draw: random.Random) -> bytes:
    """A seed that was changed at random, once or a few times, in a way that suits its format."""
    data = draw.choice(seeds_of)
    own = {"csv": [reworded] * 2, "json": [reworded] * 2 + [regrown] * 3, "npy": [], "npz": [], "parquet": []}
    ways = [damaged, *own.get(format_name, [rewritten] * 4)]
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        try:
            data = draw.choice(ways)(data, draw)
        except (ValueError, LookupError, TypeError, RecursionError):  # what is damaged already cannot be taken apart
            data = damaged(data, draw)
    return data


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Bytes flipped, cut, repeated, put in or joined with themselves."""
    at, other = draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)
    low, high = min(at, other), max(at, other)
    match draw.randrange(6):
        case 0:
            return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:low] + data[high:]
        case 3:
            return data[:at] + draw.choice(BYTES) + data[at:]
        case 4:
            return data[:high] + data[low:]
        case _:
            return data[:at] + data[at : at + 8][::-1] + data[at + 8 :]


def reworded(data: bytes, draw: random.Random) -> bytes:
    """A number or a word of a text in place of which another stands."""
    tokens = list(re.finditer(rb"[^,;\n\[\]{}:\"]+", data))
    found = draw.choice(tokens)
    return data[: found.start()] + str(draw.choice((*NUMBERS, *WORDS))).encode() + data[found.end() :]


def regrown(data: bytes, draw: random.Random) -> bytes:
    """A tree of JSON in which a branch was replaced, dropped, doubled or renamed."""
    return json.dumps(_grow(json.loads(data), draw)).encode()


def rewritten(data: bytes, draw: random.Random) -> bytes:
    """A safetensors file whose header, manifest or numbers were changed, with sizes and hashes made right again."""
    header, manifest, tensors = taken_apart(data)
    header, tensors = dict(header), bytearray(tensors)
    match draw.randrange(4):
        case 0:
            manifest = _grow(manifest, draw)
        case 1:
            name = draw.choice(list(header))
            header[name] = _grow(header[name], draw)
        case _:
            name = draw.choice([k for k in header if k != "__metadata__"])
            begin, end = header[name]["data_offsets"]
            if not 0 <= begin <= end <= len(tensors):
                raise ValueError("damaged already")
            for at in range(begin, end - 7, 8):
                if draw.random() < 0.4:
                    odd = draw.choice((0.0, -1.0, np.nan, np.inf, 1e119, 1e-320, 3.0))
                    whole = draw.randrange(-3, 9)
                    tensors[at : at + 8] = (np.float64(odd) if draw.random() < 0.5 else np.int64(whole)).tobytes()
            if isinstance(manifest, dict) and name in manifest.get("sha256", {}):
                right = hashlib.sha256(tensors[begin:end]).hexdigest()
                manifest = {**manifest, "sha256": {**manifest["sha256"], name: right}}
    header["__metadata__"] = {"modelweld": json.dumps(manifest)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + bytes(tensors)


@lru_cache(maxsize=256)
def taken_apart(data: bytes) -> tuple[dict[str, Any], Any, bytes]:
    """Header, manifest and tensors of a safetensors file; not to be changed, for most are asked for again."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["modelweld"]), data[8 + length :]


def _grow(tree: object, draw: random.Random) -> object:
    """The tree with one branch changed."""
    if isinstance(tree, dict) and tree and draw.random() < 0.9:
        key = draw.choice(list(tree))
        match draw.randrange(8):
            case 0:
                return {k: v for k, v in tree.items() if k != key}
            case 1:
                return {(draw.choice(WORDS) if k == key else k): v for k, v in tree.items()}
            case 2:
                return {**tree, draw.choice(WORDS): draw.choice(VALUES)}
            case _:
                return {**tree, key: _grow(tree[key], draw)}
    if isinstance(tree, list) and tree and draw.random() < 0.9:
        at = draw.randrange(len(tree))
        match draw.randrange(6):
            case 0:
                return tree[:at] + tree[at + 1 :]
            case 1:
                return tree[: at + 1] + tree[at:]
            case _:
                return [*tree[:at], _grow(tree[at], draw), *tree[at + 1 :]]
    return draw.choice(VALUES)


def _saved(thing: object) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return Path(save(thing, Path(folder, "x.safetensors"))).read_bytes()  # type: ignore[arg-type]


def _written(save_to: Callable[..., None], *given: Any, **named: Any) -> bytes:
    out = io.BytesIO()
    save_to(out, *given, **named)
    return out.getvalue()
