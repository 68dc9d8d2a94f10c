"""Scores of a group's values at all atoms: certified float32 products, or float64.

A score is the log posterior odds of an atom against a new one. With mu_k and v_k the mean and variance of the
predictive density at atom k, `increments` log prior odds and y a value measured from the origin,

    score(l, k) = y.(mu_k / v_k) - y^2.(1 / 2 v_k) + c_k - new_l
    c_k         = increments[n_k] - 1/2 sum_d (log v_k + mu_k^2 / v_k)

so *features* of values times *weights* of atoms give all scores, and only the weights of touched atoms change.
Lengths are in units of the noise's deviation, which keeps float32 away from its limits whatever the units.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact, loose
from modelweld.fit.engines.compiled.packing import BLOCK_ROWS, LANES, VACANT

FLOAT32_ROUNDING = 2.0**-23


@exact
def weigh(slots, atoms, tables):
    """Write the weights, constants and curvature of these slots."""
    sums, counts, weights, constants, curvature, reach = atoms
    mean, ratio, unit, shrink, inverse = tables.mean, tables.ratio, tables.unit, tables.shrink, tables.inverse
    D, H = len(mean), len(ratio)
    for k in slots:
        n = counts[k]
        if n == 0:
            constants[k] = VACANT
            continue
        square = 0.0
        length = 0.0
        if H == 1:
            r, scale, over = ratio[0], shrink[n, 0] * unit[0], inverse[n, 0]
            for d in range(D):
                mu = (mean[d] * r + sums[k, d]) * scale
                weights[k, d] = mu * over
                square += mu * mu
            length = square * over * over
            square *= over
            curvature[k] = -0.5 * over
        else:
            for d in range(D):
                over = inverse[n, d]
                mu = (mean[d] * ratio[d] + sums[k, d]) * (shrink[n, d] * unit[d])
                weights[k, d] = mu * over
                weights[k, D + d] = -0.5 * over
                square += mu * mu * over
                length += mu * mu * over * over
            curvature[k] = 0.0
        constant = tables.constant[n] - 0.5 * square
        constants[k] = constant
        reach[0] = max(reach[0], length)
        reach[1] = max(reach[1], abs(constant))


@exact
def features_of(Y, tables, features, new, length):
    """Features (L or a little more, P) of values, their scores as new atoms and squared lengths.

    Returns the squared length of the longest value, and of the longest squares of one.
    """
    mean, units, inverse = tables.mean, tables.unit, tables.inverse
    (L, D), H = Y.shape, len(tables.ratio)
    constant = tables.constant[0]
    longest, most_bent = 0.0, 0.0
    for i in range(L):
        square = 0.0
        fourth = 0.0
        fresh = 0.0
        if H == 1:
            unit = units[0]
            for d in range(D):
                y, off = Y[i, d], Y[i, d] - mean[d]
                features[i, d] = y * unit
                square += y * y
                fresh += off * off
            square *= unit * unit
            fresh *= unit * unit * inverse[0, 0]
        else:
            for d in range(D):
                y, off = Y[i, d] * units[d], (Y[i, d] - mean[d]) * units[d]
                features[i, d] = y
                features[i, D + d] = y * y
                square += y * y
                fourth += y * y * y * y
                fresh += off * off * inverse[0, d]
        longest, most_bent = max(longest, square), max(most_bent, fourth)
        length[i] = square
        new[i] = constant - 0.5 * fresh
    return longest, most_bent


@exact
def rounding(longest, most_bent, atoms):
    """By how much a float32 score may be off, of values that are so long, and their squares too (squared lengths).

    The weights of squares are a half at most.
    """
    (D, P), reach = (atoms.sums.shape[1], atoms.weights.shape[1]), atoms.reach
    products = np.sqrt(longest * reach[0]) + 0.5 * np.sqrt(most_bent * (P - D))
    return 2 * FLOAT32_ROUNDING * ((P + 4) * products + 4 * (reach[1] + longest))


@loose
def _scan(products, constants, curvature, length, best, second, column):
    """Best and second best score of each value (columns of `products`, one row per atom), and the best atom.

    Atoms are taken two at a time: what is known of a value is then read and written half as often.
    """
    K, L = products.shape
    for i in range(L):
        best[i] = second[i] = VACANT
        column[i] = 0
    for k in range(0, K, 2):
        other = min(k + 1, K - 1)
        constant, bend = constants[k], curvature[k]
        constant_other, bend_other = constants[other] if other > k else np.float32(VACANT), curvature[other]
        here, there = np.int32(k), np.int32(other)
        for i in range(L):
            score = products[k, i] + (constant + length[i] * bend)
            rival = products[other, i] + (constant_other + length[i] * bend_other)
            higher, lower, at = max(score, rival), min(score, rival), there if rival > score else here
            before, known = best[i], column[i]
            second[i] = max(max(second[i], lower), min(before, higher))
            column[i] = at if higher > before else known
            best[i] = max(before, higher)


@exact
def best_atoms(Y, used, atoms, tables, work, best, column, new):
    """Best score and atom of each value of a group by float32 products; False if rounding could change the answer.

    Also the least by which the best of any value is better than its second best, a new atom among them.
    """
    L, P = len(Y), atoms.weights.shape[1]
    clear, margin = used > 0, np.inf
    for b in range(0, L, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, L - b)
        padded = (rows + LANES - 1) // LANES * LANES
        features = work.features[: padded * P].reshape(padded, P)
        products = work.products[: used * padded].reshape(used, padded)
        first, second, at = work.first[:padded], work.second[:padded], work.at[:padded]
        longest, most_bent = features_of(Y[b : b + rows], tables, features, new[b : b + rows], work.length)
        if not clear:
            continue  # the group will be scored again, but that needs `new` too
        np.dot(atoms.weights[:used], features.T, products)
        _scan(products, atoms.constants[:used], atoms.curvature[:used], work.length[:padded], first, second, at)
        doubt = rounding(longest, most_bent, atoms)
        # a best score between the highest surcharge and none could be judged differently after rounding
        lowest = -tables.surcharge[L - 1] - doubt
        for i in range(rows):
            score = first[i] - new[b + i]
            clear = clear and first[i] - second[i] > doubt and not (lowest <= score <= doubt)
            margin = min(margin, lowest - score if score < 0.0 else min(score, first[i] - second[i]))
            best[b + i] = score
            column[b + i] = at[i]
    return clear, margin if clear else 0.0


@exact
def exact_score(y, k, atoms, tables, new):
    """Score of one value at one atom in float64, minus `new`; zero at a vacant slot (that is a new atom)."""
    n = atoms.counts[k]
    if n == 0:
        return 0.0
    mean, ratio, unit, shrink, inverse = tables.mean, tables.ratio, tables.unit, tables.shrink, tables.inverse
    sums, H = atoms.sums, len(ratio)
    square = 0.0
    for d in range(len(y)):
        h = d if H > 1 else 0
        mu = (mean[d] * ratio[h] + sums[k, d]) * shrink[n, h]
        off = (y[d] - mu) * unit[d]
        square += off * off * inverse[n, h]
    return tables.constant[n] - 0.5 * square - new
