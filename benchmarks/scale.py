"""How far `fuse` goes: half a million and a million local parameters, CPU time and memory.

python benchmarks/scale.py half      # J = 10,000 sites of 50 parameters, D = 50: about a second
python benchmarks/scale.py million   # J = 1,000 sites of 1,000 parameters, D = 300, two threads: needs 8 GB
python benchmarks/scale.py smoke
"""

from __future__ import annotations

import argparse
import resource
import threading
import time
from pathlib import Path

import numpy as np

import modelweld
from modelweld import BetaBernoulli, Gaussian
from modelweld.demo.metrics import adjusted_rand

SETTINGS = {  # J, parameters per site, atoms, dimensions, threads
    "smoke": (50, 20, 40, 10, 1),
    "half": (10_000, 50, 100, 50, 1),
    "million": (1_000, 1_000, 2_000, 300, 2),
}


RUNS = 2  # the first also pays for memory that the process never had before


def draw(J: int, size: int, L: int, D: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Every site holds `size` of L atoms, with noise 1 about atoms of variance 50."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, np.sqrt(50), (L, D))
    truth = [rng.permutation(L)[:size] for _ in range(J)]
    return [atoms[held] + rng.normal(size=(size, D)) for held in truth], truth


def resident() -> float:
    """Memory in use now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Peak:
    """The most memory in use while the block runs, looked at every few milliseconds."""

    def __enter__(self) -> Peak:
        self.most, self.done = resident(), threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self) -> None:
        """Look until told to stop."""
        while not self.done.wait(0.005):
            self.most = max(self.most, resident())

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", choices=SETTINGS)
    J, size, L, D, threads = SETTINGS[parser.parse_args().setting]
    small, _ = draw(30, 50, 60, 50)
    options = {"families": Gaussian(shape="scalar"), "prior": BetaBernoulli()}
    options["search"] = modelweld.Search("plain", engine="compiled", n_jobs=threads)
    modelweld.fuse(small, **options)  # warm up
    before_data = resident()
    values, truth = draw(J, size, L, D)
    data = sum(v.nbytes for v in values)
    print(f"{J * size:,} local parameters (J={J:,}, L_j={size:,}, L={L:,}, D={D}), {threads} thread(s), isotropic")
    for run in range(RUNS):
        wall, cpu = time.perf_counter(), time.process_time()
        with Peak() as peak:
            fusion = modelweld.fuse(values, **options)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"  run {run + 1}: {cpu:.2f} s CPU, {wall:.2f} s wall, {fusion.diagnosis.sweeps} sweeps")
    print(f"  K {fusion.K:,} of {L:,}, ARI {adjusted_rand(truth, fusion.labels):.4f}")
    most = peak.most - before_data
    print(f"  memory: data {data / 1e9:.2f} GB, at most {most / 1e9:.2f} GB in all = {most / data:.2f} copies")


if __name__ == "__main__":
    main()
