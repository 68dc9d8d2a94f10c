"""Do draws hold what they promise? Confidences, intervals of K and of atoms, and sites' own answers, against the truth.

    python experiments/verdicts/calibration.py            # all cells, 60 sets each: some twenty minutes on one core
    python experiments/verdicts/calibration.py --sets 12  # fewer
    python experiments/verdicts/calibration.py --smoke    # one small cell, seconds

All cells get ten sets, then all ten more, and so on; calibration.json and calibration.md hold what is done so far, and
a run goes on where another of the same library and seeds stopped.

Sites hold each of 15 atoms (deviation 2.5) with probability 1/2, values scatter by .5 (D = 10: 1.2); with standard
errors, uniform in .1 to .6 per value, what is sent differs from the site's true value by that much more. `fuse` is
called bare. A match is right if its atom is the partner, one to one by values in common, of its true atom. Matches of
a set are right or wrong together: standard errors of bins are those of sums over sets. At three sites, where
hyperparameters are hardly learned, draws that are told those of the generator stand beside.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import argparse
import json
import time
import warnings

import numpy as np

import modelweld
from modelweld import Fusion, Gaussian, LocalModel, Spectrum, fuse
from modelweld.core.board import Board
from modelweld.results.posterior.confidence import CHAINS, DRAWS, NO_PARTNER, is_right, partners, shares_right
from modelweld.results.posterior.sampler import sample
from provenance import keep
from study import Result, versions

HERE = Path(__file__).parent
ATOMS, HELD, SPREAD, ALIKE = 15, 0.5, 2.5, 300.0
CELLS = [(D, J, errors) for errors in (False, True) for D in (2, 3, 10) for J in (3, 8, 20)]
EDGES = np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
FEWEST, ROUND, FIRST_SEED = 100, 10, 94_000
"""Matches of a bin that is judged, sets of a cell before the next cell's turn, and the first seed."""


def drawn(seed: int, D: int, J: int, errors: bool) -> dict[str, list[np.ndarray]]:
    """Sites with the truth: values sent, true local values, true atoms, squared standard errors."""
    rng = np.random.default_rng(seed)
    atoms, noise = rng.normal(0, SPREAD, (ATOMS, D)), 0.5 if D < 10 else 1.2
    found: dict[str, list[np.ndarray]] = {"sent": [], "true": [], "held": [], "variance": [], "atoms": [atoms]}
    for _ in range(J):
        held = rng.permutation(np.flatnonzero(rng.random(ATOMS) < HELD))
        held = held if len(held) else rng.integers(ATOMS, size=1)
        true = atoms[held] + rng.normal(0, noise, (len(held), D))
        se = rng.uniform(0.1, 0.6, (len(held), 1)) * np.ones(D) if errors else np.zeros((len(held), D))
        for name, value in (("sent", true + se * rng.normal(size=true.shape)), ("true", true)):
            found[name].append(value)
        found["held"].append(held)
        found["variance"].append(se**2)
    return found


def one_set(seed: int, D: int, J: int, errors: bool) -> Result:
    """What was stated of one set, and what is so."""
    data, rng = drawn(seed, D, J, errors), np.random.default_rng([seed, 1])
    models = data["sent"]
    if errors:
        models = [
            LocalModel({"values": v}, {"values": ("atom", None)}, variance={"values": e}, site=f"site {j}")
            for j, (v, e) in enumerate(zip(data["sent"], data["variance"], strict=True))
        ]
    begin = time.process_time()
    fusion = fuse(models)
    fitted = time.process_time() - begin
    stated, posterior = fusion.confidence(), fusion.posterior.draws()
    spent = time.process_time() - begin - fitted
    truth, labels, K = (
        np.concatenate(data["held"]),
        fusion.matching.stacked_labels,
        len(set(np.concatenate(data["held"]))),
    )
    low, high = posterior.K_interval()
    below, same = (posterior.K < K).mean(), (posterior.K == K).mean()
    atoms, at = fusion.posterior.atom_intervals(), partners(labels, truth, rng)
    real = (at != NO_PARTNER) & (np.arange(len(at)) < fusion.K)
    where = data["atoms"][0][at[real]]
    held = (atoms.low[real] <= where) & (where <= atoms.high[real])
    found: Result = {
        "stated": np.round(np.concatenate(stated), 4).tolist(),
        "right": is_right(labels, truth, rng).astype(int).tolist(),
        "K": [K, low, high, round(float(posterior.K.mean()), 3), fusion.K],
        "pit": round(float(below + same * rng.random()), 4),
        "atoms": [int(held.sum()), held.size],
        "r_hat": round(max(stated.r_hat.values()), 4),
        "seconds": [round(fitted, 3), round(spent, 3)],
    }
    if J == 3 and not errors:
        found["told"] = told_everything(fusion, D, J)
    if errors:
        answers = [fusion.posterior.site(j) for j in range(J)]
        true, sent, own = (np.concatenate(x) for x in (data["true"], data["sent"], [a.values for a in answers]))
        ends = [np.concatenate([getattr(a, end) for a in answers]) for end in ("low", "high")]
        held = (ends[0] <= true) & (true <= ends[1])
        squares = [float(np.square(x - true).sum()) for x in (sent, fusion.atoms[labels], own)]
        found["site"] = [int(held.sum()), held.size, *squares]
    return found


