"""How long ``modelweld --help`` takes, side by side with a Python that does nothing.

Each is started in turn as a process of its own; wall time, since that is what one waits for. Machines are shared: the
smallest and the median of the repeats are given.

    python benchmarks/startup.py            # twenty of each, some ten seconds
    python benchmarks/startup.py --smoke    # one of each
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import numpy'": ["-c", "import numpy"],
    "modelweld --help": ["-m", "modelweld", "--help"],
    "modelweld fuse --help": ["-m", "modelweld", "fuse", "--help"],
}


def seconds(words: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    repeats = 1 if parser.parse_args().smoke else 20
    for words in COMMANDS.values():
        seconds(words)  # files are in the system's cache, bytecode is written
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, words in COMMANDS.items():
            taken[name].append(seconds(words))
    bare = median(taken["python -c pass"])
    print(f"{'':<26} {'least s':>8} {'median s':>9} {'ratio':>7}")
    for name, found in taken.items():
        print(f"{name:<26} {min(found):>8.3f} {median(found):>9.3f} {median(found) / bare:>7.1f}")


if __name__ == "__main__":
    main()
