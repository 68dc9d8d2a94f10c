"""Are answers those of another commit, or better? Partitions, objectives and CPU time side by side on fresh sets.

What makes the search quicker must not make it worse. Sets differ in sites, atoms, dimensions and noise, some with
standard errors; both commits see the same ones, each in a process of its own, the other's sources taken from git.
Recorded in `against.json`.

    python benchmarks/against.py COMMIT              # a minute; some more where the other has to be compiled
    python benchmarks/against.py HEAD --smoke        # seconds: does it run?
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from recorded import record

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).parent / "against.json"

SETS = [
    (L, J, D, noise, errors)
    for L, J, D, errors in [
        (50, 10, 50, False),
        (50, 30, 50, False),
        (50, 100, 50, False),
        (20, 60, 5, False),
        (100, 40, 20, False),
        (50, 300, 8, False),
        (12, 8, 3, False),
        (20, 20, 10, True),
    ]
    for noise in (1.0, 5.0, 10.0)
]
"""Atoms, sites, dimensions, deviation of the noise (that of atoms is about seven), and whether errors are sent."""

SMALLEST_DIFFERENCE = 1e-3
"""Nats below which objectives are the same."""


def answer(sets: list[list[Any]]) -> list[dict[str, Any]]:
    """What the package found in the path says of each set."""
    import modelweld
    from modelweld import simulate

    warnings.simplefilter("ignore")
    found = []
    for L, J, D, noise, errors, seed in sets:
        values = simulate.sparse(L, J, D, noise, np.sqrt(50), 1, 1, seed=seed).values
        sites = [_with_errors(v) for v in values] if errors else values
        begin = process_time()
        fusion = modelweld.fuse(sites)
        labels = np.concatenate(fusion.labels)
        _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
        partition = np.argsort(np.argsort(first))[numbers.ravel()].tolist()
        seconds = process_time() - begin
        found.append({"objective": fusion.objective, "K": fusion.K, "partition": partition, "s": seconds})
    return found


def _with_errors(values: np.ndarray) -> Any:
    from modelweld import LocalModel

    return LocalModel({"v": values}, {"v": ("atom", None)}, variance={"v": np.full(values.shape, 0.5)})


def asked(source: Path, sets: list[list[Any]]) -> list[dict[str, Any]]:
    """The same of the package in some folder."""
    given = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--answer"],
        input=json.dumps(sets),
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


def compare(commit: str, sets: list[list[Any]]) -> None:
    """Print what differs, and how much quicker this is."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        before = asked(Path(folder) / "src", sets)
    now = asked(ROOT / "src", sets)
    differing = []
    for one, old, new in zip(sets, before, now, strict=True):
        rise = new["objective"] - old["objective"]
        if old["partition"] != new["partition"] and abs(rise) >= SMALLEST_DIFFERENCE:
            differing.append({"set": one, "K": [old["K"], new["K"]], "nats": round(rise, 2)})
            print(f"L, J, D, noise, errors, seed {one}: K {old['K']} -> {new['K']}, objective {rise:+.2f} nats")
    higher = sum(x["nats"] > 0 for x in differing)
    found = {"sets": len(sets), "same": len(sets) - len(differing), "higher": higher, "lower": len(differing) - higher}
    seconds = [round(sum(x["s"] for x in answers), 1) for answers in (before, now)]
    told = ", ".join(f"{found[what]} {what}" for what in ("same", "higher", "lower"))
    print(f"{len(sets)} sets: {told}; CPU {seconds[0]} s -> {seconds[1]} s")
    if len(sets) > 1:
        what = f"default call beside {commit}, sets that differ: atoms, sites, dimensions, noise, errors, seed"
        record(RECORD, what, differing, found=found, cpu=seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD", help="what to compare with")
    parser.add_argument("--first-seed", type=int, default=5000, help="sets of these seeds were seen by nobody before")
    parser.add_argument("--seeds", type=int, default=3, help="sets of each setting")
    parser.add_argument("--smoke", action="store_true", help="one small set")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        print(json.dumps(answer(json.load(sys.stdin))))
        return
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    compare(given.commit, [[12, 4, 3, 1.0, False, 0]] if given.smoke else [[*s, seed] for s in SETS for seed in seeds])


if __name__ == "__main__":
    main()
