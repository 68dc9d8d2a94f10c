"""Mutational signatures of several cohorts: which are the same, and how many are there, with no cosine threshold?

    python examples/signatures.py COSMIC_v3.4_SBS_GRCh37.txt

The table is COSMIC's, as it lies in the package SigProfilerAssignment (data/Reference_Signatures/GRCh37); it is not
shipped here. Eight cohorts are simulated from it. Each factorises its own counts of mutations by NMF; its factors leave
the cohort, its samples do not. Fused factors are named by the signature they are most like.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import NMF

import modelweld

COHORTS, SAMPLES, MUTATIONS, POOL = 8, 60, 2000, 10


def read_table(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Kinds of mutations, names of signatures, and their probabilities (signatures, kinds)."""
    head, *rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    values = np.array([row[1:] for row in rows], dtype=float).T
    return [row[0] for row in rows], head[1:], values / values.sum(axis=1, keepdims=True)


def factorise(held: np.ndarray, kinds: list[str], rng: np.random.Generator) -> modelweld.LocalModel:
    """What a cohort sends: factors of the counts of its samples, each of which has some of its signatures."""
    active = rng.gamma(0.5, 1.0, (SAMPLES, len(held))) + 1e-3
    shares = active / active.sum(axis=1, keepdims=True) @ held
    counts = rng.poisson(MUTATIONS * rng.lognormal(0.0, 0.5, (SAMPLES, 1)) * shares)
    nmf = NMF(len(held), init="nndsvda", solver="mu", beta_loss="kullback-leibler", max_iter=2000, tol=1e-6)
    return modelweld.read(nmf.fit(counts), X=counts, features=kinds)


def main(path: Path, seed: int = 0) -> modelweld.Fusion:
    """Draw cohorts, fuse their factors, and say which signatures were found where."""
    kinds, names, known = read_table(path)
    rng = np.random.default_rng(seed)
    pool = rng.permutation(len(known))[:POOL]
    holds = [np.sort(rng.permutation(pool)[: rng.integers(3, 6)]) for _ in range(COHORTS)]
    fusion = modelweld.fuse([factorise(known[held], kinds, rng) for held in holds])
    print(fusion, f"(there are {len(set(np.concatenate(holds)))})")
    directions = known / np.linalg.norm(known, axis=1, keepdims=True)
    cosines = fusion.atoms @ directions.T
    for atom, row in enumerate(cosines[: fusion.K]):
        where = [j for j, labels in enumerate(fusion.labels) if atom in labels]
        truly = [j for j, held in enumerate(holds) if row.argmax() in held]
        print(f"{names[row.argmax()]:8} cosine {row.max():.3f}  in cohorts {where}, truly in {truly}")
    print("NMF of all:", fusion.model().components_.shape)
    return fusion


if __name__ == "__main__":
    main(Path(sys.argv[1]))
