"""Proportions family: values between zero and one, per coordinate, v ~ Binomial(w, p) / w, p ~ Beta."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.families.math.effective_size import effective_count
from modelweld.families.math.few_events import log_carrier, slope_of_carrier
from modelweld.families.math.maximise import ByAtom, climbed
from modelweld.families.math.start import noise_shares, total_variance
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack

PSEUDO_COUNTS = (1e-3, 1e6)
"""Bounds of the atoms' pseudo-counts: all at zero or one, or equal to three digits."""

WORTH = (1e-2, 1e8)
"""Bounds of `between`: values that tell nothing, or that coincide to four digits."""

SMALLEST_SHARE = 0.1
"""Of the first noise that is put down to differences between sites, even where sites' trials would explain all."""

LARGEST_BLOCK = 1_000_000
"""Elements of the largest temporary (values x atoms x dimensions) that `gain` makes."""


@register
@dataclass(frozen=True, eq=False)
class Proportions(Family):
    """Values between zero and one: Bernoulli features, success rates, probabilities. Coordinates are independent.

    Rows that sum to one (topics, transition rows) are no proportions in this sense: each is one draw over categories.

    Parameters
    ----------
    successes, failures : array or float, optional
        Pseudo-counts of the atoms' Beta. Starting values; what is not given is read off the values.
    between : float, optional
        `weight` is the number of trials behind a value; without weight it is not known. Sites differ beyond what their
        trials explain, as if each had its own truth from `between` trials (see
        `modelweld.families.math.effective_size`): a value is worth w = 1 / (1 / weight + 1 / between). A starting
        value; ``numpy.inf``: they do not differ, and it is not learned (trials must then be sent).
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned.

    Notes
    -----
    With l(x) = v log x + (1 - v) log(1 - x),

        log p(v) = w l(p) + h,   h = e(v, w) + e(1 - v, w) - e(1, w) - w l(v) + g(v, weight).

    A row is, per dimension, [w v, w (1 - v)], then the sum of h. With sums S, F, H and pseudo-counts a, b,

        log evidence = log B(a + S, b + F) - log B(a, b) + H.

    The carrier h is that of `modelweld.families.math.few_events`: e is half of log(w v) for many successes and rises
    more slowly with w for few, so that what is learned is right on average. g moves with no hyperparameter and makes
    the density exactly binomial where `between` is infinite; where trials are not known it is -log(v (1 - v)) - log(2
    pi) / 2, or 0 at v = 0 and 1. Sites worth 20 trials that saw 50, with p ~ Beta(2, 2), Beta(.5, .5), Beta(.5, 5) and
    Beta(.3, 10), are learned to be worth 18, 18, 19 and 31 (with Gamma functions for factorials: 17, 35, 82, endless).

    Examples
    --------
    >>> import numpy as np
    >>> family = Proportions(successes=1.0, failures=1.0, between=np.inf)
    >>> rows = family.rows(np.array([[0.5], [1.0]]), weight=np.array([[4.0], [2.0]]))      # 4 of 6 trials
    >>> family.estimate(rows.sum(0)).round(3)                                              # (1 + 4) / (2 + 6)
    array([0.625])
    """

    specificity = 3

    successes: ArrayLike | None = None
    failures: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        if self.learning not in ("likelihood", "nothing"):
            raise InputError(f"Proportions: learning is 'likelihood' or 'nothing'; found {self.learning!r}.")
        if self.between is not None:
            if np.ndim(self.between) > 0 or not self.between > 0:
                raise InputError(f"Proportions: between is one positive number or infinite; found {self.between!r}.")
            object.__setattr__(self, "between", float(self.between))
        for name in ("successes", "failures"):
            given = getattr(self, name)
            if given is None:
                continue
            value = np.atleast_1d(np.asarray(given, dtype=np.float64))
            if value.ndim > 1 or not (value > 0).all() or not np.isfinite(value).all():
                raise InputError(
                    f"Proportions: {name} must be a positive number or one per dimension; found {given!r}."
                )
            object.__setattr__(self, name, value)

    @property
    def exact(self) -> bool:
        """Whether sites differ by their trials only."""
        return self.between == np.inf

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Values below zero or above one."""
        seen = np.ones(stack.values.shape, dtype=bool) if stack.weight is None else stack.weight > 0
        off = np.where(seen, np.abs(stack.values - 0.5), 0.0)
        wrong = (off > 0.5).any(1)
        if not wrong.any():
            return None
        row = int(wrong.argmax())
        return row, f"lie between 0 and 1; found {stack.values[row, off[row].argmax()]:g}"

    def starts(self, stack: Stack) -> list[Self]:
        """All hyperparameters not given, read off arcsines of roots: their variance is 1 / (4 w), whatever p."""
        D = stack.values.shape[1]
        for name in ("successes", "failures"):
            given = getattr(self, name)
            if given is not None and given.size not in (1, D):
                raise InputError(f"Proportions: {name} has {given.size} entries but the values have {D} dimensions.")
        if self.exact and stack.weight is None:
            raise InputError(
                "Proportions: between=inf needs the number of trials behind each value; send it as weight."
            )
        seen = np.ones(stack.values.shape, dtype=bool) if stack.weight is None else stack.weight > 0
        stable = np.where(seen, np.arcsin(np.sqrt(stack.values)), 0.0)
        steady = replace(stack, values=stable, moments=None)
        origin, total = total_variance(steady, pooled=False)
        shares = [0.5] if self.exact else noise_shares(steady, total)
        own = 0.0 if stack.weight is None else float((1 / stack.weight[seen]).mean()) if seen.any() else 0.0
        mean = np.clip(np.square(np.sin(origin)), 0.01, 0.99)
        found = []
        for share in shares:
            noise = 4 * share * float(total.mean())
            between = 1 / max(noise - own, SMALLEST_SHARE * noise)
            number = np.clip(1 / (4 * (1 - share) * total), *PSEUDO_COUNTS)
            found.append(
                replace(
                    self,
                    successes=np.zeros(D) + (number * mean if self.successes is None else np.asarray(self.successes)),
                    failures=np.zeros(D)
                    + (number * (1 - mean) if self.failures is None else np.asarray(self.failures)),
                    between=between if self.between is None else self.between,
                )
            )
        return found

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[w v, w (1 - v)] side by side and the summed carrier, (L, 2 D + 1)."""
        if variance is not None:
            raise InputError("Proportions: what a value is worth is its weight (trials); it takes no variance.")
        v = values if weight is None else np.where(weight > 0, values, 0.0)
        w = effective_count(_trials(values, weight), self._between)
        h = np.where(w > 0, _carrier(v, np.where(w > 0, w, 1.0))[0] + _fixed(v, weight), 0.0)
        return np.concatenate([w * v, w * (1 - v), h.sum(-1, keepdims=True)], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        from scipy.special import gammaln

        S, F, H = _parts(rows)
        a, b = self._prior
        atoms = gammaln(a + S) - gammaln(a) + gammaln(b + F) - gammaln(b) - (gammaln(a + b + S + F) - gammaln(a + b))
        return np.asarray(atoms.sum(-1) + H[..., 0])

    def estimate(self, rows: Array) -> Array:
        """Posterior mean (a + S) / (a + b + S + F), which is also the mode of the log odds."""
        S, F, _ = _parts(rows)
        a, b = self._prior
        return np.asarray((a + S) / (a + b + S + F))

    def gain(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; totals are taken out where all values are worth the same."""
        from scipy.special import gammaln

        s, f, h = _parts(own)
        S, F, _ = _parts(sums)
        a, b = self._prior
        S, F = a + S, b + F
        base = (gammaln(S + F) - gammaln(S) - gammaln(F)).sum(-1)
        w = s + f
        alike = np.allclose(w, w[:1], rtol=1e-14, atol=0.0)
        result = np.empty((len(own), len(sums)))
        block = max(1, LARGEST_BLOCK // max(1, S.size))
        for start in range(0, len(own), block):
            part = slice(start, start + block)
            totals = gammaln(S + F + (w[0] if alike else w[part, None, :]))
            ends = gammaln(S + s[part, None, :]) + gammaln(F + f[part, None, :])
            result[part] = ends.sum(-1) - totals.sum(-1)
        return np.asarray(result + base + h)

    def rows_change(self, stack: Stack) -> bool:
        """Rows depend on what a value is worth."""
        return not self.exact and self.learning != "nothing"

    def learned(self) -> dict[str, Any]:
        """The atoms' pseudo-counts, and what a site's value is worth."""
        return {"successes": self.successes, "failures": self.failures, "between": self.between}

    def update(self, sums: Array) -> Self:
        """Maximum likelihood of the pseudo-counts, given what values are worth."""
        if self.learning == "nothing":
            return self
        S, F, _ = _parts(sums)

        def log_likelihood(x: Array) -> tuple[float, Array]:
            value, gradient, _, _ = _over_atoms(x.reshape(2, -1), S, F)
            return value, gradient.ravel()

        return self._climbed(log_likelihood, self._logarithms(S.shape[1]))

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, and `between`; that stays where no atom has two values, because then nothing tells it."""
        if not self.rows_change(stack) or len(np.unique(labels)) == len(labels):
            return self.update(sums)
        by_atom = ByAtom(labels)
        n = _trials(stack.values, stack.weight)
        v = np.where(n > 0, stack.values, 0.0)

        def log_likelihood(x: Array) -> tuple[float, Array]:
            between = float(np.exp(x[-1]))
            w = effective_count(n, between)
            seen, known = w > 0, np.where(w > 0, w, 1.0)
            value, gradient, by_S, by_F = _over_atoms(x[:-1].reshape(2, -1), by_atom(w * v), by_atom(w * (1 - v)))
            carrier, slope = _carrier(v, known)
            slope = slope + v * by_S[labels] + (1 - v) * by_F[labels]
            return value + float(carrier[seen].sum()), np.append(gradient.ravel(), (slope * w * w).sum() / between)

        start = np.append(self._logarithms(v.shape[1]), np.log(self._between))
        return self._climbed(log_likelihood, start)

    def _climbed(self, log_likelihood: Any, start: Array) -> Self:
        """The family with hyperparameters from the top: logarithms of pseudo-counts, and of between if it is there."""
        low, high = (np.full(len(start), np.log(PSEUDO_COUNTS[i])) for i in (0, 1))
        between_too = len(start) % 2 == 1
        if between_too:
            low[-1], high[-1] = np.log(WORTH)
        found = np.exp(climbed(log_likelihood, start, low, high))
        a, b = found[: len(found) // 2 * 2].reshape(2, -1)
        return replace(self, successes=a, failures=b, between=float(found[-1]) if between_too else self.between)

    @property
    def _prior(self) -> tuple[Array, Array]:
        return np.asarray(self.successes), np.asarray(self.failures)

    @property
    def _between(self) -> float:
        assert self.between is not None
        return self.between

    def _logarithms(self, D: int) -> Array:
        return np.concatenate([np.zeros(D) + np.log(x) for x in self._prior])


def _over_atoms(x: Array, S: Array, F: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by x (2, D), by S and by F (K, D).

    x: logarithms of the pseudo-counts.
    """
    from scipy.special import betaln, digamma

    a, b = np.exp(x)
    value = betaln(a + S, b + F) - betaln(a, b)
    both = digamma(a + b + S + F)
    by_S, by_F = digamma(a + S) - both, digamma(b + F) - both
    together = digamma(a + b)
    by_a, by_b = (by_S - digamma(a) + together).sum(0), (by_F - digamma(b) + together).sum(0)
    return float(value.sum()), np.stack([a * by_a, b * by_b]), by_S, by_F


def _trials(values: Array, weight: Array | None) -> Array:
    """Trials behind each value: infinite where not known."""
    return np.full(values.shape, np.inf) if weight is None else weight


def _bend(v: Array) -> Array:
    """The value's own log likelihood per trial, v log v + (1 - v) log(1 - v)."""
    from scipy.special import xlog1py, xlogy

    return np.asarray(xlogy(v, v) + xlog1py(1 - v, -v))


def _carrier(v: Array, w: Array) -> tuple[Array, Array]:
    """The part of h that depends on what values are worth, and its derivative by that."""
    bend, ones = _bend(v), np.ones_like(v)
    h = log_carrier(v, w) + log_carrier(1 - v, w) - log_carrier(ones, w) - w * bend
    slope = slope_of_carrier(v, w) + slope_of_carrier(1 - v, w) - slope_of_carrier(ones, w)
    return h, slope / w - bend


def _fixed(v: Array, weight: Array | None) -> Array:
    """The part of h that no hyperparameter moves."""
    from scipy.special import gammaln

    if weight is None:
        inside = (v > 0) & (v < 1)
        inner = np.where(inside, v, 0.5)
        return np.where(inside, -np.log(inner * (1 - inner)) - 0.5 * np.log(2 * np.pi), 0.0)
    n = np.where(weight > 0, weight, 1.0)
    choose = gammaln(n + 1) - gammaln(n * v + 1) - gammaln(n * (1 - v) + 1)
    return np.asarray(choose - _carrier(v, n)[0])


def _parts(rows: Array) -> tuple[Array, Array, Array]:
    """What stands side by side in rows (..., 2 D + 1)."""
    D = rows.shape[-1] // 2
    return rows[..., :D], rows[..., D : 2 * D], rows[..., 2 * D :]
