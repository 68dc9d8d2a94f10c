"""How much a composition may differ from its atom's by chance: degrees of freedom where words are rare.

If a value p comes from n observations of theta, n KL(p, theta) is on average half a unit for every word with n theta_w
well above one, and much less for rarer words. Learning n must know how much less: the continuous multinomial, which
counts every word of a vocabulary of 1,000, learns 3,800 where 200 is true.

Let x be Gamma(lam): one word of n p, p ~ Dirichlet(n theta), lam = n theta_w. Its expected divergence is

    E[x log(x / lam) - x + lam] = lam (psi(lam + 1) - log lam),

and the function d with E d(x) = that for every lam is known as an integral (a Mellin transform). d rises from
1 / log(1 / x) at small x to 1/2. `freedom` has both ends and differs by 10 % at most between:

    d(x) = y / ((2 + y) log(1 + y)),   y^2 / (1 + y) = 1 / x,

and `log_freedom` is the function with x a'(x) = d(x):  a(x) = -log log(1 + y). With the density of p taken for

    exp(-n KL(p, theta) + sum_w a(n p_w) - a(n)),

the expected slope by n is zero at the true n, for few and many, rare and frequent words. That is a statement about
the neighbourhood of the truth: far below it the density is too large: see LEAST_PER_WORD in
`families.math.counts_start`.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array

SEEN_ONCE = 1.25
"""Degrees of freedom that each word counted exactly once adds, in a value of whole numbers. There rare words are mostly
not seen at all, which `freedom` takes for certainty. Those seen once tell how many there are (Good and Turing); 1.25
makes up for E[x log(x / lam)] - E d(x), x Poisson(lam), summed over Zipf's spectrum d lam / lam."""


def log_freedom(x: Array) -> Array:
    """The integral of d(x) / x: half of log x for large x."""
    return log_freedom_and_slope(x)[0]


def freedom(x: Array) -> Array:
    """Degrees of freedom of coordinates of size x > 0: 1/2 for large x.

    Examples
    --------
    >>> freedom(np.array([0.01, 1.0, 100.0])).round(2)
    array([0.21, 0.46, 0.5 ])
    """
    return log_freedom_and_slope(x)[1]


def log_freedom_and_slope(x: Array) -> tuple[Array, Array]:
    """a(x) and x a'(x) = d(x)."""
    y = (1 + np.sqrt(1 + 4 * x)) / (2 * x)
    logs = np.log1p(y)
    return -np.log(logs), y / ((2 + y) * logs)
