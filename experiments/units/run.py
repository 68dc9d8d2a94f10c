"""Is a site in other units named, and are clean fusions left in peace? README.md has the figures.

    python experiments/units/run.py [--draws 20] [--smoke] [--out experiments/units]

Every site fits a mixture (three diagonal components, counted) or k-means behind a scaler. One feature of one site is
multiplied by a factor or divided by it; or one site has degrees Fahrenheit where others have Celsius, or the reverse.
Named is whether this site and feature are found (`screening.units`, which `fuse` asks about the same models), innocent
whether another one is. Or two columns of one site are exchanged: whether these are named, or anything else is
(`screening.units`). Clean draws are warned if anything is found.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import modelweld
from modelweld.demo.hospitals import HOSPITALS, load_hospital
from modelweld.fit.screening.unit_fit import Swapped, find_other_units, find_swapped
from modelweld.fit.screening.units import Totals, side_by_side
from modelweld.kinds import kind_of

Table = NDArray[np.float64]
FACTORS = (7.0, 10.0, 12.0, 25.4, 30.4, 1000.0)
SITES = (3, 5, 10, 20)
SWAPS = 3
"""Pairs of columns that are exchanged at one site, of every draw."""

FEWEST_ROWS = 8
"""Rows that a site needs to fit three components."""

APART = 1.0
"""How unlike parts of a table are that are not dealt at random: log odds of a site per deviation along a direction."""

WEATHER = Path(__file__).parents[1] / "data" / "weather"


class Draw(NamedTuple):
    """Sites of a cell, and which features are degrees Celsius."""

    cell: str
    sites: list[Table]
    celsius: tuple[int, ...] = ()


def deal(X: Table, J: int, unlike: bool, rng: np.random.Generator) -> list[Table]:
    """Rows of a table to J sites, at random, or by where they lie along a random direction."""
    if not unlike:
        return [X[rows] for rows in np.array_split(rng.permutation(len(X)), J)]
    along = (X - X.mean(0)) / X.std(0) @ rng.normal(size=X.shape[1])
    odds = np.exp(np.outer(along / along.std(), rng.normal(0, APART, J)))
    site = (odds.cumsum(1) < rng.random((len(X), 1)) * odds.sum(1, keepdims=True)).sum(1)
    return [X[site == j] for j in range(J)]


def stations() -> dict[str, list[Table]]:
    """Daily maxima, minima and their difference at each station of each state, in degrees Celsius."""
    days = np.load(WEATHER / "ghcnd_daily.npz")
    high, low = days["tmax_dC"] / 10, days["tmin_dC"] / 10
    table, station = np.column_stack([high, low, high - low]), days["station_index"]
    found: dict[str, list[Table]] = defaultdict(list)
    with (WEATHER / "ghcnd_stations.csv").open() as file:
        for row in csv.DictReader(file):
            found[row["state"]].append(table[station == int(row["station_index"])][::7])
    return found


def draw_sites(number: int, smoke: bool) -> Iterator[tuple[Draw, np.random.Generator]]:
    """Every cell, so many times."""
    tables = {"wine": datasets.load_wine().data}
    if not smoke:
        tables["breast cancer"] = datasets.load_breast_cancer().data
        tables["diabetes"] = datasets.load_diabetes(scaled=False).data
    hospitals = [load_hospital(name)[0][:, [0, 1, 3, 4]] for name in HOSPITALS]  # all four measured these
    by_state = {} if smoke else stations()
    everywhere = [X for of_state in by_state.values() for X in of_state]
    for draw in range(number):
        rng = np.random.default_rng([17, draw])
        for J in SITES[:1] if smoke else SITES:
            for name, X in tables.items():
                for unlike in (False, True):
                    sites = [part for part in deal(X, J, unlike, rng) if len(part) >= FEWEST_ROWS]
                    if len(sites) >= SITES[0]:
                        yield Draw(f"{name}, {'unlike' if unlike else 'random'}", sites), rng
            for name, of in (("one state", list(by_state.get("TX", []))), ("all states", everywhere)):
                if of:
                    yield Draw(f"weather, {name}", [of[i] for i in rng.choice(len(of), J, False)], (0, 1)), rng
        complete = [X[np.isfinite(X).all(1)] for X in hospitals]
        yield Draw("heart, four hospitals", [X[rng.random(len(X)) < 0.8] for X in complete]), rng


def totals(X: Table, model: str) -> Totals:
    """What is known of a site from its model."""
    last = KMeans(3, n_init=1, random_state=0)
    if model == "mixture":
        last = GaussianMixture(3, covariance_type="diag", reg_covar=1e-2, random_state=0)
    facts = {"n": len(X)} if model == "mixture" else {}
    local = modelweld.read(make_pipeline(StandardScaler(), last).fit(X), **facts)
    found = kind_of([local]).totals(local)
    assert found is not None
    return found


def plant(draw: Draw, rng: np.random.Generator) -> Iterator[tuple[str, int, int, float, float, bool]]:
    """What to do to a site's feature: factor and offset, or (last) to those of all other sites instead."""
    site = int(rng.integers(len(draw.sites)))
    for factor in FACTORS:
        feature = int(rng.integers(draw.sites[0].shape[1]))
        yield "factor", site, feature, factor if rng.random() < 0.5 else 1 / factor, 0.0, False
    for others in (False, True) if draw.celsius else ():
        name = "C among F" if others else "F among C"
        yield name, site, int(rng.choice(draw.celsius)), 1.8, 32.0, others


