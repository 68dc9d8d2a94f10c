"""Do confidences and intervals hold, on the model and off it? Stated against true where the truth is known.

    python experiments/verdicts/worlds.py --mnist mnist.npz --jobs 2 --out experiments/verdicts/worlds
    python experiments/verdicts/worlds.py --smoke    # seconds

Said before it is run: 60 sets of every world that the model is not of and of every family, seeds 95000 to 95059; 20 of
the twelve worlds of the model, seeds 95000 to 95019. None of these seeds was looked at before; settings were chosen on
8000 to 8999. Without ``--mnist``, a file with x_train and y_train, its two worlds are left out.

Atoms of simulated sites have deviation 2.5, values scatter by .5; `fuse` is called bare, all sites are honest. K counts
the groups that any site has, shared those that several have. A match is right if its atom is the partner, one to one by
values in common, of its true atom. Matches of a set are right or wrong together: standard errors of bins are those of
sums over sets.

- model: sites hold each of 15 atoms with probability 1/2 (D = 10: values scatter by 1.2); errors: what is sent is off
  by standard errors too, uniform in .1 to .6
- half, quarter: sites of 8 values, so many of them of atoms that all sites hold, the rest their own
- beta a b: 20 atoms, each held with a probability of its own from that law
- t4: as model, noise has the t law of four degrees
- gmm: `GaussianMixture(6, covariance_type="diag")` of a site's points, of six of twelve components (centres N(0, 3²),
  deviation 1, three features); the truth of a component is the true one that most of its points come from
- mnist, digits, wine: means of 8 to 39 (wine: 4 to 9) rows of each class that a site has, in principal components, with
  standard errors
- families: `families.py`
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Table, Task  # isort: skip; first: it sets the threads

from cells import Cells, asked, measure

from families import CASES, family_sites
from modelweld import LocalModel, fuse, read
from modelweld.results.posterior.confidence import is_right

SPREAD, NOISE, FIRST_SEED, SETS, SETS_OF_MODEL = 2.5, 0.5, 95_000, 60, 20
VALUES, BETA_ATOMS, ATOMS, COMPONENTS, HELD, CENTRES, FEATURES = 8, 20, 15, 12, 6, 3.0, 3
EDGES = np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
FEWEST, LEAST, MOST_OVER, MOST_UNDER, SURE, MOST_WARNED = 60, 0.85, 0.04, 0.06, 0.8, 0.02
"""Matches of a bin that is judged; what intervals of 90 % must hold; how much confidences above .8 may be off; share of
honest fusions in which a site may be warned of."""

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


def held_with(
    rng: np.random.Generator, J: int, D: int, chances: Array, heavy: bool = False, errors: bool = False
) -> World:
    """Sites that hold each atom with a probability of its own."""
    noise = NOISE if D < 10 else 1.2
    atoms = SPREAD * rng.standard_normal((len(chances), D))
    sites, truth = [], []
    for j in range(J):
        held = rng.permutation(np.flatnonzero(rng.random(len(chances)) < chances))
        held = held if len(held) else rng.integers(len(chances), size=1)
        shape = len(held), D
        off = rng.standard_t(4, shape) / np.sqrt(2) if heavy else rng.standard_normal(shape)
        true, error = atoms[held] + noise * off, rng.uniform(0.1, 0.6, (len(held), 1)) * np.ones(D)
        sent = true + error * rng.standard_normal(shape) if errors else true
        sites.append(with_errors(sent, error**2, j) if errors else true)
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


def with_errors(values: Array, variance: Array, j: int) -> LocalModel:
    """What site j sends with squared standard errors."""
    return LocalModel({"values": values}, {"values": ("atom", None)}, variance={"values": variance}, site=f"site {j}")


@cache
def components(data: str, D: int) -> tuple[Array, Array]:
    """Principal components of labelled rows, and their classes: scikit-learn's digits or wine, or a file of MNIST."""
    if data in ("digits", "wine"):
        X, y = {"digits": load_digits, "wine": load_wine}[data](return_X_y=True)
        X = X if data == "digits" else (X - X.mean(0)) / X.std(0)
    else:
        stored = np.load(data)
        X, y = stored["x_train"][:20_000].reshape(20_000, -1) / 255.0, stored["y_train"][:20_000]
    return PCA(D, random_state=0, svd_solver="covariance_eigh").fit_transform(X), y


