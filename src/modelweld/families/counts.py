"""Counts family: rows over categories, v ~ Multinomial(theta), theta ~ Dirichlet(base)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.errors import InputError
from modelweld.families.base import Family, summed
from modelweld.families.math import vocabulary
from modelweld.families.math.counts_start import WORTH, first_worths
from modelweld.families.math.log_rising import log_rising, log_rising_pairs
from modelweld.families.math.maximise import ByAtom, climbed
from modelweld.families.math.simplex import Rows, are_counted
from modelweld.families.math.vocabulary import Sums
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, group_of_rows

PSEUDO_COUNTS = (1e-6, 1e4)
"""Bounds of the atoms' pseudo-counts: a word that no atom has, or one of which all have the same share to a percent."""

LEAST_SHARE = 0.5
"""Of the first `between`: it does not fall below. Far below, where most words are worth less than one observation, the
density of a row is no longer right (a word that is present costs too little), and everything would be explained as
chance about one mean. Rows that seem to be copies give a first `between` within a factor of 1.6 in simulated sets of 5
to 1,000 words."""

LEAST_SHARED = 0.1
"""Of a site's mass, on words that another site knows. With less, its rows would be matched by the prior alone: where
nothing is shared, every atom predicts a row equally well."""

ROWS_LOOKED_AT = 200
"""Rows from which the first pseudo-counts are learned, those of the largest groups first."""

LARGEST_BLOCK = 500_000
"""Elements of the largest temporary (values x atoms x dimensions) that `gain` makes."""


