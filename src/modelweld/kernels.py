"""The compiled sweep: what `matching.Board` does, for the Gaussian family on plain values, at matrix-product speed.

Per group: take its values out of the atoms, score them against all atoms by one product, put them back. With mu_k
and v_k the mean and variance of the predictive density at atom k and y a value measured from the origin,

    score(l, k) = y.(mu_k / v_k) - y^2.(1 / 2 v_k) + c_k - new_l
    c_k         = steps[n_k] - 1/2 sum_d (log v_k + mu_k^2 / v_k)

so *features* of values times *weights* of atoms give all scores, and only the weights of touched atoms change. If
the best atoms of a group's values differ, they are the optimum; if two values want the same one, shortest augmenting
paths decide (`compiled_assignment`).

Three things keep this fast and exact:

- products are float32; a group's answer counts only if every best score leads by more than rounding can be
  responsible for, otherwise the group is scored again in float64;
- from the second sweep on, a group whose values are far nearer to their own atoms than those are to each other is
  settled by the triangle inequality, without any product (`_settled`);
- a sweep that changes nothing ends the run, and touches nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from modelweld.compiled_assignment import NEW, distinct_best, shortest_augmenting_paths

SMALLEST_RISE = 1e-7  # as in matching.py
VACANT = -1e30  # constant of a slot without values: it is never the best
FLOAT32_ROUNDING = 2.0**-23
LANES = 16  # float32 numbers in a vector register: blocks of rows are padded to a multiple
BLOCK_ROWS = 256  # rows scored at a time: their scores stay in cache
FEWEST_PER_ATOM = 4  # values per atom from which comparing all pairs of atoms is cheap beside scoring all values
TRIALS = 8  # groups that may fail to be settled, beyond those that succeed, before a sweep gives up trying
INSERTION_SORT = 64  # rows up to which inserting one by one is fastest
MARGIN = 1e-6  # nats by which a settled group must be settled

exact = njit(cache=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
loose = njit(cache=True, fastmath=True, error_model="numpy")


class Atoms(NamedTuple):
    """Atoms in slots; the first `used` slots of a sweep may hold values."""

    sums: Any  # (slots, D): sums of y
    counts: Any  # (slots,): number of values, 0 = vacant
    weights: Any  # (slots, P) float32
    constants: Any  # (slots,) float32: c_k, or VACANT
    curvature: Any  # (slots,) float32: noise / 2 v_k where one number serves all dimensions, else 0
    reach: Any  # (2,): the longest weights and the largest constant so far, for the rounding bound


class Tables(NamedTuple):
    """Hyperparameters and what follows from them for each count n; H is D, or 1 for scalar noise."""

    origin: Any  # (D,)
    mean: Any  # (D,): measured from the origin
    deviation: Any  # (H,): square root of the noise, the unit of features and distances
    ratio: Any  # (H,): noise / spread
    shrink: Any  # (J + 1, H): 1 / (n + ratio)
    inverse: Any  # (J + 1, H): noise / v
    constant: Any  # (J + 1,): steps[n] - 1/2 sum_d log v
    surcharge: Any  # (largest group,)
    most_atoms: int  # a group may open max(most_atoms - K, 1) atoms


class Bounds(NamedTuple):
    """What the triangle inequality needs: see `_settled`."""

    nearest: Any  # (slots,): distance from each atom to the nearest other one
    constant: float  # the largest `Tables.constant` of a count that occurs
    widest: float  # the largest v / noise of a count that occurs


class Workspace(NamedTuple):
    """Room for one block of products."""

    features: Any
    products: Any
    length: Any
    first: Any
    second: Any
    at: Any


@exact
def _workspace(P, padded, atoms):
    """Zeroed, so that the lanes beyond a block's rows are harmless."""
    return Workspace(
        np.zeros(P * padded, np.float32),
        np.empty(atoms * padded, np.float32),
        np.zeros(padded, np.float32),
        np.empty(padded, np.float32),
        np.empty(padded, np.float32),
        np.empty(padded, np.int32),
    )


