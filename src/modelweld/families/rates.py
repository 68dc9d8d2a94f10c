"""Rates family: values that are not negative, per coordinate: rates and counts (Poisson), or scales (Gamma)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.families.math.few_events import log_carrier, slope_of_carrier
from modelweld.families.math.maximise import ByAtom, climbed
from modelweld.families.math.start import noise_shares, total_variance
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack

WORTH = (1e-3, 1e8)
"""Bounds of what a typical value is worth in events (its squared coefficient of variation is one over that). Beyond the
upper one values coincide for all purposes, and rounding of the evidence would show."""

CONCENTRATIONS = (1e-3, 1e8)
"""Bounds of the atoms' concentration: atoms over a thousand orders of magnitude, or equal to four digits."""

SMALLEST_SHARE = 0.1
"""Of the first noise that is put down to differences between sites, even where sites' own errors would explain all."""

UNSEEN_EVENTS = 1e-3
"""Where no event was ever seen the likelihood wants a mean of zero; at this many expected events it is as likely to a
thousandth of a nat."""

LARGEST_BLOCK = 1_000_000
"""Elements of the largest temporary (values x atoms x dimensions) that `gain` makes."""


class Own(NamedTuple):
    """What values are worth: 1 / worth = own + scale / between, where they are seen."""

    seen: Array
    own: Array
    scale: Array

    def worth(self, between: Array) -> Array:
        """Exposures or shapes (N, D); zero where a value was not seen."""
        return np.asarray(self.seen / np.where(self.seen > 0, self.own + self.scale / between, 1.0))


