"""Groups that are settled by the triangle inequality, without any product."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.inputs.local_model import Array
from modelweld.matching.algorithm1 import CLEAR
from modelweld.matching.compiled.layout import BLOCK_ROWS

FEWEST_PER_ATOM = 4
"""Values per atom from which comparing all pairs of atoms is cheap beside scoring all values."""


class Bounds(NamedTuple):
    """What the triangle inequality needs: see `settled`."""

    nearest: Array  # (slots,): distance from each atom to the nearest other one
    constant: float  # the largest `Tables.constant` of a count that occurs
    widest: float  # the largest v / noise of a count that occurs


@exact
def find_bounds(atoms, used, tables, N):
    """For settling groups by the triangle inequality; empty when there are too many atoms for it to pay."""
    if used == 0 or used * FEWEST_PER_ATOM > N:
        return Bounds(np.empty(0), 0.0, 1.0)
    largest = atoms.counts[:used].max()
    widest = 1.0 / tables.inverse[1].min()
    return Bounds(_atom_distances(atoms, used, tables), tables.constant[1 : largest + 1].max(), widest)


@exact
def _atom_distances(atoms, used, tables):
    """Distance from each of the first `used` atoms to the nearest other one, in noise deviations."""
    D, H = len(tables.mean), len(tables.ratio)
    places, lengths = np.empty((used, D)), np.zeros(used)
    for k in range(used):
        n = atoms.counts[k]
        for d in range(D):
            h = d if H > 1 else 0
            mu = (tables.mean[d] * tables.ratio[h] + atoms.sums[k, d]) * tables.shrink[n, h]
            places[k, d] = mu / tables.deviation[h]
            lengths[k] += places[k, d] * places[k, d]
    nearest = np.full(used, np.inf)
    for b in range(0, used, BLOCK_ROWS):
        e = min(b + BLOCK_ROWS, used)
        G = np.dot(places[b:e], places.T)
        for i in range(e - b):
            for k in range(used):
                if k != b + i:
                    # what rounding may have added is taken off again
                    square = (lengths[b + i] + lengths[k]) * (1 - 1e-12) - 2 * G[i, k]
                    nearest[b + i] = min(nearest[b + i], square)
    return np.sqrt(np.maximum(nearest, 0.0))


@exact
def settled(X, rows, a, L, labels, atoms, tables, bounds, own, new, away):
    """Whether every value of a group is clearly where it is (by CLEAR nats), shown without looking at other atoms.

    Taking value y out of its atom moves the atom from mu by (y - mu) / (n - 1 + ratio), and leaves y at
    (y - mu) (n + ratio) / (n - 1 + ratio) from it. Any other atom is at least `nearest` - |y - mu| - (the largest
    such move in this group) away from y, so its score is at most bounds.constant - 1/2 distance^2 / bounds.widest.
    """
    D, H = X.shape[1], len(tables.ratio)
    largest_move = 0.0
    alone = 0
    for i in range(L):
        row, k = rows[a + i], labels[a + i]
        n = atoms.counts[k]
        rest = max(n - 1, 1)  # what is computed with it is not used for a value that is alone
        square, moved, left, fresh = 0.0, 0.0, 0.0, 0.0
        if H == 1:
            r, shrink = tables.ratio[0], tables.shrink[n, 0]
            for d in range(D):
                y = X[row, d] - tables.origin[d]
                off = y - (tables.mean[d] * r + atoms.sums[k, d]) * shrink
                square += off * off
                off = y - tables.mean[d]
                fresh += off * off
            unit = 1.0 / (tables.deviation[0] * tables.deviation[0])
            square *= unit
            moved = square * tables.shrink[rest, 0] * tables.shrink[rest, 0]
            left = moved / (shrink * shrink) * tables.inverse[rest, 0]
            fresh *= unit * tables.inverse[0, 0]
        else:
            for d in range(D):
                unit, shrink = 1.0 / tables.deviation[d], tables.shrink[n, d]
                y = X[row, d] - tables.origin[d]
                off = (y - (tables.mean[d] * tables.ratio[d] + atoms.sums[k, d]) * shrink) * unit
                square += off * off
                off *= tables.shrink[rest, d]
                moved += off * off
                left += off * off / (shrink * shrink) * tables.inverse[rest, d]
                off = (y - tables.mean[d]) * unit
                fresh += off * off * tables.inverse[0, d]
        new[i] = tables.constant[0] - 0.5 * fresh
        away[i] = bounds.nearest[k] - np.sqrt(square)
        if n > 1:
            own[i] = tables.constant[rest] - 0.5 * left - new[i]
            largest_move = max(largest_move, moved)
        else:
            alone += 1
    bar = -tables.surcharge[max(alone - 1, 0)]
    for i in range(L):
        distance = away[i] - np.sqrt(largest_move)
        elsewhere = bounds.constant - 0.5 * distance * distance / bounds.widest - new[i]
        if distance <= 0.0:
            return False
        if atoms.counts[labels[a + i]] == 1:
            if elsewhere > bar - CLEAR:
                return False
        elif own[i] < bar + CLEAR or own[i] < elsewhere + CLEAR:
            return False
    return True
