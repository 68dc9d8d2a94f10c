"""Sets of directions, matched by modelweld and by what people do today, where the truth is known.

    python experiments/directions/run.py --catalogue COSMIC_v3.4_SBS_GRCh37.txt --out reproduced/directions
    python experiments/directions/run.py --only maps topics --seeds 3
    python experiments/directions/run.py --smoke

The catalogue of signatures is a table of COSMIC, as it lies in the package SigProfilerAssignment under
data/Reference_Signatures; without one, signatures are drawn. Choices were made on seeds 0 to 19; the record is of
seeds from 200 on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before numpy

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from rivals import best_cut, cut, first_wins, kmeans_without_signs, score
from sets import Sets, maps, signatures, topics
from summary import differences, table

from modelweld import Directions, Factors, Family, Fusion, fuse
from provenance import keep

FIRST_SEED, SEEDS = 200, 10
Row = dict[str, object]


def told(sets: Sets, fusion: Fusion, seconds: float) -> Row:
    """How good, how many atoms, what was learned, how long."""
    family = fusion.diagnosis.family
    return {
        "ari": score(sets, fusion.matching.stacked_labels),
        "K": fusion.K,
        "shared": int((fusion.counts > 1).sum()),
        "true_K": sets.K,
        "true_shared": sets.shared,
        "objective": fusion.objective,
        "concentration": getattr(family, "concentration", None),
        "diversity": getattr(family, "diversity", None),
        "engine": fusion.matching.engine,
        "cpu": seconds,
    }


def fused(sets: Sets, family: Family, **options: object) -> Row:
    """What `fuse` finds."""
    before = time.process_time()
    fusion = fuse(sets.sites, family, **options)  # type: ignore[arg-type]
    return told(sets, fusion, time.process_time() - before)


def clustered(sets: Sets, labels: object) -> Row:
    """What labels are worth."""
    found = np.asarray(labels)
    held = np.split(found, np.cumsum([len(own) for own in sets.truth])[:-1])
    shared = Sets(held, sets.sites).shared
    return {"ari": score(sets, found), "K": len(np.unique(found)), "true_K": sets.K, "shared": shared}


def of_signatures(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Signatures of cohorts."""
    for mutations in (500,) if asked.smoke else (500, 150, 60):
        sets, cell = signatures(seed, asked.catalogue, mutations, 4 if asked.smoke else 12), f"{mutations} mutations"
        yield cell, "fuse(sites, Directions())", fused(sets, Directions())
        yield cell, "one concentration, as before", fused(sets, Directions(own=False))
        for cosine in (0.8, 0.9):
            yield cell, f"cut at {cosine}", clustered(sets, cut(sets, cosine))
        yield cell, "best cut, seen on the truth", clustered(sets, best_cut(sets))


def of_maps(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Maps whose signs mean nothing."""
    for cosine in (0.95,) if asked.smoke else (0.95, 0.85, 0.75):
        sets, cell = maps(seed, cosine, 5 if asked.smoke else 16), f"cosine {cosine}"
        yield cell, "fuse(sites, Directions(axial=True))", fused(sets, Directions(axial=True))
        yield cell, "the same, own=True", fused(sets, Directions(axial=True, own=True))
        yield cell, "one concentration, as before", fused(sets, Directions(own=False))
        axes = np.linalg.svd(np.concatenate(sets.sites), full_matrices=False)[2]
        turned = Sets(sets.truth, [x @ axes.T for x in sets.sites])
        yield cell, "Factors() on principal axes", fused(turned, Factors())
        yield cell, "best cut of |cosine|, seen on the truth", clustered(sets, best_cut(sets, signless=True))
        if not asked.smoke:
            yield cell, "k-means without signs, told K", clustered(sets, kmeans_without_signs(sets, sets.K, seed))


def of_topics(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Topics of word groups, beside BERTopic's rule of merging (a threshold, and the first model wins)."""
    sets = topics(seed)
    yield "", "fuse(sites, Directions())", fused(sets, Directions())
    yield "", "one concentration, as before", fused(sets, Directions(own=False))
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(sets.sites)) for _ in range(2 if asked.smoke else 10)]
    for threshold in (0.7, 0.8, 0.9):
        found = [clustered(sets, first_wins(sets, threshold, order)) for order in orders]
        mean = {name: float(np.mean([row[name] for row in found])) for name in ("ari", "K", "true_K")}  # type: ignore[arg-type]
        spread = float(np.ptp([float(row["K"]) for row in found]))  # type: ignore[arg-type]
        yield "", f"first model wins, {threshold}", {**mean, "range of K over orders": spread}
    turned = Sets(sets.truth[::-1], sets.sites[::-1])
    again = fuse(turned.sites, Directions())
    yield "", "fuse, sites in reverse", told(turned, again, 0.0)


STUDIES: dict[str, Callable[[int, argparse.Namespace], Iterator[tuple[str, str, Row]]]] = {
    "signatures": of_signatures,
    "maps": of_maps,
    "topics": of_topics,
}


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalogue", type=Path, help="table of signatures; without one they are drawn")
    parser.add_argument("--only", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("reproduced", "directions"))
    parser.add_argument("--smoke", action="store_true", help="everything small, one seed")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.only:
        rows: list[Row] = []
        seeds = 1 if asked.smoke else asked.seeds
        for seed in range(asked.first_seed, asked.first_seed + seeds):
            for cell, method, row in STUDIES[name](seed, asked):
                rows.append({"study": name, "cell": cell, "method": method, "seed": seed, **row})
        told = {"catalogue": asked.catalogue.name if asked.catalogue else "drawn"} if name == "signatures" else {}
        settings = {"first_seed": asked.first_seed, "seeds": seeds, "threads": os.environ["OMP_NUM_THREADS"], **told}
        keep(asked.out / f"{name}.json", {"rows": rows}, settings)
        (asked.out / f"{name}.md").write_text(table(rows) + differences(rows))
        print(table(rows) + differences(rows), flush=True)


if __name__ == "__main__":
    main()
