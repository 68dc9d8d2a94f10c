"""Every reader against files that were damaged at random: each is read or refused in one line, soon, and nothing runs.

python experiments/hostile/fuzz.py                       # 100,000 inputs per reader: about an hour a reader
python experiments/hostile/fuzz.py --number 2000 --reader csv --reader json
python experiments/hostile/fuzz.py --smoke               # half a minute, all readers

What is read is used as well, now and then: a fusion that loads must not fail when it is asked something later.
Anything else than `InputError` is a fault; its seed is printed, and `--seed` with it shows the same again.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutate import mutated, seeds
from study import versions

import modelweld
from modelweld import InputError
from modelweld.federate import unpacked
from modelweld.files import load, read_sites

SLOW = 2.0
"""Seconds of CPU for one small file that are too many."""

USED = 20
"""Of that many inputs that are read, one is used as well."""

MEMORY = 4 * 2**30
"""Bytes beyond which a process is stopped: no input has more than some kilobytes."""


def main() -> None:
    """Run, print a table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100_000, help="inputs per reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="CPU per reader after which it ends")
    parser.add_argument("--seed", type=int, default=0, help="the first input's")
    parser.add_argument("--reader", action="append", help="only these")
    parser.add_argument("--smoke", action="store_true", help="three seconds per reader")
    parser.add_argument("--out", type=Path, help="a JSON file for the record")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    rows = []
    for reader, valid in seeds().items():
        if given.reader and reader not in given.reader:
            continue
        rows.append(campaign(reader, valid, given.seed, given.number, 3.0 if given.smoke else given.seconds))
        print(" ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    faults = sum(int(row["faults"]) for row in rows)
    print(f"{sum(int(row['inputs']) for row in rows):,} inputs, {faults} faults")
    if given.out:
        import json

        record = {"versions": versions(modelweld), "seed": given.seed, "rows": rows}
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    sys.exit(bool(faults))


def campaign(reader: str, valid: list[bytes], first: int, number: int, seconds: float) -> dict[str, object]:
    """Inputs of one reader, and what became of them."""
    found: Counter[str] = Counter()
    slowest, until = 0.0, time.process_time() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + number):
            draw = random.Random(seed)
            data = mutated(reader, valid, draw)
            began = time.process_time()
            outcome = attempt(reader, data, Path(folder), use=draw.randrange(USED) == 0)
            took = time.process_time() - began
            slowest = max(slowest, took)
            if outcome.startswith("fault") or took > SLOW:
                print(f"{reader}, seed {seed}, {took:.2f} s: {outcome}", file=sys.stderr, flush=True)
            found[outcome.split(":")[0]] += 1
            found["slow"] += took > SLOW
            if time.process_time() > until:
                break
    inputs = seed - first + 1
    return {
        "reader": reader,
        "inputs": inputs,
        "read": found["read"] + found["used"],
        "used": found["used"],
        "refused": found["refused"],
        "faults": found["fault"] + found["slow"],
        "slowest_s": round(slowest, 2),
    }


def attempt(reader: str, data: bytes, folder: Path, *, use: bool) -> str:
    """What becomes of an input: read, used, refused, or a fault."""
    ending = reader if reader in ("csv", "json", "npy", "npz", "parquet") else "safetensors"
    path = folder / f"x.{ending}"
    read: Callable[[], object]
    if reader == "message":
        read = lambda: [unpacked(data, "north")]  # noqa: E731
    else:
        path.write_bytes(data)
        read = (lambda: load(path)) if reader in ("fusion", "slim") else (lambda: read_sites(path))
    try:
        thing = read()
        if use:
            put_to_use(thing)
            return "used"
    except InputError as wrong:
        text = str(wrong)
        clean = text.isprintable() and len(text) < 2_200
        return "refused" if clean else f"fault: a message that is not clean, {text[:200]!r}"
    except Exception:
        return f"fault: {traceback.format_exc(limit=-3)}"
    return "read"


def put_to_use(thing: object) -> None:
    """What a centre does next."""
    if isinstance(thing, list):
        fusion = modelweld.fuse([*thing, *(model.with_(site=f"{model.site} again") for model in thing)])
        if fusion.models[0].kind:
            fusion.fused()
        return
    if isinstance(thing, modelweld.Fusion):
        str(thing)
        thing.diagnose()
        thing.confidence(how="conditional")
        thing.report(Path(tempfile.gettempdir(), "modelweld-fuzz.html"), force=True, draws=False)
        thing.remove(0)
        return
    str(thing)


if __name__ == "__main__":
    main()
