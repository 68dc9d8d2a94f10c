"""Honest sites, and sites that mean harm: what each of them sends.

Honest sites hold 60 % of twelve atoms, N(0, 4^2) in eight dimensions, with noise of deviation .5. Bad ones know the
atoms and hold all of them; what they make of them is the attack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from modelweld import LocalModel
from modelweld.core.values import Array, Index
from modelweld.kinds.mixture import mixture

ATOMS, D, SPREAD_SD, NOISE_SD, HOLDS = 12, 8, 4.0, 0.5, 0.6
"""Atoms, their dimension and deviation, a site's deviation about them, and the share of them that a site holds."""

POINTS, WIDTH = 100.0, 1.0
"""Points of a component where sites send counts, and its variance."""

JUNK = 3
"""Rows of junk for each atom."""


@dataclass(frozen=True)
class Draw:
    """What sites send, honest ones first; the true atoms, and those of honest values."""

    sent: list[LocalModel]
    values: list[Array]
    atoms: Array
    truth: list[Index]


Attack = Callable[[np.random.Generator, Array, int], list[Array]]
"""A stream, the atoms and a number of sites -> their values."""

Send = Callable[[Array, str, bool], LocalModel]
"""Values, a name and whether the site is bad -> what is sent."""


def noisy(rng: np.random.Generator, places: Array, times: float = 1.0) -> Array:
    """Places as a site has them."""
    return places + rng.normal(0, times * NOISE_SD, places.shape)


def gross(rng: np.random.Generator, atoms: Array, n: int, factor: float) -> list[Array]:
    """Honest values in units of their own."""
    return [factor * noisy(rng, atoms) for _ in range(n)]


def background(rng: np.random.Generator, atoms: Array, n: int) -> list[Array]:
    """Many values from where atoms are, none of them an atom."""
    return [rng.normal(0, SPREAD_SD, (JUNK * len(atoms), D)) for _ in range(n)]


def sybils(rng: np.random.Generator, atoms: Array, n: int, jitter: float, shift: float = 0.0) -> list[Array]:
    """One site under many names: the same values, but for a jitter (in deviations of noise), perhaps all shifted."""
    one = shifted(rng, atoms, 1, shift)[0]
    return [noisy(rng, one, jitter) for _ in range(n)]


def shifted(rng: np.random.Generator, atoms: Array, n: int, deviations: float) -> list[Array]:
    """All bad sites move all atoms the same way, by so many deviations of noise in each dimension."""
    direction = rng.choice([-1.0, 1.0], D)
    return [noisy(rng, atoms + deviations * NOISE_SD * direction) for _ in range(n)]


def drifting(rng: np.random.Generator, atoms: Array, n: int, deviations: float) -> list[Array]:
    """Bad sites move all atoms the same way, each a little farther than the one before."""
    direction = NOISE_SD * rng.choice([-1.0, 1.0], D)
    return [noisy(rng, atoms + deviations * (i + 1) / n * direction) for i in range(n)]


def extreme(rng: np.random.Generator, atoms: Array, n: int, deviations: float) -> list[Array]:
    """Honest values, of which a tenth of the entries are moved by so many deviations of noise, up or down."""
    far = deviations * NOISE_SD
    return [noisy(rng, atoms) + far * rng.choice([-1, 0, 1], atoms.shape, p=[0.05, 0.9, 0.05]) for _ in range(n)]


def oversplit(rng: np.random.Generator, atoms: Array, n: int, fragments: int) -> list[Array]:
    """Every atom in pieces, each as noisy as an honest value."""
    return [noisy(rng, np.repeat(atoms, fragments, axis=0)) for _ in range(n)]


def fake(rng: np.random.Generator, atoms: Array, n: int) -> list[Array]:
    """As many atoms that no honest site has, the same ones at every bad site."""
    made_up = rng.normal(0, SPREAD_SD, atoms.shape)
    return [noisy(rng, made_up) for _ in range(n)]


def plain(values: Array, name: str, bad: bool) -> LocalModel:
    """Values alone."""
    return LocalModel({"v": values}, {"v": ("atom", None)}, site=name)


def weighted(values: Array, name: str, bad: bool, claim: float) -> LocalModel:
    """Values with weights, those of bad sites so many times larger."""
    weight = POINTS * (claim if bad else 1.0)
    return LocalModel({"v": values}, {"v": ("atom", None)}, weight={"v": weight}, site=name)


def counted(values: Array, name: str, bad: bool, claim: float) -> LocalModel:
    """Mixtures whose bad ones claim so many times the points."""
    counts = np.full(len(values), POINTS * (claim if bad else 1.0))
    return mixture(values, np.full(values.shape, WIDTH), counts, counted=True, site=name)


ATTACKS: dict[str, tuple[Attack, Send]] = {
    "values x 1000": (partial(gross, factor=1e3), plain),
    "extremes of 20 sd in a tenth of the cells": (partial(extreme, deviations=20.0), plain),
    "junk, 3 x as many rows": (background, plain),
    "fake atoms, shared": (fake, plain),
    "sybils, jitter .1": (partial(sybils, jitter=0.1), plain),
    "sybils, jitter .2, shift 2 sd": (partial(sybils, jitter=0.2, shift=2.0), plain),
    "shift 1 sd": (partial(shifted, deviations=1.0), plain),
    "shift 3 sd": (partial(shifted, deviations=3.0), plain),
    "drift up to 2 sd": (partial(drifting, deviations=2.0), plain),
    "weights x 9, shift 1.5 sd": (partial(shifted, deviations=1.5), partial(weighted, claim=9.0)),
    "weights x 1e6, shift 1 sd": (partial(shifted, deviations=1.0), partial(weighted, claim=1e6)),
    "counts x 1e6, shift 1 sd": (partial(shifted, deviations=1.0), partial(counted, claim=1e6)),
    "atoms in 8 pieces": (partial(oversplit, fragments=8), plain),
}


def drawn(attack: str, J: int, share: float, seed: int) -> Draw:
    """J sites of which a share (rounded down) is bad; honest ones are the same whatever the attack."""
    rng, bad_rng = (np.random.default_rng([700, stream, J, seed]) for stream in (0, 1))
    atoms = rng.normal(0, SPREAD_SD, (ATOMS, D))
    held = [np.flatnonzero(rng.random(ATOMS) < HOLDS) for _ in range(J)]
    honest = [noisy(rng, atoms[one]) for one in held]
    make, send = ATTACKS[attack]
    n = int(share * J + 1e-9)
    values = [*honest[: J - n], *make(bad_rng, atoms, n)]
    sent = [send(v, f"honest{j}" if j < J - n else f"bad{j}", j >= J - n) for j, v in enumerate(values)]
    return Draw(sent, values, atoms, held[: J - n])
