"""Four real sets whose rows lie at several sites, the mixture each site fits, and rows that none of them has seen."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from modelweld import LocalModel
from modelweld.kinds.mixture import mixture
from shared.stored import stored

HELD_OUT = 0.3
RIDGE = 0.01  # reg_covar of every mixture fitted here
MOST_COMPONENTS = 8  # of a site
STARTS = 2  # of every local fit


@dataclass(frozen=True, eq=False)
class Sites:
    """What sites send, all their rows together (for those who may see them), and rows held out, by site or in one."""

    models: list[LocalModel]
    rows: np.ndarray
    out: list[np.ndarray]


# ---------------------------------------------------------------- what a site does


def best_mixture(rows: np.ndarray, seed: int) -> LocalModel:
    """A mixture with full covariances, its size by BIC."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    best, lowest = None, math.inf
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for K in range(1, MOST_COMPONENTS + 1):
            model = GaussianMixture(K, n_init=STARTS, reg_covar=RIDGE, random_state=seed).fit(rows)
            bic = model.bic(rows)
            if bic < lowest:
                best, lowest = model, bic
            elif best.n_components + 2 <= K:  # two larger ones were no better
                break
    return mixture(best.means_, best.covariances_, best.predict_proba(rows).sum(axis=0), counted=True)


def split(groups: list[np.ndarray], rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of each site to keep, and to hold out."""
    for rows in groups:
        order = rng.permutation(len(rows))
        out = round(HELD_OUT * len(rows))
        yield rows[order[out:]], rows[order[:out]]


def fitted(kept: list[np.ndarray], out: list[np.ndarray], seed: int) -> Sites:
    """Sites of these rows, and rows held out."""
    models = [best_mixture(rows, seed) for rows in kept]
    return Sites(models, np.concatenate(kept), out)


# ---------------------------------------------------------------- the sets

CONSTANTS = {
    "age": (54, 9, 1),
    "trestbps": (130, 18, 5),
    "thalach": (140, 25, 5),
    "oldpeak": (1, 1, 0.5),
    "cp": (3, 1, 1),
}
"""Of a heart's columns: what is subtracted, divided by, and the width of the uniform noise that undoes rounding."""


def heart(seed: int) -> Sites:
    """Patients of four hospitals: age, blood pressure, heart rate, ST depression, kind of chest pain."""
    rng = np.random.default_rng(seed)
    by_hospital: dict[str, list[list[float]]] = {}
    with (files("modelweld") / "demo" / "data" / "heart_disease.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            values = [row[name] for name in CONSTANTS]
            if "" not in values and float(row["trestbps"]) > 0:
                by_hospital.setdefault(row["hospital"], []).append([float(v) for v in values])
    centre, unit, width = np.array(list(CONSTANTS.values())).T
    groups = [np.array(rows) for _, rows in sorted(by_hospital.items())]
    groups = [(rows + width * rng.uniform(-0.5, 0.5, rows.shape) - centre) / unit for rows in groups]
    return fitted(*map(list, zip(*split(groups, rng), strict=True)), seed)


def digits(seed: int, *, J: int = 10, D: int = 12, fewest: int = 40) -> Sites:
    """Handwritten digits, each class dealt to ten sites by Dirichlet(.3), in twelve public directions.

    A fifth of the images is public and no site's: its principal components, scaled to variance one on average.
    """
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(seed)
    images, digit = load_digits(return_X_y=True)
    public = rng.random(len(images)) < 0.2
    projection = PCA(D, random_state=0).fit(images[public])
    X = projection.transform(images) / math.sqrt(projection.explained_variance_.mean())
    kept = rng.random(len(X)) >= HELD_OUT
    while True:
        shares = np.cumsum(rng.dirichlet(np.full(J, 0.3), 10), axis=1)
        home = np.minimum((rng.random(len(X))[:, None] > shares[digit]).sum(axis=1), J - 1)
        if np.bincount(home[~public & kept], minlength=J).min() >= fewest:
            break
    own = [X[~public & kept & (home == j)] for j in range(J)]
    return fitted(own, [X[~public & ~kept]], seed)


def people(seed: int, *, J: int = 20, frames: int = 600) -> Sites:
    """Moving people, twenty of those with enough frames; whole sequences are held out.

    Frames are centred within their sequence and measured in the deviations of the people who have too few.
    """
    data, rows = stored("cmu_mocap", "cmu_mocap12.npz", "sequences.csv")
    by_person: dict[str, list[np.ndarray]] = {}
    for row, X in zip(rows, np.split(data["X"] * float(data["scale"]), data["seq_start"][1:-1]), strict=True):
        if row["angle_wrap_flag"] == "0":
            by_person.setdefault(row["subject"], []).append(X - X.mean(axis=0))
    enough = {p for p, s in by_person.items() if sum(map(len, s)) >= 1.5 * frames and len(s) >= 4}
    unit = np.concatenate([X for p in sorted(by_person.keys() - enough) for X in by_person[p]]).std(axis=0)
    rng = np.random.default_rng(seed)
    kept, out = [], []
    for person in rng.choice(sorted(enough), J, replace=False):
        sequences = [by_person[person][i] / unit for i in rng.permutation(len(by_person[person]))]
        ends = np.cumsum([len(s) for s in sequences])
        last = int(np.searchsorted(ends, HELD_OUT * ends[-1])) + 1  # the first sequences, until enough are held out
        for part, of in ((kept, sequences[last:]), (out, sequences[:last])):
            whole = np.concatenate(of)
            part.append(rng.permutation(whole)[: frames if part is kept else frames // 2])
    return fitted(kept, out, seed)


def weather(seed: int, *, J: int = 37, days: int = 400, stations: int = 5) -> Sites:
    """Days at the weather stations of a state: place, height, season, temperature; states with five stations."""
    data, table = stored("weather", "ghcnd_daily.npz", "ghcnd_stations.csv")
    place = np.array([[float(s["latitude"]), float(s["longitude"]), float(s["elevation_m"])] for s in table])
    state = np.array([s["state"] for s in table])
    names, number = np.unique(state, return_counts=True)
    at = data["station_index"].astype(int)
    angle = 2 * np.pi * data["day"].astype(float) / 365.25
    temperature = (data["tmax_dC"].astype(float) + data["tmin_dC"]) / 20
    height = np.log(np.maximum(place[:, 2], 1.0))
    X = np.column_stack([(place[at, 0] - 38) / 8, (place[at, 1] + 95) / 18, (height[at] - 5) / 1.7])
    X = np.column_stack([X, np.cos(angle), np.sin(angle), (temperature - 12) / 10])
    rng = np.random.default_rng(seed)
    groups = []
    for name in names[number >= stations][:J]:
        rows = rng.choice(np.flatnonzero(state[at] == name), round(days / (1 - HELD_OUT)), replace=False)
        groups.append(X[rows] + 0.05 * rng.standard_normal((len(rows), X.shape[1])))
    return fitted(*map(list, zip(*split(groups, rng), strict=True)), seed)


SETS: dict[str, Callable[..., Sites]] = {"heart": heart, "digits": digits, "people": people, "weather": weather}
