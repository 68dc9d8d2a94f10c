"""Time per sweep of families beside the Gaussian's, side by side in one run.

All see the same pattern of sites: L atoms, J sites, each of which holds each atom with a probability of its own. CPU
time of `fuse` with search="plain", one thread, end to end from a list of arrays to a Fusion, divided by its sweeps
(machines are shared: only ratios mean something). The Gaussian takes its default engine, which is compiled at this
size; the others the numpy board.

    python benchmarks/families.py                     # L = 50, D = 1000, J = 100: about a minute
    python benchmarks/families.py --J 400 --D 300     # other sizes
    python benchmarks/families.py --record            # keep it in families.json; then benchmarks/tables.py
    python benchmarks/families.py --smoke             # a few seconds: does it run?
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import modelweld
from modelweld import Gaussian
from modelweld.demo.metrics import adjusted_rand
from modelweld.families.counts import Counts
from modelweld.families.directions import Directions
from recorded import cpu_seconds, record

HERE = Path(__file__).parent

NOISE, SPREAD = 1.0, 50**0.5
"""Deviations of values about atoms and of atoms, as in the paper's figure."""

WORDS = 2000
"""Words behind each row of counts."""

SPARSE_SHARE = 0.05
"""Share of the words that an atom of sparse counts has."""


WANTED = {"Directions": 5, "Counts, 5 %": 10, "Counts, all": 60}
"""Largest ratios to the Gaussian that were meant."""


class Sites:
    """Which site holds which atoms, and values of several kinds about them."""

    def __init__(self, L: int, D: int, J: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.L, self.D = L, D
        shares = self.rng.random(J)
        self.truth = [np.flatnonzero(self.rng.random(L) < share) for share in shares]

    def real(self) -> list[np.ndarray]:
        """Real values: the atoms with noise."""
        atoms = self.rng.normal(0, SPREAD, (self.L, self.D))
        return [atoms[held] + self.rng.normal(0, NOISE, (len(held), self.D)) for held in self.truth]

    def unit(self) -> list[np.ndarray]:
        """Real values divided by their lengths."""
        return [values / np.linalg.norm(values, axis=1, keepdims=True) for values in self.real()]

    def counts(self, share: float) -> list[np.ndarray]:
        """Multinomial rows about atoms that each have this share of the words, in even proportions on average."""
        number = max(2, round(share * self.D))
        atoms = np.zeros((self.L, self.D))
        for atom in atoms:
            atom[self.rng.permutation(self.D)[:number]] = self.rng.dirichlet(np.ones(number))
        return [
            self.rng.multinomial(WORDS, atoms[held]).astype(float).reshape(len(held), self.D) for held in self.truth
        ]


def measured(L: int, D: int, J: int, repeats: int) -> list[dict[str, Any]]:
    """A row for each family: seconds, sweeps, and what was found."""
    sites = Sites(L, D, J, seed=1)
    unit = sites.unit()
    jobs: dict[str, tuple[modelweld.Family, list[np.ndarray]]] = {
        "Gaussian, unit vectors": (Gaussian(), unit),
        "Directions, the same": (Directions(), unit),
        "Gaussian, real values": (Gaussian(), sites.real()),
        f"Counts, {100 * SPARSE_SHARE:g} % of words": (Counts(), sites.counts(SPARSE_SHARE)),
        "Counts, all words": (Counts(), sites.counts(1.0)),
    }

    def run(name: str) -> modelweld.Fusion:
        family, values = jobs[name]
        return modelweld.fuse(values, family, search="plain")

    fusions = {name: run(name) for name in jobs}
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name in jobs:
            times[name].append(cpu_seconds(lambda name=name: run(name)))
    per_sweep = {name: median(times[name]) / fusions[name].diagnosis.sweeps for name in jobs}
    yardstick = next(iter(per_sweep.values()))
    return [
        {
            "family": name,
            "engine": fusion.matchings["atom"].engine,
            "s": times[name],
            "sweeps": fusion.diagnosis.sweeps,
            "ms_per_sweep": 1e3 * per_sweep[name],
            "ratio": per_sweep[name] / yardstick,
            "wanted": next((most for begins, most in WANTED.items() if name.startswith(begins)), None),
            "N": sum(map(len, sites.truth)),
            "K": fusion.K,
            "ari": adjusted_rand(sites.truth, fusion.labels),
        }
        for name, fusion in fusions.items()
    ]


def shown(rows: list[dict[str, Any]], title: str) -> Table:
    """The rows as a table of the terminal."""
    table = Table(title=title)
    for head in ("family", "engine", "fuse s", "sweeps", "ms per sweep", "ratio", "K", "ARI"):
        table.add_column(head, justify="left" if head in ("family", "engine") else "right")
    for one in rows:
        times = f"{median(one['s']):.3f}", f"{one['sweeps']}", f"{one['ms_per_sweep']:.1f}", f"{one['ratio']:.1f}x"
        table.add_row(one["family"], one["engine"], *times, f"{one['K']}", f"{one['ari']:.3f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small version")
    parser.add_argument("--record", action="store_true", help="keep it in families.json")
    for name, default in (("L", 50), ("D", 1000), ("J", 100), ("repeats", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    L, D, J, repeats = (10, 30, 8, 1) if given.smoke else (given.L, given.D, given.J, given.repeats)
    rows = measured(L, D, J, repeats)
    what = f"L = {L}, D = {D}, J = {J}, N = {rows[0]['N']}: CPU time per sweep, one thread"
    Console(width=140).print(shown(rows, what))
    if given.record:
        record(HERE / "families.json", what, rows, repeats=repeats)


if __name__ == "__main__":
    main()
