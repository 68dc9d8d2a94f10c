"""Values that are known unequally well, compiled: what `predictive` and `standard_errors` say, without temporaries.

Both make tables of values x atoms x dimensions, or a dozen of values x dimensions, and go through them again and again;
here each number is looked at once. Tests compare.
"""

from __future__ import annotations

import numpy as np

from modelweld.compilers import exact


@exact
def log_predictive(y, seen, own_variance, mu, extra):
    """Log density (L, K) of values y (L, D), where seen, of variance `own_variance`, given atoms at mu +- `extra`."""
    L, D = y.shape
    K = len(mu)
    result = np.empty((L, K))
    if L == 0 or K == 0:
        return result
    unit = 1.0 / (own_variance[0] + extra[0])  # so that products of many variances stay near one
    log_units = np.log(unit).sum()
    for i in range(L):
        number, whole = seen[i].sum(), seen[i].min() > 0
        for k in range(K):
            total, product = 0.0, 1.0  # one logarithm serves many factors
            if whole:
                for d in range(D):
                    v = own_variance[i, d] + extra[k, d]
                    off = y[i, d] - mu[k, d]
                    total += off * off / v
                    product *= v * unit[d]
                total -= log_units
            if not (whole and 1e-300 < product < 1e300):  # it is looked at as it grows
                total, product = 0.0, 1.0
                for d in range(D):
                    if seen[i, d] > 0:
                        v = own_variance[i, d] + extra[k, d]
                        off = y[i, d] - mu[k, d]
                        total += off * off / v
                        product *= v
                        if product < 1e-200 or product > 1e200:
                            total += np.log(product)
                            product = 1.0
            result[i, k] = -0.5 * (number * np.log(2 * np.pi) + total + np.log(product))
    return result


@exact
def likelihood(y, seen, inverse_weight, variance, first, mean, noise, spread, c):
    """Log likelihood, and its slopes (D,) in mean, noise and spread, of values (N, D) sorted by atom.

    Atom k has those from ``first[k]`` to ``first[k + 1]``.
    """
    D = y.shape[1]
    value = 0.0
    by_mean, by_noise, by_spread = np.zeros(D), np.zeros(D), np.zeros(D)
    P, S = np.empty(D), np.empty(D)
    for k in range(len(first) - 1):
        for d in range(D):
            P[d], S[d] = 1.0 / spread[d], 0.0
        for i in range(first[k], first[k + 1]):
            for d in range(D):
                var = noise[d] * inverse_weight[i, d] + c * variance[i, d]
                p, off = seen[i, d] / var, y[i, d] - mean[d]
                P[d] += p
                S[d] += p * off
                value -= 0.5 * (seen[i, d] * np.log(2 * np.pi * var) + p * off * off)
        for d in range(D):
            M = S[d] / P[d]
            value -= 0.5 * (np.log(spread[d] * P[d]) - S[d] * M)
            by_mean[d] += M / spread[d]
            by_spread[d] += 0.5 * ((M * M + 1.0 / P[d]) / spread[d] - 1) / spread[d]
            S[d] = M
        for i in range(first[k], first[k + 1]):
            for d in range(D):
                var = noise[d] * inverse_weight[i, d] + c * variance[i, d]
                off = y[i, d] - mean[d] - S[d]
                slope = 0.5 * seen[i, d] / var * ((off * off + 1.0 / P[d]) / var - 1)
                by_noise[d] += slope * inverse_weight[i, d]
    return value, by_mean, by_noise, by_spread
