"""Is the guard of copies right where it decides? Sites that send atoms in pieces, by how certain the pieces are.

Eight sites hold four of six atoms in three dimensions, atoms N(0, 4^2); each value comes in two pieces with probability
.3, .6 or 1, and noise is .3 to 1.5. Sets in which more than 15 % of all values were found to be second pieces are fused
with and without them.

    python experiments/strength/guard.py --out experiments/strength    # seeds 300 to 329; a CPU minute
    python experiments/strength/guard.py --seeds 1                     # seconds
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import warnings
from itertools import pairwise
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from modelweld import Fusion, ModelweldWarning, fuse
from modelweld.core.board import Board
from modelweld.core.prior import LARGEST_SHARE
from modelweld.demo.metrics import adjusted_rand
from modelweld.fit.search import split_rules as rules
from modelweld.fit.search import starts as search
from provenance import keep

FIRST_SEED = 300
SHARES, NOISES = (0.3, 0.6, 1.0), (0.3, 0.6, 1.0, 1.5)
BINS = (0.0, 0.75, 0.9, 0.99, 1.0)


class Outcome(NamedTuple):
    """One set: share and certainty of the pieces; ARI and error in K with and without them."""

    share: float
    certainty: float
    ari: tuple[float, float]
    error_in_k: tuple[int, int]


def doubled(share: float, noise: float, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Values of eight sites, and the true atom of each."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 4, (6, 3))
    values, truth = [], []
    for _ in range(8):
        held = rng.permutation(6)[:4]
        held = np.sort(np.concatenate([held, held[rng.random(4) < share]]))
        values.append(atoms[held] + rng.normal(0, noise, (len(held), 3)))
        truth.append(held)
    return values, np.concatenate(truth)


def fused(values: list[np.ndarray], believe: bool) -> tuple[Fusion, Board | None]:
    """The fusion with copies believed in or not, and the board on which they were found, if they were."""
    boards: list[Board] = []

    def judged(board: Board) -> bool:
        boards.append(board)
        return believe

    with patch.object(search, "believable", judged), warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        return fuse(values, splits=True), boards[0] if boards else None


def outcome(share: float, noise: float, seed: int) -> Outcome | None:
    """Of one set; None where pieces are so few that nobody asks how certain they are."""
    values, truth = doubled(share, noise, seed)
    believed, board = fused(values, True)
    if board is None or board.fragments is None or board.fragments.delta <= LARGEST_SHARE:
        return None
    found = (believed, fused(values, False)[0])
    ari = tuple(adjusted_rand(truth, fusion.matching.stacked_labels) for fusion in found)
    errors = tuple(fusion.K - len(np.unique(truth)) for fusion in found)
    return Outcome(board.fragments.delta, rules.certainty(board), ari, errors)


def table(outcomes: list[Outcome]) -> str:
    """A line per range of shares and certainties."""
    lines = [
        "| share | certainty | sets | ARI with, without | error in K with, without | with is better |",
        "|---" * 6 + "|",
    ]
    for (low, high), where in (
        ((LARGEST_SHARE, rules.COLLAPSE), f"to {rules.COLLAPSE}"),
        ((rules.COLLAPSE, 1.0), "above"),
    ):
        for least, most in pairwise(BINS):
            rows = [
                o for o in outcomes if low < o.share <= high and least <= o.certainty < (most if most < 1 else np.inf)
            ]
            if rows:
                ari, errors = np.mean([o.ari for o in rows], axis=0), np.abs([o.error_in_k for o in rows]).mean(axis=0)
                better = sum(o.ari[0] > o.ari[1] for o in rows)
                lines.append(
                    f"| {where} | {least} to {most} | {len(rows)} | {ari[0]:.3f} {ari[1]:.3f} | "
                    f"{errors[0]:.1f} {errors[1]:.1f} | {better} |"
                )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30, help=f"from {FIRST_SEED} on (default 30)")
    parser.add_argument("--out", type=Path, help="folder for guard.json and guard.md; printed only, without")
    asked = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + asked.seeds)
    found = [outcome(share, noise, seed) for seed in seeds for share in SHARES for noise in NOISES]
    outcomes = [o for o in found if o is not None]
    print(table(outcomes))
    if asked.out is not None:
        rows = [[float(o.share), float(o.certainty), *map(float, o.ari), *map(int, o.error_in_k)] for o in outcomes]
        columns = ["share", "certainty", "ARI with", "ARI without", "error in K with", "error in K without"]
        told = {"seeds": asked.seeds, "first_seed": FIRST_SEED}
        keep(asked.out / "guard.json", {"columns": columns, "rows": rows}, told)
        (asked.out / "guard.md").write_text(f"# Is the guard of copies right?\n\n{table(outcomes)}\n")


if __name__ == "__main__":
    main()
