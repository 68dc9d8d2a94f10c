"""Movements: the two people of the paper, an activity named for every frame, and groups of others of the database.

The twelve channels are centred within their sequence and otherwise left as they are, as in the paper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Index
from shared.stored import DATA, stored

WORDS = (
    *("sideways", "backward", "jump", "run", "jog", "dance", "salsa", "basketball", "soccer", "kick", "punch", "box"),
    *("throw", "climb", "sit", "pick", "hop", "stretch", "swing", "march", "sneak", "crawl", "wash", "drink", "wave"),
    *("bend", "balance", "skip", "turn", "walk"),
)
"""Activities: the first of these words in a take's description names it."""

UNSEEN = tuple(map(str, (1, 2, 5, 6, 16, 36, 41, 56, 64, 75, 76, 85, 104, 124, 137, 141, 142, 144)))
"""People of two activities or more who had no part in the choice of zeta's slope or of the default matching."""

LONGEST, SEQUENCES, MOST_TAKES = 100, 3, 3
"""Frames of a take that are used; sequences of a person; takes of an activity."""

SIZES = {2: 4, 3: 3, 5: 2, 8: 2}
"""People of a group, and groups of that size in a draw; those of a size are disjoint."""


class Person(NamedTuple):
    """Sequences of a person, one below the other, and the activity of every frame."""

    name: str
    X: Array
    lengths: Index
    activity: Index


def pooled(people: Sequence[Person]) -> Person:
    """All sequences of all people in one place."""
    X, lengths, activity = (np.concatenate([getattr(p, what) for p in people]) for what in Person._fields[1:])
    return Person("all", X, lengths, activity)


@cache
def held() -> dict[str, Array]:
    """The file of the two people."""
    return dict(np.load(DATA / "mocap6" / "mocap6.npz"))


@cache
def two_people() -> list[Person]:
    """The two people of the paper, three sequences each."""
    file = held()
    start, subject, people = file["seq_start"], file["subject"], []
    for name in np.unique(subject):
        (own,) = np.nonzero(subject == name)
        rows = slice(start[own[0]], start[own[-1] + 1])  # a person's sequences lie together
        people.append(Person(f"{name}", file["X"][rows], np.diff(start)[own], file["labels"][rows].astype(np.int64)))
    return people


@cache
def takes() -> dict[str, dict[str, list[Array]]]:
    """Takes without gimbal trouble of the unseen people, by person and activity."""
    file, rows = stored("cmu_mocap", "cmu_mocap12.npz", "sequences.csv")
    X, start, scale = file["X"], file["seq_start"], float(file["scale"])
    people: dict[str, dict[str, list[Array]]] = {name: defaultdict(list) for name in UNSEEN}
    for i, row in enumerate(rows):
        word = next((w for w in WORDS if w in row["description"].lower()), None)
        if word is not None and row["angle_wrap_flag"] == "0" and row["subject"] in people:
            people[row["subject"]][word].append((X[start[i] : start[i + 1]] * scale)[:LONGEST])
    return people


def session(name: str, draw: int) -> Person:
    """A person's takes dealt to sequences in random order."""
    own, rng = takes()[name], np.random.default_rng([int(name), draw, 4])
    chosen = [(word, own[word][i]) for word in sorted(own) for i in rng.permutation(len(own[word]))[:MOST_TAKES]]
    order = rng.permutation(len(chosen))
    parts = [[chosen[i] for i in order[s::SEQUENCES]] for s in range(SEQUENCES)]
    frames = [np.concatenate([x for _, x in part]) for part in parts]
    activity = np.concatenate([np.full(len(x), WORDS.index(word)) for part in parts for word, x in part])
    X, lengths = np.concatenate([x - x.mean(axis=0) for x in frames]), np.array([len(x) for x in frames])
    return Person(name, X, lengths, activity)


def groups(draw: int) -> list[list[Person]]:
    """Groups of people of a draw, by size; everyone shares an activity with someone of the group."""
    people, rng, found = takes(), np.random.default_rng([4, draw]), []
    for size, number in SIZES.items():
        left = [str(name) for name in rng.permutation(UNSEEN)]
        for _ in range(number):
            group, shown = [], set[str]()
            while len(group) < size:
                name = next(n for n in left if not group or shown & set(people[n]))
                left.remove(name)
                group.append(session(name, draw))
                shown |= set(people[name])
            found.append(group)
    return found