def swapped_among(sites: list[Totals]) -> list[Swapped]:
    """Sites whose columns seem to be in another order."""
    compared = side_by_side(sites)
    return [] if compared is None else find_swapped(compared)


def measure(draw: Draw, model: str, rng: np.random.Generator, record: dict[str, list[bool]]) -> None:
    """Look for other units and another order of columns in clean sites and in spoilt ones."""
    own = np.random.default_rng([19, len(record["clean warned"])])
    clean = [totals(X, model) for X in draw.sites]
    record["clean warned"].append(bool(find_other_units(clean) or swapped_among(clean)))
    for _ in range(SWAPS):
        site, (d, e) = int(own.integers(len(clean))), own.choice(len(clean[0].mean), 2, False)
        order = np.arange(len(clean[0].mean))
        order[[d, e]] = e, d
        mixed = clean[site]._replace(mean=clean[site].mean[order], deviation=clean[site].deviation[order])
        found_swaps = swapped_among([mixed if j == site else t for j, t in enumerate(clean)])
        record["swapped"].append(any(one == Swapped(site, tuple(order.tolist())) for one in found_swaps))
        record["wrongly so"].append(any(one != Swapped(site, tuple(order.tolist())) for one in found_swaps))
    for name, site, feature, factor, offset, others in plant(draw, rng):
        spoilt = []
        for j, t in enumerate(clean):  # models behind scalers change as their features do
            assert t.places is not None
            mean, deviation, places = t.mean.copy(), t.deviation.copy(), t.places.copy()
            if (j == site) != others:
                mean[feature] = factor * mean[feature] + offset
                places[:, feature] = factor * places[:, feature] + offset
                deviation[feature] *= factor
            spoilt.append(t._replace(mean=mean, deviation=deviation, places=places))
        found = {(one.site, one.feature) for one in find_other_units(spoilt)}
        record[name].append((site, feature) in found)
        record["innocent"].append(bool(found - {(site, feature)}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("reproduced"), help="where results.json is written")
    asked = parser.parse_args()
    here = Path(__file__).parent
    sys.path.insert(0, str(here.parent))
    from provenance import keep

    cells: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for draw, rng in draw_sites(1 if asked.smoke else asked.draws, asked.smoke):
        for model in ("mixture", "k-means"):
            measure(draw, model, rng, cells[f"{draw.cell}, {model}"])
    columns = ("clean warned", "factor", "F among C", "C among F", "innocent", "swapped", "wrongly so")
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for cell, record in cells.items():
        shown = [f"{sum(record[c])} of {len(record[c])}" if record[c] else "" for c in columns]
        print(f"| {cell} | {' | '.join(shown)} |")
    if not asked.smoke:
        counts = {cell: {c: [sum(x), len(x)] for c, x in record.items()} for cell, record in cells.items()}
        keep(asked.out / "results.json", {"cells": counts}, {"draws": asked.draws})


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