def told_everything(fusion: Fusion, D: int, J: int) -> list[float]:
    """What draws state that are told the generator's own hyperparameters, so that the matching alone is unknown."""
    given = fusion._fit.board("atom")
    deviation = np.full(D, 0.5 if D < 10 else 1.2)
    family = Gaussian(np.zeros(D), deviation**2, np.full(D, SPREAD**2), learning="nothing").starts(given.stacks[0])[0]
    prior = Spectrum.expecting(ALIKE * HELD, ALIKE * (1 - HELD), ATOMS * (1 - (1 - HELD) ** J), J)
    labels = fusion.matching.stacked_labels
    draws = sample(Board(given.stacks, [family], prior).at(labels), DRAWS, CHAINS, seed=0)
    return np.round(shares_right(draws, labels), 4).tolist()


def bins(runs: list[Result], fewest: int = FEWEST) -> list[tuple[float, float, float, int]]:
    """Stated, true, standard error of their difference, and number, of every bin with enough matches."""
    stated = np.concatenate([run["stated"] for run in runs])
    right = np.concatenate([run["right"] for run in runs]).astype(float)
    of = np.repeat(np.arange(len(runs)), [len(run["stated"]) for run in runs])
    at = np.clip(np.searchsorted(EDGES, stated, side="right") - 1, 0, len(EDGES) - 2)
    found = []
    for b in range(len(EDGES) - 1):
        own = at == b
        if (n := int(own.sum())) >= fewest:
            off = (stated - right)[own]
            sums = np.bincount(of[own], off - off.mean(), minlength=len(runs))
            found.append((stated[own].mean(), right[own].mean(), float(np.sqrt(np.square(sums).sum()) / n), n))
    return found


def worst(runs: list[Result]) -> tuple[float, float]:
    """Largest difference of stated and true above .5, boastful ones positive, and its standard error."""
    off = [(stated - true, error) for stated, true, error, _ in bins(runs) if stated > EDGES[1]]
    return max(off, key=lambda x: abs(x[0]), default=(np.nan, np.nan))


def told(cell: tuple[int, int, bool], runs: list[Result]) -> list[str]:
    """One cell in words and numbers."""
    D, J, errors = cell
    K, low, high, mean, fitted = np.array([run["K"] for run in runs]).T
    sets, uniform = len(runs), uneven([run["pit"] for run in runs])
    fit, draws = np.mean([run["seconds"] for run in runs], axis=0)
    atoms, r_hat = np.sum([run["atoms"] for run in runs], axis=0), [run["r_hat"] for run in runs]
    off, error = worst(runs)
    shown = ", ".join(f"{s:.3f} > {t:.3f} ± {e:.3f} ({n:,})" for s, t, e, n in bins(runs))
    lines = [
        f"## D = {D}, J = {J}{', standard errors' if errors else ''} ({sets} sets)",
        "",
        f"- confidence: {shown}",
        f"- worst bin above .5: {off:+.3f} ± {error:.3f}",
        f"- K: 90 % interval holds {((low <= K) & (high >= K)).mean():.2f}, width {(high - low).mean():.1f}, mean less "
        f"truth {(mean - K).mean():+.2f} (fit {(fitted - K).mean():+.2f}), randomised PIT off by {uniform:.2f} (5 % of "
        f"uniform ones: {1.36 / np.sqrt(sets):.2f})",
        f"- atoms: 90 % intervals hold {atoms[0] / atoms[1]:.3f}",
    ]
    if errors:
        held, n, own, atom, pooled = np.sum([run["site"] for run in runs], axis=0)
        lines += [
            f"- site: 90 % intervals hold {held / n:.3f}; RMSE sent {np.sqrt(own / n):.3f}, "
            f"atom {np.sqrt(atom / n):.3f}, pooled {np.sqrt(pooled / n):.3f}"
        ]
    if all("told" in run for run in runs):
        shown = ", ".join(
            f"{s:.3f} > {t:.3f} ± {e:.3f} ({n:,})"
            for s, t, e, n in bins([run | {"stated": run["told"]} for run in runs])
        )
        lines += [f"- told the generator's hyperparameters: {shown}"]
    last = f"- R-hat median {np.median(r_hat):.3f}, largest {max(r_hat):.2f}; CPU {draws:.2f} s, fit {fit:.2f} s"
    return [*lines, last, ""]


