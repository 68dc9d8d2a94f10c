"""Which directions can belong to an atom at all: those whose cosine with it is above a bound, one per atom.

Belonging to an atom with sum S rather than to one of its own scores, for a value v, in nats

    score = odds + evidence(S + v) - evidence(S) - evidence(v),

which depends on v by v'S and mean'v alone. It rises with v'S, and goes one way with mean'v, in which it is all but
straight: so the larger score at the two ends of mean'v of all values in question bounds it, and the v'S at which that
is zero is found by bisection, once per atom. All other pairs cannot beat a new atom.
"""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Array, Index, blocks
from modelweld.families.math.own_concentration import Mixed

HALVINGS = 14
"""Of the interval of possible products; what is left of it is scored needlessly."""

ROUNDING = 4e-6
"""Of the length of a sum, by which products in single precision may be off."""


def contending(at: Mixed, own: Array, sums: Array, odds: Array) -> tuple[Index, Index]:
    """Values (rows of weight one) and atoms, pair by pair, that may score above zero."""
    V, S = (at.parts(rows)[2].astype(np.float32) for rows in (own, sums))
    least = (least_products(at, own, sums, odds) - ROUNDING * np.linalg.norm(S, axis=1)).astype(np.float32)
    values, atoms = [], []
    for part in blocks(len(V), len(S)):
        products = V[part] @ S.T
        if at.axial:
            np.abs(products, out=products)
        found = np.flatnonzero(products > least)
        values.append(found // max(len(S), 1) + part.start)
        atoms.append(found % max(len(S), 1))
    return np.concatenate(values), np.concatenate(atoms)


def least_products(at: Mixed, own: Array, sums: Array, odds: Array) -> Array:
    """Of each atom (K,), a product v'S below which none of these values scores above zero."""
    (_, _, V), (n, _, S) = at.parts(own), at.parts(sums)
    D, along, across, none = V.shape[1], at.along(S), np.einsum("kd,kd->k", S, S), np.zeros(at.columns)
    ends = np.quantile(at.along(V), [0.0, 1.0]) if at.base and len(V) else np.zeros(1)
    fixed = odds - at.evidence_at(D, n, none, along, across)
    alone = at.evidence_at(D, np.ones(len(ends)), none, ends, np.ones(len(ends)))[:, None]

    def bound(product: Array) -> Array:
        lengths = np.tile(across + 1 + 2 * product, (len(ends), 1))
        return np.asarray((fixed + at.evidence_at(D, n + 1, none, along + ends[:, None], lengths) - alone).max(0))

    low, high = -np.sqrt(across), np.sqrt(across)
    low = np.zeros(len(S)) if at.axial else low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = bound(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(n > 0, low, -np.inf)