@register
@dataclass(frozen=True, eq=False)
class Rates(Family):
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
        (see `modelweld.families.math.effective_size`). A starting value; ``numpy.inf``: they do not, and it is not
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
    `modelweld.families.math.few_events` says why. (Sites worth 8 intervals that observed 30, with 5, 0.5, 0.1 and 0.05
    events in each, are learned to be worth 7.9, 7.7, 6.8 and 8.0; with Gamma functions instead 8.2, 11, 26 and 70.)
    g moves with no hyperparameter and makes the density exactly Poisson where `between` is infinite: g = log[y^y e^-y
    / y!] - e(v, weight) with y = weight v. Where the exposure is not known, g = -log v - log(2 pi) / 2, or 0 at v = 0.

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

    specificity = 2

    kind: Literal["poisson", "gamma"] = "poisson"
    shape: float | None = None
    mean: ArrayLike | None = None
    concentration: ArrayLike | None = None
    between: ArrayLike | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        if self.kind not in ("poisson", "gamma"):
            raise InputError(f"Rates: kind is 'poisson' or 'gamma'; found {self.kind!r}.")
        if self.learning not in ("likelihood", "nothing"):
            raise InputError(f"Rates: learning is 'likelihood' or 'nothing'; found {self.learning!r}.")
        if self.shape is not None and not (self.kind == "gamma" and 0 < self.shape < np.inf):
            raise InputError(f"Rates: shape is a positive number and belongs to kind='gamma'; found {self.shape!r}.")
        for name in ("mean", "concentration", "between"):
            given = getattr(self, name)
            if given is None:
                continue
            value = np.atleast_1d(np.asarray(given, dtype=np.float64))
            infinite = name == "between" and bool((value == np.inf).all())
            if value.ndim > 1 or not (value > 0).all() or not (infinite or np.isfinite(value).all()):
                raise InputError(
                    f"Rates: {name} must be a positive number or one per dimension"
                    f"{' (or infinite for all of them)' if name == 'between' else ''}; found {given!r}."
                )
            object.__setattr__(self, name, value)
        if self.exact and self.kind == "gamma" and self.shape is None:
            raise InputError("Rates: kind 'gamma' with between=inf needs a known shape, else values have no scatter.")

    @property
    def exact(self) -> bool:
        """Whether sites differ by their own errors only."""
        return self.between is not None and bool(np.isinf(np.asarray(self.between)).all())

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Negative values, and zeros where relative errors are constant."""
        seen = np.ones(stack.values.shape, dtype=bool) if stack.weight is None else stack.weight > 0
        smallest = np.where(seen, stack.values, np.inf).min(1, initial=np.inf)
        wrong = smallest < 0 if self.kind == "poisson" else smallest <= 0
        if not wrong.any():
            return None
        row = int(wrong.argmax())
        return row, f"are {'not negative' if self.kind == 'poisson' else 'positive'}; found {smallest[row]:g}"

    def starts(self, stack: Stack) -> list[Self]:
        """All hyperparameters not given, free of units, read off roots (Poisson) or logarithms (Gamma) of the values.

        Poisson: the root of a value has variance 1 / (4 w), whatever the rate. Gamma: its logarithm 1 / k.
        """
        D = stack.values.shape[1]
        for name in ("mean", "concentration", "between"):
            given = getattr(self, name)
            if given is not None and given.size not in (1, D):
                raise InputError(f"Rates: {name} has {given.size} entries but the values have {D} dimensions.")
        seen = np.ones(stack.values.shape, dtype=bool) if stack.weight is None else stack.weight > 0
        poisson = self.kind == "poisson"
        stable = np.sqrt(stack.values) if poisson else np.log(np.where(seen, stack.values, 1.0))
        steady = replace(stack, values=np.where(seen, stable, 0.0), moments=None)
        origin, total = total_variance(steady, pooled=False)
        worth_of_variance = 4.0 if poisson else 1.0
        shares = [0.5] if self.exact else noise_shares(steady, total)
        typical = np.square(origin) + total if poisson else np.exp(origin)
        own = self._own(stack.values, stack.weight)
        typical_own = np.where(seen, own.own, 0.0).sum(0) / np.maximum(seen.sum(0), 1)
        typical_scale = np.where(seen, own.scale, 0.0).sum(0) / np.maximum(seen.sum(0), 1)
        found = []
        for share in shares:
            noise = share * total * worth_of_variance
            between = np.maximum(typical_scale, SMALLEST_SHARE) / np.maximum(
                noise - typical_own, SMALLEST_SHARE * noise
            )
            relative = (1 - share) * total * (4.0 / typical if poisson else 1.0)
            found.append(
                replace(
                    self,
                    mean=np.zeros(D) + (typical if self.mean is None else np.asarray(self.mean)),
                    concentration=np.zeros(D) + _given_or(self.concentration, np.clip(1 / relative, *CONCENTRATIONS)),
                    between=np.zeros(D) + _given_or(self.between, between),
                )
            )
        return found

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[p, r] side by side and the summed carrier, (L, 2 D + 1)."""
        if variance is not None:
            raise InputError("Rates: what a value is worth is its weight (exposure); it takes no variance.")
        values = values if weight is None else np.where(weight > 0, values, 0.0)
        own = self._own(values, weight)
        w = own.worth(np.asarray(self.between))
        carrier, _ = self._carrier(values, w)
        fixed = np.where(own.seen > 0, self._fixed(values, weight), 0.0)
        p, r = (w * values, w) if self.kind == "poisson" else (w, w * values)
        return np.concatenate([p, r, (carrier + fixed).sum(-1, keepdims=True)], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        from scipy.special import gammaln

        P, R, H = _parts(rows)
        a, b = self._prior
        atoms = gammaln(a + P) - gammaln(a) - a * np.log1p(R / b) - P * np.log(b + R)
        return np.asarray(atoms.sum(-1) + H[..., 0])

    def estimate(self, rows: Array) -> Array:
        """Mode of log theta: (a + P) / (b + R) for rates, its inverse for scales."""
        P, R, _ = _parts(rows)
        a, b = self._prior
        rate = (a + P) / (b + R)
        return np.asarray(rate if self.kind == "poisson" else 1 / rate)

    def gain(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; what depends on atoms only is taken out where all values are worth the same."""
        from scipy.special import gammaln

        p, r, h = _parts(own)
        P, R, _ = _parts(sums)
        a, b = self._prior
        P, R = a + P, b + R
        base = (P * np.log(R) - gammaln(P)).sum(-1)
        result = np.empty((len(own), len(sums)))
        worth = r if self.kind == "poisson" else p
        alike = bool((worth == worth[:1]).all())
        block = max(1, LARGEST_BLOCK // max(1, P.size))
        for start in range(0, len(own), block):
            part = slice(start, start + block)
            if alike and self.kind == "poisson":
                logs = np.log(R + r[0])
                terms = gammaln(P + p[part, None, :]).sum(-1) - p[part] @ logs.T - (P * logs).sum(-1)
            elif alike:
                shapes = P + p[0]
                terms = gammaln(shapes).sum(-1) - (shapes * np.log(R + r[part, None, :])).sum(-1)
            else:
                shapes = P + p[part, None, :]
                terms = (gammaln(shapes) - shapes * np.log(R + r[part, None, :])).sum(-1)
            result[part] = terms
        return np.asarray(result + base + h)

    def rows_change(self, stack: Stack) -> bool:
        """Rows depend on what a value is worth."""
        return not self.exact and self.learning != "nothing"

    def learned(self) -> dict[str, Any]:
        """Mean and concentration of the atoms, and what a site's value is worth."""
        return {"mean": self.mean, "concentration": self.concentration, "between": self.between}

    def update(self, sums: Array) -> Self:
        """Maximum likelihood of mean and concentration, given what values are worth."""
        if self.learning == "nothing":
            return self
        P, R, _ = _parts(sums)

        def log_likelihood(x: Array) -> tuple[float, Array]:
            value, gradient, _, _ = _over_atoms(x.reshape(2, -1), P, R)
            return value, gradient.ravel()

        start, low, high = self._logarithms(P, R)
        found = climbed(log_likelihood, start[:2].ravel(), low[:2].ravel(), high[:2].ravel())
        return self._with(*found.reshape(2, -1))

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, and `between`; that stays where no atom has two values, because then nothing tells it."""
        if not self.rows_change(stack) or len(np.unique(labels)) == len(labels):
            return self.update(sums)
        by_atom, values = ByAtom(labels), stack.values
        own, poisson = self._own(values, stack.weight), self.kind == "poisson"

        def log_likelihood(x: Array) -> tuple[float, Array]:
            x = x.reshape(3, -1)
            w = own.worth(np.exp(x[2]))
            carrier, slope = self._carrier(values, w)
            by_worth, by_value = by_atom(w), by_atom(w * values)
            value, gradient, dP, dR = _over_atoms(x[:2], *((by_value, by_worth) if poisson else (by_worth, by_value)))
            dP, dR = dP[labels], dR[labels]
            slope = slope + (dP * values + dR if poisson else dP + dR * values)
            raised = (slope * w * w * own.scale).sum(0) * np.exp(-x[2])
            return value + float(carrier.sum()), np.vstack([gradient, raised]).ravel()

        P, R, _ = _parts(sums)
        start, low, high = self._logarithms(P, R)
        return self._with(*climbed(log_likelihood, start.ravel(), low.ravel(), high.ravel()).reshape(3, -1))

    def _own(self, values: Array, weight: Array | None) -> Own:
        """What sites know of the worth of their values."""
        ones = np.ones_like(values)
        if (
            weight is None
        ):  # one unit of a known shape, or of exposure if that is all there is; else not known: infinite
            known = 1.0 / self.shape if self.shape is not None else float(self.exact)
            return Own(ones, known * ones, ones)
        seen = (weight > 0).astype(np.float64)
        inverse = 1.0 / np.where(weight > 0, weight, 1.0)
        if self.kind == "gamma" and self.shape is None:
            return Own(seen, 0.0 * ones, inverse)
        return Own(seen, inverse / (self.shape or 1.0), ones)

    def _carrier(self, values: Array, w: Array) -> tuple[Array, Array]:
        """The part of h that depends on what values are worth, and its derivative by that; zero where not seen."""
        from scipy.special import digamma, gammaln, xlogy

        seen, known = w > 0, np.where(w > 0, w, 1.0)
        if self.kind == "poisson":
            bend = xlogy(values, values) - values
            h, slope = log_carrier(values, known) - known * bend, slope_of_carrier(values, known) / known - bend
        else:
            log_v = np.log(np.where(seen, values, 1.0))
            h = known * np.log(known) + (known - 1) * log_v - gammaln(known)
            slope = np.log(known) + 1 + log_v - digamma(known)
        return np.where(seen, h, 0.0), np.where(seen, slope, 0.0)

    def _fixed(self, values: Array, weight: Array | None) -> Array:
        """The part of h that no hyperparameter moves."""
        from scipy.special import gammaln, xlogy

        if self.kind == "gamma":
            return np.zeros_like(values)
        if weight is None and not self.exact:
            return np.where(values > 0, -np.log(np.where(values > 0, values, 1.0)) - 0.5 * np.log(2 * np.pi), 0.0)
        known = np.ones_like(values) if weight is None else np.where(weight > 0, weight, 1.0)
        y = known * values
        return np.asarray(xlogy(y, y) - y - gammaln(y + 1) - log_carrier(values, known))

    @property
    def _prior(self) -> tuple[Array, Array]:
        """Shape and rate of the Gamma that rates, or inverses of scales, come from."""
        mean, c = np.asarray(self.mean), np.asarray(self.concentration)
        return c, c / mean if self.kind == "poisson" else c * mean

    def _logarithms(self, P: Array, R: Array) -> tuple[Array, Array, Array]:
        """Logarithms (3, D) of the prior's mean, of the concentration and of between, and their bounds."""
        D = P.shape[1]
        a, b = self._prior
        start = np.log([np.zeros(D) + x for x in (a / b, a, np.asarray(self.between))])
        events, exposure = P.sum(0), np.where(R.sum(0) > 0, R.sum(0), 1.0)
        rates = P / np.where(R > 0, R, 1.0)
        smallest = np.where(R > 0, rates, np.inf).min(0, initial=np.inf)
        least = np.maximum(np.where(np.isfinite(smallest), smallest, 0.0), UNSEEN_EVENTS / exposure)
        most = np.maximum(rates.max(0, initial=0.0), least)
        unit = np.maximum(events, UNSEEN_EVENTS) / exposure if self.kind == "poisson" else np.ones(D)
        low = np.log([least, np.full(D, CONCENTRATIONS[0]), WORTH[0] / unit])
        high = np.log([most, np.full(D, CONCENTRATIONS[1]), WORTH[1] / unit])
        return start, low, high

    def _with(self, mean: Array, concentration: Array, between: Array | None = None) -> Self:
        """The same family with hyperparameters of these logarithms, the mean being that of the prior."""
        return replace(
            self,
            mean=np.exp(mean if self.kind == "poisson" else -mean),
            concentration=np.exp(concentration),
            between=self.between if between is None else np.exp(between),
        )


def _over_atoms(x: Array, P: Array, R: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by x (2, D), by P and by R (K, D).

    x: logarithms of the mean and the shape of the atoms' Gamma.
    """
    from scipy.special import digamma, gammaln

    a = np.exp(x[1])
    b = np.exp(x[1] - x[0])
    value = gammaln(a + P) - gammaln(a) - a * np.log1p(R / b) - P * np.log(b + R)
    by_P = digamma(a + P) - np.log(b + R)
    by_R = -(a + P) / (b + R)
    by_a = (by_P - digamma(a) + np.log(b)).sum(0)
    by_b = (a / b + by_R).sum(0)
    return float(value.sum()), np.stack([-b * by_b, a * by_a + b * by_b]), by_P, by_R


def _parts(rows: Array) -> tuple[Array, Array, Array]:
    """What stands side by side in rows (..., 2 D + 1)."""
    D = rows.shape[-1] // 2
    return rows[..., :D], rows[..., D : 2 * D], rows[..., 2 * D :]


def _given_or(given: ArrayLike | None, found: Array) -> Array:
    return found if given is None else np.asarray(given)
