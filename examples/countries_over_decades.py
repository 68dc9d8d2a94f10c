"""Clusters of countries, 1952 to 2007: which one of this year is which of five years ago, and what becomes of them?

    python examples/countries_over_decades.py

In each year k-means finds four clusters of countries by life expectancy and income per head
(experiments/data/gapminder). What is fused are twelve fitted models and their years: no country leaves its year.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import modelweld

DATA = Path(__file__).parents[1] / "experiments" / "data" / "gapminder" / "gapminder.csv"
FEATURES = ["life expectancy", "log10 of income"]


def tables() -> dict[int, np.ndarray]:
    """Life expectancy, in decades, and the logarithm of income of all countries, by year."""
    rows = list(csv.DictReader(DATA.read_text(encoding="utf-8").splitlines()))
    years = sorted({int(row["year"]) for row in rows})
    return {
        year: np.array(
            [[float(r["lifeExp"]) / 10, np.log10(float(r["gdpPercap"]))] for r in rows if int(r["year"]) == year]
        )
        for year in years
    }


def main() -> None:
    """Fuse, and say what became of the clusters."""
    models = {
        year: modelweld.read(KMeans(4, n_init=10, random_state=0).fit(X), X=X, features=FEATURES)
        for year, X in tables().items()
    }
    fusion = modelweld.fuse(list(models.values()), times=list(models))
    print(fusion)
    print(fusion.timeline.lifetimes())
    for k in range(fusion.K):
        path = fusion.timeline.path(k)
        first, last = path.values[0], path.values[np.flatnonzero(path.alive > 0.5)[-1]]
        print(
            f"cluster {k}: {10 * first[0]:.0f} years and ${10 ** first[1]:,.0f} in {path.times[0]:.0f}, then", end=" "
        )
        print(f"{10 * last[0]:.0f} years and ${10 ** last[1]:,.0f}")
    ahead = fusion.timeline.forecast(2012)
    print("2012, with 90 % intervals of life expectancy:")
    for k, value, low, high, alive in zip(ahead.atoms, ahead.values, ahead.low, ahead.high, ahead.alive, strict=True):
        print(f"  cluster {k}: {10 * value[0]:.0f} ({10 * low[0]:.0f} to {10 * high[0]:.0f}), there with {alive:.2f}")
    today = fusion.timeline.at(2007).model()
    print("a KMeans of 2007:", type(today).__name__, today.cluster_centers_.shape)


if __name__ == "__main__":
    main()
