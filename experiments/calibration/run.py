"""Are stated probabilities of matches right? Stated against true, in bins.

    python experiments/calibration/run.py            # 6 seeds of two sets, a few minutes
    python experiments/calibration/run.py --smoke    # one seed, seconds

Two statements are judged, both at the learned hyperparameters: `fusion.confidence(how="conditional")`, the
probability that a value belongs to its atom *given all other sites' matches*, and the sampler's co-assignment, the
probability that two values of different sites belong together. What is drawn with hyperparameters is judged in
`experiments/verdicts`. A value's match is right if its true atom is that of most values there.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
from typing import NamedTuple

import numpy as np

from modelweld import fuse, simulate
from modelweld.core.values import group_of_values, offsets_of
from modelweld.demo.simulate import Simulated
from provenance import keep

HERE = Path(__file__).parent
SETS = {"low_J10_D5": lambda seed: simulate.low_dimensional("J10 D5", seed=seed), "low_J8_D2": simulate.low_dimensional}


def judged(drawn: Simulated, draws: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What was stated of every match and of every pair, and whether it is so."""
    fusion = fuse(drawn.values)
    truth, labels = drawn.stacked_truth, fusion.matching.stacked_labels
    majority = np.array([np.bincount(truth[labels == k]).argmax() for k in range(len(fusion.counts))])
    shared = fusion.counts[labels] > 1  # a value alone is always right about itself
    sure = np.concatenate(fusion.confidence(how="conditional"))
    posterior = fusion.posterior.sample(draws=draws, fixed=True)
    site = group_of_values(offsets_of([len(v) for v in drawn.values]))
    a, b = np.triu_indices(len(truth), 1)
    apart = site[a] != site[b]
    pairs = posterior.co_assignment[a[apart], b[apart]]
    return {
        "confidence of a match, given the others": (sure[shared], (majority[labels] == truth)[shared]),
        "two values belong together (sampler)": (pairs, (truth[a] == truth[b])[apart]),
    }


class Bin(NamedTuple):
    """Statements of about the same probability, and how many of them were right."""

    low: float
    high: float
    stated: float
    true: float
    number: int


def calibration(stated: np.ndarray, correct: np.ndarray, bins: int = 10) -> list[Bin]:
    """Stated probabilities against true frequencies, in bins of equal width; bins without statements are left out."""
    of = np.minimum((stated * bins).astype(np.int64), bins - 1)
    return [
        Bin(b / bins, (b + 1) / bins, stated[of == b].mean(), correct[of == b].mean(), int((of == b).sum()))
        for b in np.unique(of).tolist()
    ]


def table(title: str, stated: np.ndarray, correct: np.ndarray) -> list[str]:
    """Bins of stated probability with what is true in them."""
    lines = [f"**{title}**: {stated.mean():.3f} stated, {correct.mean():.3f} true, n {len(stated):,}", ""]
    lines += ["| bin | stated | true | n |", "|---|---|---|---|"]
    for bin_ in calibration(stated, correct):
        lines.append(f"| {bin_.low:.1f}-{bin_.high:.1f} | {bin_.stated:.3f} | {bin_.true:.3f} | {bin_.number:,} |")
    return [*lines, ""]


def main() -> None:
    """Judge all sets and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=200)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--smoke", action="store_true", help="one seed, few draws, nothing written")
    arguments = parser.parse_args()
    seeds, draws = (1, 20) if arguments.smoke else (arguments.seeds, arguments.draws)
    bins: dict[str, dict[str, list[list[float]]]] = {}
    lines = ["# Calibration", "", f"Seeds {arguments.first_seed} to {arguments.first_seed + seeds - 1}.", ""]
    for name, draw in SETS.items():
        runs = [judged(draw(seed=arguments.first_seed + i), draws) for i in range(seeds)]
        lines += [f"## {name}", ""]
        for title in runs[0]:
            stated, correct = (np.concatenate([run[title][part] for run in runs]) for part in (0, 1))
            lines += table(title, stated, correct)
            found = [[b.low, b.high, b.stated, b.true, b.number] for b in calibration(stated, correct)]
            bins.setdefault(name, {})[title] = [[float(stated.mean()), float(correct.mean()), len(stated)], *found]
    if not arguments.smoke:
        (arguments.out / "tables.md").write_text("\n".join(lines))
        told = {"seeds": seeds, "first_seed": arguments.first_seed, "draws": draws}
        keep(arguments.out / "results.json", bins, told)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
