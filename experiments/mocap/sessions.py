"""Sessions made of takes whose activity the database's index names: where settings are chosen, far from the two people.

A take is short and shows what its description says, more or less. Takes of a person, dealt to three sequences in random
order, make a session like those of the study, with an activity for every frame; two people (or one person twice) who
have descriptions in common make a pair of sites.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np

from data import Array, Person, takes

SEQUENCES = 3
LONGEST = 100
"""Frames of a take that are used: ten seconds."""
MOST_ACTIVITIES, FEWEST_ACTIVITIES = 10, 4
MOST_TAKES = 3
"""Of an activity, in a session."""
FEWEST_FRAMES = 600
"""The smaller of the two people of the study has 838."""


def described() -> dict[str, dict[str, list[Array]]]:
    """Takes by person and description."""
    people: dict[str, dict[str, list[Array]]] = defaultdict(lambda: defaultdict(list))
    for take in takes():
        if take.description not in ("", "unknown"):
            people[take.subject][take.description].append(take.X[:LONGEST])
    return people


def session(own: dict[str, list[Array]], names: list[str], rng: np.random.Generator) -> Person:
    """A session of these activities: takes dealt to sequences."""
    chosen = [(a, own[d][i]) for a, d in enumerate(names) for i in rng.permutation(len(own[d]))[:MOST_TAKES]]
    order = rng.permutation(len(chosen))
    dealt = [[chosen[i] for i in order[s::SEQUENCES]] for s in range(SEQUENCES)]
    frames = [np.concatenate([x for _, x in part]) for part in dealt]
    activity = np.concatenate([np.full(len(x), a) for part in dealt for a, x in part])
    return Person(
        "session", np.concatenate([x - x.mean(axis=0) for x in frames]), np.array([len(x) for x in frames]), activity
    )


def sessions(seed: int = 0) -> list[Person]:
    """One session of everyone who has done enough, by person's number."""
    result = []
    for name, own in sorted(described().items(), key=lambda item: int(item[0])):
        if len(own) < FEWEST_ACTIVITIES:
            continue
        rng = np.random.default_rng([int(name), seed])
        names = [str(d) for d in rng.permutation(sorted(own))[:MOST_ACTIVITIES]]
        made = session(own, names, rng)
        if len(made.X) >= FEWEST_FRAMES:
            result.append(made._replace(name=f"person {name}"))
    return result


def pairs(seed: int = 0) -> list[tuple[Person, Person]]:
    """Pairs of sessions of one person, each with half of the takes of what both show, and further activities."""
    result = []
    for name, own in sorted(described().items(), key=lambda item: int(item[0])):
        rng = np.random.default_rng([int(name), seed, 1])
        shared = [d for d in sorted(own) if len(own[d]) >= 2]
        alone = [d for d in sorted(own) if len(own[d]) == 1]
        shared = [str(d) for d in rng.permutation(shared)[:6]]
        alone = [str(d) for d in rng.permutation(alone)[:6]]
        if len(shared) < 3 or len(shared) + len(alone) < FEWEST_ACTIVITIES + 2:
            continue
        halves: tuple[dict[str, list[Array]], ...] = ({}, {})
        for d in shared:
            order = rng.permutation(len(own[d]))
            for half, part in zip(halves, (order[::2], order[1::2]), strict=True):
                half[d] = [own[d][i] for i in part]
        for k, d in enumerate(alone):
            halves[k % 2][d] = own[d]
        names = shared + alone
        both = []
        for half in halves:
            held = [d for d in names if d in half]
            made = session(half, held, rng)
            both.append(made._replace(activity=np.array([names.index(held[a]) for a in made.activity])))
        if min(len(p.X) for p in both) >= FEWEST_FRAMES // 2:
            result.append((both[0]._replace(name=f"person {name}"), both[1]._replace(name=f"person {name} again")))
    return result


FEWEST_SHARED, MOST_SHARED, MOST_ALONE = 3, 6, 4
"""Descriptions that two people must share, and that are taken of those they share and do not."""

MOST_PAIRS = 2
"""In which a person occurs."""


def strangers(seed: int = 0) -> list[tuple[Person, Person]]:
    """Pairs of sessions of two people, those who share most descriptions first."""
    people, used, result = described(), Counter[str](), []
    by_shared = sorted(combinations(sorted(people, key=int), 2), key=lambda pair: -len(_shared(people, pair)))
    for pair in by_shared:
        if len(_shared(people, pair)) < FEWEST_SHARED:
            break
        if max(used[name] for name in pair) >= MOST_PAIRS:
            continue
        rng = np.random.default_rng([int(pair[0]), int(pair[1]), seed])
        names = [str(d) for d in rng.permutation(_shared(people, pair))[:MOST_SHARED]]
        shared, both = list(names), []
        for name in pair:
            own = people[name]
            held = shared + [str(d) for d in rng.permutation(sorted(set(own) - set(shared)))[:MOST_ALONE]]
            names += [d for d in held if d not in names]
            made = session(own, held, rng)
            activity = np.array([names.index(held[a]) for a in made.activity])
            both.append(made._replace(name=f"person {name}", activity=activity))
        if min(len(p.X) for p in both) >= FEWEST_FRAMES // 2:
            result.append((both[0], both[1]))
            used.update(pair)
    return result


def _shared(people: dict[str, dict[str, list[Array]]], pair: tuple[str, str]) -> list[str]:
    return sorted(set(people[pair[0]]) & set(people[pair[1]]))
