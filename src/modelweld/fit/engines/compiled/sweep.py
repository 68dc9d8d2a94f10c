"""The compiled sweep: one group after the other gets its best assignment given the rest."""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact
from modelweld.core.algorithm1 import CLEAR, NEW, SMALLEST_RISE
from modelweld.fit.engines.compiled.assignment import assign_exactly, distinct_best
from modelweld.fit.engines.compiled.packing import BLOCK_ROWS, LANES, workspace
from modelweld.fit.engines.compiled.scores import best_atoms, exact_score, weigh
from modelweld.fit.engines.compiled.settle import settle_groups

TRIALS = 8
"""Groups that may fail to be settled, beyond those that succeed, before a sweep gives up trying."""


@exact
def _leave_out(Y, labels, atoms, tables, kept):
    """The group's atoms without its values, so that it is matched given the others; their sums are kept."""
    sums, counts = atoms.sums, atoms.counts
    for i in range(len(Y)):
        k = labels[i]
        counts[k] -= 1
        for d in range(Y.shape[1]):
            kept[i, d] = sums[k, d]
            sums[k, d] -= Y[i, d]
    weigh(labels, atoms, tables)


@exact
def _put_back(labels, atoms, tables, kept):
    """The group's atoms as they were, to the last bit."""
    sums, counts = atoms.sums, atoms.counts
    for i in range(len(labels)):
        counts[labels[i]] += 1
        for d in range(sums.shape[1]):
            sums[labels[i], d] = kept[i, d]
    weigh(labels, atoms, tables)


@exact
def _rise(Y, atoms, tables, old, choice, new):
    """By how much a choice beats the old one, exactly zero if they are the same."""
    rise, before, after = 0.0, 0, 0
    for i in range(len(Y)):
        was_alone = atoms.counts[old[i]] == 0
        before += was_alone
        after += choice[i] == NEW
        if choice[i] == old[i] or (choice[i] == NEW and was_alone):
            continue
        rise -= exact_score(Y[i], old[i], atoms, tables, new[i])
        if choice[i] != NEW:
            rise += exact_score(Y[i], choice[i], atoms, tables, new[i])
    return rise + tables.surcharge[:before].sum() - tables.surcharge[:after].sum()


@exact
def sweep(X, rows, offsets, order, labels, atoms, used, tables, bounds):
    """Give each group in `order` its best assignment given the others; returns how many groups changed.

    And how many slots are in use, and by how many nats, CLEAR at most, every value was where it is; zero if anything
    changed.
    """
    sums, counts, origin = atoms.sums, atoms.counts, tables.origin
    D, P = X.shape[1], atoms.weights.shape[1]
    largest = 1
    for j in range(len(offsets) - 1):
        largest = max(largest, offsets[j + 1] - offsets[j])
    best, own, away, new = np.empty(largest), np.empty(largest), np.empty(largest), np.empty(largest)
    column, choice = np.empty(largest, np.int64), np.empty(largest, np.int64)
    was, values, kept = np.empty(largest, np.int64), np.empty((largest, D)), np.empty((largest, D))
    claimed = np.zeros(len(counts), np.bool_)
    padded = (min(largest, BLOCK_ROWS) + LANES - 1) // LANES * LANES
    work = workspace(P, padded, 2 * used + 64)
    vacant, vacancies = np.empty(len(counts), np.int64), 0
    for k in range(used):
        if counts[k] == 0:
            vacant[vacancies] = k
            vacancies += 1
    margin, changes, settled, tried = CLEAR, 0, 0, 0
    weigh(np.arange(used), atoms, tables)
    for j in order:
        a, L = offsets[j], offsets[j + 1] - offsets[j]
        if L == 0:
            continue
        first_time = labels[a] == NEW
        if not first_time and changes == 0 and len(bounds.nearest) > 0 and tried < TRIALS + settled:
            if settle_groups(X, rows, a, L, labels, atoms, tables, bounds, own, new, away):
                settled += 1
                continue
            tried += 1
        Y, old = values[:L], was[:L]
        for i in range(L):
            row, old[i] = rows[a + i], labels[a + i]
            for d in range(D):
                Y[i, d] = X[row, d] - origin[d]
        if not first_time:
            _leave_out(Y, old, atoms, tables, kept)
        if len(work.products) < padded * used:
            work = workspace(P, padded, 2 * used)
        most_new = L
        if tables.most_atoms > 0:
            most_new = min(L, max(tables.most_atoms - (used - vacancies), 1))
        clear, by = best_atoms(Y, used, atoms, tables, work, best, column, new)
        if not (clear and distinct_best(best[:L], column, tables.surcharge, most_new, choice, claimed)):
            by = 0.0
            assign_exactly(Y, used, atoms, tables, new, most_new, choice, claimed)
        if not first_time and _rise(Y, atoms, tables, old, choice, new) <= SMALLEST_RISE:
            _put_back(old, atoms, tables, kept)
            margin = min(margin, by)
            continue
        changes += 1
        margin = 0.0
        for i in range(L):
            k = choice[i]
            if k == NEW:
                if not first_time and counts[old[i]] == 0:
                    k = old[i]  # alone before and new again keeps its slot
                elif vacancies > 0:
                    vacancies -= 1
                    k = vacant[vacancies]
                else:
                    k = used
                    used += 1
                sums[k] = 0.0
            labels[a + i] = k
            counts[k] += 1
            for d in range(D):
                sums[k, d] += Y[i, d]
        weigh(labels[a : a + L], atoms, tables)
        if not first_time:
            for i in range(L):
                if counts[old[i]] == 0:
                    vacant[vacancies] = old[i]
                    vacancies += 1
    return changes, used, margin
