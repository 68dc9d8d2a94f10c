"""Daily temperatures of the 50 states: the paper's seven features in units that everybody knows, and random splits."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array
from shared.stored import stored

ISLANDS = ("AS", "FM", "GU", "MH", "PR", "PW")  # codes in the data that are no states
# features: day, month, year, latitude, longitude, elevation, yesterday
OFFSET = np.array([16.0, 6.5, 2016.0, 40.0, -95.0, 1000.0, 55.0])
UNIT = np.array([9.0, 3.5, 1.0, 5.0, 15.0, 2000.0, 20.0])
"""Features are sent as (feature - OFFSET) / UNIT: the middle of the month and of the year, the middle of the country, a
thousand feet, 55 F, and rough deviations. Round numbers out of a school atlas, so that no site says a thing about its
data by using them; lengthscales are learned, so they are units of the optimiser and nothing else."""
MEAN, DEVIATION = 55.0, 20.0  # F; temperatures are learned as (F - MEAN) / DEVIATION, with prior mean zero


class Weather(NamedTuple):
    """One row per station and day with a day before: features in units, temperature in F, state."""

    X: Array
    y: Array
    state: np.ndarray


class Rows(NamedTuple):
    """Rows of one state or of several: features, temperatures in F."""

    X: Array
    y: Array


class Split(NamedTuple):
    """Training and test rows of every state, and a test set across all of them."""

    states: list[str]
    train: list[Rows]
    own: list[Rows]
    across: Rows


@cache
def weather() -> Weather:
    """The table."""
    data, places = stored("weather", "ghcnd_daily.npz", "ghcnd_stations.csv")
    station, day = data["station_index"].astype(np.int64), data["day"].astype(np.int64)
    fahrenheit = (data["tmax_dC"].astype(float) + data["tmin_dC"]) / 20 * 1.8 + 32
    after = np.flatnonzero((np.diff(station) == 0) & (np.diff(day) == 1)) + 1
    date = (np.datetime64(str(data["origin"]), "D") + day)[after]
    month, year = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    where = np.array([[float(p[name]) for name in ("latitude", "longitude", "elevation_m")] for p in places])
    where[:, 2] *= 3.28084  # feet
    calendar = (date - month).astype(int) + 1, (month - year).astype(int) + 1, year.astype(int) + 1970
    features = np.column_stack([*calendar, where[station[after]], fahrenheit[after - 1]])
    state = np.array([p["state"] for p in places])[station[after]]
    kept = ~np.isin(state, ISLANDS)
    return Weather(((features - OFFSET) / UNIT)[kept], fahrenheit[after][kept], state[kept])


def split(seed: int, train: int, own: int, across: int, only: int | None = None) -> Split:
    """Random rows of every state, `train` to learn from and `own` to test on; `across` of these from every state.

    `only` takes a random few of the states.
    """
    table, rng = weather(), np.random.default_rng(seed)
    states = sorted(set(table.state.tolist()))
    if only is not None:
        states = sorted(rng.choice(states, only, replace=False).tolist())
    learning, testing = [], []
    for state in states:
        rows = rng.permutation(np.flatnonzero(table.state == state))[: train + own]
        taken = Rows(table.X[rows], table.y[rows])
        learning.append(Rows(*(column[:train] for column in taken)))
        testing.append(Rows(*(column[train:] for column in taken)))
    parts = zip(*(tuple(column[:across] for column in rows) for rows in testing), strict=True)
    return Split(states, learning, testing, Rows(*(np.concatenate(part) for part in parts)))
