"""Atoms parted in two where that raises the objective: all at once, in time linear in their values.

Where fragments are pooled the search begins with values apart and joins them (`fit.search.starts`): parting is for
other boards. Two ways are tried, and the first that raises the objective is kept: an atom's farthest member alone, or
two halves about two ends. The farthest member is the one that the others predict worst; it is one end, and the member
that is least likely to share its place is the other. (The farthest of all pairs would take the square of the time.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from modelweld.core.algorithm1 import SMALLEST_RISE
from modelweld.core.board import Board
from modelweld.core.family import sum_by_atom
from modelweld.core.values import Array, Index, blocks

Rows = Callable[[Array, Array, slice], Array]
"""Rows of which the evidence is asked for, from those of all values and the atoms' sums, for some values."""


def split(board: Board) -> int:
    """Part atoms in two where that raises the objective; returns how many were parted."""
    K, size = len(board.counts), np.bincount(board.labels, minlength=len(board.counts))
    if not (size > 1).any():
        return 0
    farthest, half = partings(board)
    whole, parted = objective_by_atom(board, board.labels, K), np.zeros(K, dtype=bool)
    labels = board.labels.copy()
    for part in (farthest, half):
        both = objective_by_atom(board, np.where(part, K + board.labels, board.labels), 2 * K)
        better = (both[:K] + both[K:] > whole + SMALLEST_RISE) & (size > 1) & ~parted
        moving = part & better[board.labels]
        labels[moving] = K + board.labels[moving]
        parted |= better
    if parted.any():
        board.labels = labels
        board.recount()
    return int(parted.sum())


def objective_by_atom(board: Board, labels: Index, slots: int) -> Array:
    """What each atom adds to the objective when values are at these labels; zero where a slot is empty."""
    groups = len(board.sizes)
    held, cell, fragments = np.unique(labels * groups + board.group, return_inverse=True, return_counts=True)
    atom = held // groups
    value = np.concatenate([[0.0], np.cumsum(board.increments)])[np.bincount(atom, minlength=slots)]
    for family, rows in zip(board.families, board.pool_rows(slice(None), cell, len(held)), strict=True):
        value = value + family.log_evidence(sum_by_atom(rows, atom, slots))
    # the log prior of delta is the same whatever the matching: it cancels between a whole and its parts
    if board.fragments is None:
        return value
    return value + np.bincount(atom, board.fragments.log_prob_each(fragments), slots)


def partings(board: Board) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which values to part from the rest of their atom: the farthest alone; those nearer to the second end."""
    own = board.labels

    def without(rows: Array, sums: Array, part: slice) -> Array:
        return np.asarray(sums[own[part]] - rows[part])

    def beside(ends: Index) -> Rows:
        return lambda rows, _, part: np.asarray(rows[part] + rows[ends[own[part]]])

    first = _least(-_evidence(board, without) - board.singletons, own)  # the atom's own evidence is the same for all
    near_first = _evidence(board, beside(first)) - board.singletons
    farther = near_first.copy()
    farther[first] = np.inf  # an end is not beside itself
    second = _least(farther, own)
    alone, half = np.zeros((2, len(own)), dtype=bool)
    alone[first] = True
    shared = board.singletons[first] - board.singletons[second]
    half[:] = near_first - shared[own] < _evidence(board, beside(second)) - board.singletons
    half[first], half[second] = False, True
    return alone, half


def _least(x: Array, labels: Index) -> Index:
    """The value of every atom at which x is least."""
    order = np.lexsort((x, labels))
    return np.asarray(order[np.flatnonzero(np.diff(labels[order], prepend=-1))])


def _evidence(board: Board, rows_of: Rows) -> Array:
    """Log evidence (N,) of rows made of those of each value and of its atom's sums."""
    result = np.zeros(len(board.labels))
    for family, rows, sums in zip(board.families, board.rows, board.sums, strict=True):
        for part in blocks(len(rows), rows.shape[1]):
            result[part] += family.log_evidence(rows_of(rows, sums, part))
    return result
