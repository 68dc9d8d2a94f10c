"""Rates family: values that are not negative, per coordinate: rates and counts (Poisson), or scales (Gamma).

Proportions family: values between zero and one, per coordinate, v ~ Binomial(w, p) / w, p ~ Beta.

Proportions of trials about a Beta: the likelihood of its pseudo-counts, and densities of values that are no counts.

With v a share of successes, worth w trials (its effective sample size), and l(x) = v log x + (1 - v) log(1 - x), log
p(v) = w l(p) + h: the carrier h is here in two parts, one that depends on what values are worth and one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from modelweld.core.values import Array, Stack, blocks, total_variance
from modelweld.errors import InputError
from modelweld.families.capabilities import first_row, register
from modelweld.families.hyperparameters import check_choice, freeze_number, freeze_vectors
from modelweld.families.math.event_densities import KINDS, SMALLEST_SHARE, Own, Poisson, carrier_of_events
from modelweld.families.math.start import prefer_given
from modelweld.families.observed import PerCoordinate, Search, parts

BOUNDS = (1e-3, 1e8)
"""Of what a typical value is worth in events (its squared coefficient of variation is one over that), and of the atoms'
concentration: over a thousand orders of magnitude, or equal to four digits, beyond which rounding would show."""

UNSEEN_EVENTS = 1e-3
"""Where no event was ever seen the likelihood wants a mean of zero; at this many expected events it is as likely to a
thousandth of a nat."""


@register
@dataclass(frozen=True, eq=False)
class Rates(PerCoordinate):
    """Values that are not negative: rates, counts, scales, variances, durations. Coordinates are independent.

    Parameters
    ----------
    kind : {"poisson", "gamma"}
        ``"poisson"``: rates per unit of exposure (zero is a value). `weight` is the exposure: the number of frames or
        documents behind the rate. Without weight it is not known, and what a value is worth is learned (one
        interval, if `between` is infinite: counts). ``"gamma"``: positive values with a constant relative error.
    shape : float, optional
        Of the Gamma kind: the known shape of a value per unit of weight. 1: exponential, values that are the mean of
        `weight` durations; 0.5: variances from `weight` degrees of freedom. None: not known, and learned: a value has
        shape ``between * weight``.
    mean, concentration : array or float, optional
        Of the atoms: typical value, and how close together they lie (their squared coefficient of variation is about
        1 / concentration). Starting values; what is not given is read off the values.
    between : array or float, optional
        Sites differ beyond what their exposure explains, as if each had its own truth from an exposure of `between`
        (see `modelweld.families.math.event_densities`). A starting value; ``numpy.inf``: they do not, and it is not
        learned.
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned.

    Notes
    -----
    Atoms: rate theta ~ Gamma(c, c / mean) for the Poisson kind, 1 / theta ~ Gamma(c, c mean) for the Gamma kind. With w
    the effective exposure, 1 / w = 1 / weight + 1 / between, and k the effective shape in the same way,

        Poisson:  log p(v) = w v log theta - w theta + h,   h = e(v, w) - w v (log v - 1) + g(v, weight)
        Gamma:    log p(v) = -k log theta - k v / theta + h,   h = k log k + (k - 1) log v - log Gamma(k).

    A row is, per dimension, [p, r], then the sum of h, with (p, r) = (w v, w) or (k, k v). With sums P, R, H and the
    atoms' Gamma(a, b),

        log evidence = a log b - log Gamma(a) + log Gamma(a + P) - (a + P) log(b + R) + H.

    *The carrier of the Poisson kind.* A learned exposure needs a density for counts w v that are no whole numbers. e is
    half of log(w v) for many events and rises more slowly with w for few, so that what is learned is right on average:
    `modelweld.families.math.event_densities` says why. (Sites worth 8 intervals that observed 30, with 5, 0.5, 0.1 and
    0.05 events in each, are learned to be worth 7.9, 7.7, 6.8 and 8.0; with Gamma functions instead 8.2, 11, 26 and
    70.) g moves with no hyperparameter and makes the density exactly Poisson where `between` is infinite: g = log[y^y
    e^-y / y!] - e(v, weight) with y = weight v. Where the exposure is not known, g = -log v - log(2 pi) / 2, or 0 at v
    = 0.

    `estimate` is the mode of log theta: the posterior mean (c + P) / (c / mean + R) of a rate, and (c mean + R) / (c +
    P) of a scale.

    Examples
    --------
    >>> import numpy as np
    >>> family = Rates(mean=2.0, concentration=1.0, between=np.inf)
    >>> rows = family.rows(np.array([[3.0], [0.0]]), weight=np.array([[1.0], [3.0]]))      # 3 events in 4 intervals
    >>> family.estimate(rows.sum(0)).round(3)                                              # (1 + 3) / (1/2 + 4)
    array([0.889])
    """

    learns = ("mean", "concentration", "between")
    sampled = ("mean", "concentration", "between")
    row_fields = ("between",)
    specificity = 2
    observations = "exposure"

    kind: Literal["poisson", "gamma"] = "poisson"
    shape: float | None = None
    mean: ArrayLike | None = None
    concentration: ArrayLike | None = None
    between: ArrayLike | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        check_choice(self, "kind", tuple(KINDS))
        check_choice(self, "learning")
        if self.shape is not None and not (self.kind == "gamma" and 0 < self.shape < np.inf):
            raise InputError(f"Rates: shape is a positive number and belongs to kind='gamma'; found {self.shape!r}.")
        freeze_vectors(self, "mean", "concentration", positive=True)
        freeze_vectors(self, "between", positive=True, infinite=True)
        if self.exact and self.kind == "gamma" and self.shape is None:
            raise InputError("Rates: kind 'gamma' with between=inf needs a known shape, else values have no scatter.")

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Negative values, and zeros where relative errors are constant."""
        smallest = np.where(stack.seen, stack.values, np.inf).min(1, initial=np.inf)
        wrong, takes = (smallest < 0, "not negative") if self.kind == "poisson" else (smallest <= 0, "positive")
        row = first_row(wrong)
        return None if row is None else (row, f"are {takes}; found {smallest[row]:g}")

    def with_share(self, stack: Stack, share: float) -> Self:
        """Read off roots (Poisson) or logarithms (Gamma) of values."""
        of = self.density
        origin, total = total_variance(self.steady(stack), pooled=False)
        typical = of.typical(origin, total)
        own, scale = self.own(stack.values, stack.weight).typical()
        noise = share * total / of.variance
        between = np.maximum(scale, SMALLEST_SHARE) / np.maximum(noise - own, SMALLEST_SHARE * noise)
        concentration = np.clip(1 / of.relative((1 - share) * total, typical), *BOUNDS)
        return replace(
            self,
            mean=prefer_given(self.mean, typical),
            concentration=prefer_given(self.concentration, concentration),
            between=prefer_given(self.between, between),
        )

    def estimate(self, rows: Array) -> Array:
        """Mode of log theta: (a + P) / (b + R) for rates, its inverse for scales."""
        P, R, _ = parts(rows)
        a, b = self.prior
        return np.asarray(self.density.value((a + P) / (b + R)))

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Gamma, of rates or of inverses of scales."""
        P, R, _ = parts(sums)
        a, b = self.prior
        return np.asarray(self.density.value(np.maximum(rng.gamma(a + P), np.finfo(float).tiny) / (b + R)))

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """By ratios."""
        return np.asarray(values * (after / before))

    def search(self, sums: Array, between: bool) -> Search:
        """Means between those of single atoms, and events that values may be worth."""
        P, R, _ = parts(sums)
        D = P.shape[1]
        a, b = self.prior
        start = np.log([np.zeros(D) + x for x in (a / b, a, np.asarray(self.between))])
        events, exposure = P.sum(0), np.where(R.sum(0) > 0, R.sum(0), 1.0)
        rates = P / np.where(R > 0, R, 1.0)
        smallest = np.where(R > 0, rates, np.inf).min(0, initial=np.inf)
        least = np.maximum(np.where(np.isfinite(smallest), smallest, 0.0), UNSEEN_EVENTS / exposure)
        most = np.maximum(rates.max(0, initial=0.0), least)
        unit = np.maximum(events, UNSEEN_EVENTS) / exposure if self.kind == "poisson" else np.ones(D)
        low = np.log([least, np.full(D, BOUNDS[0]), BOUNDS[0] / unit])
        high = np.log([most, np.full(D, BOUNDS[1]), BOUNDS[1] / unit])
        return Search(*(x[: 2 + between].ravel() for x in (start, low, high)))

    def at(self, logs: Array, between: bool) -> Self:
        """The same family with hyperparameters of these logarithms, the mean being that of the prior."""
        found = dict(zip(self.learns, np.exp(logs.reshape(2 + between, -1)), strict=False))
        return replace(self, **found | ({"mean": 1 / found["mean"]} if self.kind == "gamma" else {}))

    def own(self, values: Array, weight: Array | None) -> Own:
        """Of the Gamma kind, a known shape is one per unit of weight; without one, weight is all there is."""
        seen, own, scale = super().own(values, weight)
        if self.shape is not None:
            return Own(seen, np.where(own > 0, own, 1.0) / self.shape, scale)
        return Own(seen, own, scale) if self.kind == "poisson" or weight is None else Own(seen, 0.0 * own, own)

    @property
    def density(self) -> Poisson:
        """Poisson or Gamma."""
        return KINDS[self.kind]

    @property
    def prior(self) -> tuple[Array, Array]:
        """Shape and rate of the Gamma that rates, or inverses of scales, come from."""
        mean, c = np.asarray(self.mean), np.asarray(self.concentration)
        return c, c / mean if self.kind == "poisson" else c * mean


PSEUDO_COUNTS = (1e-3, 1e6)
"""Bounds of the atoms' pseudo-counts: all at zero or one, or equal to three digits."""

