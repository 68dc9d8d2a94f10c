"""How probable is each pair of an assignment? Marginals of the matchings of one group's values to atoms.

A group's values (rows) each take one atom (column) or a new one, no column twice; an assignment has probability

    P(assignment) ∝ exp(sum of the scores of its pairs),        a new atom scores zero.

The normalising constant is a permanent, so the marginals P(row takes column) are exact only where that is cheap. Pairs
that score too little to matter are dropped; what is left falls into connected components. Components without cycles
are exact by belief propagation, small ones by summation over subsets; in large ones belief propagation (the Bethe
approximation) is what one gets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.values import Array, Index

NEGLIGIBLE = -23.0
"""A pair that scores less is dropped: a new atom is always to be had, e^23 (ten thousand million) times as probable."""

EXACT_UP_TO = 10
"""Rows or columns, whichever are fewer, up to which a component is summed over all subsets of them: milliseconds."""

MOST_ROUNDS = 300
"""Of messages. Where two rows tie for the same two columns with score s, messages creep for exp(s / 2) rounds, but
along a direction in which the marginals hardly change."""

TOLERANCE = 1e-5
"""Largest change of a log message at the end, a hundredth of the approximation's own error or less."""


def assignment_marginals(scores: Array) -> Array:
    """Marginal probabilities (L, K + 1) of scores (L, K); the last column is that of a new atom.

    Examples
    --------
    >>> import numpy as np
    >>> tie = np.array([[2.0], [2.0]])               # two values, one atom: weights 1, e^2, e^2
    >>> assignment_marginals(tie).round(3)
    array([[0.468, 0.532],
           [0.468, 0.532]])
    """
    L, K = scores.shape
    table = np.zeros((L, K + 1))
    rows, columns = np.nonzero(scores > NEGLIGIBLE)
    table[rows, columns] = _of_pairs(rows, columns, scores[rows, columns])
    table[:, K] = np.maximum(1.0 - table[:, :K].sum(1), 0.0)
    return table


def _of_pairs(rows: Index, columns: Index, scores: Array) -> Array:
    """Marginals of the pairs (row, column) that matter, rows in ascending order."""
    found = np.zeros(len(rows))
    if len(rows) == 0:
        return found
    component, tangled = _components(rows, columns)
    order = np.argsort(component, kind="stable")
    first = np.searchsorted(component[order], tangled)
    for begin, end in zip(first, np.searchsorted(component[order], tangled + 1), strict=True):
        own = order[begin:end]
        (names, at_rows), (others, at_columns) = (np.unique(x[own], return_inverse=True) for x in (rows, columns))
        table = np.full((len(names), len(others)), -np.inf)
        table[at_rows, at_columns] = scores[own]
        found[own] = _sum_over_subsets(table)[at_rows, at_columns]
    rest = np.flatnonzero(~np.isin(component, tangled))
    if len(rest):
        found[rest] = propagate(rows[rest], columns[rest], scores[rest])
    return found


def _components(rows: Index, columns: Index) -> tuple[Index, Index]:
    """The connected component of each pair, and those that have cycles but are small enough to be exact."""
    rows, columns = (np.unique(x, return_inverse=True)[1].ravel() for x in (rows, columns))
    L = int(rows.max()) + 1
    n = L + int(columns.max()) + 1
    graph = scipy.sparse.coo_matrix(  # of arrays older SciPy (1.11) wants other numbers
        (np.ones(len(rows), dtype=bool), (rows, L + columns)), shape=(n, n)
    )
    number, of_node = scipy.sparse.csgraph.connected_components(graph, directed=False)
    pairs = np.bincount(of_node[rows], minlength=number)
    n_rows = np.bincount(of_node[:L], minlength=number)
    n_columns = np.bincount(of_node[L:], minlength=number)
    small = np.minimum(n_rows, n_columns) <= EXACT_UP_TO
    return of_node[rows], np.flatnonzero(small & (pairs >= n_rows + n_columns))


