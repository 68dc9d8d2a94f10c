"""Which atom of one matching is which atom of another: the one-to-one assignment of most values in common.

So a fusion's matches are judged with a draw, or the truth, as the answer: a value is right if the atom it was given is
the partner of the atom it is at there. Ties are common, and broken at random: where an atom of two values is two atoms
in a draw, either may be its partner. Always the same one would state too much of one value and too little of the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modelweld.inputs.stack import Index

NOBODY = -1
"""The partner of an atom that has none."""

LARGEST_TABLE = 1_000_000
"""Pairs of atoms above which those that are one and the same value in both are partners beforehand: nothing else can
be, and ten thousand values that were set aside would be a table of a gigabyte for every draw."""


def partners(fitted: Index, other: Index, rng: np.random.Generator) -> Index:
    """For each atom of `fitted`, numbered without gaps, the atom of `other` that is the same; NOBODY where none is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> partners(np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 3, 3, 3, 7]), rng)      # two atoms of three
    array([ 7,  3, -1])
    >>> sorted({int(partners(np.array([0, 0]), np.array([3, 7]), rng)[0]) for _ in range(20)})
    [3, 7]
    """
    names, at = np.unique(other, return_inverse=True)
    at, K = at.ravel(), int(fitted.max(initial=-1)) + 1
    found = np.full(K, NOBODY)
    if K * len(names) <= LARGEST_TABLE:
        rows, columns = _assigned(fitted, at, rng)
    else:
        alone = (np.bincount(fitted)[fitted] == 1) & (np.bincount(at)[at] == 1)
        found[fitted[alone]] = other[alone]
        atoms, inner = np.unique(fitted[~alone], return_inverse=True)
        others, outer = np.unique(at[~alone], return_inverse=True)
        rows, columns = _assigned(inner.ravel(), outer.ravel(), rng)
        rows, columns = atoms[rows], others[columns]
    found[rows] = names[columns]
    return found


def _assigned(fitted: Index, other: Index, rng: np.random.Generator) -> tuple[Index, Index]:
    """Atoms of two matchings, both numbered without gaps, that are partners."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((int(fitted.max(initial=-1)) + 1, int(other.max(initial=-1)) + 1))
    np.add.at(table, (fitted, other), 1)
    tie = rng.random(table.shape) / (len(table) + 1)  # less than one value in all
    rows, columns = linear_sum_assignment(table + tie, maximize=True)
    shared = table[rows, columns] > 0
    return rows[shared], columns[shared]


def is_right(fitted: Index, other: Index, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which values (N,) of `fitted` are right with `other` as the answer.

    Examples
    --------
    >>> is_right(np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 3, 3, 3, 7]), np.random.default_rng(0))
    array([ True,  True, False,  True,  True, False])
    """
    return np.asarray(partners(fitted, other, rng)[fitted] == other)
