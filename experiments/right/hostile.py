"""Plain values of honest sites with something wrong among them: case e. Honest components alone are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from draws import Array, Draw, Group, Index

from modelweld import LocalModel

ATOMS, D, SPREAD_SD, NOISE_SD, HOLDS = 12, 5, 4.0, 0.4, 0.6
"""Global atoms, their dimension and deviation, a site's deviation about them, and the share of them a site holds."""

JITTERS = (0.0, 1e-6, 1e-3, 1e-2, 1e-1)
"""By how many noise deviations a copy of a site differs from it."""

APART = 40.0
"""Noise deviations between neighbouring atoms where a site sends one value."""

Sites = list[tuple[Array, Index]]


def honest_sites(rng: np.random.Generator, J: int, atoms: Array) -> Sites:
    """Values and true atoms of J sites; the first holds all atoms, others most."""
    sites = []
    for j in range(J):
        held = np.flatnonzero(rng.random(len(atoms)) < HOLDS) if j else np.arange(len(atoms))
        held = held if len(held) else np.array([0])
        sites.append((noisy(rng, atoms[held]), held))
    return sites


def noisy(rng: np.random.Generator, values: Array) -> Array:
    """Values as a site has them."""
    return values + rng.normal(0, NOISE_SD, values.shape)


def plain(sites: Sites, **more: Any) -> Draw:
    """Sites that send their values alone."""
    values, truth = ([site[part] for site in sites] for part in (0, 1))
    return Draw(**{"sent": values, "values": values, "truth": truth, **more})


def among(honest: Sites, hostile: Sites) -> Draw:
    """Honest sites and others, beside what honest ones alone would have sent."""
    judged = [np.full(len(v), j < len(honest)) for j, (v, _) in enumerate([*honest, *hostile])]
    return plain([*honest, *hostile], honest=judged, without=[v for v, _ in honest])


def twice(rng: np.random.Generator, atoms: Array, J: int, jitter: float) -> Draw:
    """The largest of J sites comes again, all but the same: one site more."""
    honest = honest_sites(rng, J, atoms)
    values, truth = honest[0]
    return among(honest, [(values + jitter * NOISE_SD * rng.standard_normal(values.shape), truth)])


def sybils(rng: np.random.Generator, atoms: Array, J: int) -> Draw:
    """Two of J sites send the same values, of all atoms: none is larger."""
    honest = honest_sites(rng, J - 2, atoms)
    sybil = noisy(rng, atoms), np.arange(len(atoms))
    return among(honest, [sybil, sybil])


def weighted(rng: np.random.Generator, atoms: Array, weight: float | None) -> Draw:
    """Twenty sites with one weight, or with weights of 10 to 1,000 that are true."""
    honest = honest_sites(rng, 20, atoms)
    if weight is None:
        weights = np.exp(rng.uniform(np.log(10), np.log(1000), 20))
        honest = [(atoms[t] + (v - atoms[t]) * np.sqrt(100 / w), t) for w, (v, t) in zip(weights, honest, strict=True)]
    else:
        weights = np.full(20, weight)
    axes = {"values": ("component", None)}
    both = zip(honest, weights, strict=True)
    sent = [LocalModel({"values": v}, axes, weight={"values": float(w)}) for (v, _), w in both]
    return plain(honest, sent=sent, without=[v for v, _ in honest])


def single(rng: np.random.Generator, _: Array, K: int, D: int, J: int) -> Draw:
    """Sites of one value each; K atoms far apart."""
    atoms = APART * NOISE_SD * rng.permuted(np.tile(np.arange(K), (D, 1)), axis=1).T
    truth = rng.permutation(np.arange(J) % K)
    return plain([(noisy(rng, atoms[[t]]), np.array([t])) for t in truth])


def dead(rng: np.random.Generator, atoms: Array) -> Draw:
    """Twenty sites send three rows of zeros beside their values."""
    honest = honest_sites(rng, 20, atoms)
    sites = [(np.vstack([v, np.zeros((3, D))]), np.append(t, [ATOMS] * 3)) for v, t in honest]
    return plain(sites, honest=[t < ATOMS for _, t in sites], without=[v for v, _ in honest])


def oversplit(rng: np.random.Generator, atoms: Array, fragments: int) -> Draw:
    """Of twenty sites one has every atom in pieces, each as noisy as an honest value."""
    truth = np.repeat(np.arange(ATOMS), fragments)
    return among(honest_sites(rng, 19, atoms), [(noisy(rng, atoms[truth]), truth)])


def doubled(rng: np.random.Generator, atoms: Array, J: int) -> Draw:
    """Every site sends each of its atoms twice, both as noisy as a value."""
    sites = honest_sites(rng, J, atoms)
    return plain([(np.concatenate([v, noisy(rng, atoms[t])]), np.tile(t, 2)) for v, t in sites])


Cell = Callable[[np.random.Generator, Array], Draw]


def cells(most: int) -> dict[str, dict[str, Cell]]:
    """Case e: cells by what is wrong."""
    weights = {f"{w:g}": w for w in (1e-4, 1e-2, 1.0, 1e2, 1e4)}
    return {
        "twice": {f"J={J} jitter {x:g}": partial(twice, J=J, jitter=x) for J in (4, 20) for x in JITTERS},
        "sybils": {f"2 of {J}": partial(sybils, J=J) for J in (20, 50, 400) if most >= J},
        "weights": {
            **{name: partial(weighted, weight=w) for name, w in weights.items()},
            "mixed": partial(weighted, weight=None),
        },
        "one value": {
            f"D={d} K={k} J={J}": partial(single, K=k, D=d, J=J) for d, k in ((1, 3), (1, 6), (3, 6)) for J in (30, 100)
        },
        "dead rows": {"three": dead},
        "oversplit": {f"c={c}": partial(oversplit, fragments=c) for c in (2, 8, 40)},
        "all twice": {f"J={J}": partial(doubled, J=J) for J in (5, 10, 20)},
    }


def draws(of: dict[str, Cell], code: int, seed: int) -> Iterator[tuple[str, Draw]]:
    """All cells of a trouble; honest sites are the same in each as far as they can be."""
    for name, cell in of.items():
        rng = np.random.default_rng([500, code, seed])
        yield name, cell(rng, rng.normal(0, SPREAD_SD, (ATOMS, D)))


def groups(most: int = 400) -> Iterator[Group]:
    """Case e, up to `most` sites."""
    for code, (name, of) in enumerate(cells(most).items()):
        yield Group("hostile", name, partial(draws, of, code))
