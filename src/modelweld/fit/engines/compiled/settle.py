"""Groups that are settled by the triangle inequality, without any product."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.algorithm1 import CLEAR
from modelweld.core.values import Array
from modelweld.fit.engines.compiled.packing import BLOCK_ROWS

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


@exact
def find_bounds(atoms, used, tables, N):
    """For settling groups by the triangle inequality; empty when there are too many atoms for it to pay."""
    none = np.empty(0)
    if used == 0 or used * FEWEST_PER_ATOM > N:
        return Bounds(np.empty((0, 0)), none, none, none, none, 0.0, 1.0, 1.0, 1.0)
    shrink, inverse, H = tables.shrink, tables.inverse, len(tables.ratio)
    largest = atoms.counts[:used].max()
    moves, left = np.zeros(largest + 1), np.zeros(largest + 1)
    for n in range(2, largest + 1):
        for h in range(H):
            farther = shrink[n - 1, h] / shrink[n, h]
            moves[n] = max(moves[n], shrink[n - 1, h])
            left[n] = max(left[n], farther * farther * inverse[n - 1, h])
    places, nearest, from_mean = _distances(atoms, used, tables)
    highest, widest = tables.constant[1 : largest + 1].max(), 1.0 / inverse[1].min()
    return Bounds(
        places, nearest, from_mean, moves, left, highest, widest, 1.0 / inverse[0].min(), 1.0 / inverse[0].max()
    )


@exact
def _distances(atoms, used, tables):
    """Places of the first `used` atoms, and their distances to the nearest other one and to the mean."""
    mean, ratio, unit, shrink = tables.mean, tables.ratio, tables.unit, tables.shrink
    sums, counts = atoms.sums, atoms.counts
    D, H = len(mean), len(ratio)
    places, scaled, lengths, from_mean = np.empty((used, D)), np.empty((used, D)), np.zeros(used), np.zeros(used)
    for k in range(used):
        n = counts[k]
        for d in range(D):
            h = d if H > 1 else 0
            place = (mean[d] * ratio[h] + sums[k, d]) * shrink[n, h]
            off = (place - mean[d]) * unit[d]
            places[k, d], scaled[k, d] = place, place * unit[d]
            lengths[k] += scaled[k, d] * scaled[k, d]
            from_mean[k] += off * off
    nearest = np.full(used, np.inf)
    for b in range(0, used, BLOCK_ROWS):
        e = min(b + BLOCK_ROWS, used)
        G = np.dot(scaled[b:e], scaled.T)
        for i in range(e - b):
            for k in range(used):
                if k != b + i:
                    # what rounding may have added is taken off again
                    square = (lengths[b + i] + lengths[k]) * (1 - 1e-12) - 2 * G[i, k]
                    nearest[b + i] = min(nearest[b + i], square)
    return places, np.sqrt(np.maximum(nearest, 0.0)), np.sqrt(from_mean)


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
