"""The best assignment where few pairs of rows and columns are worth anything: by connected components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import NEW, best_assignment


class Scored(NamedTuple):
    """Scores of some pairs of L rows and K columns; all others are below zero."""

    rows: Index
    columns: Index
    scores: Array
    shape: tuple[int, int]


def assign(scored: Scored) -> Index:
    """Column of each row, at most one row per column, or NEW: the assignment of `best_assignment`.

    Rows and columns that no pair of positive score connects do not concern each other.

    Examples
    --------
    >>> pairs = Scored(np.array([0, 1, 2]), np.array([4, 4, 0]), np.array([1.0, 2.0, 3.0]), (3, 5))
    >>> assign(pairs)
    array([-1,  4,  0])
    """
    from scipy.sparse import coo_matrix  # of arrays older SciPy (1.11) wants other numbers
    from scipy.sparse.csgraph import connected_components

    L, K = scored.shape
    choice = np.full(L, NEW, dtype=np.int64)
    good = scored.scores > 0
    rows, columns, scores = scored.rows[good], scored.columns[good], scored.scores[good]
    if not len(rows):
        return choice
    graph = coo_matrix((np.ones(len(rows)), (rows, L + columns)), shape=(L + K, L + K))
    _, component = connected_components(graph, directed=False)
    order = np.argsort(component[rows], kind="stable")
    first = np.flatnonzero(np.diff(component[rows[order]], prepend=-1))
    for pairs in np.split(order, first[1:]):
        if len(pairs) == 1:
            choice[rows[pairs]] = columns[pairs]
            continue
        these, i = np.unique(rows[pairs], return_inverse=True)
        those, k = np.unique(columns[pairs], return_inverse=True)
        table = np.full((len(these), len(those)), -1.0)
        table[i, k] = scores[pairs]
        found = best_assignment(table, np.zeros(len(these)), len(these))
        choice[these] = np.where(found == NEW, NEW, those[found])
    return choice
