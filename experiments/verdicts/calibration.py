"""Do draws hold what they promise? Confidences, intervals of K and of atoms, and sites' own answers, against the truth.

    python experiments/verdicts/calibration.py            # all cells, 60 sets each: about an hour on one core
    python experiments/verdicts/calibration.py --sets 12  # fewer
    python experiments/verdicts/calibration.py --smoke    # one small cell, seconds

Sites hold each of 15 atoms (deviation 2.5) with probability 1/2, values scatter by .5 (D = 10: 1.2); with standard
errors, uniform in .1 to .6 per value, what is sent differs from the site's true value by that much more. `fuse` is
called bare. A match is right if its atom is the partner, one to one by values in common, of its true atom.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from modelweld import LocalModel, fuse
from modelweld.posterior.overlap import NOBODY, is_right, partners

HERE = Path(__file__).parent
ATOMS, HELD, SPREAD = 15, 0.5, 2.5
CELLS = [(D, J, errors) for errors in (False, True) for D in (2, 3, 10) for J in (3, 8, 20)]
EDGES = np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
FEWEST = 100


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


def one_set(seed: int, D: int, J: int, errors: bool) -> dict[str, np.ndarray]:
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
    stated, posterior = fusion.confidence(), fusion.drawn()
    spent = time.process_time() - begin - fitted
    truth, labels, K = (
        np.concatenate(data["held"]),
        fusion.matching.stacked_labels,
        len(set(np.concatenate(data["held"]))),
    )
    low, high = posterior.K_interval()
    below, same = (posterior.K < K).mean(), (posterior.K == K).mean()
    found = {
        "stated": np.concatenate(stated),
        "conditional": np.concatenate(fusion.confidence(how="conditional")),
        "right": is_right(labels, truth, rng),
        "K": np.array([[low <= K <= high, high - low, posterior.K.mean() - K]]),
        "pit": np.array([below + same * rng.random()]),
        "r_hat": np.array([max(stated.r_hat.values())]),
        "seconds": np.array([[fitted, spent]]),
    }
    atoms, at = fusion.atom_intervals(), partners(labels, truth, rng)
    real = (at != NOBODY) & (np.arange(len(at)) < fusion.K)
    where = data["atoms"][0][at[real]]
    found["atoms"] = ((atoms.low[real] <= where) & (where <= atoms.high[real])).ravel()
    if errors:
        answers = [fusion.site(j) for j in range(J)]
        true, sent, own = (np.concatenate(x) for x in (data["true"], data["sent"], [a.values for a in answers]))
        bounds = [np.concatenate([getattr(a, end) for a in answers]) for end in ("low", "high")]
        found["site"] = ((bounds[0] <= true) & (true <= bounds[1])).ravel()
        parts = [sent - true, fusion.atoms[labels] - true, own - true]
        found["squares"] = np.stack([np.square(p).ravel() for p in parts], axis=1)
    return found


def bins(stated: np.ndarray, right: np.ndarray) -> str:
    """Stated > true (number) in bins of at least 100 matches."""
    at = np.clip(np.searchsorted(EDGES, stated, side="right") - 1, 0, len(EDGES) - 2)
    told = [
        f"{stated[at == b].mean():.3f} > {right[at == b].mean():.3f} ({(at == b).sum():,})"
        for b in range(len(EDGES) - 1)
        if (at == b).sum() >= FEWEST
    ]
    return ", ".join(told) + f"; Brier {np.square(stated - right).mean():.4f}"


def worst(stated: np.ndarray, right: np.ndarray) -> float:
    """Largest difference of stated and true in bins above .5 with at least 100 matches, boastful ones positive."""
    at = np.clip(np.searchsorted(EDGES, stated, side="right") - 1, 0, len(EDGES) - 2)
    off = [(stated - right)[at == b].mean() for b in range(1, len(EDGES) - 1) if (at == b).sum() >= FEWEST]
    return max(off, key=abs, default=np.nan)


def told(cell: tuple[int, int, bool], x: dict[str, np.ndarray], sets: int) -> list[str]:
    """One cell in words and numbers."""
    D, J, errors = cell
    holds, width, bias = x["K"].mean(0)
    uniform = np.abs(np.sort(x["pit"]) - (np.arange(sets) + 0.5) / sets).max()
    fit, draws = x["seconds"].mean(0)
    lines = [
        f"## D = {D}, J = {J}{', standard errors' if errors else ''} ({sets} sets)",
        "",
        f"- confidence: {bins(x['stated'], x['right'])}",
        f"- conditional: {bins(x['conditional'], x['right'])}",
        f"- worst bin above .5: {worst(x['stated'], x['right']):+.3f} "
        f"(conditional {worst(x['conditional'], x['right']):+.3f})",
        f"- K: 90 % interval holds {holds:.2f}, width {width:.1f}, mean less truth {bias:+.2f}, randomised PIT off by "
        f"{uniform:.2f} (5 % of uniform ones: {1.36 / np.sqrt(sets):.2f})",
        f"- atoms: 90 % intervals hold {x['atoms'].mean():.3f}",
    ]
    if errors:
        own, atom, pooled = np.sqrt(x["squares"].mean(0))
        lines += [
            f"- site: 90 % intervals hold {x['site'].mean():.3f}; RMSE sent {own:.3f}, atom {atom:.3f}, "
            f"pooled {pooled:.3f}"
        ]
    lines += [
        f"- R-hat median {np.median(x['r_hat']):.3f}, largest {x['r_hat'].max():.2f}; "
        f"CPU {draws:.2f} s, fit {fit:.2f} s",
        "",
    ]
    return lines


def main() -> None:
    """Judge all cells and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--large", type=int, help="sets of cells with J = 20; default as many")
    parser.add_argument("--first-seed", type=int, default=5000)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--smoke", action="store_true", help="one cell, two sets, nothing written")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["# Calibration of draws", "", f"Seeds from {asked.first_seed}; stated > true (matches).", ""]
    for cell in CELLS[-3:-2] if asked.smoke else CELLS:
        sets = 2 if asked.smoke else (asked.large or asked.sets) if cell[1] == 20 else asked.sets
        runs = [one_set(asked.first_seed + i, *cell) for i in range(sets)]
        found = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
        lines += told(cell, found, sets)
        print("\n".join(lines[-9:]), flush=True)
        if not asked.smoke:
            (asked.out / "calibration.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
