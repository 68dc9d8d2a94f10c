"""Rates family: values that are not negative, per coordinate: rates and counts (Poisson), or scales (Gamma)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Stack, total_variance
from modelweld.errors import InputError
from modelweld.families.capabilities import first_row
from modelweld.families.hyperparameters import check_choice, freeze_vectors
from modelweld.families.math.event_densities import KINDS, SMALLEST_SHARE, Own, Poisson
from modelweld.families.math.start import prefer_given
from modelweld.families.observed import PerCoordinate, Search, parts
from modelweld.families.registry import register

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
