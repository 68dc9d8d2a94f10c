"""Real data with planted truth: handwritten digits whose classes are dealt to sites, and weather stations.

    python experiments/verdicts/real.py --jobs 2 --out experiments/verdicts/real
    python experiments/verdicts/real.py --smoke          # one set per cell; seconds

Said before it is run: 60 sets of every cell of digits, seeds 97000 to 97059, ten fusions of 20 and five of 60 stations,
seeds from 97000. None of these seeds was looked at before.

Digits (scikit-learn's, 1,797 of 8 x 8 pixels, first D principal components): every site has points of its own of the
classes it holds. `apart`: no class is at two sites; `shared`: every site holds a random six of the ten. It sends the
means of two halves of each class's points (k-means): so which values belong together is known, as far as people know a
seven from a one. (Confidences in class means with standard errors: `worlds.py`.)

Stations (GHCN-Daily, `experiments/data/weather`): a mixture of six components per station, of mean temperature with day
of the year, or with the day's range. Nobody is known to be wrong: stations that are warned of are counted.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

from study import Claim, Result, Table, Task  # isort: skip; first: it sets the threads

import argparse
from collections.abc import Iterator
from functools import cache

import numpy as np
from cells import asked, measure, quietly
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld.core.values import Array, Index
from shared.stored import stored

SETS, FIRST_SEED, LEVEL = 60, 97_000, 0.05
CLASSES, HELD = 10, 6
DIGIT_CELLS = [(2, 3), (2, 10), (3, 3), (3, 10), (5, 3), (5, 10)]
"""Numbers of sites and principal components."""
STATIONS, STATION_SETS, COMPONENTS = (20, 60), 10, 6
"""Sites of a fusion of stations, how many fusions, components of each."""


@cache
def digits(D: int) -> tuple[Array, Index]:
    """Principal components and classes."""
    data = load_digits()
    return PCA(D, random_state=0).fit_transform(data.data), data.target


def dealt(J: int, D: int, shared: bool, rng: np.random.Generator) -> list[dict[int, Array]]:
    """Of every site the points of each class it holds; no point is at two sites."""
    X, y = digits(D)
    if shared:
        held = [rng.permutation(CLASSES)[:HELD] for _ in range(J)]
    else:
        held = np.array_split(rng.permutation(CLASSES), J)
    points = {c: np.array_split(rng.permutation(np.flatnonzero(y == c)), J) for c in range(CLASSES)}
    return [{int(c): X[points[int(c)][j]] for c in held[j]} for j in range(J)]


def judge(J: int, D: int, shared: bool, seed: int) -> Result:
    """The verdict about sites that send the means of parts of each class: ten values or so."""
    rng = np.random.default_rng([seed, J, D, shared])
    sites = dealt(J, D, shared, rng)
    parts = max(2, 10 // max(1, len(sites[0])))
    cluster = KMeans(parts, n_init=1, random_state=0)
    means = [np.concatenate([cluster.fit(X).cluster_centers_ for X in site.values()]) for site in sites]
    verdict = modelweld.fuse(means).worth_merging(level=LEVEL)
    return {"p": verdict.p_value, "worth": verdict.worth, "sites": [site.worth for site in verdict.sites]}


@cache
def stations() -> list[tuple[Array, Array, Array]]:
    """Day of the year, mean temperature and range of every station of the contiguous states."""
    data, table = stored("weather", "ghcnd_daily.npz", "ghcnd_stations.csv")
    data, found = dict(data), []
    for row in (row for row in table if 24 < float(row["latitude"]) < 50):
        own = data["station_index"] == int(row["station_index"])
        high, low = data["tmax_dC"][own] / 10.0, data["tmin_dC"][own] / 10.0
        found.append((data["day"][own] % 365.25, (high + low) / 2, high - low))
    return found


def warn(J: int, what: str, seed: int) -> Result:
    """Which of some stations are warned of."""
    rng = np.random.default_rng([seed, J])
    every, models = stations(), []
    for i in rng.permutation(len(every))[:J]:
        day, mean, difference = every[i]
        X = np.stack([mean, day if what == "day" else difference], axis=1)
        models.append(GaussianMixture(COMPONENTS, covariance_type="diag", random_state=0).fit(X))
    found = modelweld.fuse(models).diagnosis.sites()
    return {"warned": [site.warning for site in found if site.warning], "sites": J}


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """One per cell and seed."""
    seeds = range(options.first, options.first + options.sets)
    for J, D in DIGIT_CELLS[-1:] if options.smoke else DIGIT_CELLS:
        for shared in (False, True):
            name = f"worth/{J}/{D}/{'shared' if shared else 'apart'}"
            yield from (Task(f"{name}/{s}", quietly, (judge, J, D, shared, s)) for s in seeds)
    for J in STATIONS[:1] if options.smoke else STATIONS:
        for what in ("day", "range"):
            few = seeds[: STATION_SETS if J < 60 else STATION_SETS // 2]
            yield from (Task(f"stations/{J}/{what}/{s}", quietly, (warn, J, what, s)) for s in few)


def summary(cells: dict[str, list[Result]]) -> tuple[list[Table], list[Claim]]:
    """Shares of yeses, confidences against the truth, shares of stations that are warned of; and what must hold."""
    parts = {cell: cell.split("/") for cell in cells}
    yes = {c: float(np.mean([bool(x["worth"]) for x in cells[c]])) for c in cells if parts[c][0] == "worth"}
    stations = {c: found for c, found in cells.items() if parts[c][0] == "stations"}
    warned = {c: sum(len(x["warned"]) for x in of) / sum(x["sites"] for x in of) for c, of in stations.items()}
    tables = [
        Table("worth_merging, digits: share of yeses", ["sites", "features", "classes", "yes"], [
            [*parts[c][1:], round(x, 3)] for c, x in yes.items()
        ]),
        Table("diagnose, weather stations: share of sites warned of", ["sites", "temperature and", "warned"], [
            [*parts[c][1:], round(x, 3)] for c, x in warned.items()
        ]),
    ]  # fmt: skip
    apart = {c: x for c, x in yes.items() if c.endswith("apart")}
    shared = {c: x for c, x in yes.items() if c.endswith("shared") and parts[c][1] != "2"}
    claims = [
        Claim("sites without a class in common: at most 7 % yes", f"{max(apart.values())} at worst",
              max(apart.values()) <= 0.07),
        Claim("three sites or more that share classes: at least 95 % yes", f"{min(shared.values())} at worst",
              min(shared.values()) >= 0.95),
        Claim("stations: at most 5 % of sites warned of", f"{max(warned.values()):.3f} at worst",
              max(warned.values()) <= 0.05),
    ]  # fmt: skip
    return tables, claims


if __name__ == "__main__":
    options = asked(__doc__, "real", FIRST_SEED, SETS, 1)
    measure("Verdicts about real data with planted truth", tasks, options, summary)
