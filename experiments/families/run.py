"""Does every family recover its own atoms? ARI and error in K against Gaussian and k-means on the same values.

python experiments/families/run.py               # all families, 20 seeds; some minutes
python experiments/families/run.py --only Rates  # those whose name begins so; other rows stay
python experiments/families/run.py --smoke       # one seed, few atoms, nothing written
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import time
import warnings

import numpy as np
from sets import ATOMS, SETTINGS, SITES, Setting, Simulated

from modelweld import fuse, metrics
from provenance import keep, resumed
from shared import baselines

HERE = Path(__file__).parent
METHODS = ("family", "Gaussian", "Gaussian, transformed", "k-means told K")


def judged(drawn: Simulated, setting: Setting) -> dict[str, tuple[float, float, float]]:
    """ARI, error in K and seconds of every method."""
    K = len(np.unique(np.concatenate(drawn.truth)))
    calls = {
        "family": lambda: fuse(drawn.models, families=setting.families()),
        "Gaussian": lambda: fuse(drawn.flat),
        "Gaussian, transformed": lambda: fuse(drawn.transformed),
        "k-means told K": lambda: baselines.kmeans_matching(drawn.transformed, K),
    }
    result = {}
    for name, call in calls.items():
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fusion = call()
        seconds = time.process_time() - began
        result[name] = metrics.adjusted_rand(drawn.truth, fusion.labels), fusion.K - K, seconds
    return result


def means(runs: list[dict[str, tuple[float, float, float]]]) -> dict[str, dict[str, float]]:
    """Means over seeds, and the spread of ARI."""
    table = {}
    for name in METHODS:
        ari, error, seconds = np.array([run[name] for run in runs]).T
        table[name] = {
            "ari": round(float(ari.mean()), 3),
            "sd": round(float(ari.std()), 3),
            "error in K": round(float(error.mean()), 2),
            "seconds": round(float(seconds.mean()), 2),
        }
    return table


def rendered(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """The table for people."""
    lines = ["| set | " + " | ".join(METHODS) + " | seconds |", "|---" * (len(METHODS) + 2) + "|"]
    for name, row in results.items():
        cells = [f"{row[m]['ari']:.3f} ±{row[m]['sd']:.3f} {row[m]['error in K']:+.1f}" for m in METHODS]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {row['family']['seconds']:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Run all sets and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--smoke", action="store_true", help="one seed, few atoms, nothing written")
    arguments = parser.parse_args()
    seeds, K, J = (1, 6, 4) if arguments.smoke else (arguments.seeds, ATOMS, SITES)
    results = {}
    for name, setting in SETTINGS.items():
        if not name.startswith(arguments.only):
            continue
        if setting.missing:
            print(f"{name}: left out, this version has no {', '.join(setting.modules)}")
            continue
        draws = [setting.simulate(arguments.first_seed + i, K, J) for i in range(seeds)]
        results[name] = means([judged(drawn, setting) for drawn in draws])
        print(rendered({name: results[name]}).splitlines()[-1], flush=True)
    if arguments.smoke:
        return
    written = arguments.out / "results.json"
    before = resumed(written) if arguments.only else {}
    together = {name: (before | results)[name] for name in SETTINGS if name in before | results}
    keep(written, together, {"seeds": arguments.seeds, "first_seed": arguments.first_seed})
    (arguments.out / "tables.md").write_text(rendered(together) + "\n")


if __name__ == "__main__":
    main()
