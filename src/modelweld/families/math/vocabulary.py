"""Evidence of compositions over parts of a vocabulary: which words a site knows differs from site to site.

A site that knows the words V sees theta_w / theta_V, and if members of an atom know different words the integral over
theta has no closed form. With theta = g / sum(g), g_w ~ Gamma(a_w), a value's likelihood has the factor g_V^-n; its
logarithm is bounded from below by the tangent at the expected g_V = A_V = sum of a_w over V:

    -n log g_V >= n - n log A_V - n g_V / A_V.

What is left is a product of Gamma integrals, and adds up. With E_w = sum of n / A_V over values that know w,
N = sum of n, U = sum of n (1 - log A_V), A = sum of n A_V / N,

    log evidence = sum_w [log Gamma(a_w + s_w) - log Gamma(a_w) - (a_w + s_w) log(1 + E_w)] + U + R(N, A)
    R(N, A)      = log Gamma(A) - log Gamma(A + N) + (A + N) log(A + N) - A log A - N.

R makes up for the tangent where all values know the same words, so that the evidence is then exact. Otherwise it is
mostly too low, the more so the further an atom's share of V is from that of the mean atom: by less than a nat where
words are many or observations few, by several nats for few words and many observations (tables in
experiments/families). Tangents at each atom's own shares would need its members' effective sample sizes,
vocabulary by vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.family import sum_by_atom
from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.families.math.log_rising import log_rising

LEAST_SHARED = 0.1
"""Of a site's mass, on words that another site knows. With less, its values would be matched by the prior alone: where
nothing is shared, every atom predicts a value equally well."""


class Sums(NamedTuple):
    """Summed statistics (..., D) or (...) of atoms: see the module's equations; `mass` is N A."""

    s: Array
    E: Array
    N: Array
    U: Array
    mass: Array


def statistics(p: Array, seen: Array, n: Array, a: Array) -> Sums:
    """Of single values worth n."""
    known = np.where(n > 0, seen @ a, 1.0)
    return Sums(n[:, None] * p, seen * (n / known)[:, None], n, n * (1 - np.log(known)), n * known)


def log_evidence(sums: Sums, a: Array) -> Array:
    """The module's equation, (...)."""
    rising = log_rising(sums.s, a) - ((a + sums.s) * np.log1p(sums.E)).sum(-1)
    return np.asarray(rising + sums.U + _remainder(sums.N, _mean(sums)))


def slopes(p: Array, seen: Array, n: Array, a: Array, labels: Index, sums: Sums) -> tuple[Array, Array]:
    """Derivatives of the summed evidence of atoms by a (D,) and by each value's n (L,)."""
    from scipy.special import digamma

    known = np.where(n > 0, seen @ a, 1.0)
    rate = (a + sums.s) / (1 + sums.E)
    by_s = digamma(a + sums.s) - np.log1p(sums.E)
    A, N = _mean(sums), np.where(sums.N > 0, sums.N, 1.0)
    R_N = np.log(A + N) - digamma(A + N)
    R_A = digamma(A) - np.log(A) + R_N
    tilt = (seen * rate[labels]).sum(1) / known
    by_known = n / known * (tilt - 1) + (R_A / N)[labels] * n
    by_a = (by_s - digamma(a)).sum(0) + by_known @ seen
    by_n = (p * by_s[labels]).sum(1) - tilt + 1 - np.log(known) + R_N[labels] + (R_A / N)[labels] * (known - A[labels])
    return by_a, np.where(n > 0, by_n, 0.0)


def _mean(sums: Sums) -> Array:
    there = sums.N > 0
    return np.asarray(np.where(there, sums.mass / np.where(there, sums.N, 1.0), 1.0))


def _remainder(N: Array, A: Array) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(A) - gammaln(A + N) + (A + N) * np.log(A + N) - A * np.log(A) - N)


def misfit_vocabulary(values: Array, seen: NDArray[np.bool_], stack: Stack) -> tuple[int, str] | None:
    """The first value of a site that has little of its mass on words that another site knows too."""
    group = group_of_values(stack.offsets)
    known = sum_by_atom(seen.astype(np.float64), group, len(stack.sizes)) > 0
    elsewhere = known.sum(0) - known > 0
    mass = sum_by_atom(values / np.where(seen.any(1), values.sum(1), 1.0)[:, None], group, len(stack.sizes))
    shared = (mass * elsewhere).sum(1) / np.where(known.any(1), mass.sum(1), 1.0)
    strange = known.any(1) & (shared < LEAST_SHARED)
    if not strange.any():
        return None
    row = int(np.flatnonzero(strange[group] & seen.any(1))[0])
    return row, (
        f"have at least {LEAST_SHARED:.0%} of a site's mass on words that another site knows; found "
        f"{shared[group[row]]:.1%}, so that there is nothing to compare"
    )
