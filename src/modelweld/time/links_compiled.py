"""The fast path of `modelweld.time.links`: gains of links, each given up as soon as it cannot become positive."""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact


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
