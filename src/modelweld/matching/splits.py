"""Parting atoms in two where that raises the objective: all atoms at once, in time linear in their values.

Two ways of parting an atom are tried, and the first that raises the objective is kept: its farthest member alone, or
two halves about two ends. The farthest member is the one that the others predict worst; it is one end, and the member
that is least likely to share its place is the other. (The farthest of all pairs would take the square of the time.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from modelweld.families.base import Family
from modelweld.families.math.blocks import blocks
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import SMALLEST_RISE

Rows = Callable[[Array, Array, slice], Array]
"""Rows of which the evidence is asked for, from those of all values and the atoms' sums, for some values."""


class Members(Protocol):
    """Atoms' members as rows, and what atoms are worth: what parting an atom asks for."""

    families: list[Family]
    rows: list[Array]
    sums: list[Array]
    alone: Array
    labels: Index
    counts: Index

    def worth_at(self, labels: Index, slots: int) -> Array:
        """What each atom adds to the objective when values are at these labels; zero where a slot is empty."""

    def recount(self) -> None:
        """Number the atoms without gaps and add everything anew."""


def split(board: Members) -> int:
    """Part atoms in two where that raises the objective; returns how many were parted."""
    K, size = len(board.counts), np.bincount(board.labels, minlength=len(board.counts))
    if not (size > 1).any():
        return 0
    farthest, half = partings(board)
    whole, parted = board.worth_at(board.labels, K), np.zeros(K, dtype=bool)
    labels = board.labels.copy()
    for part in (farthest, half):
        both = board.worth_at(np.where(part, K + board.labels, board.labels), 2 * K)
        better = (both[:K] + both[K:] > whole + SMALLEST_RISE) & (size > 1) & ~parted
        moving = part & better[board.labels]
        labels[moving] = K + board.labels[moving]
        parted |= better
    if parted.any():
        board.labels = labels
        board.recount()
    return int(parted.sum())


def partings(board: Members) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which values to part from the rest of their atom: the farthest alone; those nearer to the second end."""
    own = board.labels

    def without(rows: Array, sums: Array, part: slice) -> Array:
        return np.asarray(sums[own[part]] - rows[part])

    def beside(ends: Index) -> Rows:
        return lambda rows, _, part: np.asarray(rows[part] + rows[ends[own[part]]])

    first = _least(-_evidence(board, without) - board.alone, own)  # the atom's own evidence is the same for all
    near_first = _evidence(board, beside(first)) - board.alone
    farther = near_first.copy()
    farther[first] = np.inf  # an end is not beside itself
    second = _least(farther, own)
    alone, half = np.zeros((2, len(own)), dtype=bool)
    alone[first] = True
    shared = board.alone[first] - board.alone[second]
    half[:] = near_first - shared[own] < _evidence(board, beside(second)) - board.alone
    half[first], half[second] = False, True
    return alone, half


def _least(x: Array, labels: Index) -> Index:
    """The value of every atom at which x is least."""
    order = np.lexsort((x, labels))
    return np.asarray(order[np.flatnonzero(np.diff(labels[order], prepend=-1))])


def _evidence(board: Members, rows_of: Rows) -> Array:
    """Log evidence (N,) of rows made of those of each value and of its atom's sums."""
    result = np.zeros(len(board.labels))
    for family, rows, sums in zip(board.families, board.rows, board.sums, strict=True):
        for part in blocks(len(rows), rows.shape[1]):
            result[part] += family.log_evidence(rows_of(rows, sums, part))
    return result
