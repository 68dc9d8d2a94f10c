"""Compiled twin of `random_effects.best_log_ratio`: the same decades, the same bisection, without temporaries."""

from __future__ import annotations

import numpy as np

from modelweld.compiled.layout import loose
from modelweld.families.random_effects import BISECTIONS, LOG_RATIO_GRID, Effects
from modelweld.local import Array


def best_log_ratio(effects: Effects, scalar: bool) -> Array:
    """The log ratio spread / noise at the maximum of the profile likelihood: (D,), or (1,) if `scalar`."""
    e = effects
    # sums run over atoms: one line of memory per dimension
    weight, atoms, averages, squares = (np.ascontiguousarray(x.T) for x in (e.weight, e.atoms, e.averages, e.squares))
    return np.asarray(_search(weight, atoms, averages, squares, e.within, e.seen, scalar, LOG_RATIO_GRID, BISECTIONS))


@loose
def _search(weight, atoms, averages, squares, within, seen, scalar, grid, bisections):
    D = len(seen)
    result = np.empty(1 if scalar else D)
    for h in range(len(result)):
        a, b = (0, D) if scalar else (h, h + 1)
        top, best = -np.inf, 0
        for g in range(len(grid)):
            value, _ = _profile(weight, atoms, averages, squares, within, seen, a, b, np.exp(grid[g]), True)
            if value > top:
                top, best = value, g
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        for _ in range(bisections):
            middle = (low + high) / 2
            _, slope = _profile(weight, atoms, averages, squares, within, seen, a, b, np.exp(middle), False)
            if slope > 0:
                low = middle
            else:
                high = middle
        result[h] = (low + high) / 2
    return result


@loose
def _profile(weight, atoms, averages, squares, within, seen, a, b, rho, with_value):
    """Profile log likelihood over dimensions a .. b-1 (if asked for) and a number with the sign of its slope."""
    C = weight.shape[1]
    shared = weight.shape[0] == 1
    u, v = np.empty(C), np.empty(C)
    total, steep, pull, number, log_det, atoms_u, atoms_v, log_one = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for d in range(a, b):
        e = 0 if shared else d
        if d == a or not shared:
            atoms_u, atoms_v, log_one = 0.0, 0.0, 0.0
            for c in range(C):
                u[c] = weight[e, c] / (1 + rho * weight[e, c])
                v[c] = u[c] * u[c]
                atoms_u += u[c] * atoms[e, c]
                atoms_v += v[c] * atoms[e, c]
            if with_value:
                for c in range(C):
                    log_one += atoms[e, c] * np.log1p(rho * weight[e, c])
        s_u, s_v, q_u, q_v = 0.0, 0.0, 0.0, 0.0
        for c in range(C):
            s_u += u[c] * averages[d, c]
            s_v += v[c] * averages[d, c]
            q_u += u[c] * squares[d, c]
            q_v += v[c] * squares[d, c]
        mean = s_u / max(atoms_u, 1e-300)
        total += within[d] + q_u - mean * s_u
        steep += q_v - 2 * mean * s_v + mean * mean * atoms_v
        pull += atoms_u
        number += seen[d]
        log_det += log_one
    total = max(total, 1e-300)
    value = -0.5 * number * np.log(total) - 0.5 * log_det if with_value else 0.0
    return value, number * steep / total - pull
