"""Groups that are settled by the triangle inequality, without any product."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.algorithm1 import CLEAR
from modelweld.core.values import Array
from modelweld.fit.engines.compiled.packing import BLOCK_ROWS, Atoms, Tables

FEWEST_PER_ATOM = 20
"""Values per atom from which comparing all pairs of atoms is cheap beside scoring all values."""


class Bounds(NamedTuple):
    """What the triangle inequality needs: see `settled`. Distances are in deviations of the noise.

    Where noise and spread differ between dimensions, what is the worst of any of them is taken for all.
    """

    places: Array  # (slots, D): where atoms are, measured from the origin
    nearest: Array  # (slots,): distance from each atom to the nearest other one
    from_mean: Array  # (slots,): and to the mean of all
    moves: Array  # (counts,): how far an atom moves if a value is taken out, per distance of the value from it
    left: Array  # (counts,): squared distance over variance that the value then has, per squared distance before
    highest: float  # the largest `Tables.constant` of a count that occurs
    widest: float  # the largest v / noise of a count that occurs
    new_widest: float  # the same of new atoms
    new_narrowest: float


def find_bounds(atoms: Atoms, used: int, tables: Tables, N: int) -> Bounds:
    """For settling groups by the triangle inequality; empty when there are too many atoms for it to pay."""
    none = np.empty(0)
    if used == 0 or used * FEWEST_PER_ATOM > N:
        return Bounds(np.empty((0, 0)), none, none, none, none, 0.0, 1.0, 1.0, 1.0)
    counts, mean, unit = atoms.counts[:used], tables.mean, tables.unit
    J = int(counts.max()) + 1
    shrink, inverse, moves, left = tables.shrink[:J], tables.inverse[:J], np.zeros(J), np.zeros(J)
    moves[2:] = shrink[1:-1].max(1)
    left[2:] = (np.square(shrink[1:-1] / shrink[2:]) * inverse[1:-1]).max(1)
    places = (mean * tables.ratio + atoms.sums[:used]) * shrink[counts]
    from_mean, scaled = np.sqrt(np.square((places - mean) * unit).sum(1)), places * unit
    lengths, nearest = np.square(scaled).sum(1), np.empty(used)
    for b in range(0, used, BLOCK_ROWS):
        some = slice(b, b + BLOCK_ROWS)
        # what rounding may have added is taken off again
        square = (lengths[some, None] + lengths) * (1 - 1e-12) - 2 * (scaled[some] @ scaled.T)
        np.fill_diagonal(square[:, b:], np.inf)
        nearest[some] = np.sqrt(np.maximum(square.min(1), 0.0))
    of_new, highest, widest = inverse[0], float(tables.constant[1:J].max()), float(1 / inverse[1].min())
    new_widest, new_narrowest = float(1 / of_new.min()), float(1 / of_new.max())
    return Bounds(places, nearest, from_mean, moves, left, highest, widest, new_widest, new_narrowest)


@exact
def settle_groups(X, rows, a, L, labels, atoms, tables, bounds, own, new, away):
    """Whether every value of a group is clearly where it is (by CLEAR nats), shown without looking at other atoms.

    Taking value y out of its atom moves the atom from mu by (y - mu) / (n - 1 + ratio), and leaves y at
    (y - mu) (n + ratio) / (n - 1 + ratio) from it. Any other atom is at least `nearest` - |y - mu| - (the largest
    such move in this group) away from y, so its score is at most bounds.highest - 1/2 distance^2 / bounds.widest; and
    the mean of all is at least `from_mean` - |y - mu| away, and at most the sum of both.
    """
    places, nearest, from_mean, moves, left, highest, widest, new_widest, new_narrowest = bounds
    origin, unit, constant, counts = tables.origin, tables.unit, tables.constant, atoms.counts
    largest_move = 0.0
    alone = 0
    for i in range(L):
        row, k = rows[a + i], labels[a + i]
        n = counts[k]
        square = 0.0
        for d in range(X.shape[1]):
            off = (X[row, d] - origin[d] - places[k, d]) * unit[d]
            square += off * off
        distance = np.sqrt(square)
        away[i] = nearest[k] - distance
        if n > 1:
            fresh = max(from_mean[k] - distance, 0.0)
            new[i] = constant[0] - 0.5 * fresh * fresh / new_widest
            own[i] = constant[n - 1] - 0.5 * square * left[n]
            largest_move = max(largest_move, distance * moves[n])
        else:
            fresh = from_mean[k] + distance
            new[i] = constant[0] - 0.5 * fresh * fresh / new_narrowest
            alone += 1
    bar = -tables.surcharge[max(alone - 1, 0)]
    for i in range(L):
        distance = away[i] - largest_move
        elsewhere = highest - 0.5 * distance * distance / widest
        if distance <= 0.0:
            return False
        if counts[labels[a + i]] == 1:
            if elsewhere > new[i] + bar - CLEAR:
                return False
        elif own[i] < new[i] + bar + CLEAR or own[i] < elsewhere + CLEAR:
            return False
    return True
