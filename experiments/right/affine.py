"""Plain values and real tables of sites that differ by an offset or by a scale: case h."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import real
from draws import Draw, Group, with_effect

HELD, NOISE_SD = 8, 0.1
"""Values of a site, and their deviation about the atoms, whose own is one."""

OFFSETS = (0.0, 0.5, 1.0, 3.0)
"""Spreads by which sites differ."""

CELLS = {
    **{f"J={J} offset {x:g}": (J, "offset", x) for J in (3, 5, 10) for x in OFFSETS},
    "J=10 one site": (10, "one site", 1.0),
    "J=10 two batches": (10, "two batches", 1.0),
    "J=10 scale 30 %": (10, "scale", 0.3),
    "J=10 scale 30 %, positive": (10, "scale, positive", 0.3),
    **{f"J=8 one column x {x:g}": (8, "unit", x) for x in (1, 2.54, 0.4536, 1000)},
}
"""Sites, effect and its size."""


def plain(rng: np.random.Generator, D: int, common: int, J: int, kind: str, size: float) -> Draw:
    """Sites of `HELD` values each, of which so many are of atoms that all sites hold, and others of one site alone."""
    shared, values, truth = rng.standard_normal((common, D)), [], []
    for j in range(J):
        atoms = np.concatenate([shared, rng.standard_normal((HELD - common, D))])
        order = rng.permutation(HELD)
        values.append((atoms + NOISE_SD * rng.standard_normal(atoms.shape))[order])
        truth.append(np.where(order < common, order, order + j * HELD))
    values = with_effect(values, kind, size, 1.0, rng)
    return Draw(sent=values, values=values, truth=truth)


def arrays(D: int, common: int, seed: int) -> Iterator[tuple[str, Draw]]:
    """All cells of one dimension and share."""
    for name, (J, kind, size) in CELLS.items():
        yield name, plain(np.random.default_rng([850, D, common, seed]), D, common, J, kind, size)


def tables(name: str, seed: int) -> Iterator[tuple[str, Draw]]:
    """A real table at five sites, with planted offsets."""
    for x in OFFSETS:
        yield from ((f"{cell} offset {x:g}", draw) for cell, draw in real.split(name, (5,), seed, x))


def groups() -> Iterator[Group]:
    """Arrays and tables of case h."""
    for D in (2, 5, 20):
        for share, common in (("all", HELD), ("half", HELD // 2)):
            yield Group("affine", f"arrays, D={D}, {share} shared", partial(arrays, D, common))
    for name in ("wine", "breast cancer", "digits"):
        yield Group("affine", name, partial(tables, name))
