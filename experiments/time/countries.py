"""Which cluster of countries is which, year after year, from centroids alone?

    python experiments/time/countries.py            # 4, 5 and 6 clusters a year, 10 seeds; a minute
    python experiments/time/countries.py --smoke    # one seed of 4 clusters; seconds

In each of 12 years k-means finds clusters of countries by life expectancy and income; centroids leave the year, members
do not. A good matching keeps most countries' clusters from one year to the next: the share that do is measured.
README.md has what was found.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: CPU seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import argparse
import csv
import itertools
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from rivals import THRESHOLDS, Array, Index, chain
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

import modelweld
from study import Table, asdict, versions, write_record

DATA = Path(__file__).parents[1] / "data" / "gapminder" / "gapminder.csv"
CLUSTERS, SEEDS, FIRST_SEED = (4, 5, 6), 10, 1000
METHODS = (
    "fuse(models, times=years)",
    "fuse(centroids, times=years)",
    "fuse(models)",
    "fuse(centroids)",
    "chain, threshold seen on the countries",
    "by members (ceiling)",
)


class Year(NamedTuple):
    """One year's k-means, and the cluster of every country."""

    model: KMeans
    members: Index


def countries() -> dict[int, Array]:
    """Standardised life expectancy and log income of all countries, by year."""
    rows = list(csv.DictReader(DATA.read_text(encoding="utf-8").splitlines()))
    table = np.array([[float(row["lifeExp"]), np.log(float(row["gdpPercap"]))] for row in rows])
    table = (table - table.mean(0)) / table.std(0)
    years = np.array([int(row["year"]) for row in rows])
    return {int(year): table[years == year] for year in np.unique(years)}


def clustered(K: int, seed: int) -> dict[int, Year]:
    """K-means of every year."""
    found = {}
    for year, X in countries().items():
        model = KMeans(K, n_init=10, random_state=seed).fit(X)
        found[year] = Year(model, model.labels_.astype(np.int64))
    return found


def kept(years: list[Year], labels: list[Index]) -> float:
    """Share of countries whose cluster, by matched labels, is the same the next time."""
    named = np.stack([own[year.members] for year, own in zip(years, labels, strict=True)])
    return float((named[1:] == named[:-1]).mean())


def by_members(years: list[Year], K: int) -> float:
    """The most that any matching of a year to the next can keep, of each pair by itself."""
    shares = []
    for one, other in itertools.pairwise(years):
        together = np.zeros((K, K))
        np.add.at(together, (one.members, other.members), 1)
        shares.append(together[linear_sum_assignment(together, maximize=True)].sum() / len(one.members))
    return float(np.mean(shares))


def measure(K: int, seed: int) -> dict[str, Any]:
    """All methods on one draw of starts."""
    found = clustered(K, seed)
    years = list(found.values())
    centroids = [year.model.cluster_centers_ for year in years]
    models, times = [year.model for year in years], list(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", modelweld.ModelweldWarning)
        fusions = (
            modelweld.fuse(models, times=times),
            modelweld.fuse(centroids, times=times),
            modelweld.fuse(models),
            modelweld.fuse(centroids),
        )
    result: dict[str, Any] = {
        name: {"kept": kept(years, fusion.labels), "K": fusion.K}
        for name, fusion in zip(METHODS, fusions, strict=False)
    }
    tracks = max((chain(centroids, float(t)) for t in THRESHOLDS), key=lambda one: kept(years, one.labels))
    result[METHODS[4]] = {"kept": kept(years, tracks.labels), "K": len(tracks.places)}
    result[METHODS[5]] = {"kept": by_members(years, K), "K": K}
    return result


def main() -> None:
    """Measure, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one seed of 4 clusters: seconds")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--out", type=Path, default=Path("reproduced/countries"), help="folder for the record")
    options, about, begun = parser.parse_args(), versions(modelweld), time.process_time()
    seeds = range(options.first_seed, options.first_seed + (1 if options.smoke else options.seeds))
    cells = {str(K): [measure(K, seed) for seed in seeds] for K in (CLUSTERS[:1] if options.smoke else CLUSTERS)}
    rows = [
        [
            name,
            *(
                f"{np.mean([r[name]['kept'] for r in cell]):.3f} ({np.mean([r[name]['K'] for r in cell]):.1f})"
                for cell in cells.values()
            ),
        ]
        for name in METHODS
    ]
    head = ["method", *(f"{K} clusters a year" for K in cells)]
    table = Table("Share of countries that keep their cluster from one year to the next (clusters in all)", head, rows)
    record = {"title": "Clusters of countries", "versions": about, "seeds": list(seeds), "cells": cells}
    record |= {"cpu": time.process_time() - begun, "claims": [], "tables": [asdict(table)]}
    print(write_record(options.out, record, f"Seeds {seeds[0]} to {seeds[-1]}"))


if __name__ == "__main__":
    main()
