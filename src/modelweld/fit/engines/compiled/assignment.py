"""Compiled duplicates of `modelweld.core.algorithm1`: the easy case without search, and shortest augmenting paths.

The reference assigns over a table of all values and atoms, which takes the product of their numbers for every path. A
pair that scores less than the dearest new atom costs is in no best assignment; of thousands of atoms a value has a few
at which its score is above. Only they are assigned.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact
from modelweld.core.algorithm1 import NEW
from modelweld.fit.engines.compiled.packing import BLOCK_ROWS, VACANT, Atoms
from modelweld.fit.engines.compiled.scores import features_of, weigh


@exact
def distinct_best(best, column, surcharge, most_new, choice, claimed):
    """Give every row its best column, or NEW where the surcharge is less than the loss; False if columns collide.

    Without the rule "one row per column" this is the optimum, so where the rule happens to hold it is the optimum
    with it too. The rows that become new are those with the lowest best scores: the k-th lowest does if its best
    score falls short of minus the k-th surcharge. `claimed` must be False everywhere, and is left so.
    """
    L = len(best)
    free = most_new >= L and surcharge[L - 1] == 0.0
    for i in range(L):
        choice[i] = NEW if free and best[i] < 0.0 else column[i]
    for r in range(0 if free else min(L, most_new)):
        lowest = -1
        for i in range(L):
            if choice[i] != NEW and (lowest == -1 or best[i] < best[lowest]):
                lowest = i
        if best[lowest] + surcharge[r] >= 0.0:
            break
        choice[lowest] = NEW
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
def assign_exactly(Y, used, atoms, tables, new, most_new, choice, claimed):
    """Choose the best assignment by scores in float64."""
    L, surcharge, occupied = len(Y), tables.surcharge, 0
    for k in range(used):
        occupied += atoms.counts[k] > 0
    # where the number of new atoms is limited any pair may be needed
    lowest = -surcharge[L - 1] if most_new >= L else 0.5 * VACANT
    first, columns, scores = worthwhile_pairs(Y, used, atoms, tables, new, lowest)
    best, column = np.full(L, VACANT), np.zeros(L, np.int64)
    for i in range(L):
        for t in range(first[i], first[i + 1]):
            if scores[t] > best[i]:
                best[i], column[i] = scores[t], columns[t]
    if not distinct_best(best, column, surcharge, most_new, choice, claimed):
        free = most_new >= L and surcharge[L - 1] == 0.0
        extra = 0 if free else max(min(most_new, L), L - occupied)
        shortest_augmenting_paths(first, columns, scores, used, surcharge, extra, choice)


@exact
def worthwhile_pairs(Y, used, atoms, tables, new, lowest):
    """Pairs that score above `lowest`: where each value's begin (L + 1,), atoms (ascending), scores."""
    L, P, total = len(Y), atoms.weights.shape[1], 0
    first, columns, scores = np.zeros(L + 1, np.int64), np.empty(L * 8, np.int64), np.empty(L * 8)
    weights, constants, curvature = np.zeros((used, P)), np.empty(used), np.zeros(used)
    weigh(np.arange(used), Atoms(atoms.sums, atoms.counts, weights, constants, curvature, np.zeros(2)), tables)
    for b in range(0, L if used > 0 else 0, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, L - b)
        features, length = np.empty((rows, P)), np.empty(rows)
        features_of(Y[b : b + rows], tables, features, new[b : b + rows], length)
        products = np.dot(features, weights.T)
        for i in range(rows):
            if total + used > len(columns):
                before, known = columns, scores
                columns, scores = np.empty(2 * (total + used), np.int64), np.empty(2 * (total + used))
                for t in range(total):
                    columns[t], scores[t] = before[t], known[t]
            for k in range(used):
                products[i, k] += constants[k] + length[i] * curvature[k] - new[b + i]
            for k in range(used):
                if products[i, k] > lowest:
                    columns[total], scores[total] = k, products[i, k]
                    total += 1
            first[b + i + 1] = total
    return first, columns, scores


@exact
def shortest_augmenting_paths(first, columns, scores, K, surcharge, extra, choice):
    """The best of all assignments of rows to K columns, or NEW: see `core.algorithm1.best_assignment`.

    Pairs are as `worthwhile_pairs` gives them. Columns K, K + 1, ... stand for the first, second, ... `extra` new atom;
    without any, column K for all of them, which is free of charge and which no row ever holds. Rows start at their best
    column, which is optimal as long as no other row wants it (column prices zero); every row left over is placed by one
    shortest augmenting path in the reduced costs, nearest first (Jonker and Volgenant; Crouse 2016).
    """
    L, C = len(first) - 1, K + max(extra, 1)
    row_price, column_price, holder = np.empty(L), np.zeros(C), np.full(C, -1, dtype=np.int64)
    place, unplaced, left = np.full(L, -1, dtype=np.int64), np.empty(L, dtype=np.int64), 0
    for i in range(L):
        row_price[i], at = surcharge[0], K
        for t in range(first[i], first[i + 1]):
            if -scores[t] < row_price[i]:
                row_price[i], at = -scores[t], columns[t]
        if holder[at] == -1:
            place[i] = at
            holder[at] = -1 if at == K and extra == 0 else i
        else:
            unplaced[left] = i
            left += 1
    distance, parent, seen = np.empty(C), np.empty(C, dtype=np.int64), np.full(C, -1, dtype=np.int64)
    near, done = np.empty(C, dtype=np.int64), np.empty(C, dtype=np.int64)
    for u in range(left):
        start = unplaced[u]
        i, reached, reachable, visits, end = start, 0.0, 0, 0, -1
        while end == -1:
            own = first[i + 1] - first[i]
            for t in range(own + C - K):
                k = columns[first[i] + t] if t < own else K + t - own
                cost = -scores[first[i] + t] if t < own else surcharge[t - own]
                through = reached + cost - row_price[i] - column_price[k]
                if seen[k] == -2 - u:  # visited
                    continue
                if seen[k] != u:
                    seen[k], distance[k], near[reachable] = u, np.inf, k
                    reachable += 1
                if through < distance[k]:
                    distance[k], parent[k] = through, i
            at = 0
            for t in range(reachable):  # among equally near columns a free one ends the path
                k, other = near[t], near[at]
                if distance[k] < distance[other] or (distance[k] == distance[other] and holder[k] == -1):
                    at = t
            k = near[at]
            reachable -= 1
            near[at], done[visits], seen[k] = near[reachable], k, -2 - u
            visits += 1
            reached = distance[k]
            if holder[k] == -1:
                end = k
            else:
                i = holder[k]
        row_price[start] += reached
        for t in range(visits):
            k = done[t]
            if holder[k] != -1:
                row_price[holder[k]] += reached - distance[k]
            column_price[k] -= reached - distance[k]
        at, i = end, -1
        while i != start:
            i = parent[at]
            if at != K or extra > 0:
                holder[at] = i
            place[i], at = at, place[i]
    for i in range(L):
        choice[i] = place[i] if place[i] < K else NEW