@exact
def tabulate(origin, mean, noise, spread, steps, surcharge, most_atoms, J):
    """Everything a sweep needs to know of hyperparameters and prior."""
    D, H = len(mean), len(noise)
    ratio = noise / spread
    shrink, inverse, constant = np.empty((J + 1, H)), np.empty((J + 1, H)), np.empty(J + 1)
    for n in range(J + 1):
        log_det = 0.0
        for h in range(H):
            shrink[n, h] = 1 / (n + ratio[h])
            v = 1 + shrink[n, h]  # in units of the noise
            inverse[n, h] = 1 / v
            log_det += np.log(v * noise[h])
        constant[n] = steps[min(n, J - 1)] - 0.5 * log_det * (D / H)
    return Tables(origin, mean, np.sqrt(noise), ratio, shrink, inverse, constant, surcharge, most_atoms)


@exact
def find_bounds(atoms, used, tables, N):
    """For settling groups by the triangle inequality; empty when there are too many atoms for it to pay."""
    if used == 0 or used * FEWEST_PER_ATOM > N:
        return Bounds(np.empty(0), 0.0, 1.0)
    largest = atoms.counts[:used].max()
    widest = 1.0 / tables.inverse[1].min()
    return Bounds(_atom_distances(atoms, used, tables), tables.constant[1 : largest + 1].max(), widest)


@exact
def sort_rows(X, offsets):
    """Rows sorted by content within their group: the permutation (nothing is moved)."""
    rows = np.empty(len(X), np.int64)
    for j in range(len(offsets) - 1):
        a, b = offsets[j], offsets[j + 1]
        if b - a > INSERTION_SORT:
            rows[a:b] = a + np.argsort(X[a:b, 0])
        else:
            rows[a:b] = np.arange(a, b)
        # of a large group, only ties in the first coordinate are left to insert in their place
        for i in range(a, b):
            here, t = rows[i], i
            while t > a and _before(X, here, rows[t - 1]):
                rows[t] = rows[t - 1]
                t -= 1
            rows[t] = here
    return rows


@exact
def _before(X, i, j):
    """Whether row i comes before row j."""
    for d in range(X.shape[1]):
        if X[i, d] != X[j, d]:
            return X[i, d] < X[j, d]
    return False


@exact
def mean_and_squares(X, offsets, rows, order):
    """Mean (D,) and sums of squares about it (D,), added in canonical order."""
    N, D = X.shape
    anchor = X[0].copy()
    for j in order:
        if offsets[j + 1] > offsets[j]:
            anchor = X[rows[offsets[j]]].copy()
            break
    total, squares = np.zeros(D), np.zeros(D)
    for j in order:
        for i in range(offsets[j], offsets[j + 1]):
            row = rows[i]
            for d in range(D):
                y = X[row, d] - anchor[d]
                total[d] += y
                squares[d] += y * y
    total /= N
    for d in range(D):
        squares[d] = max(squares[d] - N * total[d] * total[d], 0.0)
    return anchor + total, squares


@exact
def _weigh(slots, atoms, tables):
    """Write the weights, constants and curvature of these slots."""
    D, H = len(tables.mean), len(tables.ratio)
    for k in slots:
        n = atoms.counts[k]
        if n == 0:
            atoms.constants[k] = VACANT
            continue
        square = 0.0
        length = 0.0
        if H == 1:
            r, shrink = tables.ratio[0], tables.shrink[n, 0] / tables.deviation[0]
            inverse = tables.inverse[n, 0]
            for d in range(D):
                mu = (tables.mean[d] * r + atoms.sums[k, d]) * shrink
                atoms.weights[k, d] = mu * inverse
                square += mu * mu
            length = square * inverse * inverse
            square *= inverse
            atoms.curvature[k] = -0.5 * inverse
        else:
            for d in range(D):
                inverse = tables.inverse[n, d]
                mu = (tables.mean[d] * tables.ratio[d] + atoms.sums[k, d]) * (tables.shrink[n, d] / tables.deviation[d])
                atoms.weights[k, d] = mu * inverse
                atoms.weights[k, D + d] = -0.5 * inverse
                square += mu * mu * inverse
                length += (mu * mu + 0.25) * inverse * inverse
            atoms.curvature[k] = 0.0
        constant = tables.constant[n] - 0.5 * square
        atoms.constants[k] = constant
        atoms.reach[0] = max(atoms.reach[0], length)
        atoms.reach[1] = max(atoms.reach[1], abs(constant))


