"""The fast path of time: the filter of `time.chains` and its way back, and the gains of `time.motion`."""

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
    by_memory, value = 0.0, 0.0
    ms, Ps = np.empty((N, D)), np.empty((N, D))
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


@exact
def link_gains(mean, variance, precision, shift, surcharge, ends, starts, own, hopeless):
    """Gains (A, B) of linking pasts at `mean` with `variance` (A, D) to futures of `precision` and `shift` (B, D).

    What is `hopeless` stands for a gain that would have been negative, but for the future that is a past's `own` (A,),
    -1: none. `surcharge` (B,): what futures are worth alone.
    """
    A, D = mean.shape
    B = precision.shape[0]
    gains = np.empty((A, B))
    left = np.zeros((B, D + 1))  # the most that dimensions from d on can still add
    for b in range(B):
        for d in range(D - 1, -1, -1):
            J, h = precision[b, d], shift[b, d]
            # at the best place x = h / J with no variance, h^2 / 2 J; nothing where nothing is known
            left[b, d] = left[b, d + 1] + (0.5 * h * h / J if J > 0 else 0.0)
    for a in range(A):
        for b in range(B):
            alone = -surcharge[b] - ends[a] - starts[b]
            value, d = alone, 0
            while b != own[a] and d < D and value + left[b, d] >= 0:  # without the logarithms, which only take away
                J, h, m, P = precision[b, d], shift[b, d], mean[a, d], variance[a, d]
                value += 0.5 * (h * (2 * m + h * P) - J * m * m) / (1 + P * J)
                d += 1
            if b != own[a] and value + left[b, d] < 0:
                gains[a, b] = hopeless
                continue
            value = alone
            for d in range(D):
                J, h, m, P = precision[b, d], shift[b, d], mean[a, d], variance[a, d]
                shrink = 1 + P * J
                value += 0.5 * ((h * (2 * m + h * P) - J * m * m) / shrink - np.log(shrink))
            gains[a, b] = value
    return gains
