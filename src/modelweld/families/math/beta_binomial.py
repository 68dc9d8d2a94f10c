"""Proportions of trials about a Beta: the likelihood of its pseudo-counts, and densities of values that are no counts.

With v a share of successes, worth w trials (its effective sample size), and l(x) = v log x + (1 - v) log(1 - x), log
p(v) = w l(p) + h: the carrier h is here in two parts, one that depends on what values are worth and one that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.values import Array, Index, Stack, blocks
from modelweld.families.math.event_densities import SMALLEST_SHARE, effective_count, log_carrier, slope_of_carrier
from modelweld.families.math.maximise import ByAtom, LogLikelihood
from modelweld.families.math.start import noise_shares, total_variance

PSEUDO_COUNTS = (1e-3, 1e6)
"""Bounds of the atoms' pseudo-counts: all at zero or one, or equal to three digits."""

WORTH = (1e-2, 1e8)
"""Bounds of `between`: values that tell nothing, or that coincide to four digits."""


def trials(values: Array, weight: Array | None) -> Array:
    """Trials behind each value: infinite where not known."""
    return np.full(values.shape, np.inf) if weight is None else weight


def first_hyperparameters(
    stack: Stack, seen: NDArray[np.bool_], exact: bool, shares: Sequence[float] | None = None
) -> list[tuple[Array, Array, float]]:
    """Pseudo-counts and `between`, read off arcsines of roots: their variance is 1 / (4 w), whatever p.

    One for each of these `shares` of noise, which are read off the values, too, if they are not given.
    """
    steady = replace(stack, values=np.where(seen, np.arcsin(np.sqrt(stack.values)), 0.0), moments=None)
    origin, total = total_variance(steady, pooled=False)
    own = 0.0 if stack.weight is None or not seen.any() else float((1 / stack.weight[seen]).mean())
    mean = np.clip(np.square(np.sin(origin)), 0.01, 0.99)
    found = []
    for share in [0.5] if exact else shares or noise_shares(steady, total):
        noise = 4 * share * float(total.mean())
        number = np.clip(1 / (4 * (1 - share) * total), *PSEUDO_COUNTS)
        found.append((number * mean, number * (1 - mean), 1 / max(noise - own, SMALLEST_SHARE * noise)))
    return found


def over_atoms(x: Array, S: Array, F: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by x (2, D), by S and by F (K, D).

    x: logarithms of the pseudo-counts.
    """
    a, b = np.exp(x)
    value = scipy.special.betaln(a + S, b + F) - scipy.special.betaln(a, b)
    both = scipy.special.digamma(a + b + S + F)
    by_S, by_F = scipy.special.digamma(a + S) - both, scipy.special.digamma(b + F) - both
    together = scipy.special.digamma(a + b)
    by_a, by_b = (
        (by_S - scipy.special.digamma(a) + together).sum(0),
        (by_F - scipy.special.digamma(b) + together).sum(0),
    )
    return float(value.sum()), np.stack([a * by_a, b * by_b]), by_S, by_F


def likelihood_of_atoms(S: Array, F: Array) -> LogLikelihood:
    """Of logarithms of pseudo-counts (2 D,), given successes and failures (K, D)."""

    def log_likelihood(x: Array) -> tuple[float, Array]:
        value, gradient, _, _ = over_atoms(x.reshape(2, -1), S, F)
        return value, gradient.ravel()

    return log_likelihood


def likelihood_of_values(values: Array, n: Array, labels: Index) -> LogLikelihood:
    """The same together with that of `between`, last, given values from n trials (N, D)."""
    by_atom, v = ByAtom(labels), np.where(n > 0, values, 0.0)

    def log_likelihood(x: Array) -> tuple[float, Array]:
        between = float(np.exp(x[-1]))
        w = effective_count(n, between)
        seen, known = w > 0, np.where(w > 0, w, 1.0)
        value, gradient, by_S, by_F = over_atoms(x[:-1].reshape(2, -1), by_atom(w * v), by_atom(w * (1 - v)))
        h, slope = carrier(v, known)
        slope = slope + v * by_S[labels] + (1 - v) * by_F[labels]
        return value + float(h[seen].sum()), np.append(gradient.ravel(), (slope * w * w).sum() / between)

    return log_likelihood


def predictive(s: Array, f: Array, S: Array, F: Array) -> Array:
    """Log densities (L, K), without carriers, of s and f at atoms of Beta(S, F).

    Totals are taken out where all values are worth the same.
    """
    base = (scipy.special.gammaln(S + F) - scipy.special.gammaln(S) - scipy.special.gammaln(F)).sum(-1)
    w = s + f
    alike = np.allclose(w, w[:1], rtol=1e-14, atol=0.0)
    result = np.empty((len(s), len(S)))
    for part in blocks(len(s), S.size):
        totals = scipy.special.gammaln(S + F + (w[0] if alike else w[part, None, :]))
        ends = scipy.special.gammaln(S + s[part, None, :]) + scipy.special.gammaln(F + f[part, None, :])
        result[part] = ends.sum(-1) - totals.sum(-1)
    return np.asarray(result + base)


def carrier(v: Array, w: Array) -> tuple[Array, Array]:
    """The part of h that depends on what values are worth, and its derivative by that."""
    bend, ones = _bend(v), np.ones_like(v)
    h = log_carrier(v, w) + log_carrier(1 - v, w) - log_carrier(ones, w) - w * bend
    slope = slope_of_carrier(v, w) + slope_of_carrier(1 - v, w) - slope_of_carrier(ones, w)
    return h, slope / w - bend


def fixed(v: Array, weight: Array | None) -> Array:
    """The part of h that no hyperparameter moves."""
    if weight is None:
        inside = (v > 0) & (v < 1)
        inner = np.where(inside, v, 0.5)
        return np.where(inside, -np.log(inner * (1 - inner)) - 0.5 * np.log(2 * np.pi), 0.0)
    n = np.where(weight > 0, weight, 1.0)
    choose = scipy.special.gammaln(n + 1) - scipy.special.gammaln(n * v + 1) - scipy.special.gammaln(n * (1 - v) + 1)
    return np.asarray(choose - carrier(v, n)[0])


def _bend(v: Array) -> Array:
    """The value's own log likelihood per trial, v log v + (1 - v) log(1 - v)."""
    return np.asarray(scipy.special.xlogy(v, v) + scipy.special.xlog1py(1 - v, -v))
