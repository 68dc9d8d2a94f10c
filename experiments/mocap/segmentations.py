"""Segmentations of people's frames: by their own models' states, matched or not, and by one model of all frames."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from data import Array, Index, Person, pooled
from modelweld import Search, fuse, read
from modelweld.demo.metrics import adjusted_rand
from modelweld.hmm import StickyHDPHMM
from shared.baselines import kmeans_matching
from shared.measures import hamming
from study import Result, timed

SETTINGS = {"paper": StickyHDPHMM.paper, "default": StickyHDPHMM}
OURS, FULL, NONE = "fuse(models)", "full model", "no matching"
APART = "full model, no state shared"
ACTIVITIES = 12
"""What k-means is given: the number of activities of the two people."""


def compared(people: Sequence[Person], setting: str, seed: int) -> dict[str, Any]:
    """Scores of all segmentations of some people, with CPU seconds and paths."""
    warnings.simplefilter("ignore")
    everyone = pooled(people)
    part = people[0].X[: people[0].lengths[0]]
    fuse([StickyHDPHMM(random_state=s).fit(part) for s in range(2)]).model()  # compiles
    fits = [timed(SETTINGS[setting](random_state=seed).fit, p.X, p.lengths) for p in (*people, everyone)]
    (*models, full), seconds = map(list, zip(*fits, strict=True))
    paths = [m.predict(p.X, p.lengths) for m, p in zip(models, people, strict=True)]
    together = full.predict(everyone.X, everyone.lengths)
    fusion, last = timed(fuse, models)
    means = [read(m, known="equally", site=f"site {j}") for j, m in enumerate(models)]
    matched = {
        OURS: fusion,
        "SPAHM, authors' form": fuse(means, preset="authors"),
        "means alone": fuse(means, search=Search(splits=False)),
        f"k-means, k={ACTIVITIES}": kmeans_matching(
            [m.means_ for m in models], min(ACTIVITIES, sum(len(m.means_) for m in models)), seed=0
        ),
    }
    alone = np.concatenate([path + 1000 * j for j, path in enumerate(paths)])
    person = np.repeat(np.arange(len(people)), [len(p.X) for p in people])
    found = {
        **{name: np.concatenate([f.labels[j][path] for j, path in enumerate(paths)]) for name, f in matched.items()},
        NONE: alone,
        FULL: together,
        APART: together * len(people) + person,
    }
    return {
        "scores": {name: scores(everyone.activity, path) for name, path in found.items()},
        "people": [p.name for p in people],
        "frames": len(everyone.X),
        "K": [m.n_states_ for m in (*models, full)],
        "seconds": [*seconds, last],
        "paths": {OURS: runs(found[OURS])},
    }


def times(done: Sequence[Result]) -> Array:
    """Mean CPU seconds of the slowest person, the matching and the full model."""
    return np.mean([(max(r["seconds"][:-2]), r["seconds"][-1], r["seconds"][-2]) for r in done], axis=0)


def scores(activity: Index, path: Index) -> dict[str, float]:
    """Of a segmentation."""
    path = np.unique(path, return_inverse=True)[1]
    return {"hamming": hamming(activity, path), "ari": adjusted_rand(activity, path), "K": int(path.max()) + 1}


def runs(path: Index) -> list[list[int]]:
    """A path as runs: state and number of frames."""
    ends = np.flatnonzero(np.diff(path, append=-1))
    return [[int(path[e]), int(n)] for e, n in zip(ends, np.diff(ends, prepend=-1), strict=True)]


def unpacked(found: Sequence[Sequence[int]]) -> Index:
    """A path from its runs."""
    return np.concatenate([np.full(n, k) for k, n in found])
