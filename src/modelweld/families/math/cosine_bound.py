"""Which directions can belong to an atom at all: those whose cosine with it is above a bound, one per atom.

Belonging to an atom rather than to one of its own scores, for a value v and an atom with sum S, in nats

    score = odds + log sum_g r_g exp(E_g(S + v) - E_g(S)) - log sum_g p_g exp(E_g(v)),

with the evidence E_g at node g, the nodes' shares p_g and, given the atom's values, r_g. With q_g = exp(E_g(v)) /
sum_h p_h exp(E_h(v)) that is odds + log sum_g r_g q_g exp(D_g), where D_g = E_g(S + v) - E_g(S) - E_g(v) depends on v
by v'S and by mean'v alone. It rises with v'S, and falls with mean'v (the tilt is concave in the square). So with the
largest q_g and the smallest mean'v of all values in question it is a bound that rises with v'S, and the v'S at which
it is zero is found by bisection, once per atom. All other pairs cannot beat a new atom and need no Bessel functions.
"""

from __future__ import annotations

import numpy as np

from modelweld.families.math.bessel import tilt
from modelweld.families.math.blocks import blocks
from modelweld.families.math.own_concentration import Mixed
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

HALVINGS = 14
"""Of the interval of possible products; what is left of it is scored needlessly."""

ROUNDING = 4e-6
"""Of the length of a sum, by which products in single precision may be off."""

LARGEST_PRODUCT = 20_000_000
"""Numbers of the largest table of products that is made at once."""


def contending(at: Mixed, own: Array, sums: Array, odds: Array) -> tuple[Index, Index]:
    """Values (rows of weight one) and atoms, pair by pair, that may score above zero."""
    V, S = (at.parts(rows)[2].astype(np.float32) for rows in (own, sums))
    least = (least_products(at, own, sums, odds) - ROUNDING * np.linalg.norm(S, axis=1)).astype(np.float32)
    values, atoms = [], []
    for part in blocks(len(V), len(S), LARGEST_PRODUCT):
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
    D, kappas = V.shape[1], at.kappas[:, None]
    lowest = float(at.along(V).min(initial=np.inf)) if at.base else 0.0
    along, across = at.along(S), np.einsum("kd,kd->k", S, S)
    base, from_base = at.base**2 + 2 * at.base * kappas * along, 2 * at.base * kappas * lowest
    alone = tilt(D, at.base**2 + from_base + kappas**2)
    fixed = tilt(D, np.asarray(at.base**2)) - alone - tilt(D, base + kappas**2 * across)
    shares = np.log(np.maximum(at.shares(sums)[0], 1e-300)) + _largest_ratio(at, own)[:, None] + odds

    def bound(product: Array) -> Array:
        squares = base + from_base + kappas**2 * (across + 1 + 2 * product)
        logs = shares + fixed + tilt(D, np.maximum(squares, 0.0))
        highest = logs.max(0)
        return np.asarray(highest + np.log(np.exp(logs - highest).sum(0)))

    low, high = -np.sqrt(across), np.sqrt(across)
    low = np.zeros(len(S)) if at.axial else low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = bound(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(n > 0, low, -np.inf)


def _largest_ratio(at: Mixed, own: Array) -> Array:
    """Log of the largest q_g (G,) of these values."""
    return np.asarray(np.log(np.maximum(at.shares(own)[0], 1e-300)).max(1) - at.log_shares)