@exact
def _look(Y, tables, features, new, length):
    """Features (P, L or a little more) of values, their scores as new atoms and squared lengths.

    Returns the squared length of the longest features.
    """
    L, D = Y.shape
    H = len(tables.ratio)
    longest = 0.0
    for i in range(L):
        square = 0.0
        fourth = 0.0
        fresh = 0.0
        if H == 1:
            for d in range(D):
                y = Y[i, d]
                off = y - tables.mean[d]
                square += y * y
                fresh += off * off
            unit = 1.0 / (tables.deviation[0] * tables.deviation[0])
            square *= unit
            fresh *= unit * tables.inverse[0, 0]
        else:
            for d in range(D):
                unit = 1.0 / tables.deviation[d]
                y = Y[i, d] * unit
                off = y - tables.mean[d] * unit
                square += y * y
                fourth += y * y * y * y
                fresh += off * off * tables.inverse[0, d]
        longest = max(longest, square + fourth)
        length[i] = square
        new[i] = tables.constant[0] - 0.5 * fresh
    if H == 1:
        unit = 1.0 / tables.deviation[0]
        for i in range(L):
            for d in range(D):
                features[d, i] = Y[i, d] * unit
    else:
        for i in range(L):
            for d in range(D):
                features[d, i] = Y[i, d] / tables.deviation[d]
        for d in range(D):
            for i in range(L):
                features[D + d, i] = features[d, i] * features[d, i]
    return longest


@loose
def _scan(products, constants, curvature, length, best, second, column):
    """Best and second best score of each value (columns of `products`, one row per atom), and the best atom."""
    L = products.shape[1]
    for i in range(L):
        best[i] = second[i] = VACANT
        column[i] = 0
    for k in range(products.shape[0]):
        constant, bend = constants[k], curvature[k]
        for i in range(L):
            score = products[k, i] + (constant + length[i] * bend)
            second[i] = max(second[i], min(best[i], score))
            column[i] = np.int32(k) if score > best[i] else column[i]
            best[i] = max(best[i], score)


@exact
def _score(y, k, atoms, tables, new):
    """Score of one value at one atom in float64, minus `new`; zero at a vacant slot (that is a new atom)."""
    n = atoms.counts[k]
    if n == 0:
        return 0.0
    H = len(tables.ratio)
    square = 0.0
    for d in range(len(y)):
        h = d if H > 1 else 0
        mu = (tables.mean[d] * tables.ratio[h] + atoms.sums[k, d]) * tables.shrink[n, h]
        off = (y[d] - mu) / tables.deviation[h]
        square += off * off * tables.inverse[n, h]
    return tables.constant[n] - 0.5 * square - new


