"""Proportions family: values between zero and one, per coordinate, v ~ Binomial(w, p) / w, p ~ Beta.

Proportions of trials about a Beta: the likelihood of its pseudo-counts, and densities of values that are no counts.

With v a share of successes, worth w trials (its effective sample size), and l(x) = v log x + (1 - v) log(1 - x), log
p(v) = w l(p) + h: the carrier h is here in two parts, one that depends on what values are worth and one that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from modelweld.core.family import with_fields
from modelweld.core.values import Array, Index, Stack, blocks, total_variance
from modelweld.errors import InputError
from modelweld.families.capabilities import first_row
from modelweld.families.math.event_densities import SMALLEST_SHARE, effective_count, log_carrier, slope_of_carrier
from modelweld.families.math.maximise import ByAtom, LogLikelihood
from modelweld.families.math.start import noise_shares, prefer_given
from modelweld.families.observed import Observed, freeze_between, parts
from modelweld.families.registry import check_choice, check_sizes, freeze_vectors, register, require

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
    by_a, by_b = ((by - scipy.special.digamma(x) + together).sum(0) for by, x in ((by_S, a), (by_F, b)))
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


def constant_carrier(v: Array, weight: Array | None) -> Array:
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


@register
@dataclass(frozen=True, eq=False)
class Proportions(Observed):
    """Values between zero and one: Bernoulli features, success rates, probabilities. Coordinates are independent.

    Rows that sum to one (topics, transition rows) are no proportions in this sense: each is one draw over categories.

    Parameters
    ----------
    successes, failures : array or float, optional
        Pseudo-counts of the atoms' Beta. Starting values; what is not given is read off the values.
    between : float, optional
        `weight` is the number of trials behind a value; without weight it is not known. Sites differ beyond what their
        trials explain, as if each had its own truth from `between` trials (see
        `modelweld.families.math.event_densities`): a value is worth w = 1 / (1 / weight + 1 / between). A starting
        value; ``numpy.inf``: they do not differ, and it is not learned (trials must then be sent).
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned.

    Notes
    -----
    With l(x) = v log x + (1 - v) log(1 - x),

        log p(v) = w l(p) + h,   h = e(v, w) + e(1 - v, w) - e(1, w) - w l(v) + g(v, weight).

    A row is, per dimension, [w v, w (1 - v)], then the sum of h. With sums S, F, H and pseudo-counts a, b,

        log evidence = log B(a + S, b + F) - log B(a, b) + H.

    The carrier h is that of `modelweld.families.math.event_densities`: e is half of log(w v) for many successes and
    rises more slowly with w for few, so that what is learned is right on average. g moves with no hyperparameter and
    makes the density exactly binomial where `between` is infinite; where trials are not known it is -log(v (1 - v)) -
    log(2 pi) / 2, or 0 at v = 0 and 1. Sites worth 20 trials that saw 50, with p ~ Beta(2, 2), Beta(.5, .5), Beta(.5,
    5) and Beta(.3, 10), are learned to be worth 18, 18, 19 and 31 (with Gamma functions for factorials: 17, 35, 82,
    endless).

    Examples
    --------
    >>> import numpy as np
    >>> family = Proportions(successes=1.0, failures=1.0, between=np.inf)
    >>> rows = family.rows(np.array([[0.5], [1.0]]), weight=np.array([[4.0], [2.0]]))      # 4 of 6 trials
    >>> family.estimate(rows.sum(0)).round(3)                                              # (1 + 4) / (2 + 6)
    array([0.625])
    """

    learns = ("successes", "failures", "between")
    sampled = ("successes", "failures", "between")
    row_fields = ("between",)
    bounds = (PSEUDO_COUNTS, PSEUDO_COUNTS, WORTH)
    specificity = 3

    successes: ArrayLike | None = None
    failures: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        check_choice(self, "learning")
        freeze_between(self)
        freeze_vectors(self, "successes", "failures", positive=True)

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Values below zero or above one."""
        off = np.where(stack.seen, np.abs(stack.values - 0.5), 0.0)
        row = first_row(np.any(off > 0.5, axis=1))
        return None if row is None else (row, f"lie between 0 and 1; found {stack.values[row, off[row].argmax()]:g}")

    def starts(self, stack: Stack) -> list[Self]:
        """All hyperparameters not given, read off arcsines of roots: their variance is 1 / (4 w), whatever p."""
        check_sizes(self, ("successes", "failures"), stack.values.shape[1])
        if self.exact and stack.weight is None:
            raise InputError(
                "Proportions: between=inf needs the number of trials behind each value; send it as weight."
            )
        return self._with_shares(stack)

    def prior_location(self, stack: Stack, share: float) -> Self:
        """As `starts`, of nothing given but `between` where it is infinite."""
        between = self.between if self.exact else None
        return with_fields(self, successes=None, failures=None, between=between)._with_shares(stack, [share])[0]

    def _with_shares(self, stack: Stack, shares: Sequence[float] | None = None) -> list[Self]:
        """What is not given, for each of these shares of noise."""
        return [
            replace(
                self,
                successes=prefer_given(self.successes, a),
                failures=prefer_given(self.failures, b),
                between=between if self.between is None else self.between,
            )
            for a, b, between in first_hyperparameters(stack, stack.seen, self.exact, shares)
        ]

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[w v, w (1 - v)] side by side and the summed carrier, (L, 2 D + 1)."""
        self.refuse_variance(variance, "trials")
        v = values if weight is None else np.where(weight > 0, values, 0.0)
        w = effective_count(trials(values, weight), require(self.between))
        h = np.where(w > 0, carrier(v, np.where(w > 0, w, 1.0))[0] + constant_carrier(v, weight), 0.0)
        return np.concatenate([w * v, w * (1 - v), h.sum(-1, keepdims=True)], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        S, F, H = parts(rows)
        a, b = self._prior
        gammaln = scipy.special.gammaln
        atoms = gammaln(a + S) - gammaln(a) + gammaln(b + F) - gammaln(b) - (gammaln(a + b + S + F) - gammaln(a + b))
        return np.asarray(atoms.sum(-1) + H[..., 0])

    def estimate(self, rows: Array) -> Array:
        """Posterior mean (a + S) / (a + b + S + F), which is also the mode of the log odds."""
        S, F, _ = parts(rows)
        a, b = self._prior
        return np.asarray((a + S) / (a + b + S + F))

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Beta."""
        S, F, _ = parts(sums)
        a, b = self._prior
        return np.asarray(rng.beta(a + S, b + F))

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """By ratios of odds, within zero and one."""
        succeed, fail = values * after * (1 - before), (1 - values) * (1 - after) * before
        total = succeed + fail
        return np.asarray(np.where(total > 0, succeed / np.where(total > 0, total, 1.0), values))

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; totals are taken out where all values are worth the same."""
        s, f, h = parts(own)
        S, F, _ = parts(sums)
        a, b = self._prior
        return predictive(s, f, a + S, b + F) + h

    def of_atoms(self, sums: Array) -> LogLikelihood:
        """Of logarithms of the pseudo-counts."""
        return likelihood_of_atoms(*parts(sums)[:2])

    def of_values(self, stack: Stack, labels: Index) -> LogLikelihood:
        """Of those and of the logarithm of `between`."""
        n = trials(stack.values, stack.weight)
        return likelihood_of_values(stack.values, n, labels)

    @property
    def _prior(self) -> tuple[Array, Array]:
        return np.asarray(self.successes), np.asarray(self.failures)
