"""Do confidences and the intervals of K hold off the model? Stated against true, in worlds that the model is not of.

    python experiments/verdicts/worlds.py [--sets 60] [--mnist mnist.npz] [--out reproduced/verdicts]
    python experiments/verdicts/worlds.py --smoke    # seconds

All worlds get ten sets, then all ten more, and so on; what is done so far is written after every ten. Atoms of
simulated sites have deviation 2.5, values scatter by .5; `fuse` is called bare. The number of groups is that of all
that any site has; shared are those that several have.

- half, quarter: sites of 8 values, so many of them of atoms that all sites hold, the rest their own
- beta a b: 20 atoms, each held with a probability of its own from that law
- t4: each of 15 atoms is held with probability 1/2; noise has the t law of four degrees
- gmm: `GaussianMixture(6, covariance_type="diag")` of a site's points, of six of twelve components (centres N(0, 3²),
  deviation 1, three features); the truth of a component is the true one that most of its points come from
- mnist: means of 8 to 39 images of each of about six digits, in so many principal components, with standard errors
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: seconds should mean one core

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration import ROUND, bins

import modelweld
from modelweld import LocalModel, fuse, read
from modelweld.results.posterior.confidence import is_right
from provenance import keep
from study import Result, versions

SPREAD, NOISE, FIRST_SEED = 2.5, 0.5, 94_000
VALUES, BETA_ATOMS, ATOMS, COMPONENTS, HELD, CENTRES, FEATURES = 8, 20, 15, 12, 6, 3.0, 3
FEWEST, LEAST, MOST_OVER, MOST_UNDER, SURE = 60, 0.85, 0.04, 0.06, 0.8
"""Matches of a bin that is judged; what intervals of 90 % must hold; how much confidences above .8 may be off."""

Array = np.ndarray
World = tuple[list[Any], list[Array]]
"""What sites send, and the true groups of their values."""


def in_part(rng: np.random.Generator, J: int, D: int, common: int) -> World:
    """Sites of which `common` values are of atoms that all of them hold."""
    atoms, own = SPREAD * rng.standard_normal((common, D)), VALUES - common
    sites, truth = [], []
    for j in range(J):
        held = np.concatenate([atoms, SPREAD * rng.standard_normal((own, D))])
        order = rng.permutation(VALUES)
        sites.append((held + NOISE * rng.standard_normal(held.shape))[order])
        truth.append(np.append(np.arange(common), common + j * own + np.arange(own))[order])
    return sites, truth


def held_with(rng: np.random.Generator, J: int, D: int, chances: Array, heavy: bool = False) -> World:
    """Sites that hold each atom with a probability of its own."""
    atoms = SPREAD * rng.standard_normal((len(chances), D))
    sites, truth = [], []
    for _ in range(J):
        held = rng.permutation(np.flatnonzero(rng.random(len(chances)) < chances))
        held = held if len(held) else rng.integers(len(chances), size=1)
        shape = len(held), D
        off = rng.standard_t(4, shape) / np.sqrt(2) if heavy else rng.standard_normal(shape)
        sites.append(atoms[held] + NOISE * off)
        truth.append(held)
    return sites, truth


def mixtures(rng: np.random.Generator, J: int, points: int, told: bool) -> World:
    """Mixtures that sites fitted."""
    centres = CENTRES * rng.standard_normal((COMPONENTS, FEATURES))
    sites, truth = [], []
    for _ in range(J):
        own = rng.permutation(COMPONENTS)[:HELD][rng.integers(HELD, size=points)]
        X = centres[own] + rng.standard_normal((points, FEATURES))
        model = GaussianMixture(HELD, covariance_type="diag", random_state=0).fit(X)
        at = model.predict(X)
        truth.append(np.array([np.bincount(own[at == k], minlength=1).argmax() for k in range(HELD)]))
        sites.append(read(model, X=X) if told else model)
    return sites, truth


@cache
def components(file: str) -> tuple[Array, Array]:
    """Twelve principal components of twenty thousand images, and their digits."""
    data = np.load(file)
    X, y = data["x_train"][:20_000].reshape(20_000, -1) / 255.0, data["y_train"][:20_000]
    X = X - X.mean(0)
    return X @ np.linalg.eigh(np.cov(X.T))[1][:, :-13:-1], y


def digits(rng: np.random.Generator, J: int, D: int, file: str) -> World:
    """Means of the digits that a site has, with standard errors."""
    X, y = components(file)
    sites, truth = [], []
    for j in range(J):
        held = rng.permutation(np.flatnonzero(rng.random(10) < 0.6))
        held = held if len(held) else rng.integers(10, size=1)
        own = [X[rng.choice(np.flatnonzero(y == c), rng.integers(8, 40), replace=False), :D] for c in held]
        means, variances = (np.array([f(x) for x in own]) for f in (lambda x: x.mean(0), lambda x: x.var(0) / len(x)))
        axes = {"values": ("atom", None)}
        sites.append(LocalModel({"values": means}, axes, variance={"values": variances}, site=f"site {j}"))
        truth.append(held)
    return sites, truth


WORLDS: dict[str, Callable[[np.random.Generator, str], World]] = {
    "half J5 D3": lambda rng, _: in_part(rng, 5, 3, 4),
    "half J5 D10": lambda rng, _: in_part(rng, 5, 10, 4),
    "half J8 D4": lambda rng, _: in_part(rng, 8, 4, 4),
    "quarter J5 D3": lambda rng, _: in_part(rng, 5, 3, 2),
    "quarter J5 D10": lambda rng, _: in_part(rng, 5, 10, 2),
    "beta .6 .8 J5 D4": lambda rng, _: held_with(rng, 5, 4, rng.beta(0.6, 0.8, BETA_ATOMS)),
    "beta .6 .8 J12 D2": lambda rng, _: held_with(rng, 12, 2, rng.beta(0.6, 0.8, BETA_ATOMS)),
    "beta 2 2 J6 D3": lambda rng, _: held_with(rng, 6, 3, rng.beta(2, 2, BETA_ATOMS)),
    "t4 J6 D3": lambda rng, _: held_with(rng, 6, 3, np.full(ATOMS, 0.5), heavy=True),
    "gmm J3": lambda rng, _: mixtures(rng, 3, 300, told=False),
    "gmm J5": lambda rng, _: mixtures(rng, 5, 300, told=False),
    "gmm J8": lambda rng, _: mixtures(rng, 8, 300, told=False),
    "gmm J12 with X": lambda rng, _: mixtures(rng, 12, 300, told=True),
    "gmm J25, 150 points": lambda rng, _: mixtures(rng, 25, 150, told=False),
    "mnist J6 D4": lambda rng, file: digits(rng, 6, 4, file),
    "mnist J6 D12": lambda rng, file: digits(rng, 6, 12, file),
}


def one_set(world: str, seed: int, file: str) -> Result:
    """What was stated of one set, and what is so."""
    sites, groups = WORLDS[world](np.random.default_rng(seed), file)
    fusion, begin = fuse(sites), time.process_time()
    stated, posterior = fusion.confidence(), fusion.posterior.draws()
    spent, truth = time.process_time() - begin, np.concatenate(groups)
    held = np.bincount(np.concatenate([np.unique(own) for own in groups]))
    right = is_right(fusion.matching.stacked_labels, truth, np.random.default_rng([seed, 1]))
    return {
        "stated": np.round(np.concatenate(stated), 4).tolist(),
        "right": right.astype(int).tolist(),
        "K": [int((held > 0).sum()), *posterior.K_interval(), round(float(posterior.K.mean()), 3), fusion.K],
        "shared": [
            int((held > 1).sum()),
            *posterior.shared_interval(),
            round(float(np.mean(posterior.shared)), 3),
            fusion.shared,
        ],
        "r_hat": round(max(stated.r_hat.values()), 4),
        "seconds": round(spent, 3),
    }


def holds(runs: Sequence[Result], name: str) -> float:
    """Share of sets whose interval holds the true number."""
    true, low, high, *_ = np.array([run[name] for run in runs]).T
    return float(((low <= true) & (true <= high)).mean())


def told_of(name: str, runs: list[Result]) -> str:
    """One line of the table."""
    shown = ", ".join(f"{s:.3f} > {t:.3f} ± {e:.3f} ({n:,})" for s, t, e, n in bins(runs, FEWEST) if s > SURE)
    numbers = []
    for kind in ("K", "shared"):
        true, low, high, mean, fitted = np.array([run[kind] for run in runs]).T
        off = f"{(mean - true).mean():+.1f}, fit {(fitted - true).mean():+.1f}"
        numbers.append(f"{holds(runs, kind):.2f} ({(high - low).mean():.1f}; {off} of {true.mean():.1f})")
    stated, right = (np.concatenate([run[x] for run in runs]) for x in ("stated", "right"))
    brier = np.square(stated - right).mean()
    slow, apart = np.mean([run["seconds"] for run in runs]), np.mean([run["r_hat"] > 1.1 for run in runs])
    return f"| {name} ({len(runs)}) | {shown} | {' | '.join(numbers)} | {brier:.3f} | {slow:.2f} | {apart:.2f} |"


def claims(cells: dict[str, list[Result]]) -> list[str]:
    """What must hold, and where it does not."""
    off: dict[str, list[str]] = {}
    for name, runs in cells.items():
        for kind in ("K", "shared"):
            missed = off.setdefault(f"90 % intervals of {kind} hold at least {LEAST:.0%}", [])
            missed += [f"{name}: {share:.2f}" for share in [holds(runs, kind)] if share < LEAST]
        missed = off.setdefault(f"confidences above {SURE} at most {MOST_OVER} too sure, {MOST_UNDER} too careful", [])
        for stated, true, error, _ in bins(runs, FEWEST):
            if stated > SURE and not -MOST_UNDER <= stated - true <= MOST_OVER:
                missed.append(f"{name}: {stated:.3f} > {true:.3f} ± {error:.3f}")
    return [f"- {'NO' if where else 'yes'}: {text}. {'; '.join(where)}" for text, where in off.items()]


def write(out: Path, about: dict[str, str], cells: dict[str, list[Result]]) -> str:
    """Record what is done, and tell it."""
    lines = [
        "# Confidences and intervals off the model\n",
        f"Seeds from {FIRST_SEED}; {', '.join(f'{name} {v}' for name, v in about.items())}.\n",
        *claims(cells),
        "\nIntervals: share that hold (mean width; mean of draws less truth, fit less truth, of the mean truth).\n",
        f"| world (sets) | stated > true ± standard error (matches), above {SURE}, bins of at least {FEWEST} | "
        "90 % interval of K | of shared groups | Brier | CPU s | R-hat above 1.1 |\n"
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(told_of(name, runs) for name, runs in cells.items()),
    ]
    text = "\n".join(lines) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    keep(out / "worlds.json", {"versions": about, "cells": cells}, {"first_seed": FIRST_SEED})
    (out / "worlds.md").write_text(text)
    return text


def main() -> None:
    """Judge all worlds, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--mnist", default="", help="mnist.npz with x_train and y_train; without it, no digits")
    parser.add_argument("--out", type=Path, default=Path("reproduced", "verdicts"))
    parser.add_argument("--smoke", action="store_true", help="two worlds, two sets")
    asked, about = parser.parse_args(), versions(modelweld)
    warnings.simplefilter("ignore")
    names = ["half J5 D3", "gmm J3"] if asked.smoke else [x for x in WORLDS if asked.mnist or "mnist" not in x]
    cells: dict[str, list[Result]] = {name: [] for name in names}
    sets, text = 2 if asked.smoke else asked.sets, ""
    for begin in range(0, sets, ROUND):
        for name, runs in cells.items():
            seeds = range(FIRST_SEED + begin, FIRST_SEED + min(begin + ROUND, sets))
            runs += [one_set(name, seed, asked.mnist) for seed in seeds]
        text = write(asked.out, about, cells)
    print(text)


if __name__ == "__main__":
    main()
