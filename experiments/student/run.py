"""Does a family written as a density pay where noise has heavy tails?

    python experiments/student/run.py                    # 20 seeds, minutes
    python experiments/student/run.py --seeds 1          # one seed

README.md says what is drawn and compared. Needs jax: pip install "modelweld[jax]".
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import json
import time
import warnings

import numpy as np
from jax.scipy.stats import norm, t
from provenance import keep

from modelweld import ModelweldWarning, fuse
from modelweld.families.own.density import from_density
from modelweld.studies.baselines import kmeans_matching
from modelweld.studies.metrics import adjusted_rand
from modelweld.studies.simulate import sparse

HERE = Path(__file__).parent
ATOMS, SITES, DIMENSIONS, SCALE, SPREAD, DF = 25, 10, 20, 0.9, 2.5, 3.0
FIRST_SEED = 1000
TOLERANCE = 0.005  # beyond this, a mean ARI differs from what expected.json says


def draw(seed: int):
    """Sparse(25, 10, 20, 0, 2.5, 1, 1) with Student-t noise of 3 degrees of freedom, scale .9, in every coordinate."""
    drawn = sparse(ATOMS, SITES, DIMENSIONS, 0.0, SPREAD, 1.0, 1.0, seed=seed)
    rng = np.random.default_rng([seed, 1])
    return [values + SCALE * rng.standard_t(DF, values.shape) for values in drawn.values], drawn


def log_density(v, theta, h):
    """Student-t noise, coordinate by coordinate."""
    return t.logpdf(v, h["df"], theta, h["scale"])


def log_prior(theta, h):
    """Normal atoms."""
    return norm.logpdf(theta, h["mean"], h["spread"])


def start(mean, noise, spread):
    """Hyperparameters read off the values; three degrees of freedom."""
    return {"df": DF, "scale": noise**0.5, "mean": mean, "spread": spread**0.5}


POSITIVE = ("df", "scale", "spread")
FIXED = from_density(log_density, log_prior, start, factorises=True, positive=POSITIVE, fixed=("df",))
LEARNED = from_density(log_density, log_prior, start, factorises=True, positive=POSITIVE)

METHODS = {
    "Gaussian": lambda values, K: fuse(values),
    "Gaussian, no filter": lambda values, K: fuse(values, filter_outliers=False),
    "Student, df 3": lambda values, K: fuse(values, FIXED),
    "Student, df learned": lambda values, K: fuse(values, LEARNED),
    "k-means told K": lambda values, K: kmeans_matching(values, K),
}


def nearest_labels(fusion):
    """Labels; a value that is set aside counts with its nearest atom."""
    labels = np.concatenate(fusion.labels).copy()
    aside = labels >= fusion.K
    if aside.any() and fusion.K:
        values = np.concatenate([np.asarray(v) for v in fusion.given])[aside]
        labels[aside] = ((values[:, None] - fusion.atoms[None, : fusion.K]) ** 2).sum(-1).argmin(1)
    return labels


def measure(name: str, seed: int) -> dict[str, float]:
    """One method on one draw."""
    values, drawn = draw(seed)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        fusion = METHODS[name](values, drawn.K)
    row = {
        "ari": adjusted_rand(drawn.stacked_truth, nearest_labels(fusion)),
        "error_in_k": fusion.K - drawn.K,
        "set_aside": int((np.concatenate(fusion.labels) >= fusion.K).sum()),
        "seconds": time.process_time() - begin,
    }
    return row | ({"df": fusion.family.learned()["df"]} if name.startswith("Student") else {})


def main() -> None:
    """Measure, print a table, compare with what is expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--out", type=Path, default=None, help="folder for results.json")
    parser.add_argument("--accept", action="store_true", help="rewrite expected.json")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    results = {name: [measure(name, seed) for seed in seeds] for name in METHODS}
    means = {
        name: {key: round(float(np.mean([row[key] for row in rows])), 4) for key in rows[0]}
        for name, rows in results.items()
    }
    print("| method | ARI | worst ARI | error in K | set aside | CPU s, first fit | CPU s, median | df |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rows in results.items():
        m = means[name]
        median = np.median([row["seconds"] for row in rows])
        print(
            f"| {name} | {m['ari']:.3f} | {min(row['ari'] for row in rows):.3f} | {m['error_in_k']:+.2f} "
            f"| {m['set_aside']:.1f} | {rows[0]['seconds']:.2f} | {median:.2f} | {m.get('df', float('nan')):.1f} |"
        )
    if args.out is not None:
        keep(args.out / "results.json", results, {"seeds": args.seeds, "first_seed": args.first_seed})
    expected = HERE / "expected.json"
    if args.accept:
        kept = {name: {key: m[key] for key in ("ari", "error_in_k")} for name, m in means.items()}
        expected.write_text(json.dumps(kept, indent=1) + "\n")
    elif args.seeds == 20 and args.first_seed == FIRST_SEED:
        for name, m in json.loads(expected.read_text()).items():
            if abs(means[name]["ari"] - m["ari"]) > TOLERANCE:
                print(f"{name}: ARI {means[name]['ari']:.4f}, expected {m['ari']:.4f}")


if __name__ == "__main__":
    main()