def claims(cells: dict[tuple[int, int, bool], list[Result]]) -> list[str]:
    """What must hold, and where it does not."""
    off: dict[str, list[str]] = {}

    def judge(text: str, cell: tuple[int, int, bool], holds: bool, found: str) -> None:
        off.setdefault(text, [])
        if not holds:
            off[text].append(f"{name_of(cell)}: {found}")

    for cell, runs in cells.items():
        gap, error = worst(runs)
        for limit in (0.03, 0.05):
            text = f"confidence within {limit} of the truth in all bins above .5"
            judge(text, cell, not abs(gap) > limit, f"{gap:+.3f} ± {error:.3f}")
        K, low, high, *_ = np.array([run["K"] for run in runs]).T
        share = float(((low <= K) & (high >= K)).mean())
        judge("90 % intervals of K hold at least 86 %", cell, share >= 0.86, f"{share:.2f}")
        gap = uneven([run["pit"] for run in runs])
        judge("randomised PIT of K uniform (5 %)", cell, gap <= 1.36 / np.sqrt(len(runs)), f"{gap:.2f}")
        share = float(np.divide(*np.sum([run["atoms"] for run in runs], axis=0)))
        judge("90 % intervals of atoms hold at least 86 %", cell, share >= 0.86, f"{share:.3f}")
        if cell[2]:
            held, n, *squares = np.sum([run["site"] for run in runs], axis=0)
            judge("90 % intervals of sites hold 87 to 93 %", cell, 0.87 <= held / n <= 0.93, f"{held / n:.3f}")
            worse = float(np.sqrt(squares[2] / min(squares[:2])) - 1)
            judge(
                "a site's answer at most 2 % worse than the better of own and atom", cell, worse <= 0.02, f"{worse:.3f}"
            )
    return [f"- {'yes' if not where else 'NO'}: {text}. {'; '.join(where)}" for text, where in off.items()]


def uneven(pit: list[float]) -> float:
    """Largest distance of ranks' distribution from the uniform one."""
    return float(np.abs(np.sort(pit) - (np.arange(len(pit)) + 0.5) / len(pit)).max())


def written(out: Path, about: dict[str, str], first: int, cells: dict[tuple[int, int, bool], list[Result]]) -> str:
    """Record what is done, and tell it."""
    lines = [
        f"# Calibration of draws\n\nSeeds from {first}; stated > true ± standard error (matches), bins of at least"
    ]
    lines[0] += f" {FEWEST}; `fuse` called bare; {', '.join(f'{name} {v}' for name, v in about.items())}.\n"
    lines += [*claims({cell: runs for cell, runs in cells.items() if runs}), ""]
    for cell, runs in cells.items():
        lines += told(cell, runs) if runs else []
    text = "\n".join(lines)
    named = {name_of(cell): runs for cell, runs in cells.items()}
    out.mkdir(parents=True, exist_ok=True)
    record = {"versions": about, "first_seed": first, "cells": named}
    keep(out / "calibration.json", record, {"first_seed": first})
    (out / "calibration.md").write_text(text)
    return text


def begun(out: Path, about: dict[str, str], first: int) -> dict[tuple[int, int, bool], list[Result]]:
    """What an earlier run of the same library and seeds left."""
    file = out / "calibration.json"
    record = json.loads(file.read_text()) if file.exists() else {}
    same = (record.get("versions"), record.get("first_seed")) == (about, first)
    return {cell: record["cells"].get(name_of(cell), []) if same else [] for cell in CELLS}


def name_of(cell: tuple[int, int, bool]) -> str:
    """As the record calls it."""
    D, J, errors = cell
    return f"D{D} J{J}{' errors' if errors else ''}"


def main() -> None:
    """Judge all cells and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--large", type=int, help="sets of cells with J = 20; default as many")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--out", type=Path, default=Path("reproduced", "verdicts"))
    parser.add_argument("--smoke", action="store_true", help="one cell, two sets")
    asked, about = parser.parse_args(), versions(modelweld)  # before the run: a checkout can change meanwhile
    warnings.simplefilter("ignore")
    cells = {CELLS[-3]: []} if asked.smoke else begun(asked.out, about, asked.first_seed)
    text = written(asked.out, about, asked.first_seed, cells)
    for end in range(ROUND, asked.sets + ROUND, ROUND):
        for cell, runs in cells.items():
            most = 2 if asked.smoke else (asked.large or asked.sets) if cell[1] == 20 else asked.sets
            new = range(asked.first_seed + len(runs), asked.first_seed + min(end, most))
            runs += [one_set(seed, *cell) for seed in new]
            if new:
                text = written(asked.out, about, asked.first_seed, cells)
    print(text)


if __name__ == "__main__":
    main()