def class_means(rng: np.random.Generator, J: int, D: int, data: str, fewest: int = 8, most: int = 40) -> World:
    """Means of the classes that a site has, with standard errors."""
    X, y = components(data, D)
    sites, truth, classes = [], [], int(y.max()) + 1
    for j in range(J):
        held = rng.permutation(np.flatnonzero(rng.random(classes) < 0.6))
        held = held if len(held) else rng.integers(classes, size=1)
        own = [X[rng.choice(np.flatnonzero(y == c), rng.integers(fewest, most), replace=False)] for c in held]
        means, variances = (np.array([f(x) for x in own]) for f in (lambda x: x.mean(0), lambda x: x.var(0) / len(x)))
        sites.append(with_errors(means, variances, j))
        truth.append(held)
    return sites, truth


def on_model(J: int, D: int, errors: bool = False) -> Callable[[np.random.Generator, str], World]:
    """As `held_with`, each atom with probability one half."""
    return lambda rng, _: held_with(rng, J, D, np.full(ATOMS, 0.5), errors=errors)


WORLDS: dict[str, Callable[[np.random.Generator, str], World]] = {
    **{f"model J{J} D{D}": on_model(J, D) for J in (3, 8, 20) for D in (2, 10)},
    **{f"model J{J} D{D} errors": on_model(J, D, True) for J in (3, 8, 20) for D in (2, 10)},
    "half J5 D3": lambda rng, _: in_part(rng, 5, 3, 4),
    "half J5 D10": lambda rng, _: in_part(rng, 5, 10, 4),
    "half J8 D4": lambda rng, _: in_part(rng, 8, 4, 4),
    "quarter J5 D3": lambda rng, _: in_part(rng, 5, 3, 2),
    "quarter J5 D10": lambda rng, _: in_part(rng, 5, 10, 2),
    "beta .6 .8 J5 D4": lambda rng, _: held_with(rng, 5, 4, rng.beta(0.6, 0.8, BETA_ATOMS)),
    "beta .6 .8 J12 D2": lambda rng, _: held_with(rng, 12, 2, rng.beta(0.6, 0.8, BETA_ATOMS)),
    "beta 2 2 J6 D3": lambda rng, _: held_with(rng, 6, 3, rng.beta(2, 2, BETA_ATOMS)),
    "t4 J6 D3": lambda rng, _: held_with(rng, 6, 3, np.full(ATOMS, 0.5), heavy=True),
    **{f"gmm J{J}": lambda rng, _, J=J: mixtures(rng, J, 300, told=False) for J in (3, 5, 8)},
    "gmm J12 with X": lambda rng, _: mixtures(rng, 12, 300, told=True),
    "gmm J25, 150 points": lambda rng, _: mixtures(rng, 25, 150, told=False),
    "mnist J6 D4": lambda rng, file: class_means(rng, 6, 4, file),
    "mnist J6 D12": lambda rng, file: class_means(rng, 6, 12, file),
    "digits J8 D3": lambda rng, _: class_means(rng, 8, 3, "digits"),
    "wine J8 D3": lambda rng, _: class_means(rng, 8, 3, "wine", 4, 10),
    **{f"families {name}": partial(family_sites, name=name) for name in CASES},
}


def one_set(world: str, seed: int, file: str) -> Result:
    """What was stated of one set, and what is so."""
    sites, groups = WORLDS[world](np.random.default_rng(seed), file)
    name = world.removeprefix("families ")
    with warnings.catch_warnings(action="ignore"):
        fusion = fuse(sites, CASES[name][0] if name in CASES else None)
        stated, posterior = fusion.confidence(how="drawn"), fusion.posterior.draws()
        warned = [site.warning for site in fusion.diagnosis.sites() if site.warning]
    truth, held = np.concatenate(groups), np.bincount(np.concatenate([np.unique(own) for own in groups]))
    right = is_right(fusion.matching.stacked_labels, truth, np.random.default_rng([seed, 1]))
    said = np.concatenate(stated)
    at = np.clip(np.searchsorted(EDGES, said, side="right") - 1, 0, len(EDGES) - 2)
    sums = [np.bincount(at, of, len(EDGES) - 1) for of in (np.ones(len(said)), said, right)]
    mean = round(float(np.mean(posterior.shared)), 3)
    return {
        "bins": np.round(sums, 3).tolist(),
        "brier": [round(float(np.square(said - right).sum()), 3), len(said)],
        "K": [int((held > 0).sum()), *posterior.K_interval(), round(float(posterior.K.mean()), 3), fusion.K],
        "shared": [int((held > 1).sum()), *posterior.shared_interval(), mean, fusion.shared],
        "r_hat": round(max(stated.r_hat.values()), 3),
        "warned": warned,
    }


