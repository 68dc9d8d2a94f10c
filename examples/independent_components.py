"""Independent components of several subjects: which are the same, whatever their order and polarity?

    python examples/independent_components.py

Subjects are simulated on the 64 places of a real cap (experiments/data/electrodes): sources in the head, some of them
shared by subjects, project to the electrodes as dipoles do. Each subject runs FastICA and sends its mixing matrix;
recordings stay where they are. Neither the number of components nor a threshold of similarity is given.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from sklearn.decomposition import FastICA

import modelweld

CAP = Path(__file__).parents[1] / "experiments" / "data" / "electrodes" / "biosemi64.csv"
SUBJECTS, SHARED, SAMPLES, JITTER = 8, 6, 3000, 0.02


def electrodes() -> tuple[list[str], np.ndarray]:
    """Names, and places (64, 3) on a head of radius one."""
    rows = list(csv.DictReader(CAP.read_text(encoding="utf-8").splitlines()))
    down, round_ = (np.radians([float(row[name]) for row in rows]) for name in ("inclination", "azimuth"))
    places = np.column_stack([np.sin(down) * np.cos(round_), np.sin(down) * np.sin(round_), np.cos(down)])
    return [row["electrode"] for row in rows], places


def dipole(place: np.ndarray, moment: np.ndarray, sensors: np.ndarray) -> np.ndarray:
    """What a dipole looks like on the scalp, against the mean of all electrodes."""
    apart = sensors - place
    seen = apart @ moment / np.linalg.norm(apart, axis=1) ** 3
    return seen - seen.mean()


def record(sources: list[tuple[np.ndarray, np.ndarray]], sensors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Samples of all electrodes: bursts of every source, at about its place, and noise."""
    maps = np.array(
        [dipole(p + JITTER * rng.normal(size=3), m + JITTER * rng.normal(size=3), sensors) for p, m in sources]
    )
    maps /= np.linalg.norm(maps, axis=1, keepdims=True)
    return rng.laplace(size=(SAMPLES, len(maps))) @ maps + 0.02 * rng.normal(size=(SAMPLES, len(sensors)))


def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Place and moment of a source, at half to three quarters of the way to the upper scalp."""
    place = rng.normal(size=3)
    place *= rng.uniform(0.5, 0.75) / np.linalg.norm(place)
    return np.abs(place) * [*np.sign(place[:2]), 1.0], rng.normal(size=3)


def main(seed: int = 0) -> modelweld.Fusion:
    """Simulate, fuse, and say which sources were found by whom."""
    rng = np.random.default_rng(seed)
    names, sensors = electrodes()
    shared = [draw(rng) for _ in range(SHARED)]
    holds = [np.sort(rng.permutation(SHARED)[:4]) for _ in range(SUBJECTS)]
    models = []
    for held in holds:
        X = record([shared[k] for k in held] + [draw(rng)], sensors, rng)  # the last is the subject's own
        ica = FastICA(len(held) + 1, random_state=seed, max_iter=1000, tol=1e-3).fit(X)
        models.append(modelweld.read(ica, X=X, features=names))
    fusion = modelweld.fuse(models)
    print(fusion, f"(there are {len(set(np.concatenate(holds)))} shared sources and {SUBJECTS} of single subjects)")
    print(fusion.table())
    turned = sum(int((signs < 0).sum()) for signs in fusion.parameters.signs)
    print(f"{turned} of {sum(map(len, fusion.labels))} components were the other way round: fusion.parameters.signs")
    print("FastICA of all:", fusion.model().mixing_.shape)
    return fusion


if __name__ == "__main__":
    main()
