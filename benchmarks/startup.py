"""How long ``modelweld --help`` and the first fusions of a process take, beside a Python that does nothing.

Each is started in turn as a process of its own; wall time, since that is what one waits for. Machines are shared: the
smallest and the median of the repeats are given. Last, once, the CPU time of a new machine's first large fusion, which
compiles, and first draws: with nothing kept.

    python benchmarks/startup.py            # twenty of each, some ten seconds
    python benchmarks/startup.py --smoke    # one of each
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

FUSE = """
import numpy as np
from time import process_time as now
from modelweld import fuse
rng = np.random.default_rng(0)
def sites(J, L, D):
    atoms = rng.normal(0, 9, (L, D))
    return [atoms + rng.normal(0, 1, (L, D)) for _ in range(J)]
"""
"""Sites that hold the same values, with noise."""

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import numpy'": ["-c", "import numpy"],
    "modelweld --help": ["-m", "modelweld", "--help"],
    "modelweld fuse --help": ["-m", "modelweld", "fuse", "--help"],
    "fuse(5 small sites)": ["-c", FUSE + "fuse(sites(5, 8, 3))"],
    "fuse(60 large sites)": ["-c", FUSE + "fuse(sites(60, 40, 50))"],
}

COLD = f"""{FUSE}
a = now()
fuse(sites(60, 40, 50))
b = now()
fuse(sites(8, 7, 3)).posterior.sample(10)
print("on a new machine, CPU seconds: first large fuse %.1f, first draws %.1f" % (b - a, now() - b))
"""


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
    if repeats > 1:
        with tempfile.TemporaryDirectory() as folder:
            nothing_kept = {**os.environ, "NUMBA_CACHE_DIR": folder}
            subprocess.run([sys.executable, "-c", COLD], check=True, env=nothing_kept)


if __name__ == "__main__":
    main()
