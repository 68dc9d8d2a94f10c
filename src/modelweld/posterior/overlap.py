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
    from scipy.optimize import linear_sum_assignment

    names, at = np.unique(other, return_inverse=True)
    table = np.zeros((int(fitted.max(initial=-1)) + 1, len(names)))
    np.add.at(table, (fitted, at.ravel()), 1)
    found = np.full(len(table), NOBODY)
    tie = rng.random(table.shape) / (len(table) + 1)  # less than one value in all
    rows, columns = linear_sum_assignment(table + tie, maximize=True)
    shared = table[rows, columns] > 0
    found[rows[shared]] = names[columns[shared]]
    return found


def is_right(fitted: Index, other: Index, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which values (N,) of `fitted` are right with `other` as the answer.

    Examples
    --------
    >>> is_right(np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 3, 3, 3, 7]), np.random.default_rng(0))
    array([ True,  True, False,  True,  True, False])
    """
    return np.asarray(partners(fitted, other, rng)[fitted] == other)
