"""Scatter family: covariances S ~ Wishart(n, Sigma / n), Sigma ~ inverse Wishart(freedom, scale).

Moments family: a mean and a covariance, taken for those of n independent points; n is the weight, and may be small.

For points x ~ N(theta, Sigma) with mean m and covariance C (about m, divided by n)

    sum log N(x | theta, Sigma) = -n/2 (D log 2 pi + log|Sigma| + tr Sigma^-1 [C + (m - theta)(m - theta)']),

in which n may be any positive number: the n-th power of what one point would say. In the terms of
`modelweld.families.wishart.evidence`, power and weight are both n, and the carrier is -n D/2 log 2 pi.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import isqrt
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import ChecksValues, Family, HasStarts, ValueLearner, with_fields
from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack, usable_variance
from modelweld.errors import InputError
from modelweld.families.capabilities import Embeds, NamesHyperparameters, Sampled, first_row, register
from modelweld.families.hyperparameters import check_choice, freeze_number, freeze_vectors, require
from modelweld.families.math.start import prefer_given
from modelweld.families.wishart.evidence import (
    SPARE,
    Belief,
    Free,
    Matched,
    Points,
    Sums,
    first_belief,
    first_between,
    log_det,
    log_evidence,
    maximise,
    posterior,
)

ROUNDING = 1e-8
"""Of a covariance, in units of its deviations: differences from its transpose, and eigenvalues, below it say
nothing."""


def dimensions(width: int) -> int:
    """D of D + D D columns, a mean and its covariance side by side."""
    return (isqrt(1 + 4 * width) - 1) // 2


def counts(weight: Array | None, values: Array, unknown: float = np.inf) -> Array:
    """Numbers of points (L,): infinite where they are not known, zero where any entry was not seen."""
    return np.full(len(values), unknown) if weight is None else np.asarray(weight.min(1))


def count_as_known(weight: Array | None, values: Array, D: int) -> Array:
    """1 where a covariance of size D has enough points to count (L,)."""
    return (counts(weight, values) >= D + SPARE).astype(np.float64)


def log_covariances(flat: Array) -> Array:
    """Upper triangles (L, D (D + 1) / 2) of the matrices' logarithms; small eigenvalues count as ROUNDING."""
    D = isqrt(flat.shape[1])
    values, vectors = np.linalg.eigh(flat.reshape(-1, D, D))
    least = np.maximum(ROUNDING * values[:, -1:], np.finfo(float).tiny)
    logs = (vectors * np.log(np.maximum(values, least))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return np.asarray(logs[(slice(None), *np.triu_indices(D))])


def misfit_beside(stack: Stack) -> tuple[int, str] | None:
    """Rows whose entries are known unequally well."""
    if stack.variance is not None:
        return 0, "come without variance; send `weight`, the number of points"
    if stack.weight is None:
        return None
    low, high = stack.weight.min(1), stack.weight.max(1)
    row = first_row((low != high) & (high > 0))
    if row is None:
        return None
    return row, f"have the same weight in all entries of a row (points); found {low[row]:g} to {high[row]:g}"


def misfit_covariances(flat: Array, known: Array) -> tuple[int, str] | None:
    """The first of the covariances (L, D D) that count which is not symmetric, or not positive definite."""
    D = isqrt(flat.shape[1])
    counting = np.flatnonzero(known)
    matrices = flat[counting].reshape(-1, D, D)
    variances = np.einsum("lii->li", matrices)
    bad = first_row((variances <= 0).any(1))
    found = None if bad is None else (bad, f"have a positive diagonal; found {variances[bad].min():g}")
    if found is None:
        words = "are symmetric matrices", "are positive definite matrices; found a smallest eigenvalue of"
        least = D * np.finfo(float).eps
        found = misfit_matrices(matrices, np.sqrt(variances), (ROUNDING, least), words)
    return found and (int(counting[found[0]]), found[1])


def misfit_matrices(
    matrices: Array, deviations: Array, limits: tuple[float, float], words: tuple[str, str]
) -> tuple[int, str] | None:
    """The first of matrices (L, D, D), in units of deviations (L, D), that is less symmetric or lower than `limits`."""
    scaled = matrices / (deviations[:, :, None] * deviations[:, None, :])
    turned = np.swapaxes(scaled, 1, 2)
    skew = np.abs(scaled - turned)
    row = first_row(skew.max((1, 2), initial=0.0) > limits[0])
    if row is not None:
        i, j = sorted(map(int, np.unravel_index(skew[row].argmax(), skew[row].shape)))
        pair = f"{matrices[row, i, j]:g} at ({i}, {j}) and {matrices[row, j, i]:g} at ({j}, {i})"
        return row, f"{words[0]}; found {pair}"
    row = first_row(np.linalg.eigvalsh((scaled + turned) / 2)[:, 0] <= limits[1])
    return None if row is None else (row, f"{words[1]} {float(np.linalg.eigvalsh(matrices[row])[0]):g}")


SYMMETRY_ROUNDING = 1e-6
"""Of the deviations of all points: a covariance less symmetric, or more negative, than this has not been rounded (to
single precision, at worst) but is wrong."""


def parts(values: Array) -> tuple[Array, Array]:
    """Means (L, D) and covariances (L, D, D), these made symmetric."""
    D = dimensions(values.shape[1])
    matrices = values[:, D:].reshape(-1, D, D)
    return values[:, :D], (matrices + np.swapaxes(matrices, 1, 2)) / 2


def all_points(stack: Stack) -> tuple[Array, Array]:
    """Mean (D,) and variances (D,) of all points of all values; positive even when they coincide."""
    n = counts(stack.weight, stack.values, unknown=1.0)
    share = n / max(n.sum(), np.finfo(float).tiny)
    means, covariances = parts(stack.values)
    origin = share @ means
    within = np.maximum(np.einsum("lii->li", covariances), 0.0)
    return origin, usable_variance(origin, share @ (within + np.square(means - origin)), means, pooled=False)


def not_negative(matrices: Array) -> Array:
    """The same symmetric matrices (L, D, D) with zero for eigenvalues that rounding has made negative.

    Those of the correlations: channels in small units must not be lost beside those in large ones.
    """
    variances = np.einsum("lii->li", matrices)
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
    unit = deviations[:, :, None] * deviations[:, None, :]
    values, vectors = np.linalg.eigh(matrices / unit)
    mended = unit * ((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2))
    return np.where((values[:, 0] < 0)[:, None, None], mended, matrices)


def misfit_singular(stack: Stack) -> tuple[int, str] | None:
    """The first covariance that counts and is not symmetric, or negative in some direction."""
    D = dimensions(stack.values.shape[1])
    seen = np.flatnonzero(counts(stack.weight, stack.values, unknown=1.0) > 0)
    deviations = np.broadcast_to(np.sqrt(all_points(stack)[1]), (len(seen), D))
    words = (
        "have a symmetric covariance beside the mean",
        "have a covariance without negative eigenvalues beside the mean; found",
    )
    matrices = stack.values[seen, D:].reshape(-1, D, D)
    found = misfit_matrices(matrices, deviations, (SYMMETRY_ROUNDING, -SYMMETRY_ROUNDING), words)
    return found and (int(seen[found[0]]), found[1])


class InverseWishart(ChecksValues, NamesHyperparameters, HasStarts, Embeds, Sampled, Family):
    """Atoms have Sigma ~ inverse Wishart(freedom, scale). Subclasses are dataclasses with these fields.

    They write `sums`, what rows are in the terms of `modelweld.families.wishart.evidence`, and `belief`.
    """

    freedom: float | None
    scale: ArrayLike | None
    learning: Literal["likelihood", "nothing"]

    @abstractmethod
    def sums(self, rows: Array) -> Sums:
        """Summed rows as summed statistics."""

    @property
    @abstractmethod
    def belief(self) -> Belief:
        """The hyperparameters, the mean measured from the origin."""

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of what is behind summed rows."""
        return log_evidence(self.sums(rows), self.belief)

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_choice(self, "learning")
        if self.freedom is not None and not np.isfinite(self.freedom):
            raise InputError(f"{name}: freedom is a finite number; found {self.freedom!r}.")
        if self.scale is None:
            return
        scale = np.array(self.scale, dtype=np.float64)
        if scale.ndim != 2 or scale.shape[0] != scale.shape[1] or not np.isfinite(scale).all():
            raise InputError(f"{name}: scale is a finite matrix (D, D); found shape {scale.shape}.")
        found = misfit_covariances(scale.reshape(1, -1), np.ones(1))
        if found is not None:
            raise InputError(f"{name}: the scale must be a covariance; covariances {found[1]}.")
        object.__setattr__(self, "scale", scale)
        self.check_freedom(len(scale))

    def check_freedom(self, D: int) -> None:
        """Refuse an inverse Wishart of matrices (D, D) that is no distribution."""
        if self.freedom is not None and not self.freedom > D - 1:
            raise InputError(
                f"{type(self).__name__}: freedom must exceed D - 1 = {D - 1} for matrices of size {D}; "
                f"found {self.freedom!r}."
            )


@register
@dataclass(frozen=True, eq=False)
class Scatter(ValueLearner, InverseWishart):
    """Covariance matrices: of mixture components, of states, of sites.

    A value is a matrix (D, D), flattened; its `weight`, the same in all entries, is the number of points behind it.
    Without a weight that number counts as infinite, and values differ by what sites differ alone.

    Parameters
    ----------
    freedom, scale : float and array (D, D), optional
        Of the atoms' covariances: inverse Wishart, so that scale / freedom is typical, and the larger the freedom, the
        more alike they are. What is not given is read off the values.
    between : float, optional
        How many points of its atom a site's truth is worth: a covariance from n points is worth 1 / (1 / n + 1 /
        between), but at least D + 2. Learned; it is for covariances what noise is for means.
    learning : {"likelihood", "nothing"}
        Whether all three are learned.

    Notes
    -----
    A covariance from fewer than D + 2 points counts as not seen: a row of zeros. Which ones count does not depend on
    `between`, so that the likelihood of different values of it can be compared. The estimate is the inverse of the
    posterior mean of the precision, (scale + sum n S) / (freedom + sum n): the average of what was sent and of the
    typical covariance. It always exists, is the posterior mode under the measure that prefers no units
    (``|Sigma|^(-(D + 1)/2) dSigma``), and comes nearest to the truth in Stein's loss; the posterior mean of Sigma is
    (freedom + sum n) / (freedom + sum n - D - 1) times as large, several times what sites sent where few points count.
    Equations: `modelweld.families.wishart.evidence`, without means.

    Examples
    --------
    >>> import numpy as np
    >>> family = Scatter(freedom=4.0, scale=np.eye(2), between=20.0)
    >>> rows = family.rows(np.array([[2.0, 0.5, 0.5, 1.0]]))
    >>> family.estimate(rows.sum(0)).round(3)                 # (scale + 20 S) / 24
    array([1.708, 0.417, 0.417, 0.875])
    """

    learns = ("freedom", "scale", "between")
    sampled = ("between",)
    specificity = 6

    freedom: float | None = None
    scale: ArrayLike | None = None
    between: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze_number(self, "between", "a positive number of points")

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Matrices that are symmetric and positive definite, with one number of points each."""
        width = stack.values.shape[1]
        D = isqrt(width)
        if width != D * D:
            return 0, f"are square matrices, flattened; found {width} columns"
        if self.scale is not None and np.shape(self.scale) != (D, D):
            return 0, f"have the size of the scale that was given, {np.shape(self.scale)}; found {(D, D)}"
        return misfit_beside(stack) or misfit_covariances(stack.values, count_as_known(stack.weight, stack.values, D))

    def starts(self, stack: Stack) -> list[Self]:
        """`between` from the closest pairs; freedom and scale most likely if all values are of different atoms."""
        points = self.points(stack.values, stack.weight)
        self.check_freedom(points.D)
        belief = first_belief(points, self.freedom, self.scale)
        free = Free(mean=False, freedom=self.freedom is None, between=False)
        apart = Matched.of(points, np.arange(len(stack.values)))
        found = []
        for between in first_between(points, stack) if self.between is None else [self.between]:
            at = belief if self.scale is not None else maximise(apart, belief, between, free)[0]
            found.append(with_fields(self, freedom=at.freedom, scale=at.scale, between=between))
        return found

    def points(self, values: Array, weight: Array | None) -> Points:
        """Values as what sites sent."""
        D = isqrt(values.shape[1])
        known = count_as_known(weight, values, D)
        matrices = values.reshape(-1, D, D)
        matrices = np.where(known[:, None, None] > 0, (matrices + np.swapaxes(matrices, 1, 2)) / 2, np.eye(D))
        return Points(matrices, log_det(matrices), known, counts(weight, values))

    def embed(self, values: Array) -> Array:
        """Logarithms of the matrices."""
        return log_covariances(values)

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[n, carrier, n S] side by side, (L, 2 + D D)."""
        points = self.points(values, weight)
        of = points.statistics(points.effective_size(require(self.between))[0])
        return np.column_stack([of.power, of.carrier, of.second.reshape(len(values), of.second.shape[1] ** 2)])

    def estimate(self, rows: Array) -> Array:
        """(scale + sum n S) / (freedom + sum n), flattened."""
        covariance = posterior(self.sums(rows), self.belief).covariance
        return covariance.reshape(*rows.shape[:-1], covariance.shape[-1] ** 2)

    def update(self, sums: Array) -> Self:
        """Freedom and scale by maximum likelihood; `between` stays."""
        return self if self.learning == "nothing" else self._fit(self.sums(sums), between=False)

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """All three by maximum likelihood; where nothing is matched, `between` stays."""
        if self.learning == "nothing":
            return self
        matched = Matched.of(self.points(stack.values, stack.weight), labels)
        return self._fit(matched, between=matched.any_matched)

    def rows_change(self, stack: Stack) -> bool:
        """Always: they depend on `between`."""
        return True

    @property
    def belief(self) -> Belief:
        """The hyperparameters; there are no means, so theirs say nothing."""
        scale = np.asarray(self.scale, dtype=np.float64)
        return Belief(np.zeros(len(scale)), 1.0, require(self.freedom), scale)

    def sums(self, rows: Array) -> Sums:
        """Without means."""
        D = isqrt(rows.shape[-1] - 2)
        second = rows[..., 2:].reshape(*rows.shape[:-1], D, D)
        return Sums(rows[..., 0], np.zeros(rows.shape[:-1]), rows[..., 1], np.zeros((*rows.shape[:-1], D)), second)

    def _fit(self, given: Matched | Sums, between: bool) -> Self:
        free = Free(mean=False, between=between)
        at, width = maximise(given, self.belief, require(self.between), free)
        return with_fields(self, freedom=at.freedom, scale=at.scale, between=width)


FIRST_SHARES = (0.01, 0.1)
"""Of the variance of all points, what is within an atom to begin with: both are tried, the better objective wins."""


@register
@dataclass(frozen=True, eq=False)
class Moments(InverseWishart):
    """Means and covariances under one key, such as ``("means", "covariances")``, worth as many points as they weigh.

    A value is a mean (D,) and a covariance (D, D) flattened, D + D D columns; its `weight`, the same in both arrays, is
    the number of independent points behind it: any positive number, one where none is given. The covariance may be
    singular, as that of a single frame is.

    Use it where few independent points lie behind each value, such as the visits to a hidden state, whose frames
    resemble each other too much to count. Each point of a value counts. But a large n is accepted, and sites that
    differ by more than chance will not match.

    Parameters
    ----------
    mean, strength, scale : arrays (D,) and (D, D) and a float, optional
        Of the atoms: Sigma ~ inverse Wishart(freedom, scale), so that scale / freedom is typical, and theta ~ N(mean,
        Sigma / strength). What is not given is read off the values; all three are learned.
    freedom : float, optional
        Not learned: D + 2, the fewest with a finite expectation of Sigma, unless it is given. Give a larger one if
        the covariances of atoms are much alike: with D + 2, and a handful of points behind each value, atoms may well
        be as wide as all of them together, and a site's values find partners wherever some are to be had.
    learning : {"likelihood", "nothing"}
        Whether mean, strength and scale are learned.
    origin, floor : array, optional
        Set by `starts`: values are measured from `origin`, and scales do not fall below `floor`.

    Notes
    -----
    The evidence is the density of the points, not that of their mean and covariance: it does not compare with
    objectives of other families.

    Estimates are the mean m of all points of the atom, and (scale + sum n [C + (m_i - m)(m_i - m)']) / (freedom + sum
    n), which is the inverse of the posterior mean precision (see `Scatter`) if nothing is known of theta before. The
    strength is left out because it grows without limit where a few points lie behind each value: posterior means would
    all be the same. Values are then matched by their second moments about the mean of all, for which a state and its
    mirror image are one; where that matters, a larger `freedom` helps.

    Examples
    --------
    >>> import numpy as np
    >>> family = Moments(mean=np.zeros(2), strength=0.5, freedom=4.0, scale=np.eye(2))
    >>> points = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 5.0]])
    >>> value = np.append(points.mean(0), np.cov(points.T, bias=True))
    >>> rows = family.rows(value[None], weight=np.full((1, 6), 3.0))
    >>> family.estimate(rows.sum(0)).round(3)                 # covariances: (scale + 3 C) / (4 + 3)
    array([2.   , 3.   , 0.429, 0.429, 0.429, 1.   ])
    """

    learns = ("mean", "strength", "scale")
    sampled = ("strength", "scale")

    mean: ArrayLike | None = None
    strength: float | None = None
    freedom: float | None = None
    scale: ArrayLike | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    origin: ArrayLike = 0.0
    floor: ArrayLike = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze_number(self, "strength")
        freeze_vectors(self, "mean", "origin", "floor")

    @property
    def belief(self) -> Belief:
        """The hyperparameters, the mean measured from the origin."""
        scale = np.asarray(self.scale, dtype=np.float64)
        mean = np.zeros(len(scale)) + np.asarray(self.mean) - np.asarray(self.origin)
        return Belief(mean, require(self.strength), require(self.freedom), scale)

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """A covariance, possibly singular, of the mean's size beside the mean, with one number of points for both."""
        width = stack.values.shape[1]
        D = dimensions(width)
        if width != D + D * D:
            return 0, f"are D means and a covariance of D x D entries, side by side; found {width} columns"
        for name, fitting in (("mean", (1, D)), ("scale", (D,))):
            given = getattr(self, name)
            if given is not None and len(given) not in fitting:
                return 0, f"have as many dimensions as the {name} that was given, {len(given)}; found {D}"
        return misfit_beside(stack) or misfit_singular(stack)

    def starts(self, stack: Stack) -> list[Self]:
        """Mean and variances of all points, shares of which are within atoms."""
        origin, total = all_points(stack)
        D = len(origin)
        self.check_freedom(D)
        freedom = float(D + SPARE) if self.freedom is None else self.freedom
        given = self.strength is not None and self.scale is not None
        return [
            with_fields(
                self,
                mean=prefer_given(self.mean, origin),
                strength=share / (1 - share) if self.strength is None else self.strength,
                freedom=freedom,
                scale=np.diag(freedom * share * total) if self.scale is None else self.scale,
                origin=origin,
                floor=NOISE_FLOOR * total,
            )
            for share in FIRST_SHARES[: 1 if given else None]
        ]

    def embed(self, values: Array) -> Array:
        """The means: covariances may be singular."""
        return values[:, : dimensions(values.shape[1])]

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[n, n m, n (C + m m')] side by side, (L, 1 + D + D D)."""
        n = counts(weight, values, unknown=1.0)[:, None]
        means, covariances = parts(values)
        means = np.where(n > 0, means - np.asarray(self.origin), 0.0)
        second = not_negative(covariances) + means[:, :, None] * means[:, None, :]
        return np.concatenate([n, n * means, n * second.reshape(len(values), second.shape[1] ** 2)], axis=1)

    def estimate(self, rows: Array) -> Array:
        """Mean of the points, and the covariance, flattened, beside it."""
        unlocated = self.belief._replace(strength=float(np.finfo(float).tiny))
        at = posterior(self.sums(rows), unlocated)
        return np.concatenate([at.shift + np.asarray(self.mean), at.covariance.reshape(*rows.shape[:-1], -1)], axis=-1)

    def update(self, sums: Array) -> Self:
        """Mean, strength and scale by maximum likelihood."""
        if self.learning == "nothing":
            return self
        at, _ = maximise(self.sums(sums), self.belief, 1.0, Free(freedom=False, between=False), np.asarray(self.floor))
        return with_fields(self, mean=at.mean + np.asarray(self.origin), strength=at.strength, scale=at.scale)

    def sums(self, rows: Array) -> Sums:
        """Power and weight are both n, and the carrier is in proportion."""
        D, n = dimensions(rows.shape[-1] - 1), rows[..., 0]
        second = rows[..., 1 + D :].reshape(*rows.shape[:-1], D, D)
        return Sums(n, n, -n * D / 2 * np.log(2 * np.pi), rows[..., 1 : 1 + D], second)
