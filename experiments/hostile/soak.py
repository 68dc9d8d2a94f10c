"""Random fusions, each asked in several ways that must agree: every difference is a fault, printed with its seed.

python experiments/hostile/soak.py                     # 10,000 fusions, some hours on one processor
python experiments/hostile/soak.py --number 1 --seed 70
python experiments/hostile/soak.py --smoke             # two dozen, half a minute

What must agree is in `LAWS`: the compiled and the plain engine, another order of sites and rows, other units, another
origin, the file that is written and read again, and a site that comes and goes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawn_sites import Drawn, draw
from laws import LAWS
from study import versions

import modelweld
from modelweld import InputError


def main() -> None:
    """Run, print what came of each law, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10_000, help="fusions")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="CPU after which it ends")
    parser.add_argument("--seed", type=int, default=0, help="the first fusion's")
    parser.add_argument("--smoke", action="store_true", help="two dozen fusions")
    parser.add_argument("--out", type=Path, help="a JSON file for the record")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: Counter[str] = Counter()
    until = time.process_time() + given.seconds
    seeds = range(given.seed, given.seed + (24 if given.smoke else given.number))
    for seed in seeds:
        found += soaked(seed)
        if time.process_time() > until:
            break
    rows = [
        {"law": law, **{what: found[f"{law}: {what}"] for what in ("held", "better", "differs", "failed")}}
        for law in ("fuse", *LAWS)
    ]
    faults = sum(row["differs"] + row["failed"] for row in rows)
    record = {
        "versions": versions(modelweld),
        "seeds": [seeds[0], seed],
        "cpu": time.process_time(),
        "fused": found["fuse: held"],
        "refused": found["fuse: refused"],
        "rows": rows,
        "fused by family": {name[4:]: n for name, n in sorted(found.items()) if name.startswith("of: ")},
        "faults": faults,
    }
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    print(f"{record['fused']:,} fusions, {record['refused']} refused, {faults} faults")
    if given.out:
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    sys.exit(bool(faults))


def soaked(seed: int) -> Counter[str]:
    """One random fusion, and what the laws say of it."""
    found: Counter[str] = Counter()
    sites = draw(seed)
    try:
        fusion = sites.fuse()
    except InputError:
        return Counter(["fuse: refused"])
    except Exception:
        _tell(seed, sites, "fuse", traceback.format_exc(limit=-3))
        return Counter(["fuse: failed"])
    found["fuse: held"] += 1
    found[f"of: {sites.name}"] += 1
    for law, holds in LAWS.items():
        try:
            outcome = holds(sites, fusion)
        except Exception:
            outcome = f"failed {traceback.format_exc(limit=-3)}"
        if outcome:
            found[f"{law}: {outcome.split()[0]}"] += 1
        if outcome.startswith(("differs", "failed")):
            _tell(seed, sites, law, outcome)
    return found


def _tell(seed: int, sites: Drawn, law: str, what: str) -> None:
    print(f"seed {seed}, {sites}, {law}: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
