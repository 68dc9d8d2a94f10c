"""Movements: six sequences with an activity named for every frame, and a database without.

Everywhere the twelve channels are centred within their sequence and otherwise left as they are, as in the paper.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parents[1] / "data"
Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Person(NamedTuple):
    """Sequences of a person, one below the other; activities by frame where they are known."""

    name: str
    X: Array
    lengths: Index
    activity: Index | None = None

    def sequences(self, chosen: Iterable[int]) -> Person:
        """Some of the sequences."""
        ends = np.cumsum(self.lengths)
        chosen = list(chosen)
        rows = np.concatenate([np.arange(ends[s] - self.lengths[s], ends[s]) for s in chosen])
        return Person(
            self.name, self.X[rows], self.lengths[chosen], None if self.activity is None else self.activity[rows]
        )


def pooled(people: Iterable[Person]) -> Person:
    """All sequences of all people in one place."""
    people = list(people)
    activity = None if people[0].activity is None else np.concatenate([p.activity for p in people])
    return Person("all", np.concatenate([p.X for p in people]), np.concatenate([p.lengths for p in people]), activity)


@cache
def two_people() -> tuple[Person, Person]:
    """The two people of the paper, three sequences each."""
    with np.load(DATA / "mocap6" / "mocap6.npz") as held:
        start, subject = held["seq_start"], held["subject"]
        X, labels = held["X"].astype(float), held["labels"].astype(np.int64)
    people = []
    for name in np.unique(subject):
        (own,) = np.nonzero(subject == name)
        rows = slice(start[own[0]], start[own[-1] + 1])  # a person's sequences lie together
        people.append(Person(f"person {name}", X[rows], np.diff(start)[own], labels[rows]))
    return people[0], people[1]


def activity_names() -> list[str]:
    """What people do."""
    with np.load(DATA / "mocap6" / "mocap6.npz") as held:
        return [str(name) for name in held["activity_names"]]


def channel_names() -> list[str]:
    """What is measured."""
    with np.load(DATA / "mocap6" / "mocap6.npz") as held:
        return [str(name) for name in held["channel_names"]]


class Take(NamedTuple):
    """One sequence of the database, not centred, and what its index says about it."""

    subject: str
    description: str
    X: Array


@cache
def takes() -> tuple[Take, ...]:
    """The database without the two people of the paper and without takes that have gimbal trouble."""
    folder = DATA / "cmu_mocap"
    with np.load(folder / "cmu_mocap12.npz") as held:
        X, start, scale = held["X"], held["seq_start"], float(held["scale"])
    with (folder / "sequences.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Take(row["subject"], row["description"].strip().lower(), X[start[i] : start[i + 1]] * scale)
        for i, row in enumerate(rows)
        if row["angle_wrap_flag"] == "0" and row["subject"] not in ("13", "14")
    )


@cache
def database(least_takes: int = 2) -> tuple[Person, ...]:
    """Everyone else with at least so many takes, centred, in the order of their numbers."""
    people: dict[str, list[Array]] = {}
    for take in takes():
        people.setdefault(take.subject, []).append(take.X - take.X.mean(axis=0))
    return tuple(
        Person(f"person {name}", np.concatenate(own), np.array([len(x) for x in own]))
        for name, own in sorted(people.items(), key=lambda item: int(item[0]))
        if len(own) >= least_takes
    )
