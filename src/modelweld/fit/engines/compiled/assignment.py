"""Compiled duplicates of `modelweld.core.algorithm1`: the easy case without search, and shortest augmenting paths.

Groups of more than 256 values: only pairs that may beat a new atom are scored in float64, and only they are assigned.

The reference assigns over a table of all values and atoms, which takes the product of their numbers for every path.
Where new atoms are free of charge, a pair whose score is not above zero is in no best assignment; of thousands of atoms
a value has a few at which its score is. They are found by the same certified float32 products (`scores`).
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from modelweld.compilers import exact
from modelweld.core.algorithm1 import NEW
from modelweld.fit.engines.compiled.packing import BLOCK_ROWS, LANES
from modelweld.fit.engines.compiled.scores import above, exact_score, features_of, rounding


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
    column K for all of them, which no row ever holds. Rows start at their best column, which is optimal as long as
    no other row wants it (column prices zero); every row left over is placed by one shortest augmenting path in the
    reduced costs (Jonker and Volgenant; Crouse 2016).
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


@exact
def assign_pairs(Y, used, atoms, tables, work, choice, claimed):
    """Choose the best assignment where new atoms are free of charge."""
    first, columns, scores = worthwhile_pairs(Y, used, atoms, tables, work)
    apart = True
    for i in range(len(Y)):  # if the best atoms of values differ, they are the optimum
        best, choice[i] = 0.0, NEW
        for t in range(first[i], first[i + 1]):
            if scores[t] > best:
                best, choice[i] = scores[t], columns[t]
        if choice[i] != NEW:
            apart = apart and not claimed[choice[i]]
            claimed[choice[i]] = True
    for i in range(len(Y)):
        if choice[i] != NEW:
            claimed[choice[i]] = False
    if not apart:
        paths_of_pairs(first, columns, scores, used, choice)


@exact
def worthwhile_pairs(Y, used, atoms, tables, work):
    """Pairs (value, atom) that score above zero: where each value's begin (L + 1,), atoms (ascending), scores."""
    L, P = len(Y), atoms.weights.shape[1]
    first, columns, scores = np.zeros(L + 1, np.int64), np.empty(4 * L + 1, np.int64), np.empty(4 * L + 1)
    found, new = np.empty(used * min(L, BLOCK_ROWS) + 1, np.int64), np.empty(min(L, BLOCK_ROWS))
    total = 0
    for b in range(0, L, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, L - b)
        padded = (rows + LANES - 1) // LANES * LANES
        features = work.features[: padded * P].reshape(padded, P)
        products = work.products[: used * padded].reshape(used, padded)
        longest, most_bent = features_of(Y[b : b + rows], tables, features, new[:rows], work.length)
        np.dot(atoms.weights[:used], features.T, products)
        lowest = -rounding(longest, most_bent, atoms)
        number = above(products, atoms.constants[:used], atoms.curvature[:used], work.length, new[:rows], lowest, found)
        if total + number > len(columns):
            columns = np.concatenate((columns[:total], np.empty(total + number, np.int64)))
            scores = np.concatenate((scores[:total], np.empty(total + number)))
        begin = np.zeros(rows + 1, np.int64)
        for t in range(number):
            begin[found[t] % rows + 1] += 1
        at = np.cumsum(begin)
        order = np.empty(number, np.int64)
        for t in range(number):  # by value, and of each by atom
            i = found[t] % rows
            order[at[i]] = found[t] // rows
            at[i] += 1
        t = 0
        for i in range(rows):
            for _ in range(begin[i + 1]):
                score = exact_score(Y[b + i], order[t], atoms, tables, new[i])
                if score > 0.0:
                    columns[total], scores[total] = order[t], score
                    total += 1
                t += 1
            first[b + i + 1] = total
    return first, columns[:total], scores[:total]


@exact
def paths_of_pairs(first, columns, scores, K, choice):
    """The best of all assignments of rows to K columns, or NEW, which scores zero and may be chosen by any number.

    What `assignment.shortest_augmenting_paths` finds: every row that did not get its best column is placed by one
    shortest augmenting path in the reduced costs, which here runs along the pairs alone, nearest first.
    """
    L = len(first) - 1
    row_price, column_price, holder = np.zeros(L), np.zeros(K), np.full(K, -1, dtype=np.int64)
    unplaced, left = np.empty(L, dtype=np.int64), 0
    for i in range(L):
        choice[i] = NEW
        at = -1
        for t in range(first[i], first[i + 1]):
            if -scores[t] < row_price[i]:
                row_price[i], at = -scores[t], columns[t]
        if at >= 0 and holder[at] == -1:
            holder[at], choice[i] = i, at
        elif at >= 0:
            unplaced[left] = i
            left += 1
    distance, parent, seen = np.empty(K), np.empty(K, dtype=np.int64), np.full(K, -1, dtype=np.int64)
    done = np.zeros(K, dtype=np.bool_)
    visited = np.empty(K, dtype=np.int64)
    for u in range(left):
        start = unplaced[u]
        i, reached, visits = start, 0.0, 0
        new_distance, new_parent, end = np.inf, -1, NEW
        heap = [(np.inf, -1)]
        while True:
            if reached - row_price[i] < new_distance:
                new_distance, new_parent = reached - row_price[i], i
            for t in range(first[i], first[i + 1]):
                k = columns[t]
                if seen[k] != u:
                    seen[k], distance[k], done[k] = u, np.inf, False
                through = reached - scores[t] - row_price[i] - column_price[k]
                if not done[k] and through < distance[k]:
                    distance[k], parent[k] = through, i
                    heappush(heap, (through, k))
            nearest, at = heappop(heap)
            while at >= 0 and (done[at] or nearest > distance[at]):
                nearest, at = heappop(heap)
            if at < 0 or new_distance <= nearest:
                reached = new_distance
                break
            reached, done[at] = nearest, True
            visited[visits] = at
            visits += 1
            if holder[at] == -1:
                end = at
                break
            i = holder[at]
        row_price[start] += reached
        for t in range(visits):
            k = visited[t]
            if holder[k] != -1:
                row_price[holder[k]] += reached - distance[k]
            column_price[k] -= reached - distance[k]
        at, i = end, new_parent
        while True:
            if at != NEW:
                i = parent[at]
                holder[at] = i
            before, choice[i] = choice[i], at
            at = before
            if i == start:
                break
