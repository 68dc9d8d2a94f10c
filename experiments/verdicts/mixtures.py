"""Confidences about estimated mixtures: stated against true, bare and read with the data.

    python experiments/verdicts/mixtures.py [--sets 60] [--out reproduced/verdicts]
    python experiments/verdicts/mixtures.py --smoke    # seconds

Sites of 300 points fit scikit-learn's GaussianMixture(6, covariance_type="diag") to six of twelve true components
(centres N(0, 3²), deviation 1, three features; nothing moves from site to site). The truth of a fitted component is
the true one that most of its points come from. Nothing was chosen here.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))

import modelweld
from calibration import bins, uneven
from modelweld import fuse, read
from modelweld.results.posterior.confidence import is_right
from provenance import keep
from study import Result, versions

COMPONENTS, HELD, POINTS, CENTRES, FEATURES, FIRST_SEED = 12, 6, 300, 3.0, 3, 20_000
SITES = (3, 8)


def one_set(seed: int, J: int, told: bool) -> Result:
    """What was stated of one set, and what is so."""
    rng = np.random.default_rng(seed)
    centres = CENTRES * rng.standard_normal((COMPONENTS, FEATURES))
    sites, truth = [], []
    for _ in range(J):
        own = rng.permutation(COMPONENTS)[:HELD][rng.integers(HELD, size=POINTS)]
        X = centres[own] + rng.standard_normal((POINTS, FEATURES))
        model = GaussianMixture(HELD, covariance_type="diag", random_state=0).fit(X)
        at = model.predict(X)
        truth += [int(np.bincount(own[at == k], minlength=1).argmax()) for k in range(HELD)]
        sites.append(read(model, X=X) if told else model)
    fusion = fuse(sites)
    stated, posterior = fusion.confidence(), fusion.posterior.draws()
    K, (low, high) = len(set(truth)), posterior.K_interval()
    right = is_right(fusion.matching.stacked_labels, np.array(truth), np.random.default_rng([seed, 1]))
    below, same = (posterior.K < K).mean(), (posterior.K == K).mean()
    return {
        "stated": np.round(np.concatenate(stated), 4).tolist(),
        "right": right.astype(int).tolist(),
        "K": [K, low, high, round(float(posterior.K.mean()), 3), fusion.K],
        "pit": round(float(below + same * np.random.default_rng([seed, 2]).random()), 4),
        "how": stated.how,
    }


def told_of(name: str, runs: list[Result]) -> str:
    """One line of the table."""
    K, low, high, mean, fitted = np.array([run["K"] for run in runs]).T
    shown = ", ".join(f"{s:.3f} > {t:.3f} ± {e:.3f} ({n:,})" for s, t, e, n in bins(runs))
    holds, off = ((low <= K) & (high >= K)).mean(), uneven([run["pit"] for run in runs])
    return f"| {name} | {shown} | {holds:.2f} | {(mean - K).mean():+.2f} | {(fitted - K).mean():+.2f} | {off:.2f} |"


def main() -> None:
    """Judge all cells, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("reproduced", "verdicts"))
    parser.add_argument("--smoke", action="store_true", help="two sets")
    asked, about = parser.parse_args(), versions(modelweld)
    warnings.simplefilter("ignore")
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if asked.smoke else asked.sets))
    cells = {
        f"{J} sites, {'with X' if told else 'bare'}": [one_set(seed, J, told) for seed in seeds]
        for J in (SITES[:1] if asked.smoke else SITES)
        for told in (False, True)
    }
    lines = [
        "# Confidences about estimated mixtures\n",
        f"Seeds {seeds[0]} to {seeds[-1]}; {', '.join(f'{name} {v}' for name, v in about.items())}.\n",
        "| | stated > true ± standard error (matches), bins of at least 100 | 90 % interval of K holds "
        "| mean K less truth | fitted K less truth | PIT of K off by |\n| --- | --- | --- | --- | --- | --- |",
        *(told_of(name, runs) for name, runs in cells.items()),
    ]
    asked.out.mkdir(parents=True, exist_ok=True)
    keep(asked.out / "mixtures.json", {"versions": about, "cells": cells}, {"seeds": list(seeds)})
    (asked.out / "mixtures.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