@register
@dataclass(frozen=True, eq=False)
class Counts(Family):
    """Rows over categories: topics over words, transition rows, categorical emissions; counts or probabilities.

    Parameters
    ----------
    base : array, optional
        Pseudo-counts (D,) of the atoms' Dirichlet. Starting values; read off the values if not given.
    between : float, optional
        What a row of probabilities is worth, in observations. A row that sums to one is worth `between`. A row of
        counts (or one that `weight`, the number of observations behind it, makes one) of sum n is worth 1 / (1 / n +
        1 / between): sites differ by more than chance (see `modelweld.families.math.effective_size`). A starting value;
        ``numpy.inf``: they do not, and it is not learned (counts must then be sent).
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned.
    counted : bool, optional
        Whether a row of zeros and one number 1 is a single observation. If not given, it is unless all rows that were
        seen sum to one: they are then probabilities. (A row that sums to one and is not whole always is.)
    least : float
        Set by `starts`: `between` does not fall below.

    Notes
    -----
    A weight of zero inside a row: the word is not in the site's vocabulary. Where members of an atom know different
    words, evidence and estimate are approximations (`modelweld.families.math.vocabulary`); otherwise they are exact for

        log p(v) = n sum_w p_w log theta_w + h,

    p = v / sum(v), n what the row is worth. A row is [n p, n, h], and with sums s, N, H and A = sum of base

        log evidence = log Gamma(A) - log Gamma(A + N) + sum_w [log Gamma(base_w + s_w) - log Gamma(base_w)] + H.

    If `between` is infinite, h is the multinomial coefficient. Otherwise h makes the slope by n right on average
    (`modelweld.families.math.freedom`); for n p_w well above one it is that of the multinomial, with the Jacobian n^(D
    - 1) of the density of p. The continuous multinomial itself would take every word that is rare for a proof that
    sites hardly differ.

    Examples
    --------
    >>> import numpy as np
    >>> family = Counts(base=[1.0, 1.0, 2.0], between=np.inf)
    >>> rows = family.rows(np.array([[3.0, 0.0, 1.0], [2.0, 0.0, 0.0]]))
    >>> family.estimate(rows.sum(0))                                  # (1 + 5, 1 + 0, 2 + 1) / 10
    array([0.6, 0.1, 0.3])
    """

    specificity = 4

    base: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    counted: bool | None = None
    least: float = WORTH[0]

    def __post_init__(self) -> None:
        if self.learning not in ("likelihood", "nothing"):
            raise InputError(f"Counts: learning is 'likelihood' or 'nothing'; found {self.learning!r}.")
        if self.between is not None:
            if np.ndim(self.between) > 0 or not self.between > 0:
                raise InputError(f"Counts: between is one positive number or infinite; found {self.between!r}.")
            object.__setattr__(self, "between", float(self.between))
        if self.base is not None:
            base = np.asarray(self.base, dtype=np.float64)
            if base.ndim > 1 or not (base > 0).all() or not np.isfinite(base).all():
                raise InputError(f"Counts: base must be a positive number or one per category; found {self.base!r}.")
            object.__setattr__(self, "base", base)

    @property
    def exact(self) -> bool:
        """Whether sites differ by chance only."""
        return self.between == np.inf

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Values below zero, rows of seen words that sum to zero, sites that share hardly any words with others."""
        seen = np.ones(stack.values.shape, dtype=bool) if stack.weight is None else stack.weight > 0
        values = np.where(seen, stack.values, 0.0)
        wrong = (values < 0).any(1) | (seen.any(1) & (values.sum(1) <= 0))
        if not wrong.any():
            return _strange(values, seen, stack) if len(stack.sizes) > 1 and not seen.all() else None
        row = int(wrong.argmax())
        if (values[row] < 0).any():
            return row, f"are not negative; found {values[row].min():g}"
        return row, "are counts or probabilities with a positive sum in every row; found a row of zeros"

    def starts(self, stack: Stack) -> list[Self]:
        """`between` from rows that seem to be copies, `base` from rows of the largest groups, each for itself."""
        D = stack.values.shape[1]
        if self.base is not None and np.size(self.base) not in (1, D):
            raise InputError(f"Counts: base has {np.size(self.base)} entries but the values have {D} categories.")
        counted = are_counted(stack.values, stack.weight) if self.counted is None else self.counted
        rows = Rows.of_stack(stack, counted)
        if self.exact and np.isinf(rows.n).any():
            raise InputError(
                "Counts: between=inf needs counts, but some rows are probabilities (they sum to one); send the number "
                "of observations behind them as weight, or let between be learned."
            )
        found = []
        for between in first_worths(stack, rows) if self.between is None else [self.between]:
            least = max(WORTH[0], LEAST_SHARE * min(between, WORTH[1]))
            start = replace(self, between=between, least=least, counted=counted)
            if self.base is None:
                start = start._with_first_base(stack, rows)
            found.append(replace(start, base=np.zeros(D) + np.asarray(start.base)))
        return found

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[n p, n, h], (L, D + 2); with vocabularies that differ [n p, n, h, E, U, n A_V], (L, 2 D + 4)."""
        if variance is not None:
            raise InputError("Counts: what a row is worth is its weight (observations); it takes no variance.")
        rows = Rows.of(values, weight, self.counted)
        n = rows.worth(self._between)
        h = rows.coefficient() if self.exact else rows.carrier(self._between) + rows.measure
        plain = [n[:, None] * rows.p, n[:, None], h[:, None]]
        if rows.seen is None:
            return np.concatenate(plain, axis=1)
        of = vocabulary.statistics(rows.p, rows.seen, n, self._base)
        return np.concatenate([*plain, of.E, of.U[:, None], of.mass[:, None]], axis=1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        from scipy.special import gammaln

        a, D = self._base, self._base.size
        s, N, H = rows[..., :D], rows[..., D], rows[..., D + 1]
        if rows.shape[-1] > D + 2:
            return vocabulary.log_evidence(self._sums(rows), a) + H
        A = a.sum()
        return np.asarray(log_rising(s, a) + gammaln(A) - gammaln(A + N) + H)

    def estimate(self, rows: Array) -> Array:
        """Posterior mean (base + s) / (A + N), which is also the mode of the logarithms of theta."""
        a, D = self._base, self._base.size
        theta = a + rows[..., :D]
        if rows.shape[-1] > D + 2:
            theta = theta / (1 + self._sums(rows).E)
        return np.asarray(theta / theta.sum(-1, keepdims=True))

    def gain(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; words that a row does not have cost nothing."""
        from scipy.special import gammaln

        a, D = self._base, self._base.size
        if own.shape[1] > D + 2:
            block = max(1, LARGEST_BLOCK // max(1, sums.size))
            parts = [super(Counts, self).gain(own[i : i + block], sums) for i in range(0, len(own), block)]
            return np.concatenate(parts) if parts else np.zeros((0, len(sums)))
        total = a.sum() + sums[:, D]
        rising = log_rising_pairs(own[:, :D], a + sums[:, :D])
        return np.asarray(rising + gammaln(total) - gammaln(total + own[:, D, None]) + own[:, D + 1, None])

    def rows_change(self, stack: Stack) -> bool:
        """Rows depend on what a value is worth, and on `base` where vocabularies differ."""
        if self.learning == "nothing":
            return False
        return not self.exact or (stack.weight is not None and bool((stack.weight == 0).any()))

    def learned(self) -> dict[str, Any]:
        """The atoms' pseudo-counts, and what a site's row is worth."""
        return {"base": self.base, "between": self.between}

    def update(self, sums: Array) -> Self:
        """Maximum likelihood of `base`, given what rows are worth and where all sites know all words."""
        D = self._base.size
        if self.learning == "nothing" or sums.shape[1] > D + 2:
            return self
        S, N = sums[:, :D], sums[:, D]

        def log_likelihood(x: Array) -> tuple[float, Array]:
            value, by_a, _, _ = _over_atoms(np.exp(x), S, N)
            return value, np.exp(x) * by_a

        return self._climbed(log_likelihood, np.log(self._base), S)

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, and `between`; that stays where no atom has two values, because then nothing tells it."""
        if not self.rows_change(stack):
            return self.update(sums)
        rows, by_atom, D = Rows.of_stack(stack, self.counted), ByAtom(labels), self._base.size
        tell = not self.exact and len(np.unique(labels)) < len(labels)
        together = by_atom(rows.p) if len(np.unique(rows.n)) == 1 else None  # rows of equal n need be added only once

        def added(n: Array) -> Array:
            return by_atom(rows.p, n) if together is None else together * n[0]

        def log_likelihood(x: Array) -> tuple[float, Array]:
            a = np.exp(x[:D])
            between = float(np.exp(x[D])) if tell else self._between
            n = rows.worth(between)
            if rows.seen is not None:
                of = vocabulary.statistics(rows.p, rows.seen, n, a)
                atoms = Sums(*(by_atom(part) for part in of))
                value = float(vocabulary.log_evidence(atoms, a).sum())
                by_a, by_row = vocabulary.slopes(rows.p, rows.seen, n, a, labels, atoms)
                by_n = float((by_row * n * n).sum())
            else:
                S = added(n)
                value, by_a, by_s, by_N = _over_atoms(a, S, by_atom(n))
                by_n = float((by_s * added(n * n)).sum() + (by_N * by_atom(n * n)).sum()) if tell else 0.0
            if not tell:
                return value, a * by_a
            carrier, slope = rows.total_carrier(between)
            return value + carrier, np.append(a * by_a, by_n / between + slope)

        start = np.log(self._base)
        return self._climbed(log_likelihood, np.append(start, np.log(self._between)) if tell else start, sums[:, :D])

    def _climbed(self, log_likelihood: Callable[[Array], tuple[float, Array]], start: Array, S: Array) -> Self:
        """The family with hyperparameters from the top: logarithms of `base`, and of `between` if it is there.

        Each coordinate is measured in units in which its curvature is about one.
        """
        from scipy.special import polygamma

        D = self._base.size
        a = np.exp(start[:D])
        units = np.ones(len(start))
        units[:D] = np.sqrt(1 + a * a * (len(S) * polygamma(1, a) - polygamma(1, a + S).sum(0)))
        units[D:] = np.sqrt(1 + 0.5 * D * len(S))

        def measured(x: Array) -> tuple[float, Array]:
            value, gradient = log_likelihood(x / units)
            return value, gradient / units

        low, high = (np.full(len(start), np.log(bound)) for bound in PSEUDO_COUNTS)
        low[D:], high[D:] = np.log((self.least, WORTH[1]))
        found = np.exp(climbed(measured, start * units, low * units, high * units) / units)
        return replace(self, base=found[:D], between=float(found[D]) if len(found) > D else self.between)

    def _with_first_base(self, stack: Stack, rows: Rows) -> Self:
        """Pseudo-counts that suit some rows, each an atom of its own; those of the values' mean to start from."""
        largest = [stack.group(int(j)) for j in stack.largest(len(stack.sizes))]
        chosen = np.concatenate([np.zeros(0, dtype=np.int64), *largest])
        chosen = chosen[rows.n[chosen] > 0][:ROWS_LOOKED_AT]
        D = stack.values.shape[1]
        some = rows.p[chosen]
        mean = (some.sum(0) + 1 / D) / (len(some) + 1)
        n = rows.worth(self._between)[chosen]
        start = replace(self, base=np.clip(mean * D, *PSEUDO_COUNTS), learning="likelihood")
        found = start.update(np.column_stack([n[:, None] * some, n, np.zeros(len(n))])) if len(some) else start
        return replace(found, learning=self.learning)

    def _sums(self, rows: Array) -> Sums:
        """The parts of rows of differing vocabularies."""
        D = self._base.size
        tail = rows[..., D + 2 :]
        return Sums(rows[..., :D], tail[..., :D], rows[..., D], tail[..., D], tail[..., D + 1])

    @property
    def _base(self) -> Array:
        return np.asarray(self.base, dtype=np.float64)

    @property
    def _between(self) -> float:
        assert self.between is not None
        return self.between


def _strange(values: Array, seen: NDArray[np.bool_], stack: Stack) -> tuple[int, str] | None:
    """The first row of a site that has little of its mass on words that another site knows too."""
    group = group_of_rows(stack.offsets)
    known = summed(seen.astype(np.float64), group, len(stack.sizes)) > 0
    elsewhere = known.sum(0) - known > 0
    mass = summed(values / np.where(seen.any(1), values.sum(1), 1.0)[:, None], group, len(stack.sizes))
    shared = (mass * elsewhere).sum(1) / np.where(known.any(1), mass.sum(1), 1.0)
    strange = known.any(1) & (shared < LEAST_SHARED)
    if not strange.any():
        return None
    row = int(np.flatnonzero(strange[group] & seen.any(1))[0])
    return row, (
        f"have at least {LEAST_SHARED:.0%} of a site's mass on words that another site knows; found "
        f"{shared[group[row]]:.1%}, so that there is nothing to compare"
    )


def _over_atoms(a: Array, S: Array, N: Array) -> tuple[float, Array, Array, Array]:
    """Sum over atoms of log evidences without carriers; gradients by a (D,), by S (K, D) and by N (K,)."""
    from scipy.special import digamma, gammaln

    A, K = a.sum(), len(S)
    by_S, by_N = digamma(a + S), -digamma(A + N)
    value = float(log_rising(S, a).sum() + (gammaln(A) - gammaln(A + N)).sum())
    by_a = by_S.sum(0) - K * digamma(a) + K * digamma(A) + by_N.sum()
    return value, by_a, by_S, by_N
