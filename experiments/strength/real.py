"""How good a mixture is fused from local mixtures of real data, at equal size, against rivals that see the same?

Handwritten digits by class shards, and people's movements, each person a site; see README.md.

    python experiments/strength/real.py              # seeds 1 to 5; minutes
    python experiments/strength/real.py --smoke      # four small sites, one seed, seconds
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import csv
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixtures import Mixture, log_likelihood, merged, union
from modelweld import Fusion, LocalModel, ModelweldWarning, Search, fuse
from modelweld.kinds.mixture_reduction import reduce_to
from provenance import keep
from shared.baselines import kmeans_matching

HERE = Path(__file__).parent
PEOPLE = HERE.parent / "data" / "cmu_mocap"
SEEDS = range(1, 6)  # settings were chosen on seed 0
HELD_OUT = 0.25  # share of a site's rows, or of a person's sequences
STARTS = 3  # of every local mixture


# ---------------------------------------------------------------- sites


@dataclass(frozen=True, eq=False)
class Sites:
    """Local mixtures, and points like theirs that none of them has seen."""

    models: list[Mixture]
    held_out: np.ndarray


def digits(seed: int, L: int = 1, *, J: int = 10, D: int = 16) -> Sites:
    """Sites that have three to five of the ten digits, L components for each, in D public directions.

    A fifth of the images is public and no site's: its principal components, scaled to variance one on average,
    are the coordinates. Every other image goes to a random one of the sites that have its digit.
    """
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(seed)
    images, digit = load_digits(return_X_y=True)
    public = rng.random(len(images)) < 0.2
    projection = PCA(D, random_state=0).fit(images[public])
    X = projection.transform(images) / math.sqrt(projection.explained_variance_.mean())
    held = np.zeros((J, 10), bool)
    for site in held:
        site[rng.choice(10, rng.integers(3, 6), replace=False)] = True
    home = np.where(held[:, digit], rng.random((J, len(X))), -1.0).argmax(axis=0)
    own = held[home, digit] & ~public  # an image of a digit that no site has is left out
    kept = rng.random(len(X)) >= HELD_OUT
    models = [local_mixture(X[own & kept & (home == j)], L * int(held[j].sum()), seed, 0.05) for j in range(J)]
    return Sites(models, X[own & ~kept])


def people(seed: int, L: int = 8, *, J: int = 20, fewest_frames: int = 400, fewest_sequences: int = 4) -> Sites:
    """People who move, J of those with enough frames and sequences, L components each; whole sequences are held out.

    Frames are centred within their sequence and measured in the deviations of the people who have too few.
    """
    data = np.load(PEOPLE / "cmu_mocap12.npz")
    with (PEOPLE / "sequences.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frames = np.split(data["X"] * float(data["scale"]), data["seq_start"][1:-1])
    by_person: dict[str, list[np.ndarray]] = {}
    for row, X in zip(rows, frames, strict=True):
        if row["angle_wrap_flag"] == "0":
            by_person.setdefault(row["subject"], []).append(X - X.mean(axis=0))
    enough = {
        person: sequences
        for person, sequences in by_person.items()
        if sum(map(len, sequences)) >= fewest_frames and len(sequences) >= fewest_sequences
    }
    unit = np.concatenate([X for person in by_person.keys() - enough.keys() for X in by_person[person]]).std(axis=0)
    rng = np.random.default_rng(seed)
    models, held_out = [], []
    for person in rng.choice(sorted(enough), J, replace=False):
        sequences = [enough[person][i] / unit for i in rng.permutation(len(enough[person]))]
        out = max(1, round(HELD_OUT * len(sequences)))
        models.append(local_mixture(np.concatenate(sequences[out:]), L, seed, 0.01))
        held_out += sequences[:out]
    return Sites(models, np.concatenate(held_out))


def local_mixture(points: np.ndarray, L: int, seed: int, ridge: float) -> Mixture:
    """What a site learns: a mixture with full covariances, told its number of components."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture(L, n_init=STARTS, reg_covar=ridge, random_state=seed).fit(points)
    return Mixture(model.means_, model.covariances_, len(points) * model.weights_)


SETS: dict[str, Callable[[int], Sites]] = {
    "digits": digits,
    "digits, told twice": partial(digits, L=2),
    "people": people,
    "people, told 16": partial(people, L=16),
}


# ---------------------------------------------------------------- methods


def with_standard_errors(models: list[Mixture]) -> list[LocalModel]:
    """Means and their squared standard errors: the diagonal of the covariance over the count, at least one."""
    return [
        LocalModel(
            {"means": m.means},
            {"means": ("component", None)},
            variance={"means": np.diagonal(m.covariances, axis1=1, axis2=2) / np.maximum(m.counts, 1.0)[:, None]},
        )
        for m in models
    ]