WORTH = (1e-2, 1e8)
"""Bounds of `between`: values that tell nothing, or that coincide to four digits."""


class Binomial(Poisson):
    """Proportions: p = w v, r = w (1 - v)."""

    def steady(self, values: Array, seen: NDArray[np.bool_]) -> Array:
        """Arcsines of roots: their variance is 1 / (4 w), whatever the proportion."""
        return np.where(seen, np.arcsin(np.sqrt(values)), 0.0)

    def statistics(self, w: Array, values: Array) -> tuple[Array, Array]:
        """Successes and failures."""
        return w * values, w * (1 - values)

    def along(self, slope: Array, by_p: Array, by_r: Array, values: Array) -> Array:
        """The slope of carriers, and with it the derivative by w of a function of both."""
        return slope + values * by_p + (1 - values) * by_r

    def seen_carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """The part of h that depends on what values are worth, and its derivative by that."""
        bend = scipy.special.xlogy(values, values) + scipy.special.xlog1py(1 - values, -values)
        events = (values, 1 - values, np.ones_like(values))
        (e, slope), (f, fall), (both, of_both) = (carrier_of_events(x, w) for x in events)
        return e + f - both - w * bend, (slope + fall - of_both) / w - bend

    def constant_carrier(self, values: Array, weight: Array | None) -> Array:
        """The part of h that no hyperparameter moves."""
        if weight is None:
            inside = (values > 0) & (values < 1)
            inner = np.where(inside, values, 0.5)
            return np.where(inside, -np.log(inner * (1 - inner)) - 0.5 * np.log(2 * np.pi), 0.0)
        n, gammaln = np.where(weight > 0, weight, 1.0), scipy.special.gammaln
        choose = gammaln(n + 1) - gammaln(n * values + 1) - gammaln(n * (1 - values) + 1)
        return np.asarray(choose - self.seen_carrier(values, n)[0])

    def predictive(self, p: Array, r: Array, P: Array, R: Array) -> Array:
        """Log densities (L, K), without carriers, at atoms of Beta(P, R).

        Totals are taken out where all values are worth the same.
        """
        base = (scipy.special.gammaln(P + R) - scipy.special.gammaln(P) - scipy.special.gammaln(R)).sum(-1)
        w = p + r
        alike = np.allclose(w, w[:1], rtol=1e-14, atol=0.0)
        result = np.empty((len(p), len(P)))
        for part in blocks(len(p), P.size):
            totals = scipy.special.gammaln(P + R + (w[0] if alike else w[part, None, :]))
            ends = scipy.special.gammaln(P + p[part, None, :]) + scipy.special.gammaln(R + r[part, None, :])
            result[part] = ends.sum(-1) - totals.sum(-1)
        return np.asarray(result + base)

    def log_evidence(self, a: Array, b: Array, P: Array, R: Array) -> Array:
        """Of atoms of Beta(a, b) with these sums, without carriers: (..., D)."""
        gammaln = scipy.special.gammaln
        atoms = gammaln(a + P) - gammaln(a) + gammaln(b + R) - gammaln(b) - (gammaln(a + b + P + R) - gammaln(a + b))
        return np.asarray(atoms)

    def over_atoms(self, x: Array, P: Array, R: Array) -> tuple[float, Array, Array, Array]:
        """Sum over atoms of log evidences; gradients by x (2, D), by P and by R (K, D).

        x: logarithms of the pseudo-counts.
        """
        (a, b), digamma = np.exp(x), scipy.special.digamma
        value = scipy.special.betaln(a + P, b + R) - scipy.special.betaln(a, b)
        both = digamma(a + b + P + R)
        by_P, by_R, together = digamma(a + P) - both, digamma(b + R) - both, digamma(a + b)
        by_a, by_b = ((by - digamma(x) + together).sum(0) for by, x in ((by_P, a), (by_R, b)))
        return float(value.sum()), np.stack([a * by_a, b * by_b]), by_P, by_R


