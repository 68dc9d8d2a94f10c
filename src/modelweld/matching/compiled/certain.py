"""Whether the best assignment by rounded scores is the best one by exact scores: proved by its prices.

Shortest augmenting paths leave a price of every row and column: no pair costs less than its two prices, and those of
the assignment cost just that. In any other assignment some rows move: each to a column that is free, or whose holder
moves, too. What it costs beyond prices is what it loses, so that pairs that cost hardly more are all that matters.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact
from modelweld.matching.compiled.assignment import shortest_augmenting_paths
from modelweld.matching.compiled.layout import LANES


@exact
def assign_rounded(used, atoms, tables, work, doubt, new, choice):
    """Choose the best assignment by the products of `best_atoms`, all in one block; False if it may be another.

    New atoms must be free of charge. A difference of two scores may be off by `doubt`.
    """
    L = len(new)
    padded = (L + LANES - 1) // LANES * LANES
    products = work.products[: used * padded].reshape(used, padded)
    constants, curvature, length = atoms.constants, atoms.curvature, work.length
    scores = np.empty((L, used))
    for i in range(L):
        for k in range(used):
            scores[i, k] = products[k, i] + (constants[k] + length[i] * curvature[k]) - new[i]
    row_price, column_price, holder, place = shortest_augmenting_paths(scores, tables.surcharge, L, choice)
    return is_certain(scores, row_price, column_price, holder, place, doubt)


@exact
def is_certain(scores, row_price, column_price, holder, place, doubt):
    """Whether the assignment stays the best one if every difference of two scores is off by up to `doubt`.

    At most L rows move, so the loss of another assignment is off by L times as much. Rows may move along pairs that
    cost no more than that beyond their prices; if none of them comes to a free column or round to where it began, any
    other assignment has a pair that costs more.
    """
    L, K = scores.shape
    slack = L * doubt
    rows, holders, number = np.empty(L * K, np.int64), np.empty(L * K, np.int64), 0
    moving, before = np.zeros(L, np.bool_), 0
    for i in range(L):
        if place[i] != K and -row_price[i] <= slack:  # hardly better than a new atom
            return False
        bound, near = row_price[i] + slack, 0
        for k in range(K):  # most rows have their own column alone: found without a branch
            near += -scores[i, k] - column_price[k] <= bound
        if near == (place[i] != K):
            continue
        for k in range(K):
            if k != place[i] and -scores[i, k] - column_price[k] <= bound:
                if holder[k] == -1:
                    return False
                rows[number], holders[number], moving[i] = i, holder[k], True
                number += 1
    while moving.sum() != before:
        before = moving.sum()
        still = np.zeros(L, np.bool_)
        for t in range(number):
            still[rows[t]] |= moving[holders[t]]
        moving = still
    return before == 0
