"""Every reader against files that were damaged at random: each is read or refused in one line, soon, and nothing runs.

python experiments/hostile/fuzz.py --out record.json     # a million inputs per reader: about two hours of one core
python experiments/hostile/fuzz.py --number 2000 --reader csv --reader json
python experiments/hostile/fuzz.py --smoke               # half a minute, all readers

What is read is used as well, now and then: a fusion that loads must not fail when it is asked something later.
Anything else than `InputError` is a fault; its seed is printed, and `--seed` with it shows the same again. Readers take
turns, and a run with `--out` that was stopped goes on where it stopped.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import asked  # isort: skip; first: it sets the threads

from kept import Record, begun, keep
from mutate import mutated, seeds

import modelweld
from modelweld import InputError
from modelweld.federate import unpack
from modelweld.files import load, read_sites
from modelweld.files.limits import FAULT
from modelweld.revision.slim_fusion import SlimFusion

ROOT = Path(__file__).parents[2]
"""Of the repository: records name files within it."""

SLOW = 2.0
"""Seconds of CPU for one small file that are too many."""

USED = 100
"""Of that many inputs that are read, one is used as well."""

TURN = 2_000
"""Inputs of a reader before the next one's turn."""

MEMORY = 4 * 2**30
"""Bytes beyond which a process is stopped: no input has more than some kilobytes."""

IN_MEMORY = "/dev/shm"
"""Where files cost no disk: replacing one on a disk takes longer than reading it."""

OUTCOMES = ("read", "used", "refused", "netted", "fault")
"""Netted: refused as well, but by the last net of the readers, which says so (`FAULT`): no check foresaw it."""

SHOWN = 20
"""Netted inputs of a reader that are printed."""


def main() -> None:
    """Run, print a table, and write the record."""
    given = asked(
        __doc__,
        number=(1_000_000, "inputs per reader"),
        seconds=(float("inf"), "CPU per reader after which it ends"),
        seed=(0, "the first input's"),
        reader=({"action": "append"}, "only these"),
        smoke=(False, "three seconds per reader"),
        out=({"type": Path}, "a JSON file for the record, taken up if it is there"),
    )
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    valid = {reader: files for reader, files in seeds().items() if reader in (given.reader or [reader])}
    record = campaigns(valid, given.seed, given.number, 3.0 if given.smoke else given.seconds, given.out)
    for reader, row in record["readers"].items():
        print(reader, " ".join(f"{name} {value}" for name, value in row.items()))
    inputs = sum(row["inputs"] for row in record["readers"].values())
    print(f"{inputs:,} inputs, {len(record['faults'])} faults")
    sys.exit(bool(record["faults"]))


def campaigns(valid: dict[str, list[bytes]], first: int, number: int, seconds: float, out: Path | None) -> Record:
    """The record after so many inputs of every reader, or so many seconds of each."""
    nothing = {"inputs": 0, **dict.fromkeys(OUTCOMES, 0), "slowest_s": 0.0, "cpu_s": 0.0}
    record: Record = {"readers": {}, "faults": []} | begun(out, first_seed=first, one_used_of=USED)
    rows = {reader: record["readers"].setdefault(reader, dict(nothing)) for reader in valid}
    until = {reader: row["cpu_s"] + seconds for reader, row in rows.items()}
    while left := [r for r, row in rows.items() if row["inputs"] < number and row["cpu_s"] < until[r]]:
        for reader in left:
            row = rows[reader]
            turn = range(first + row["inputs"], first + min(row["inputs"] + TURN, number))
            record["faults"] += campaign(reader, valid[reader], turn, until[reader], row)
        keep(out, record)
    return record


def campaign(reader: str, valid: list[bytes], turn: range, until: float, row: Record) -> list[Record]:
    """Inputs of one reader, counted in its row; the faults among them."""
    faults = []
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.path.isdir(IN_MEMORY) else None) as folder:
        for seed in turn:
            began = time.process_time()
            draw = random.Random(seed)
            data = mutated(reader, valid, draw)
            outcome = attempt(reader, data, Path(folder), use=draw.randrange(USED) == 0)
            took = time.process_time() - began
            if took > SLOW:
                outcome = f"fault: {took:.2f} s"
            if outcome.startswith("fault"):
                faults.append({"reader": reader, "seed": seed, "found": outcome})
                print(f"{reader}, seed {seed}: {outcome}", file=sys.stderr, flush=True)
            row["inputs"] += 1
            what = outcome.split(":")[0]
            if what == "netted" and row[what] < SHOWN:
                print(f"{reader}, seed {seed}: {outcome}", file=sys.stderr, flush=True)
            row[what] += 1
            row["slowest_s"] = max(row["slowest_s"], round(took, 2))
            row["cpu_s"] += took
            if row["cpu_s"] > until:
                break
    row["cpu_s"] = round(row["cpu_s"], 3)
    return faults


def attempt(reader: str, data: bytes, folder: Path, *, use: bool) -> str:
    """What becomes of an input: read, used, refused, or a fault."""
    ending = reader if reader in ("csv", "json", "npy", "npz", "parquet") else "safetensors"
    path = folder / f"x.{ending}"
    read: Callable[[], object]
    if reader == "message":
        read = lambda: [unpack(data, "north")]  # noqa: E731
    else:
        path.write_bytes(data)
        read = (lambda: load(path)) if reader in ("fusion", "slim") else (lambda: read_sites(path, centres=True))
    thing: object = None
    try:
        thing = read()
        if use:
            put_to_use(thing)
            return "used"
    except InputError as wrong:
        text = str(wrong)
        if not text.isprintable() or len(text) >= 2_200:
            return f"fault: a message that is not clean, {text[:200]!r}"
        if FAULT not in text:
            return "refused"
        return f"netted: {text}" if thing is None else f"fault: in use, {text}"
    except Exception:
        return f"fault: {traceback.format_exc(limit=-3)}".replace(f"{ROOT}{os.sep}", "")
    return "read"


def put_to_use(thing: object) -> None:
    """What a centre does next."""
    if isinstance(thing, list):
        fusion = modelweld.fuse([*thing, *(model.with_(site=f"{model.site} again") for model in thing)])
        if fusion._fit.models[0].kind:
            fusion.parameters()
        return
    if isinstance(thing, modelweld.Fusion):
        str(thing)
        thing.diagnosis.sites()
        thing.confidence(how="conditional")
        thing.report(Path(tempfile.gettempdir(), "modelweld-fuzz.html"), force=True, draws=False)
        thing.remove(0)
        return
    str(thing)
    if isinstance(thing, SlimFusion) and len(thing.counts):
        thing.add(thing.atoms[:1])


if __name__ == "__main__":
    main()