BINOMIAL = Binomial()


@register
@dataclass(frozen=True, eq=False)
class Proportions(PerCoordinate):
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
    observations = "trials"

    successes: ArrayLike | None = None
    failures: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        check_choice(self, "learning")
        freeze_number(self, "between", "one positive number or infinite", also=np.inf)
        freeze_vectors(self, "successes", "failures", positive=True)

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Values below zero or above one."""
        off = np.where(stack.seen, np.abs(stack.values - 0.5), 0.0)
        row = first_row(np.any(off > 0.5, axis=1))
        return None if row is None else (row, f"lie between 0 and 1; found {stack.values[row, off[row].argmax()]:g}")

    def starts(self, stack: Stack) -> list[Self]:
        """All hyperparameters not given, read off arcsines of roots."""
        if self.exact and stack.weight is None:
            raise InputError(
                "Proportions: between=inf needs the number of trials behind each value; send it as weight."
            )
        return super().starts(stack)

    def with_share(self, stack: Stack, share: float) -> Self:
        """What is not given, if this share of the variance is noise."""
        origin, total = total_variance(self.steady(stack), pooled=False)
        own = 0.0 if stack.weight is None or not stack.seen.any() else float((1 / stack.weight[stack.seen]).mean())
        mean, noise = np.clip(np.square(np.sin(origin)), 0.01, 0.99), 4 * share * float(total.mean())
        number = np.clip(1 / (4 * (1 - share) * total), *PSEUDO_COUNTS)
        between = 1 / max(noise - own, SMALLEST_SHARE * noise)
        return replace(
            self,
            successes=prefer_given(self.successes, number * mean),
            failures=prefer_given(self.failures, number * (1 - mean)),
            between=between if self.between is None else self.between,
        )

    def estimate(self, rows: Array) -> Array:
        """Posterior mean (a + S) / (a + b + S + F), which is also the mode of the log odds."""
        S, F, _ = parts(rows)
        a, b = self.prior
        return np.asarray((a + S) / (a + b + S + F))

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Beta."""
        S, F, _ = parts(sums)
        a, b = self.prior
        return np.asarray(rng.beta(a + S, b + F))

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """By ratios of odds, within zero and one."""
        succeed, fail = values * after * (1 - before), (1 - values) * (1 - after) * before
        total = succeed + fail
        return np.asarray(np.where(total > 0, succeed / np.where(total > 0, total, 1.0), values))

    @property
    def density(self) -> Poisson:
        """Binomial."""
        return BINOMIAL

    @property
    def prior(self) -> tuple[Array, Array]:
        """Pseudo-counts of the atoms' Beta."""
        return np.asarray(self.successes), np.asarray(self.failures)