@exact
def _scores(Y, used, atoms, tables, new):
    """Scores (L, used) in float64, by products; VACANT at vacant slots."""
    (L, D), H = Y.shape, len(tables.ratio)
    P = D if H == 1 else 2 * D
    features, weights = np.empty((P, L)), np.empty((used, P))
    constants, bend, length = np.empty(used), np.zeros(used), np.zeros(L)
    for d in range(D):
        unit = 1.0 / tables.deviation[d if H > 1 else 0]
        for i in range(L):
            y = Y[i, d] * unit
            features[d, i] = y
            if H > 1:
                features[D + d, i] = y * y
            else:
                length[i] += y * y
    for k in range(used):
        n = atoms.counts[k]
        square = 0.0
        if H == 1:
            r, shrink = tables.ratio[0], tables.shrink[n, 0] / tables.deviation[0]
            inverse = tables.inverse[n, 0]
            for d in range(D):
                mu = (tables.mean[d] * r + atoms.sums[k, d]) * shrink
                weights[k, d] = mu * inverse
                square += mu * mu
            square *= inverse
            bend[k] = -0.5 * inverse
        else:
            for d in range(D):
                inverse = tables.inverse[n, d]
                mu = (tables.mean[d] * tables.ratio[d] + atoms.sums[k, d]) * (tables.shrink[n, d] / tables.deviation[d])
                weights[k, d] = mu * inverse
                weights[k, D + d] = -0.5 * inverse
                square += mu * mu * inverse
        constants[k] = tables.constant[n] - 0.5 * square if n > 0 else VACANT
    products = np.dot(weights, features)
    scores = np.empty((L, used))
    for i in range(L):
        for k in range(used):
            scores[i, k] = products[k, i] + constants[k] + length[i] * bend[k] - new[i]
    return scores


@exact
def _atom_distances(atoms, used, tables):
    """Distance from each of the first `used` atoms to the nearest other one, in noise deviations."""
    D, H = len(tables.mean), len(tables.ratio)
    places, lengths = np.empty((used, D)), np.zeros(used)
    for k in range(used):
        n = atoms.counts[k]
        for d in range(D):
            h = d if H > 1 else 0
            mu = (tables.mean[d] * tables.ratio[h] + atoms.sums[k, d]) * tables.shrink[n, h]
            places[k, d] = mu / tables.deviation[h]
            lengths[k] += places[k, d] * places[k, d]
    nearest = np.full(used, np.inf)
    for b in range(0, used, BLOCK_ROWS):
        e = min(b + BLOCK_ROWS, used)
        G = np.dot(places[b:e], places.T)
        for i in range(e - b):
            for k in range(used):
                if k != b + i:
                    # what rounding may have added is taken off again
                    square = (lengths[b + i] + lengths[k]) * (1 - 1e-12) - 2 * G[i, k]
                    nearest[b + i] = min(nearest[b + i], square)
    return np.sqrt(np.maximum(nearest, 0.0))


@exact
def _settled(X, rows, a, L, labels, atoms, tables, bounds, own, new, away):
    """Whether no value of a group can do better elsewhere, shown without looking at other atoms.

    Taking value y out of its atom moves the atom from mu by (y - mu) / (n - 1 + ratio), and leaves y at
    (y - mu) (n + ratio) / (n - 1 + ratio) from it. Any other atom is at least `nearest` - |y - mu| - (the largest
    such move in this group) away from y, so its score is at most bounds.constant - 1/2 distance^2 / bounds.widest.
    """
    D, H = X.shape[1], len(tables.ratio)
    largest_move = 0.0
    alone = 0
    for i in range(L):
        row, k = rows[a + i], labels[a + i]
        n = atoms.counts[k]
        rest = max(n - 1, 1)  # what is computed with it is not used for a value that is alone
        square, moved, left, fresh = 0.0, 0.0, 0.0, 0.0
        if H == 1:
            r, shrink = tables.ratio[0], tables.shrink[n, 0]
            for d in range(D):
                y = X[row, d] - tables.origin[d]
                off = y - (tables.mean[d] * r + atoms.sums[k, d]) * shrink
                square += off * off
                off = y - tables.mean[d]
                fresh += off * off
            unit = 1.0 / (tables.deviation[0] * tables.deviation[0])
            square *= unit
            moved = square * tables.shrink[rest, 0] * tables.shrink[rest, 0]
            left = moved / (shrink * shrink) * tables.inverse[rest, 0]
            fresh *= unit * tables.inverse[0, 0]
        else:
            for d in range(D):
                unit, shrink = 1.0 / tables.deviation[d], tables.shrink[n, d]
                y = X[row, d] - tables.origin[d]
                off = (y - (tables.mean[d] * tables.ratio[d] + atoms.sums[k, d]) * shrink) * unit
                square += off * off
                off *= tables.shrink[rest, d]
                moved += off * off
                left += off * off / (shrink * shrink) * tables.inverse[rest, d]
                off = (y - tables.mean[d]) * unit
                fresh += off * off * tables.inverse[0, d]
        new[i] = tables.constant[0] - 0.5 * fresh
        away[i] = bounds.nearest[k] - np.sqrt(square)
        if n > 1:
            own[i] = tables.constant[rest] - 0.5 * left - new[i]
            largest_move = max(largest_move, moved)
        else:
            alone += 1
    bar = -tables.surcharge[max(alone - 1, 0)]
    for i in range(L):
        distance = away[i] - np.sqrt(largest_move)
        elsewhere = bounds.constant - 0.5 * distance * distance / bounds.widest - new[i]
        if distance <= 0.0:
            return False
        if atoms.counts[labels[a + i]] == 1:
            if elsewhere > bar - MARGIN:
                return False
        elif own[i] < bar + MARGIN or own[i] < elsewhere + MARGIN:
            return False
    return True


