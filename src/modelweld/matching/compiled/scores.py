"""Scores of a group's values at all atoms: certified float32 products, or float64.

A score is the log posterior odds of an atom against a new one. With mu_k and v_k the mean and variance of the
predictive density at atom k, `steps` log prior odds and y a value measured from the origin,

    score(l, k) = y.(mu_k / v_k) - y^2.(1 / 2 v_k) + c_k - new_l
    c_k         = steps[n_k] - 1/2 sum_d (log v_k + mu_k^2 / v_k)

so *features* of values times *weights* of atoms give all scores, and only the weights of touched atoms change.
Lengths are in units of the noise's deviation, which keeps float32 away from its limits whatever the units.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact, loose
from modelweld.matching.compiled.layout import BLOCK_ROWS, LANES, VACANT

FLOAT32_ROUNDING = 2.0**-23

FEW_ATOMS = 4
"""Atoms per value up to which scoring one by one is quicker than products with all of them."""


@exact
def weigh(slots, atoms, tables):
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
                mu = (tables.mean[d] * tables.ratio[d] + atoms.sums[k, d]) * (tables.shrink[n, d] * tables.unit[d])
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
def features_of(Y, tables, features, new, length):
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
    _transpose(Y, tables.unit, features)
    if H > 1:
        for d in range(D):
            for i in range(L):
                features[D + d, i] = features[d, i] * features[d, i]
    return longest


@exact
def _transpose(Y, unit, features):
    """Write values (L, D) times units into the first D rows of features, four columns at a time."""
    L, D = Y.shape
    whole = L - L % 4
    for i in range(0, whole, 4):
        for d in range(D):
            features[d, i] = Y[i, d] * unit[d]
            features[d, i + 1] = Y[i + 1, d] * unit[d]
            features[d, i + 2] = Y[i + 2, d] * unit[d]
            features[d, i + 3] = Y[i + 3, d] * unit[d]
    for i in range(whole, L):
        for d in range(D):
            features[d, i] = Y[i, d] * unit[d]


@exact
def rounding(longest, square, atoms):
    """By how much a float32 score may be off, of values whose features, and they themselves, are so long (squared)."""
    P, reach = atoms.weights.shape[1], atoms.reach
    return 2 * FLOAT32_ROUNDING * ((P + 4) * np.sqrt(longest * reach[0]) + 4 * (reach[1] + square))


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
def best_atoms(Y, used, atoms, tables, work, best, column, new):
    """Best score and atom of each value of a group by float32 products; False if rounding could change the answer.

    Also by how much rounding may have changed a score of the last block, and the least by which the best of any value
    is better than its second best, a new atom among them.
    """
    L, P = len(Y), atoms.weights.shape[1]
    clear = used > 0
    doubt, margin = np.inf, np.inf
    for b in range(0, L, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, L - b)
        padded = (rows + LANES - 1) // LANES * LANES
        features = work.features[: P * padded].reshape(P, padded)
        products = work.products[: used * padded].reshape(used, padded)
        first, second, at = work.first[:padded], work.second[:padded], work.at[:padded]
        longest = features_of(Y[b : b + rows], tables, features, new[b : b + rows], work.length)
        if not clear:
            continue  # the group will be scored again, but that needs `new` too
        np.dot(atoms.weights[:used], features, products)
        _scan(products, atoms.constants[:used], atoms.curvature[:used], work.length[:padded], first, second, at)
        doubt = rounding(longest, longest, atoms)
        # a best score between the highest surcharge and none could be judged differently after rounding
        lowest = -tables.surcharge[L - 1] - doubt
        for i in range(rows):
            score = first[i] - new[b + i]
            clear = clear and first[i] - second[i] > doubt and not (lowest <= score <= doubt)
            margin = min(margin, lowest - score if score < 0.0 else min(score, first[i] - second[i]))
            best[b + i] = score
            column[b + i] = at[i]
    return clear, doubt, margin if clear else 0.0


@loose
def above(products, constants, curvature, length, new, lowest, found):
    """Where scores are above `lowest`, as atom times values plus value; how many there are."""
    L, number = len(new), 0
    for k in range(products.shape[0]):
        constant, bend = constants[k], curvature[k]
        for i in range(L):
            found[number] = k * L + i
            number += products[k, i] + (constant + length[i] * bend) - new[i] > lowest
    return number


@exact
def worthwhile_scores(Y, used, atoms, tables, new, work, doubt):
    """Scores (L, used) in float64 of what may be in the best assignment by the float32 products; else VACANT.

    A value that scores less than the highest surcharge takes away does better as a new atom, whatever others do; so
    every group may open as many as it has values. The products are those of `best_atoms`, all in one block.
    """
    L = len(Y)
    padded = (L + LANES - 1) // LANES * LANES
    products = work.products[: used * padded].reshape(used, padded)
    lowest = -tables.surcharge[L - 1] - doubt
    found = np.empty(used * L + 1, np.int64)
    number = above(products, atoms.constants[:used], atoms.curvature[:used], work.length, new[:L], lowest, found)
    if number > FEW_ATOMS * L:
        return exact_scores(Y, used, atoms, tables, new)
    scores = np.full((L, used), VACANT)
    for t in range(number):
        k, i = found[t] // L, found[t] % L
        scores[i, k] = exact_score(Y[i], k, atoms, tables, new[i])
    return scores


@exact
def exact_score(y, k, atoms, tables, new):
    """Score of one value at one atom in float64, minus `new`; zero at a vacant slot (that is a new atom)."""
    n = atoms.counts[k]
    if n == 0:
        return 0.0
    H = len(tables.ratio)
    square = 0.0
    for d in range(len(y)):
        h = d if H > 1 else 0
        mu = (tables.mean[d] * tables.ratio[h] + atoms.sums[k, d]) * tables.shrink[n, h]
        off = (y[d] - mu) * tables.unit[d]
        square += off * off * tables.inverse[n, h]
    return tables.constant[n] - 0.5 * square - new


@exact
def exact_scores(Y, used, atoms, tables, new):
    """Scores (L, used) in float64, by products; VACANT at vacant slots."""
    (L, D), H = Y.shape, len(tables.ratio)
    P = D if H == 1 else 2 * D
    features, weights = np.empty((L, P)), np.empty((used, P))
    constants, bend, length = np.empty(used), np.zeros(used), np.zeros(L)
    for i in range(L):
        for d in range(D):
            y = Y[i, d] * tables.unit[d]
            features[i, d] = y
            length[i] += y * y
        if H > 1:
            for d in range(D):
                features[i, D + d] = features[i, d] * features[i, d]
    for k in range(used):  # as in `weigh`: one function for both made sweeps 4 % slower
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
    scores = np.dot(features, weights.T)
    for i in range(L):
        for k in range(used):
            scores[i, k] += constants[k] + length[i] * bend[k] - new[i]
    return scores
