"""Compiled twins of `modelweld.matching.algorithm1`: the easy case without search, and shortest augmenting paths.

These leave a price of every row and column: no pair costs less than its two prices, and those of the assignment cost
just that. In any other assignment some rows move: each to a column that is free, or whose holder moves, too. What it
costs beyond prices is what it loses, so that pairs that cost hardly more are all that matters. So prices prove where
the best assignment by rounded scores is the best one by exact scores (`assign_rounded`).
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact
from modelweld.matching.algorithm1 import NEW
from modelweld.matching.compiled.layout import LANES


@exact
def distinct_best(best, column, surcharge, most_new, choice, claimed):
    """Give every row its best column, or NEW where the surcharge is less than the loss; False if columns collide.

    Without the rule "one row per column" this is the optimum, so where the rule happens to hold it is the optimum
    with it too. The rows that become new are those with the lowest best scores: the k-th lowest does if its best
    score falls short of minus the k-th surcharge. `claimed` must be False everywhere, and is left so.
    """
    L = len(best)
    free = most_new >= L and surcharge[L - 1] == 0.0
    wants_new = 0
    for i in range(L):
        choice[i] = NEW if free and best[i] < 0.0 else column[i]
        wants_new += best[i] < 0.0
    if wants_new > 0 and not free:
        order = np.argsort(best)
        r = 0
        while r < min(L, most_new) and best[order[r]] + surcharge[r] < 0.0:
            choice[order[r]] = NEW
            r += 1
    apart = True
    for i in range(L):
        if choice[i] != NEW:
            apart = apart and not claimed[choice[i]]
            claimed[choice[i]] = True
    for i in range(L):
        if choice[i] != NEW:
            claimed[choice[i]] = False
    return apart


@exact
def shortest_augmenting_paths(scores, surcharge, most_new, choice):
    """The best of all assignments of rows to columns of `scores` (L, K) or NEW: see `assignment.best_assignment`.

    Columns K, K + 1, ... stand for the first, second, ... new atom; where every row may become one free of charge,
    column K for all of them, which nobody ever holds. Rows start at their best column, which is optimal as long as
    nobody else wants it (column prices zero); every row left over is placed by one shortest augmenting path in the
    reduced costs (Jonker and Volgenant; Crouse 2016).

    Returns prices of rows and columns, the row that holds each column (-1: none) and the column of each row.
    """
    L, K = scores.shape
    all_free = most_new >= L and surcharge[L - 1] == 0.0
    C = K + 1 if all_free else K + max(min(most_new, L), L - K)
    row_price, column_price = np.empty(L), np.zeros(C)
    holder = np.full(C, -1, dtype=np.int64)
    place = np.full(L, -1, dtype=np.int64)
    unplaced = np.empty(L, dtype=np.int64)
    left = 0
    free_of_charge = surcharge[C - K - 1] == 0.0
    opened = 0
    for i in range(L):
        cheapest, at = np.inf, -1
        for k in range(K):
            if -scores[i, k] < cheapest:
                cheapest, at = -scores[i, k], k
        if cheapest > 0.0 and all_free:
            row_price[i], place[i] = 0.0, K
            continue
        if cheapest > 0.0:
            cheapest, at = 0.0, K + opened
            if free_of_charge and K + opened + 1 < C:
                opened += 1  # the next row need not ask for the same one
        row_price[i] = cheapest
        if holder[at] == -1:
            holder[at], place[i] = i, at
        else:
            unplaced[left] = i
            left += 1
    distance, parent = np.empty(C), np.empty(C, dtype=np.int64)
    done_column, done_row = np.empty(C, dtype=np.bool_), np.empty(L, dtype=np.bool_)
    for t in range(left):
        start = unplaced[t]
        distance[:] = np.inf
        done_column[:] = False
        done_row[:] = False
        i, reached, end = start, 0.0, -1
        while end == -1:
            done_row[i] = True
            nearest, at = np.inf, -1
            for k in range(C):
                if done_column[k]:
                    continue
                cost = -scores[i, k] if k < K else surcharge[k - K]
                through = reached + cost - row_price[i] - column_price[k]
                if through < distance[k]:
                    distance[k], parent[k] = through, i
                # among equally near columns a free one ends the path
                if distance[k] < nearest or (distance[k] == nearest and holder[k] == -1):
                    nearest, at = distance[k], k
            reached = nearest
            done_column[at] = True
            if holder[at] == -1:
                end = at
            else:
                i = holder[at]
        row_price[start] += reached
        for i in range(L):
            if done_row[i] and i != start:
                row_price[i] += reached - distance[place[i]]
        for k in range(C):
            if done_column[k]:
                column_price[k] -= reached - distance[k]
        at = end
        while True:
            i = parent[at]
            if not (all_free and at == K):
                holder[at] = i
            place[i], at = at, place[i]
            if i == start:
                break
    for i in range(L):
        choice[i] = place[i] if place[i] < K else NEW
    return row_price, column_price, holder, place


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
