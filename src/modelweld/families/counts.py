"""Counts family: compositions over categories, v ~ Multinomial(theta), theta ~ Dirichlet(base).

First hyperparameters of `Counts`: read off values that most likely belong to one atom.

Groups of all sizes are matched in pairs, each pair votes by those of its matched values that most likely belong to one
atom, and the median counts: two groups that coincide, or are more exact than the others, have no majority. Two values
p, q of one atom, each of effective sample size n, have mean m and, on average,

    n (KL(p, m) + KL(q, m)) = half of their degrees of freedom (see `modelweld.families.math.event_densities`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.family import subtract_evidence, with_fields
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import Moves, average, register
from modelweld.families.hyperparameters import check_choice, check_sizes, freeze_number, freeze_vectors, require
from modelweld.families.math import simplex
from modelweld.families.math.event_densities import SEEN_ONCE, SMALLEST_SHARE, freedom
from modelweld.families.math.maximise import LogLikelihood
from modelweld.families.math.share_starts import pair_evenly
from modelweld.families.math.start import CLOSER, CLOSEST, FEW_DIMENSIONS, LARGEST_MATCHED
from modelweld.families.observed import Observed, Search

WORTH = (1e-2, 1e7)
"""Bounds of `between`: values that tell nothing, or that coincide to three digits."""

UNKNOWN_WORTH = 100.0
"""`between` when there are no two groups to compare: the likelihood will not move it (nothing is matched)."""

LEAST_PER_WORD = 1.0
"""Observations that a word is worth on average if `between` is to fall below its first value at all. Further down the
density of a value is no longer right (a word that is present costs too little): the likelihood has no maximum, and
everything would be explained as chance about one mean. Topics over 1,000 words of three sites slid to any floor below
the first value, and topics that share nothing were joined."""

ROWS_LOOKED_AT = 200
"""Values from which the first pseudo-counts are learned, those of the largest groups first."""

HALVINGS = 30
"""Of the interval of log n: to one part in 1e8."""


def first_worths(stack: Stack, compositions: simplex.Compositions) -> list[float]:
    """Values of `between` worth trying: two where few dimensions leave it open which pairs are copies, and a lower one.

    That is halfway down to the least that may be learned: values that most likely belong to one atom are very alike.
    """
    shares = (CLOSER, CLOSEST) if stack.values.shape[1] < FEW_DIMENSIONS else (CLOSEST,)
    matched = _match_groups(stack, compositions)
    if not matched:
        return [UNKNOWN_WORTH]
    found = []
    for q in shares:
        voters = [pairs[int(q * (len(pairs) - 1))] for pairs in matched]
        found.append(float(np.clip(np.median([_worth_of_pair(compositions, *pair) for pair in voters]), *WORTH)))
    lowest = least_worth(found[-1], stack.values.shape[1])
    return [*found, float(np.sqrt(lowest * found[-1]))] if lowest < found[-1] else found


def least_worth(first: float, D: int) -> float:
    """What `between` may fall to from its first value, for values of D words.

    Examples
    --------
    >>> least_worth(600.0, 20), least_worth(600.0, 1000)
    (20.0, 600.0)
    """
    return max(WORTH[0], min(first, WORTH[1], LEAST_PER_WORD * D))


def first_values(stack: Stack, compositions: simplex.Compositions) -> Index:
    """Values that pseudo-counts are first learned from."""
    largest = [stack.group(int(j)) for j in stack.largest(len(stack.sizes))]
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *largest])
    return np.asarray(chosen[compositions.n[chosen] > 0][:ROWS_LOOKED_AT])


def _match_groups(stack: Stack, compositions: simplex.Compositions) -> list[list[tuple[int, int]]]:
    """Of pairs of groups, values that an optimal matching of square roots puts together, the most alike first."""
    groups = [stack.group(int(j)) for j in stack.largest(len(stack.sizes))]
    groups = [g for g in (g[compositions.n[g] > 0] for g in groups) if len(g)]
    found = []
    for a, b in pair_evenly(groups):
        alike = np.sqrt(compositions.p[a]) @ np.sqrt(compositions.p[b]).T
        if max(alike.shape) > LARGEST_MATCHED:
            i, j = np.arange(len(a)), alike.argmax(1)
        else:
            i, j = scipy.optimize.linear_sum_assignment(-alike)
        order = np.argsort(-alike[i, j], kind="stable")
        found.append(list(zip(a[i][order].tolist(), b[j][order].tolist(), strict=True)))
    return found


def _worth_of_pair(compositions: simplex.Compositions, i: int, j: int) -> float:
    """`between` at which the two values differ as much as copies do on average."""
    p, q = _in_common(compositions, i, j)
    m = (p + q) / 2
    divergence = sum(
        float((r[r > simplex.ZERO] * np.log(r[r > simplex.ZERO] / m[r > simplex.ZERO])).sum()) for r in (p, q)
    )
    low, high = np.log(WORTH)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        n = float(np.exp(middle))
        expected = 0.5 * sum(_freedom(r, n, compositions.once[k] / compositions.n[k]) for r, k in ((p, i), (q, j)))
        low, high = (middle, high) if n * divergence < expected else (low, middle)
    noise = float(np.exp(-low))
    return 1 / max(noise - float(1 / compositions.n[i] + 1 / compositions.n[j]) / 2, SMALLEST_SHARE * noise)


def _in_common(compositions: simplex.Compositions, i: int, j: int) -> tuple[Array, Array]:
    """Both values over the words that both know."""
    p, q = compositions.p[i], compositions.p[j]
    if compositions.seen is not None:
        both = compositions.seen[i] * compositions.seen[j]
        p, q = (x * both / max(float((x * both).sum()), simplex.ZERO) for x in (p, q))
    return p, q


def _freedom(p: Array, n: float, once: float) -> float:
    """Degrees of freedom of one value worth n."""
    return float(freedom(n * p[p > simplex.ZERO]).sum() - freedom(np.array([n]))[0] + SEEN_ONCE * n * once)


PSEUDO_COUNTS = (1e-6, 1e4)
"""Bounds of the atoms' pseudo-counts: a word that no atom has, or one of which all have the same share to a percent."""