def means_only(models: list[Mixture], *, splits: bool = False) -> Fusion:
    """Means alone; copies if told so."""
    return fuse([m.means for m in models], search=Search(splits=splits))


OURS: dict[str, Callable[[list[Mixture]], Fusion]] = {
    "ours": lambda models: fuse(with_standard_errors(models)),
    "ours, means only": means_only,
    "ours, copies": partial(means_only, splits=True),
}


# ---------------------------------------------------------------- measures


def measured(sites: Sites) -> dict[str, dict[str, Any]]:
    """Every method of ours, with rivals of its size; then the references."""
    parts = union(sites.models)
    rows: dict[str, dict[str, Any]] = {}
    labels: dict[str, np.ndarray] = {}
    for name, call in OURS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            matching = call(sites.models).matching
        labels[name] = matching.stacked_labels
        rows[name] = {
            "K": matching.K,
            "aside": len(matching.counts) - matching.K,
            "size": len(np.unique(matching.stacked_labels)),
            "delta": matching.delta,
            "warnings": sorted({w.category.__name__ for w in caught if issubclass(w.category, ModelweldWarning)}),
        }
    greedy = {K: reduce_to(*parts, K) for K in {row["size"] for row in rows.values()}}
    score = lambda fused: float(log_likelihood(fused, sites.held_out).mean())  # noqa: E731
    for name, row in rows.items():
        kmeans = kmeans_matching([m.means for m in sites.models], row["size"]).matching.stacked_labels
        row["ours"] = score(merged(parts, labels[name]))
        row["kmeans"] = score(merged(parts, kmeans))
        row["runnalls"] = score(merged(parts, greedy[row["size"]]))
    rows["union"] = {"size": len(parts.counts), "ours": score(parts)}
    rows["mean of local models"] = {
        "size": len(parts.counts) / len(sites.models),
        "ours": float(np.mean([score(model) for model in sites.models])),
    }
    return rows


# ---------------------------------------------------------------- tables

Results = dict[str, dict[str, list[dict[str, Any]]]]
HEADS = {
    "K": ("K", 1),
    "aside": ("set aside", 1),
    "size": ("size", 1),
    "delta": ("delta", 2),
    "ours": ("LL", 3),
    "kmeans": ("k-means", 3),
    "runnalls": ("Runnalls", 3),
}


def table(results: Results) -> str:
    """A line per set and method: means over seeds; of rivals, how much better they are than we, with the spread."""
    heads = ["set", "method", *(head for head, _ in HEADS.values()), "warnings"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, methods in results.items():
        for method, rows in methods.items():
            warned = Counter(w.removesuffix("Warning").lower() for row in rows for w in row.get("warnings", ()))
            cells = [
                name,
                method,
                *(cell(rows, measure, digits) for measure, (_, digits) in HEADS.items()),
                ", ".join(f"{w} {n}" for w, n in sorted(warned.items())) or "-",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(rows: list[dict[str, Any]], measure: str, digits: int) -> str:
    """Mean and spread over seeds of one measure."""
    rival = measure in ("kmeans", "runnalls")
    seen = np.array([row[measure] - (row["ours"] if rival else 0) for row in rows if measure in row])
    if not len(seen):
        return "-"
    spread = f" ± {seen.std(ddof=1):.{digits}f}" if len(seen) > 1 else ""
    return f"{seen.mean():{'+' if rival else ''}.{digits}f}{spread}"


def write(results: Results, out: Path, seeds: list[int]) -> None:
    """real.md and real.json."""
    out.mkdir(parents=True, exist_ok=True)
    keep(out / "real.json", results, {"seeds": seeds})
    (out / "real.md").write_text(
        f"# Real sets: measured table\n\nWritten by `real.py`; the README says how to read it.\n\n{table(results)}\n"
    )


def main() -> None:
    """Measure and write real.md and real.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default 1 to 5")
    parser.add_argument("--only", choices=list(SETS), help="one of the sets")
    parser.add_argument("--out", type=Path, help="folder for real.md and real.json (default: beside this file)")
    parser.add_argument("--smoke", action="store_true", help="four sites of digits, one seed")
    arguments = parser.parse_args()
    out = arguments.out or (Path(tempfile.mkdtemp()) if arguments.smoke else HERE)
    sets = {"digits": partial(digits, J=4, D=6)} if arguments.smoke else SETS
    seeds = [1] if arguments.smoke else arguments.seeds
    results: Results = {}
    for name, draw in sets.items():
        if arguments.only in (None, name):
            by_seed = [measured(draw(seed)) for seed in seeds]
            results[name] = {method: [rows[method] for rows in by_seed] for method in by_seed[0]}
            print(table({name: results[name]}), flush=True)
            write(results, out, seeds)


if __name__ == "__main__":
    main()
