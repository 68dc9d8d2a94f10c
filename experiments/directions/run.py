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
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from rivals import best_cut, cut, first_wins, kmeans_without_signs, score
from sets import Sets, centres, dictionaries, learned_dictionaries, maps, overlapping, signatures, topics, unit
from summary import differences, table

from modelweld import Directions, Factors, Family, Fusion, Gaussian, Search, fuse
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
        roots = Sets(sets.truth, [unit(np.sqrt(x)) for x in sets.sites])
        yield cell, "of square roots", fused(roots, Directions())
        yield cell, "of square roots, one concentration", fused(roots, Directions(own=False))
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
        upright = [x * np.sign(np.take_along_axis(x, np.abs(x).argmax(1, keepdims=True), 1)) for x in sets.sites]
        axes = np.linalg.svd(np.concatenate(sets.sites), full_matrices=False)[2]
        turned = Sets(sets.truth, [x @ axes.T for x in sets.sites])
        yield cell, "Factors() on principal axes", fused(turned, Factors())
        yield cell, "as before, signs by largest entry", fused(Sets(sets.truth, upright), Directions(own=False))
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


def of_concentrations(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Draws from the model: what is learned of the concentration, over what it is."""
    for J in (3,) if asked.smoke else (3, 8):
        for D in (5,) if asked.smoke else (5, 20):
            for kappa in (30.0,) if asked.smoke else (5.0, 11.0, 30.0, 100.0):
                sets, cell = overlapping(seed, J, D, kappa), f"{J} sites, {D} dimensions, concentration {kappa:g}"
                for name, family in (
                    ("fuse(sites, Directions())", Directions()),
                    ("one concentration, as before", Directions(own=False)),
                ):
                    row = fused(sets, family, screens=["outliers"])
                    yield cell, name, {**row, "ratio": float(row["concentration"]) / kappa}  # type: ignore[arg-type]


def of_large(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Dictionaries of thousands, by both boards."""
    L = 600 if asked.smoke else 2000
    sets = dictionaries(seed, L, 4, 64 if asked.smoke else 256)
    yield f"{L} x 4", "fuse(sites, Directions())", fused(sets, Directions())
    labels = []
    for name, engine in (("sparse, sweeps alone", "auto"), ("reference, sweeps alone", "numpy")):
        before = time.process_time()
        fusion = fuse(sets.sites, Directions(), search=Search("plain", engine=engine))  # type: ignore[arg-type]
        labels.append(fusion.matching.stacked_labels)
        row = told(sets, fusion, time.process_time() - before)
        yield f"{L} x 4", name, {**row, "same": bool(np.array_equal(labels[0], labels[-1]))}
    yield f"{L} x 4", "reference, as before", fused(sets, Directions(own=False), search=Search(engine="numpy"))


def of_huge(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """A hundred thousand directions in 300 dimensions."""
    L, J, D = (500, 3, 30) if asked.smoke else (10_000, 10, 300)
    sets = dictionaries(seed, L, J, D)
    wall = time.perf_counter()
    row = fused(sets, Directions())
    more = {"wall": time.perf_counter() - wall, "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    yield f"{L} x {J}", "fuse(sites, Directions())", {**row, **more}


def of_gaussian(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Thousands of real vectors per site; where it does not take minutes, beside the reference."""
    small = [(2, 300, 10, 0.3)]
    cells = [(2, 2000, 50, 0.3), (2, 2000, 50, 0.8), (2, 2000, 3, 0.1), (4, 4000, 50, 0.3), (10, 2000, 256, 0.3)]
    warm = centres(seed, 2, 300, 3, 0.5).sites
    fuse(warm, search=Search(engine="compiled"))  # so that no cell pays for the compiler
    for J, L, D, noise in small if asked.smoke else cells:
        sets, cell = centres(seed, J, L, D, noise), f"{J} x {L} x {D}, noise {noise:g}"
        yield cell, "fuse(sites)", fused(sets, Gaussian())
        if L * J <= 4000:
            labels = []
            for name, engine in (("compiled, sweeps alone", "compiled"), ("reference, sweeps alone", "numpy")):
                before = time.process_time()
                fusion = fuse(sets.sites, search=Search("plain", engine=engine))  # type: ignore[arg-type]
                labels.append(fusion.matching.stacked_labels)
                row = told(sets, fusion, time.process_time() - before)
                yield cell, name, {**row, "same": bool(np.array_equal(labels[0], labels[-1]))}


def of_features(seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, str, Row]]:
    """Dictionaries of five seeds, fused; three more say which of their features come back, and how near atoms are.

    A feature comes back if each of the three has one at an absolute cosine of .8. How well a score of universality
    tells these from the others is the area under its curve (AUC).
    """
    from scipy.stats import rankdata

    sets = learned_dictionaries(seed, 8, *((12, 200) if asked.smoke else (40, 1200)))
    held, fresh = sets[:5], sets[5:]
    before = time.process_time()
    fusion = fuse(held, Directions(axial=True))
    seconds = time.process_time() - before
    labels, values = fusion.matching.stacked_labels, np.concatenate(held)
    nearest = np.array([np.abs(values @ other.T).max(1) for other in fresh])
    back = (nearest >= 0.8).all(0)
    others = [[np.abs(x @ y.T).max(1) for j, y in enumerate(held) if j != i] for i, x in enumerate(held)]
    scores = {
        "dictionaries that hold it (fusion.counts)": fusion.counts[labels],
        "expected number (fusion.sharing)": fusion.posterior.sharing(how="conditional").expected[labels],
        "mean of the largest cosines to the others": np.concatenate([np.mean(own, axis=0) for own in others]),
    }
    for name, score_of in scores.items():
        n, m = int(back.sum()), int((~back).sum())
        auc = (rankdata(score_of)[back].sum() - n * (n + 1) / 2) / (n * m) if n and m else None
        yield "score", name, {"auc": auc, "come back": n, "of": n + m, "K": fusion.K, "cpu": seconds}
    shared = fusion.counts > 1
    atoms = np.mean([np.abs(fusion.atoms[shared] @ other.T).max(1) for other in fresh])
    members = nearest[:, shared[labels]].mean()
    yield "cosine to the nearest of a fresh seed", "atoms held by two or more", {"cosine": float(atoms)}
    yield "cosine to the nearest of a fresh seed", "their members", {"cosine": float(members)}
    for number in range(1, 6):
        own = back[fusion.counts[labels] == number]
        if len(own):
            yield "share that comes back", f"held by {number}", {"share": float(own.mean()), "of": len(own)}


STUDIES: dict[str, Callable[[int, argparse.Namespace], Iterator[tuple[str, str, Row]]]] = {
    "signatures": of_signatures,
    "maps": of_maps,
    "topics": of_topics,
    "concentrations": of_concentrations,
    "large": of_large,
    "huge": of_huge,
    "gaussian": of_gaussian,
    "features": of_features,
}
FEW_SEEDS = {"large": 1, "huge": 1, "gaussian": 1, "features": 1}
"""Seeds of what takes long and hardly varies."""


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
        seeds = 1 if asked.smoke else min(asked.seeds, FEW_SEEDS.get(name, asked.seeds))
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
