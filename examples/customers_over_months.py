"""Kinds of customers of a shop, month by month: which one of this month is which of the last, and how do they change?

    python examples/customers_over_months.py

In each of fourteen months k-means finds three kinds among those who bought something (experiments/data/cdnow), by
orders so far, dollars of the month and months since the last order. What is fused are fourteen fitted models.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import modelweld

DATA = Path(__file__).parents[1] / "experiments" / "data" / "cdnow" / "cdnow_months.csv.gz"
FEATURES = ["log orders so far", "log dollars", "log months since the last order"]
KINDS, FIRST = 3, "1997-05"  # before May many buy for the first time, and hardly anyone again


def tables() -> dict[str, np.ndarray]:
    """Who bought in each month, by the three features."""
    rows = list(csv.DictReader(gzip.decompress(DATA.read_bytes()).decode().splitlines()))
    found: dict[str, list[list[float]]] = {}
    orders: dict[str, int] = {}
    last: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row["month"]):
        who, month = row["customer"], row["month"]
        number = 12 * int(month[:4]) + int(month[5:])
        since = number - last.get(who, number)
        orders[who], last[who] = orders.get(who, 0) + int(row["orders"]), number
        features = np.log([orders[who], 1 + float(row["dollars"]), 1 + since])
        found.setdefault(month, []).append(features.tolist())
    return {month: np.array(table) for month, table in found.items() if month >= FIRST}


def main() -> None:
    """Fuse, and say what became of the kinds."""
    models = {
        month: modelweld.read(KMeans(KINDS, n_init=10, random_state=0).fit(X), X=X, features=FEATURES)
        for month, X in tables().items()
    }
    fusion = modelweld.fuse(list(models.values()), times=list(models))
    print(fusion)
    print(fusion.timeline.lifetimes())
    for k in range(fusion.K):
        path = fusion.timeline.path(k)
        for when, at in (("first", 0), ("last", int(np.flatnonzero(path.alive > 0.5)[-1]))):
            orders, dollars, since = np.exp(path.values[at])
            print(f"kind {k} {when}: {orders:.1f} orders so far, ${dollars - 1:.0f}, {since - 1:.1f} months since")
    ahead = fusion.timeline.forecast("1998-07")
    for k, value, low, high, alive in zip(ahead.atoms, ahead.values, ahead.low, ahead.high, ahead.alive, strict=True):
        dollars, least, most = (np.exp(x[1]) - 1 for x in (value, low, high))
        print(f"July 1998: kind {k} spends ${dollars:.0f} (90 %: ${least:.0f} to ${most:.0f}), there {alive:.2f}")
    today = fusion.timeline.at("1998-06").model()
    print("a KMeans of June 1998:", type(today).__name__, today.cluster_centers_.shape)


if __name__ == "__main__":
    main()
