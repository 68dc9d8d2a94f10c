"""Is a site in other units found, and are clean fusions left in peace? README.md has the figures.

    python experiments/units/run.py [--draws 2] [--smoke] [--out experiments/units]

Every site fits a mixture (three diagonal components, counted) or k-means behind a scaler. One feature of one site is
multiplied by a factor or divided by it; or one site has degrees Fahrenheit where others have Celsius. Named is whether
`fusion.site_effects` has this site and feature, factor (or F among C) whether with a scale within a quarter of the true
one, and innocent whether it has another site. Or two columns of one site are exchanged: whether `fuse` warns of this
site (`NamesWarning`), and of another. Clean draws are warned if `fuse` reports any effect or order of columns.
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

Table = NDArray[np.float64]
FACTORS = (7.0, 10.0, 12.0, 25.4, 30.4, 1000.0)
SITES = (3, 5, 10)
NEAR = 1.25
"""Factor within which a scale is the right one."""

FEWEST_ROWS = 8
"""Rows that a site needs to fit three components."""

FEWEST_COMPARED = 4
"""Sites from which on an order of columns is looked at."""

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


def ask(sites: list[Table], model: str) -> tuple[list[modelweld.fusion.SiteEffect], set[int]]:
    """Site effects that a fusion of the sites' models reports, and sites it warns of for the order of columns."""
    sent = []
    for X in sites:
        last = KMeans(3, n_init=1, random_state=0)
        if model == "mixture":
            last = GaussianMixture(3, covariance_type="diag", reg_covar=1e-2, random_state=0)
        facts = {"n": len(X)} if model == "mixture" else {}
        sent.append(modelweld.read(make_pipeline(StandardScaler(), last).fit(X), **facts))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fusion = modelweld.fuse(sent)
    said = [str(w.message) for w in caught if issubclass(w.category, modelweld.NamesWarning)]
    return fusion.site_effects, {j for j in range(len(sites)) if any(f"site '{j}':" in text for text in said)}


def measure(draw: Draw, model: str, rng: np.random.Generator, record: dict[str, list[bool]]) -> None:
    """Fuse clean sites, and sites of which one has another unit, or two columns exchanged."""
    clean_effects, clean_order = ask(draw.sites, model)
    record["clean warned"].append(bool(clean_effects or clean_order))
    site, D = int(rng.integers(len(draw.sites))), draw.sites[0].shape[1]
    units = [("factor", int(rng.integers(D)), factor ** rng.choice([-1, 1]), 0.0) for factor in FACTORS]
    units += [("F among C", int(d), 1.8, 32.0) for d in draw.celsius[:1]]
    for name, feature, factor, offset in units:
        spoilt = [X.copy() for X in draw.sites]
        spoilt[site][:, feature] = factor * spoilt[site][:, feature] + offset
        effects, _ = ask(spoilt, model)
        scales = [e.scale for e in effects if (e.site, e.feature) == (str(site), f"dimension {feature}")]
        record["named"].append(bool(scales))
        record[name].append(any(abs(np.log(scale / factor)) < np.log(NEAR) for scale in scales))
        record["innocent"].append(any(e.site != str(site) for e in effects))
    d, e = rng.choice(D, 2, False)
    mixed = [X.copy() for X in draw.sites]
    mixed[site][:, [d, e]] = mixed[site][:, [e, d]]
    _, order = ask(mixed, model)
    if len(draw.sites) >= FEWEST_COMPARED:
        record["swapped"].append(site in order)
        record["wrongly so"].append(bool(order - {site}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2)
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
    columns = ("clean warned", "named", "factor", "F among C", "innocent", "swapped", "wrongly so")
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for cell, record in cells.items():
        shown = [f"{sum(record[c])} of {len(record[c])}" if record[c] else "" for c in columns]
        print(f"| {cell} | {' | '.join(shown)} |")
    if not asked.smoke:
        counts = {cell: {c: [sum(x), len(x)] for c, x in record.items()} for cell, record in cells.items()}
        keep(asked.out / "results.json", {"cells": counts}, {"draws": asked.draws})


if __name__ == "__main__":
    main()