@register
@dataclass(frozen=True, eq=False)
class Counts(Moves, Observed):
    """Compositions over categories: topics over words, transition rows, categorical emissions; counts or probabilities.

    Parameters
    ----------
    base : array, optional
        Pseudo-counts (D,) of the atoms' Dirichlet. Starting values; read off the values if not given.
    between : float, optional
        Observations that a composition is worth, its effective sample size. One of sum one is worth `between`. One of
        counts (or one that `weight`, the number of observations behind it, makes one) of sum n is worth 1 / (1 / n +
        1 / between): sites differ by more than chance (see `modelweld.families.math.event_densities`). A starting
        value; ``numpy.inf``: they do not, and it is not learned (counts must then be sent).
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned.
    counted : bool, optional
        Whether a value of zeros and one number 1 is a single observation. If not given, it is unless all values that
        were seen sum to one: they are then probabilities. (A value that sums to one and is not whole always is.)
    least : float
        Set by `starts`: `between` does not fall below.
    typical : float
        If not zero, every observation is worth as much as one of so many: copies of a large topic differ less than
        those of a small one, by 1 + typical / between times what is chance. Zero: by the same, however many there are.

    Notes
    -----
    A weight of zero inside a value: the word is not in the site's vocabulary. Where members of an atom know different
    words, evidence and estimate are approximations (`modelweld.families.math.simplex`); otherwise they are exact for

        log p(v) = n sum_w p_w log theta_w + h,

    p = v / sum(v), n what the value is worth. A row is [n p, n, h], and with sums s, N, H and A = sum of base

        log evidence = log Gamma(A) - log Gamma(A + N) + sum_w [log Gamma(base_w + s_w) - log Gamma(base_w)] + H.

    If `between` is infinite, h is the multinomial coefficient. Otherwise h makes the slope by n right on average
    (`modelweld.families.math.event_densities`); for n p_w well above one it is that of the multinomial, with the
    Jacobian n^(D - 1) of the density of p. The continuous multinomial itself would take every word that is rare for a
    proof that sites hardly differ.

    Examples
    --------
    >>> import numpy as np
    >>> family = Counts(base=[1.0, 1.0, 2.0], between=np.inf)
    >>> rows = family.rows(np.array([[3.0, 0.0, 1.0], [2.0, 0.0, 0.0]]))
    >>> family.estimate(rows.sum(0))                                  # (1 + 5, 1 + 0, 2 + 1) / 10
    array([0.6, 0.1, 0.3])
    """

    learns = ("base", "between")
    sampled = ("base", "between")
    row_fields = ("between",)
    bounds = (PSEUDO_COUNTS, WORTH)
    specificity = 4
    moves_as = "FadingCounts"

    base: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    counted: bool | None = None
    least: float = WORTH[0]
    typical: float = 0.0

    def __post_init__(self) -> None:
        check_choice(self, "learning")
        freeze_number(self, "between", "one positive number or infinite", also=np.inf)
        freeze_number(self, "least")
        freeze_vectors(self, "base", positive=True)

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Values below zero, rows of seen words that sum to zero, sites that share hardly any words with others."""
        there = stack.seen
        values = np.where(there, stack.values, 0.0)
        wrong = (values < 0).any(1) | (there.any(1) & (values.sum(1) <= 0))
        if not wrong.any():
            return simplex.misfit_vocabulary(values, there, stack) if len(stack.sizes) > 1 and not there.all() else None
        row = int(wrong.argmax())
        if (values[row] < 0).any():
            return row, f"are not negative; found {values[row].min():g}"
        return row, "are counts or probabilities with a positive sum in every row; found a row of zeros"

    def starts(self, stack: Stack) -> list[Self]:
        """`between` from values that seem to be of one atom, and its least; `base` from the largest groups."""
        D = stack.values.shape[1]
        check_sizes(self, ("base",), D)
        counted = simplex.are_counted(stack.values, stack.weight) if self.counted is None else self.counted
        given = simplex.Compositions.of_stack(stack, counted, self.typical)
        if self.exact and np.isinf(given.n).any():
            raise InputError(
                "Counts: between=inf needs counts, but some rows are probabilities (they sum to one); send the number "
                "of observations behind them as weight, or let between be learned."
            )
        found = []
        fixed = self.between is not None
        for first in [require(self.between)] if fixed else first_worths(stack, given):
            least = least_worth(first, D)
            start = replace(self, between=first, least=least, counted=counted)
            if self.base is None:
                start = start._with_first_base(stack, given)
            found.append(replace(start, base=np.zeros(D) + np.asarray(start.base)))
        return found

    def embed(self, values: Array) -> Array:
        """Square roots of proportions: what counting adds is then about the same everywhere."""
        return np.asarray(np.sqrt(values / np.maximum(values.sum(1, keepdims=True), np.finfo(float).tiny)))

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[n p, n, h], (L, D + 2); with vocabularies that differ [n p, n, h, E, U, n A_V], (L, 2 D + 4)."""
        if variance is not None:
            self.refuse_variance("observations")
        given = simplex.Compositions.of(values, weight, self.counted, self.typical)
        n = given.effective_size(require(self.between))
        h = given.coefficient() if self.exact else given.carrier(require(self.between)) + given.measure
        plain = [n[:, None] * given.p, n[:, None], h[:, None]]
        if given.seen is None:
            return np.concatenate(plain, axis=1)
        of = simplex.vocabulary_statistics(given.p, given.seen, n, self._base)
        return np.concatenate([*plain, of.E, of.U[:, None], of.mass[:, None]], axis=1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        a, D = self._base, self._base.size
        s, N, H = rows[..., :D], rows[..., D], rows[..., D + 1]
        if rows.shape[-1] > D + 2:
            return simplex.log_evidence_of_vocabularies(self._sums(rows), a) + H
        A = a.sum()
        return np.asarray(simplex.log_rising(s, a) + scipy.special.gammaln(A) - scipy.special.gammaln(A + N) + H)

    def estimate(self, rows: Array) -> Array:
        """Posterior mean (base + s) / (A + N), which is also the mode of the logarithms of theta."""
        return self._composition(self._base + rows[..., : self._base.size], rows)

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Dirichlet, about the same estimates."""
        drawn = rng.gamma(self._base + sums[:, : self._base.size])
        return self._composition(np.maximum(drawn, np.finfo(float).tiny), sums)

    def _composition(self, theta: Array, rows: Array) -> Array:
        """Of sum one, each word by how much of it was known."""
        theta = theta / (1 + self._sums(rows).E) if rows.shape[-1] > self._base.size + 2 else theta
        return np.asarray(theta / theta.sum(-1, keepdims=True))

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """By ratios, and of as many observations."""
        moved = values * after / before
        total = moved.sum(1, keepdims=True)
        return np.asarray(moved * np.where(total > 0, values.sum(1, keepdims=True) / np.where(total > 0, total, 1), 1))

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; words that a value does not have cost nothing."""
        a, D = self._base, self._base.size
        if own.shape[1] > D + 2:
            return subtract_evidence(self, own, sums)
        total = a.sum() + sums[:, D]
        rising = simplex.log_rising_pairs(own[:, :D], a + sums[:, :D])
        return np.asarray(
            rising + scipy.special.gammaln(total) - scipy.special.gammaln(total + own[:, D, None]) + own[:, D + 1, None]
        )

    def rows_change(self, stack: Stack) -> bool:
        """Rows depend on what a value is worth, and on `base` where vocabularies differ."""
        if self.learning == "nothing":
            return False
        return not self.exact or (stack.weight is not None and bool((stack.weight == 0).any()))

    def update(self, sums: Array) -> Self:
        """Maximum likelihood of `base`, given what values are worth and where all sites know all words."""
        return super().update(sums) if sums.shape[1] == self._base.size + 2 else self

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, and `between`; where vocabularies differ `base` is learned from the values, too."""
        given = self._given(stack)
        if self.learning == "nothing" or self.tells(labels) or given.seen is None:
            return super().learn(stack, labels, sums)
        matched = simplex.MatchedCompositions(given, labels)
        return self.climb_on(matched.likelihood_of_atoms(require(self.between)), sums, between=False)

    def of_atoms(self, sums: Array) -> LogLikelihood:
        """Of logarithms of `base`."""
        D = self._base.size
        return simplex.likelihood_of_atoms(sums[:, :D], sums[:, D])

    def of_values(self, stack: Stack, labels: Index) -> LogLikelihood:
        """Of those and of the logarithm of `between`."""
        return simplex.MatchedCompositions(
            simplex.Compositions.of_stack(stack, self.counted, self.typical), labels
        ).log_likelihood

    def search(self, sums: Array, between: bool) -> Search:
        """Between the bounds; in units in which curvatures are about one."""
        D, K = self._base.size, len(sums)
        found = super().search(sums, between)
        a = np.exp(found.start[:D])
        unit = np.sqrt(
            1 + a * a * (K * scipy.special.polygamma(1, a) - scipy.special.polygamma(1, a + sums[:, :D]).sum(0))
        )
        if not between:
            return found._replace(unit=unit)
        found.low[-1] = np.log(min(self.least, WORTH[1]))
        return found._replace(unit=np.append(unit, np.sqrt(1 + 0.5 * D * K)))

    def width(self, sums: Array) -> int:
        """Number of categories."""
        return self._base.size

    def pool(self, families: Sequence[Self], share: Array) -> Self:
        """Of every number the mean; `least` is what none of them fell below."""
        return with_fields(average(families, share), least=min(family.least for family in families))

    def _with_first_base(self, stack: Stack, given: simplex.Compositions) -> Self:
        """Pseudo-counts that suit some values, each an atom of its own; those of the values' mean to start from."""
        some = first_values(stack, given)
        p, n, D = given.p[some], given.effective_size(require(self.between))[some], stack.values.shape[1]
        mean = (p.sum(0) + 1 / D) / (len(p) + 1)
        start = replace(self, base=np.clip(mean * D, *PSEUDO_COUNTS), learning="likelihood")
        found = start.update(np.column_stack([n[:, None] * p, n, np.zeros(len(n))])) if len(p) else start
        return replace(found, learning=self.learning)

    def _given(self, stack: Stack) -> simplex.Compositions:
        """Values as compositions."""
        return simplex.Compositions.of_stack(stack, self.counted, self.typical)

    def _sums(self, rows: Array) -> simplex.Sums:
        """The parts of rows of differing vocabularies."""
        D = self._base.size
        tail = rows[..., D + 2 :]
        return simplex.Sums(rows[..., :D], tail[..., :D], rows[..., D], tail[..., D], tail[..., D + 1])

    @property
    def _base(self) -> Array:
        return np.asarray(self.base, dtype=np.float64)