@exact
def _best(Y, used, atoms, tables, work, best, column, new):
    """Best score and atom of each value of a group by float32 products; False if rounding could change the answer."""
    L, P = len(Y), atoms.weights.shape[1]
    clear = used > 0
    for b in range(0, L, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, L - b)
        padded = (rows + LANES - 1) // LANES * LANES
        features = work.features[: P * padded].reshape(P, padded)
        products = work.products[: used * padded].reshape(used, padded)
        first, second, at = work.first[:padded], work.second[:padded], work.at[:padded]
        longest = _look(Y[b : b + rows], tables, features, new[b : b + rows], work.length)
        if not clear:
            continue  # the group will be scored again, but that needs `new` too
        np.dot(atoms.weights[:used], features, products)
        _scan(products, atoms.constants[:used], atoms.curvature[:used], work.length[:padded], first, second, at)
        doubt = 2 * FLOAT32_ROUNDING * ((P + 4) * np.sqrt(longest * atoms.reach[0]) + 4 * (atoms.reach[1] + longest))
        # a best score between the highest surcharge and none could be judged differently after rounding
        lowest = -tables.surcharge[L - 1] - doubt
        for i in range(rows):
            score = first[i] - new[b + i]
            clear = clear and first[i] - second[i] > doubt and not (lowest <= score <= doubt)
            best[b + i] = score
            column[b + i] = at[i]
    return clear


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
        rise -= _score(Y[i], old[i], atoms, tables, new[i])
        if choice[i] != NEW:
            rise += _score(Y[i], choice[i], atoms, tables, new[i])
    return rise + tables.surcharge[:before].sum() - tables.surcharge[:after].sum()