def propagate(rows: Index, columns: Index, scores: Array) -> Array:
    """Marginals of the pairs (row, column) by belief propagation, rows in ascending order.

    Messages are logarithms of how available a column is to a row, b = 1 / (1 + sum of the other rows' claims), and of a
    row's claim on a column, a = exp(score) / (1 + sum over its other columns of exp(score) b). One round is an
    increasing function of all b with a single fixed point: started at b = 1 the messages fall to it one by one, and
    damping, which cures oscillation, would only slow them down.
    """
    turn = np.argsort(columns, kind="stable")
    back = np.empty_like(turn)
    back[turn] = np.arange(len(turn))
    by_row, by_column = _runs(rows), _runs(columns[turn])
    available = np.zeros(len(scores))
    for _ in range(MOST_ROUNDS):
        claim = scores - _log_one_plus_others(scores + available, by_row)
        before, available = available, -_log_one_plus_others(claim[turn], by_column)[back]
        if np.abs(available - before).max() < TOLERANCE:
            break
    belief = scores + available
    top = np.maximum(np.maximum.reduceat(belief, by_row.first), 0.0)
    share = np.exp(belief - top[by_row.of])
    total = np.exp(-top) + np.add.reduceat(share, by_row.first)
    return np.asarray(share / total[by_row.of])


class _Runs(NamedTuple):
    """Entries that belong together stand together: where each run begins, and the run of each entry."""

    first: Index
    of: Index


def _runs(names: Index) -> _Runs:
    begins = np.ones(len(names), dtype=bool)
    begins[1:] = names[1:] != names[:-1]
    return _Runs(np.flatnonzero(begins), np.cumsum(begins) - 1)


def _log_one_plus_others(x: Array, runs: _Runs) -> Array:
    """log(1 + sum of exp x over the others of the run), for every entry.

    Taking an entry from the total is safe unless it is the run's largest; for that one the others are added up again.
    """
    top = np.maximum(np.maximum.reduceat(x, runs.first), 0.0)
    share = np.exp(x - top[runs.of])
    others = (np.exp(-top) + np.add.reduceat(share, runs.first))[runs.of] - share
    is_top = np.flatnonzero(x == top[runs.of])
    largest = np.full(len(runs.first), -1)
    largest[runs.of[is_top]] = is_top  # one of them, if there are ties: the others then stay in the total
    largest = largest[largest >= 0]
    others[largest] = 1.0
    result = top[runs.of] + np.log(others)
    rest = x.copy()
    rest[largest] = -np.inf
    second = np.maximum(np.maximum.reduceat(rest, runs.first), 0.0)
    again = second + np.log(np.exp(-second) + np.add.reduceat(np.exp(rest - second[runs.of]), runs.first))
    result[largest] = again[runs.of[largest]]
    return np.asarray(result)


def _sum_over_subsets(scores: Array) -> Array:
    """Exact marginals (L, K), summing over the sets of rows that the columns so far have taken.

    forward[k][rows taken] adds up the assignments of the columns before k, backward[k][rows taken] those of column k
    and after; both are logarithms, so scores may be of any size.
    """
    L, K = scores.shape
    if L > K:  # rows and columns play the same part: unmatched scores zero on both sides
        return _sum_over_subsets(scores.T).T
    sets = np.arange(2**L)
    without = [sets[(sets >> row) & 1 == 0] for row in range(L)]
    forward = np.full((K + 1, 2**L), -np.inf)
    forward[0, 0] = 0.0
    backward = np.zeros((K + 1, 2**L))
    for k in range(K):
        forward[k + 1] = forward[k]
        for row, free in enumerate(without):
            taken = free | 1 << row
            forward[k + 1, taken] = np.logaddexp(forward[k + 1, taken], forward[k, free] + scores[row, k])
    for k in reversed(range(K)):
        backward[k] = backward[k + 1]
        for row, free in enumerate(without):
            backward[k, free] = np.logaddexp(backward[k, free], backward[k + 1, free | 1 << row] + scores[row, k])
    marginals = np.empty((L, K))
    for row, free in enumerate(without):
        log_weight = forward[:-1, free] + backward[1:, free | 1 << row] + scores[row, :, None]
        marginals[row] = np.exp(log_weight - backward[0, 0]).sum(1)
    return marginals
