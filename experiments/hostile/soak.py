"""Random fusions, each asked in several ways that must agree: every difference is a fault, printed with its seed.

python experiments/hostile/soak.py --out soak.json     # 10,000 fusions, about an hour on one processor
python experiments/hostile/soak.py --number 1 --seed 70
python experiments/hostile/soak.py --smoke             # two dozen, half a minute

What must agree is in `LAWS`: the compiled and the plain engine, another order of sites and rows, other units, another
origin, the file that is written and read again, a site that comes and goes, and one that leaves. A run with `--out`
that was stopped goes on where it stopped.
"""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import asked  # isort: skip; first: it sets the threads

from drawn_sites import draw
from kept import Record, begun, keep
from laws import LAWS

from modelweld import InputError

OUTCOMES, FAULTS = ("held", "better", "tie", "differs", "failed"), ("differs", "failed")

OFTEN = 50
"""Fusions after which the record is written."""


def main() -> None:
    """Run, print what came of each law, and write the record."""
    given = asked(
        __doc__,
        number=(10_000, "fusions"),
        seconds=(float("inf"), "CPU after which it ends"),
        seed=(0, "the first fusion's"),
        smoke=(False, "two dozen fusions"),
        out=({"type": Path}, "a JSON file for the record, taken up if it is there"),
    )
    warnings.simplefilter("ignore")
    record = soak(given.seed, 24 if given.smoke else given.number, given.seconds, given.out)
    for law, row in record["laws"].items():
        print(f"{law}: " + ", ".join(f"{what} {row[what]}" for what in OUTCOMES))
    print(f"{record['fused']:,} fusions, {record['refused']} refused, {len(record['faults'])} faults")
    sys.exit(bool(record["faults"]))


def soak(first: int, number: int, seconds: float, out: Path | None) -> Record:
    """The record after so many fusions, or so many seconds."""
    nothing = {law: dict.fromkeys(OUTCOMES, 0) for law in ("fuse", *LAWS)}
    record: Record = {"tried": 0, "cpu": 0.0, "fused": 0, "refused": 0, "laws": nothing, "families": {}, "faults": []}
    record |= begun(out, first_seed=first)
    spent, start = record["cpu"], time.process_time()
    families = Counter(record["families"])
    while record["tried"] < number and time.process_time() - start < seconds:
        seed = first + record["tried"]
        family, outcomes = soaked(seed)
        for law, outcome in outcomes.items():
            what = outcome.split()[0]
            record["laws"][law][what] += 1
            if what in FAULTS:
                record["faults"].append({"seed": seed, "family": family, "law": law, "found": outcome})
                print(f"seed {seed}, {family}, {law}: {outcome}", file=sys.stderr, flush=True)
        record["tried"] += 1
        record["fused" if outcomes else "refused"] += 1
        families[family] += bool(outcomes)
        record["families"], record["cpu"] = dict(sorted(families.items())), spent + time.process_time() - start
        if record["tried"] % OFTEN == 0:
            keep(out, record)
    keep(out, record)
    return record


def soaked(seed: int) -> tuple[str, dict[str, str]]:
    """The family of one random fusion, and what the laws say of it; nothing if it is refused."""
    try:
        sites = draw(seed)
    except InputError:
        return "none", {}
    try:
        fusion = sites.fuse()
    except InputError:
        return sites.name, {}
    except Exception:
        return sites.name, {"fuse": f"failed {traceback.format_exc(limit=-3)}"}
    found = {"fuse": "held"}
    for law, holds in LAWS.items():
        try:
            found[law] = holds(sites, fusion)
        except Exception:
            found[law] = f"failed {traceback.format_exc(limit=-3)}"
    return sites.name, {law: outcome for law, outcome in found.items() if outcome}


if __name__ == "__main__":
    main()