@exact
def sweep(X, rows, offsets, order, labels, atoms, used, tables, tally):
    """Give each group in `order` its best assignment given the others; returns how many slots are in use.

    `tally` receives the number of groups that changed, were settled without products, were scored again in
    float64, needed augmenting paths, and were tried in vain to be settled.
    """
    D, P = X.shape[1], atoms.weights.shape[1]
    largest = 1
    for j in range(len(offsets) - 1):
        largest = max(largest, offsets[j + 1] - offsets[j])
    best, own, away, new = np.empty(largest), np.empty(largest), np.empty(largest), np.empty(largest)
    column, choice = np.empty(largest, np.int64), np.empty(largest, np.int64)
    old = np.empty(largest, np.int64)
    values, kept = np.empty((largest, D)), np.empty((largest, D))
    claimed = np.zeros(len(atoms.counts), np.bool_)
    padded = (min(largest, BLOCK_ROWS) + LANES - 1) // LANES * LANES
    work = _workspace(P, padded, 2 * used + 64)
    vacant, vacancies = np.empty(used + 1, np.int64), 0
    for k in range(used):
        if atoms.counts[k] == 0:
            vacant[vacancies] = k
            vacancies += 1
    _weigh(np.arange(used), atoms, tables)
    bounds = find_bounds(atoms, used, tables, len(X))
    for j in order:
        a, L = offsets[j], offsets[j + 1] - offsets[j]
        if L == 0:
            continue
        first_time = labels[a] == NEW
        if not first_time:
            if tally[0] == 0 and len(bounds.nearest) > 0 and tally[4] < TRIALS + tally[1]:
                if _settled(X, rows, a, L, labels, atoms, tables, bounds, own, new, away):
                    tally[1] += 1
                    continue
                tally[4] += 1
        Y = values[:L]
        for i in range(L):
            row = rows[a + i]
            for d in range(D):
                Y[i, d] = X[row, d] - tables.origin[d]
        if not first_time:
            for i in range(L):
                k = labels[a + i]
                old[i] = k
                atoms.counts[k] -= 1
                for d in range(D):
                    kept[i, d] = atoms.sums[k, d]
                    atoms.sums[k, d] -= Y[i, d]
            _weigh(old[:L], atoms, tables)

        if len(work.products) < padded * used:
            work = _workspace(P, padded, 2 * used)
        most_new = L
        if tables.most_atoms > 0:
            most_new = min(L, max(tables.most_atoms - (used - vacancies), 1))
        clear = _best(Y, used, atoms, tables, work, best, column, new)
        if not (clear and distinct_best(best[:L], column, tables.surcharge, most_new, choice, claimed)):
            tally[2] += 1
            scores = _scores(Y, used, atoms, tables, new)
            for i in range(L):
                best[i], column[i] = VACANT, 0
                for k in range(used):
                    if scores[i, k] > best[i]:
                        best[i], column[i] = scores[i, k], k
            if not distinct_best(best[:L], column, tables.surcharge, most_new, choice, claimed):
                tally[3] += 1
                shortest_augmenting_paths(scores, tables.surcharge, most_new, choice)

        if not first_time and _rise(Y, atoms, tables, old, choice, new) <= SMALLEST_RISE:
            for i in range(L):
                k = old[i]
                atoms.counts[k] += 1
                for d in range(D):
                    atoms.sums[k, d] = kept[i, d]
            _weigh(old[:L], atoms, tables)
            continue
        tally[0] += 1
        for i in range(L):
            k = choice[i]
            if k == NEW:
                if not first_time and atoms.counts[old[i]] == 0:
                    k = old[i]  # alone before and new again keeps its slot
                elif vacancies > 0:
                    vacancies -= 1
                    k = vacant[vacancies]
                else:
                    k = used
                    used += 1
                atoms.sums[k] = 0.0
            labels[a + i] = k
            atoms.counts[k] += 1
            for d in range(D):
                atoms.sums[k, d] += Y[i, d]
        _weigh(labels[a : a + L], atoms, tables)
        if not first_time:
            for i in range(L):
                if atoms.counts[old[i]] == 0:
                    if vacancies == len(vacant):
                        vacant = np.concatenate((vacant, np.empty(len(vacant), np.int64)))
                    vacant[vacancies] = old[i]
                    vacancies += 1
    return used


@exact
def rebuild(X, rows, offsets, order, labels, atoms, origin):
    """Number the atoms without gaps and add their sums afresh, in canonical order; how many there are."""
    number = np.full(labels.max() + 1, NEW)
    for i in range(len(labels)):
        if labels[i] != NEW:
            number[labels[i]] = 0
    K = 0
    for k in range(len(number)):
        if number[k] != NEW:
            number[k] = K
            K += 1
    atoms.counts[:] = 0
    atoms.sums[:K] = 0.0
    for j in order:
        for i in range(offsets[j], offsets[j + 1]):
            if labels[i] == NEW:
                continue
            k, row = number[labels[i]], rows[i]
            labels[i] = k
            atoms.counts[k] += 1
            for d in range(X.shape[1]):
                atoms.sums[k, d] += X[row, d] - origin[d]
    return K
