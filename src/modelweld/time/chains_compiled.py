"""The fast path of `modelweld.time.chains`: the same filter and the same way back, chain by chain, compiled."""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact


@exact
def evidence_and_slopes(order, ends, gap, y, variance, spread, memory, sloped):
    """Log evidence, and slopes in variances (N, D), mean, spread (D,) and log memory (zero if not `sloped`).

    `order` lists values chain after chain, which end at `ends`.
    """
    N, D = y.shape
    by_variance = np.zeros((N, D) if sloped else (0, D))
    by_mean, by_spread = np.zeros(D), np.zeros(D)
    by_memory, value, begin = 0.0, 0.0, 0
    longest = 0
    for c in range(len(ends)):
        longest = max(longest, ends[c] - begin)
        begin = ends[c]
    ms, Ps = np.empty((longest, D)), np.empty((longest, D))
    m, P, to_m, to_P = np.empty(D), np.empty(D), np.empty(D), np.empty(D)
    begin = 0
    for c in range(len(ends)):
        n = ends[c] - begin
        m[:], P[:] = 0.0, spread
        for r in range(n):
            i = order[begin + r]
            phi = np.exp(-gap[i] / memory) if r else 1.0
            squared = phi * phi if r else 0.0
            for d in range(D):
                m[d] = phi * m[d]
                P[d] = spread[d] - squared * (spread[d] - P[d])
                ms[r, d], Ps[r, d] = m[d], P[d]
                R = variance[i, d]
                if np.inf > R:
                    e, V = y[i, d] - m[d], P[d] + R
                    part = P[d] / V
                    value -= 0.5 * (np.log(2 * np.pi * V) + e * e / V)
                    m[d] += part * e
                    P[d] -= part * P[d]
        if sloped:
            to_m[:], to_P[:] = 0.0, 0.0
            for r in range(n - 1, -1, -1):
                i = order[begin + r]
                phi = np.exp(-gap[i] / memory) if r else 0.0
                before = order[begin + r - 1] if r else i
                slope = 0.0
                for d in range(D):
                    R = variance[i, d]
                    if np.inf > R:
                        e, V = y[i, d] - ms[r, d], Ps[r, d] + R
                        part, rest = Ps[r, d] / V, R / V
                        to_e = to_m[d] * part - e / V
                        of_V = 0.5 * (e * e / V - 1) / V
                        of_part = to_m[d] * e / V
                        by_variance[i, d] = of_V + to_P[d] * part * part - of_part * part
                        to_P[d] = of_V + to_P[d] * rest * rest + of_part * rest
                        to_m[d] -= to_e
                        by_mean[d] -= to_e
                    by_spread[d] += (1 - phi * phi) * to_P[d]
                    if r:
                        last_m, last_P = ms[r - 1, d], Ps[r - 1, d]
                        R = variance[before, d]
                        if np.inf > R:
                            part = last_P / (last_P + R)
                            last_m += part * (y[before, d] - last_m)
                            last_P -= part * last_P
                        slope += last_m * to_m[d] - 2 * phi * (spread[d] - last_P) * to_P[d]
                        to_m[d] *= phi
                        to_P[d] *= phi * phi
                by_memory += slope * phi * gap[i] / memory
        begin = ends[c]
    return value, by_variance, by_mean, by_spread, by_memory
