"""Record studies again, the longest first, side by side, and make the page of claims; repeat it to go on.

python experiments/record.py --data FOLDER              # all whose record is not of today's code
python experiments/record.py time mocap --jobs 1        # these; --quick: does each of them run?

All need `pip install -e ".[studies]"`, merging also BERTopic and torch. Data are in `experiments/data`, but for these,
in FOLDER or a folder inside it; the studies' READMEs say where they come from:

newsgroups20.npz                planned_topics (without it: books' pages alone), merging
mnist.npz                       networks (without it: digits alone)
COSMIC_v3.4_SBS_GRCh37.txt      directions (without it: drawn signatures)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import claims
from provenance import resumed
from study import HERE, RESULTS

STUDIES = (
    *("planned_topics", "networks", "temperatures", "topics", "mocap", "simulated", "mixtures", "directions"),
    *("streams", "merging", "accidents", "families", "time"),
)
"""The longest first."""


def recorded(name: str, out: Path, more: list[str]) -> str:
    """Run a study; its name, how it ended and the minutes it took. What it says is kept beside its results."""
    began, log = time.monotonic(), out / f"{name}.log"
    command = [sys.executable, str(HERE / name / "run.py"), "--accept", "--jobs", "1", "--out", str(out / name), *more]
    with log.open("w") as said:
        code = subprocess.run(command, stdout=said, stderr=said, check=False).returncode
    ended = f"stopped: {log} says why" if code else "recorded"
    return f"{name}: {ended}, {(time.monotonic() - began) / 60:.1f} minutes"


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *STUDIES], help="which; else all that are not of today's code")
    parser.add_argument("--jobs", type=int, default=2, help="studies run side by side")
    parser.add_argument("--data", help="a folder with files that are not shipped")
    parser.add_argument("--quick", action="store_true", help="few settings and repeats; nothing is recorded")
    asked = parser.parse_args()
    names = [n for n in STUDIES if n in asked.names or not (asked.names or resumed(HERE / n / RESULTS))]
    out = Path("reproduced", *["quick"] * asked.quick)
    out.mkdir(parents=True, exist_ok=True)
    more = ["--quick"] * asked.quick + ["--data", str(asked.data)] * bool(asked.data)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for said in pool.map(lambda name: recorded(name, out, more), names):
            print(said, flush=True)
    if not asked.quick:
        claims.write()


if __name__ == "__main__":
    main()