def bins(runs: Sequence[Result], fewest: int = FEWEST) -> list[tuple[float, float, float, int]]:
    """Stated, true, standard error of their difference, and number, of every bin with enough matches."""
    number, stated, right = np.array([run["bins"] for run in runs]).transpose(1, 2, 0)  # (bins, sets) each
    found = []
    for n, s, r in zip(number, stated, right, strict=True):
        if (total := n.sum()) >= fewest:
            off = s - r - n * (s - r).sum() / total
            error = float(np.sqrt(np.square(off).sum()) / total)
            found.append((float(s.sum() / total), float(r.sum() / total), error, int(total)))
    return found


def holds(runs: Sequence[Result], name: str) -> float:
    """Share of sets whose interval holds the true number."""
    true, low, high, *_ = np.array([run[name] for run in runs]).T
    return float(((low <= true) & (true <= high)).mean())


def row_of(name: str, runs: Sequence[Result]) -> list[str | float]:
    """One line of the table."""
    shown = ", ".join(f"{s:.3f} > {t:.3f} ± {e:.3f} ({n:,})" for s, t, e, n in bins(runs) if s > SURE)
    numbers = []
    for kind in ("K", "shared"):
        true, low, high, mean, fitted = np.array([run[kind] for run in runs]).T
        off = f"{(mean - true).mean():+.1f}, fit {(fitted - true).mean():+.1f}"
        numbers.append(f"{holds(runs, kind):.2f} ({(high - low).mean():.1f}; {off} of {true.mean():.1f})")
    squares, matches = np.sum([run["brier"] for run in runs], axis=0)
    apart = float(np.mean([run["r_hat"] > 1.1 for run in runs]))
    return [name, len(runs), shown, *numbers, round(float(squares / matches), 3), apart, alarms(runs)]


def alarms(runs: Sequence[Result]) -> float:
    """Share of fusions in which a site is warned of."""
    return float(np.mean([bool(run["warned"]) for run in runs]))


def summary(cells: Cells) -> tuple[list[Table], list[Claim]]:
    """A line for each world, and what must hold."""
    columns = ["world", "sets", f"stated > true ± standard error (matches), above {SURE}", "interval of K",
               "of shared groups", "Brier", "R-hat above 1.1", "fusions with a warning"]  # fmt: skip
    note = (
        "Intervals of 90 %: share that hold (mean width; mean of draws less truth, fit less truth, of the mean truth)."
    )
    claims = []
    for kind in ("K", "shared groups"):
        missed = {name: held for name, runs in cells.items() if (held := holds(runs, kind.split()[0])) < LEAST}
        claims.append(claim(f"90 % intervals of {kind} hold at least {LEAST:.0%}", missed, len(cells)))
    for text, low, high in (("too sure", -1.0, MOST_OVER), ("too careful", -MOST_UNDER, 1.0)):
        missed = {
            f"{name}: {stated:.3f} >": true
            for name, runs in cells.items()
            for stated, true, *_ in bins(runs)
            if stated > SURE and not low <= stated - true <= high
        }
        most = MOST_OVER if high < 1 else MOST_UNDER
        claims.append(claim(f"confidences above {SURE} at most {most} {text}", missed, len(cells)))
    honest = float(np.mean([alarms(runs) for runs in cells.values()]))
    text = f"at most {MOST_WARNED:.0%} of honest fusions have a site warned of"
    claims.append(Claim(text, f"{honest:.3f}", honest <= MOST_WARNED))
    return [Table("Stated and true", columns, [row_of(*item) for item in cells.items()], note)], claims


def claim(text: str, missed: dict[str, float], n: int) -> Claim:
    """Where something does not hold."""
    where = "; ".join(f"{name} {value:.2f}" for name, value in missed.items())
    return Claim(text, where or f"in all {n} worlds", not missed)


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """All worlds of a seed, then of the next."""
    there = [name for name in WORLDS if options.mnist or "mnist" not in name]
    for number in range(options.sets):
        for name in there:
            if number < SETS_OF_MODEL or not options.whole or not name.startswith("model"):
                seed = options.first + number
                yield Task(f"{name}/{seed}", one_set, (name, seed, options.mnist))


if __name__ == "__main__":
    options = asked(__doc__, "worlds", FIRST_SEED, SETS, 2, mnist="mnist.npz with x_train and y_train; else none of it")
    if options.smoke:
        options.cases = ["half J5 D3", "families Counts"]
    measure("Confidences and intervals", tasks, options, summary)
