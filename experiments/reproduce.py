"""Make the tables and figures of the paper, with its rivals and ours on the same data, and a page of them.

    pip install -e ".[studies]"
    python experiments/reproduce.py all --quick

A run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from page import page
from study import NEEDS

HERE = Path(__file__).parent
STUDIES = ("simulated", "topics", "temperatures", "mocap", "networks", "streams")


def main() -> None:
    """Run studies one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=[*STUDIES, "all"], help="which study, or all of them")
    parser.add_argument("--quick", action="store_true", help="fewer settings and repeats: under a minute each")
    parser.add_argument("--jobs", type=int, default=2, help="tasks run side by side")
    parser.add_argument("--out", type=Path, default=Path("reproduced"), help="a folder for results, figures, the page")
    parser.add_argument("--data", help="a folder with mnist.npz, which is not shipped: networks of MNIST, too")
    asked = parser.parse_args()
    names = STUDIES if asked.study == "all" else (asked.study,)
    out = asked.out / "quick" if asked.quick else asked.out
    for name in names:
        print(f"{name}: results in {out / name}", file=sys.stderr)
        options = ["--jobs", str(asked.jobs), "--out", str(out / name)]
        options += ["--quick"] * asked.quick + ["--data", asked.data] * bool(asked.data)
        code = subprocess.run([sys.executable, str(HERE / name / "run.py"), *options], check=False).returncode
        if code:  # where a library is missing, the study has said what to install
            sys.exit(1 if code == NEEDS else f"the study '{name}' stopped; what it had done is kept in {out / name}.")
    (out / "page.html").write_text(page([out / name for name in names]), encoding="utf-8")
    print(out / "page.html")


if __name__ == "__main__":
    main()
