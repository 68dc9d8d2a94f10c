"""Sets of directions whose truth is known: signatures of cohorts, maps of subjects."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array
from modelweld.core.values import Index as Labels

POOL, COHORTS, HELD, SAMPLES = 18, 12, (4, 8), (25, 61)
"""Signatures in all, cohorts, signatures of a cohort, and its samples."""

MAPS, SUBJECTS, OWN_MAPS, SHARE, ELECTRODES, MOST_ALIKE = 15, 16, 3, 0.6, 64, 0.7
"""Maps that subjects share, subjects, maps of their own, the share of the former that one has, electrodes, and the
largest absolute cosine of any two maps."""


class Sets(NamedTuple):
    """The truth and the values of every site."""

    truth: list[Labels]
    sites: list[Array]

    @property
    def K(self) -> int:
        """True number of atoms."""
        return len(np.unique(np.concatenate(self.truth)))

    @property
    def shared(self) -> int:
        """How many of them several sites hold."""
        held = [np.unique(own) for own in self.truth]
        return int((np.unique(np.concatenate(held), return_counts=True)[1] > 1).sum())


def unit(x: Array) -> Array:
    """Rows of length one."""
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def at_cosine(atoms: Array, cosine: float, rng: np.random.Generator) -> Array:
    """One value about each atom, at this cosine in a random direction."""
    across = rng.normal(size=atoms.shape)
    across -= (across * atoms).sum(1, keepdims=True) * atoms
    return unit(cosine * atoms + np.sqrt(1 - cosine**2) * unit(across))


def read_catalogue(path: Path | None, rng: np.random.Generator) -> Array:
    """Signatures (number, 96) of a tab-separated table with one column each; drawn ones without a table."""
    if path is None:
        return np.asarray(rng.dirichlet(np.full(96, 0.15), 60))
    lines = [line.split("\t")[1:] for line in path.read_text().splitlines()[1:]]
    table = np.array(lines, dtype=np.float64).T
    return np.asarray(table / table.sum(1, keepdims=True))


def signatures(seed: int, path: Path | None, mutations: int, cohorts: int = COHORTS) -> Sets:
    """What non-negative factorisation finds of the mutations of simulated cohorts, factors named by signatures."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.decomposition import NMF

    rng = np.random.default_rng(seed)
    known = read_catalogue(path, rng)
    pool = rng.permutation(len(known))[:POOL]
    truth, sites = [], []
    for _ in range(cohorts):
        held = rng.permutation(pool)[: rng.integers(*HELD)]
        exposure = rng.dirichlet(np.full(len(held), 0.5), rng.integers(*SAMPLES))
        exposure *= np.exp(rng.normal(np.log(mutations), 0.7, (len(exposure), 1)))
        counts = rng.poisson(exposure @ known[held])
        fitted = NMF(
            len(held), solver="mu", beta_loss="kullback-leibler", init="nndsvda", max_iter=1000, random_state=0
        )
        found = unit(fitted.fit(counts).components_)
        rows, columns = linear_sum_assignment(-found @ unit(known[held]).T)
        names = np.empty(len(held), dtype=np.int64)
        names[rows] = held[columns]
        truth.append(names)
        sites.append(found)
    return Sets(truth, sites)


def dipoles(number: int, rng: np.random.Generator) -> Array:
    """Maps of dipoles in a sphere on electrodes spread over its upper part, no two of them alike."""
    heights = np.linspace(1.0, -0.3, ELECTRODES)
    angles = np.pi * (1 + 5**0.5) * np.arange(ELECTRODES)
    ring = np.sqrt(1 - heights**2)
    places = np.stack([ring * np.cos(angles), ring * np.sin(angles), heights], axis=1)
    found = np.zeros((0, ELECTRODES))
    while len(found) < number:
        source, moment = unit(rng.normal(size=(2, 3)))
        off = places - rng.uniform(0.4, 0.8) * source * (1, 1, np.sign(source[2]))
        field = off @ moment / np.linalg.norm(off, axis=1) ** 3
        field = unit(field - field.mean())
        if np.abs(found @ field).max(initial=0.0) < MOST_ALIKE:
            found = np.vstack([found, field])
    return found


def maps(seed: int, cosine: float, subjects: int = SUBJECTS) -> Sets:
    """Maps of subjects, with noise and with signs of no meaning."""
    rng = np.random.default_rng(seed)
    every = dipoles(MAPS + subjects * OWN_MAPS, rng)
    truth, sites = [], []
    for j in range(subjects):
        own = MAPS + OWN_MAPS * j + np.arange(OWN_MAPS)
        held = np.concatenate([np.flatnonzero(rng.random(MAPS) < SHARE), own])
        values = at_cosine(every[held], cosine, rng)
        truth.append(held)
        sites.append(values * rng.choice([-1.0, 1.0], (len(held), 1)))
    return Sets(truth, sites)
