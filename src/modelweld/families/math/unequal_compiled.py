"""Values that are known unequally well, scored in compiled code: what `core.gaussian.score_unequal` says.

That makes tables of values x atoms x dimensions and goes through them again and again; here each number is looked at
once. Tests compare.
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
