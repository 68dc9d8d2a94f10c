"""Real values: what `modelweld.Gaussian` adds to the paper's (`core.gaussian`).

Hyperparameters are read off the values and have a prior, standard errors and full covariances are learned with, atoms
are located for screening, and drawn.

What is believed of noise and spread before anything is matched: weak, and free of units.

The likelihood of one-way random effects is unbounded where two sites coincide (noise to zero), and its spread can fall
to zero, so that every atom is the grand mean. Neither is ever what a user means. So noise has the conjugate prior,
which is what nu values more, of squares s in all, would add to the likelihood:

    log p(noise) = -nu/2 log(noise) - s / (2 noise).

Of plain values nothing is known but that noise is not zero: nu = 0, flat in the logarithm but for an end below s. Where
sites say how wide their components are, means of one differ by about that: nu = DEGREES. And the ratio
r = spread / noise has a prior that keeps off zero like the deviation of the atoms and is flat beyond (Chung et al., *A
nondegenerate penalized likelihood estimator for variance parameters*, Psychometrika 2013):

    log p(r) = -1/2 log(1 + near / r).

The first only adds to values and squares, the second is a function of the ratio alone, so the profile of the likelihood
stays one-dimensional.

A frame in which full covariances are diagonal: where noise and spread can be learned dimension by dimension.

For a noise covariance A and a spread covariance B there is a matrix T with T' A T = 1 and T' B T diagonal. Measured
as y = (v - origin) T, values have independent coordinates, so everything a diagonal Gaussian knows applies; densities
are multiplied by |det T| per value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.family import (
    ChecksValues,
    HasHyperprior,
    Pools,
    ValueLearner,
    sum_by_atom,
    with_fields,
)
from modelweld.core.gaussian import Gaussian as PaperGaussian
from modelweld.core.gaussian import parts, score_unequal
from modelweld.core.prior import NoisePrior
from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import (
    Drawable,
    HasPlaces,
    Moves,
    NamesHyperparameters,
    Sampled,
    Variances,
)
from modelweld.families.math import fragments
from modelweld.families.math.standard_errors import maximise_with_variance
from modelweld.families.math.start import Look, look, prefer_given
from modelweld.families.registry import check_choice, check_single, check_sizes, freeze_vectors, register


def pool_covariances(y: Array, labels: Index) -> tuple[Array, Array]:
    """Covariance of values about their atoms' averages, and of these averages, both shrunk (Ledoit and Wolf)."""
    K = int(labels.max()) + 1
    counts = np.bincount(labels, minlength=K)
    averages = np.zeros((K, y.shape[1]))
    np.add.at(averages, labels, y)
    averages /= counts[:, None]
    residuals = y - averages[labels]
    # an atom's own average takes one degree of freedom: values alone say nothing
    several = counts[labels] > 1
    scale = np.sqrt(counts / np.maximum(counts - 1, 1))
    within = _shrunk((residuals * scale[labels][:, None])[several], centred=True)
    return within, _shrunk(averages, centred=False)


def _shrunk(rows: Array, *, centred: bool) -> Array:
    """Ledoit and Wolf's covariance, in units in which fourth powers, which it takes, are numbers; to the same bit."""
    from sklearn.covariance import ledoit_wolf

    unit = 2.0 ** np.frexp(np.abs(rows).max())[1]
    found, _ = ledoit_wolf(rows / unit, assume_centered=centred)
    return np.asarray(found * unit * unit)


def frame_of(within: Array, between: Array) -> Array:
    """T with T' within T = 1 and T' between T diagonal; noise is never nothing, even where values coincide."""
    scale = np.diagonal(within) + np.diagonal(between)
    least = NOISE_FLOOR * np.where(scale > 0, scale, max(scale.max(), np.finfo(float).tiny))
    _, T = scipy.linalg.eigh(between, within + np.diag(least))
    return np.asarray(T)


EXPECTED_SHARE = 0.01
"""Of the total variance that is expected to be noise, at most. A thousandth lets two sites that nearly coincide still
collapse in twenty dimensions (three draws of four); a hundredth and three hundredths never did."""

NEAR = 0.1
"""Ratio of spread to noise below which atoms are hardly told apart, at most. At one, overlapping atoms are split too
often (the hardest golden case has eight atoms too many instead of four)."""


DEGREES, SHARE_OF_WIDTH = 2.0, 0.15
"""Values that what is known of components' widths is worth, and the share of the width that noise is expected to be."""

FIRST_SHARE, LEAST_SPREAD = 0.5, 0.1
"""First noise in units of the width, and the first spread in units of the total variance, at least."""


def noise_prior_of(first: Look, width: Array) -> NoisePrior:
    """What is believed of values after a first look.

    Noise may be far below EXPECTED_SHARE where most groups say so, and atoms as hard to tell apart as they look. Where
    components have a `width`, noise is believed to be about a share of that.
    """
    share = max(first.shares)
    near = NEAR * min(1.0, 1 / share - 1) / first.typical
    if np.any(width > 0):
        return NoisePrior(DEGREES * SHARE_OF_WIDTH * width, near, DEGREES)
    return NoisePrior(min(share, EXPECTED_SHARE) * first.total * first.typical, near)


COMPILED_PREDICTIVE_FROM = 25_000
"""Values x atoms x dimensions of a call from which it is compiled: 25 values, 40 atoms, 25 dimensions. Below, a job is
over before the compiler is loaded. By the input alone, so that the same call gives the same bits."""


@register
@dataclass(frozen=True, eq=False)
class Gaussian(
    ChecksValues,
    HasHyperprior,
    NamesHyperparameters,
    HasPlaces,
    Drawable,
    Sampled,
    Moves,
    Pools,
    PaperGaussian,
    ValueLearner,
):
    """Real values: means, centres, inducing points, weights, embeddings.

    Parameters
    ----------
    mean, noise, spread : array or float, optional
        Starting values (mean and variance of the atoms, variance of a value about its atom). What is not given is
        read off the values, whatever their units.
    shape : {"diagonal", "scalar", "full"}
        Whether noise and spread are learned per dimension, as one number (right when all dimensions are in the same
        units and equally noisy), or as full covariances (plain values only: no variance or weight).
    learning : {"likelihood", "moments", "nothing"}
        How hyperparameters are learned: maximum likelihood, the paper's closed forms, or not at all.
    inflation : float
        Factor on the sites' own `variance`: 1 if their standard errors are right.
    width : array or float
        Variance of what values are means of, such as a mixture's components; zero: not known. A site's values of one
        atom are then taken for fragments of one, which differ among themselves by tau times this.
    tau : float, optional
        Variance of fragments in units of the width; what is not given is learned.
    origin, floor, squares, near, degrees, frame : array or float, optional
        Set by `starts` and learning: values are measured from `origin` before they are squared (rounding only); noise
        does not fall below `floor`; `squares`, `near` and `degrees` are what is believed of noise and spread (zero:
        nothing, see `modelweld.families.real_values`). With full covariances `frame` is the matrix (D, D) that
        makes them diagonal: noise and spread are those of its coordinates, and `covariances` gives both as matrices.

    Examples
    --------
    >>> import numpy as np
    >>> family = Gaussian(mean=0.0, noise=1.0, spread=4.0)
    >>> rows = family.rows(np.array([[1.0], [2.0]]))
    >>> family.estimate(rows.sum(0)).round(3)                 # 4 * 3 / (1 + 2 * 4)
    array([1.333])
    """

    learns: ClassVar[tuple[str, ...]] = ("mean", "noise", "spread")
    sampled: ClassVar[tuple[str, ...]] = ("noise", "spread")
    specificity = 1
    moves_as = "Drift"

    width: ArrayLike = 0.0
    tau: float | None = None
    squares: ArrayLike = 0.0
    near: float = 0.0
    degrees: float = 0.0
    frame: Array | None = None

    def __post_init__(self) -> None:
        check_choice(self, "shape", ("diagonal", "scalar", "full"))
        check_choice(self, "learning", ("likelihood", "moments", "nothing"))
        freeze_vectors(self, "mean", "width", "origin", "floor", "squares")
        freeze_vectors(self, "noise", "spread", positive=True)
        if self.scalar:
            check_single(self, "noise", "spread")

    @property
    def covariances(self) -> tuple[Array, Array]:
        """Noise and spread as matrices (D, D)."""
        D = np.asarray(self.mean).size
        noise, spread = (np.eye(D) * np.asarray(x) for x in (self.noise, self.spread))
        if self.frame is None:
            return noise, spread
        back = np.linalg.inv(self.frame)
        return back.T @ noise @ back, back.T @ spread @ back

    def starts(self, stack: Stack) -> list[Self]:
        """Origin, floor and all hyperparameters not given, free of units: see `modelweld.families.math.start`."""
        check_sizes(self, ("mean", "noise", "spread", "width"), stack.values.shape[1])
        first = self.first_look(stack, self.noise, self.spread)
        scaled = self.with_scale(first.origin, first.total).with_prior_of(first)
        return [
            with_fields(
                scaled,
                mean=prefer_given(self.mean, first.origin),
                noise=np.maximum(prefer_given(self.noise, noise), scaled.floor),
                spread=prefer_given(self.spread, spread),
                tau=scaled._tau if scaled.pools else self.tau,
            )
            for noise, spread in scaled._first_variances(first)
        ]

    def _first_variances(self, first: Look) -> list[tuple[Array, Array]]:
        """First noises and spreads: by the widths of components where they are known, else by how close values lie."""
        if self.pools:
            noise = FIRST_SHARE * (self._width.mean(keepdims=True) if self.scalar else self._width)
            return [(noise, np.maximum(first.total - noise, LEAST_SPREAD * first.total))]
        return [(share * first.total * first.typical, (1 - share) * first.total) for share in first.shares]

    def first_look(self, stack: Stack, noise: ArrayLike | None = None, spread: ArrayLike | None = None) -> Look:
        """What values tell before anything is matched."""
        return look(stack, self.scalar, noise, spread)

    def with_scale(self, origin: Array, total: Array) -> Self:
        """The same family for values of this mean and variance, from which the least noise follows."""
        return with_fields(self, origin=origin, floor=NOISE_FLOOR * total)

    def with_hyperprior(self, stack: Stack) -> Self:
        """The same hyperparameters, with a prior that suits these values."""
        return self.with_prior_of(self.first_look(stack)) if np.any(self.squares) else self

    def with_prior_of(self, first: Look) -> Self:
        """With the prior that goes with a first look; closed forms and full covariances have none."""
        if self.learning != "likelihood" or self.shape == "full":
            return self
        return with_fields(self, **noise_prior_of(first, np.asarray(self.width))._asdict())

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen, w, w y, w y^2, log w] side by side, (L, 5 D)."""
        if self.shape == "full" and (variance is not None or weight is not None):
            raise InputError("Gaussian: shape 'full' takes plain values; with variance or weight use 'diagonal'.")
        return super().rows(values, variance, weight)

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Normal."""
        _, noise, spread = self.hyperparameters
        variance = spread / (1 + spread / noise * parts(sums)[1])
        y = self._measure(self.estimate(sums))
        return self._locate(y + np.sqrt(variance) * rng.standard_normal(y.shape))

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`; with standard errors by gradient, because then rows depend on the noise."""
        if self.shape == "full" and self.learning == "likelihood":
            return self._in_best_frame(stack, labels, sums)
        if stack.variance is None or self.learning == "nothing" or len(labels) == 0:
            return self.update(sums)
        if self.learning == "moments":
            raise InputError(
                "Gaussian: the paper's closed forms know no standard errors, and sites sent some. Leave the preset (or "
                "learning='moments') out, or fuse models that were sent without numbers of points."
            )
        y = self._measure(stack.values)
        limits = np.asarray(self.floor), self.scalar, self.noise_prior
        at = maximise_with_variance(y, stack, labels, self.hyperparameters, self.inflation, *limits)
        return self.with_hyperparameters(at)

    def _in_best_frame(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """Learned in the present frame, or in the one that suits the present matching, whichever is more likely."""
        here = self.update(sums)
        if len(np.unique(labels)) in (1, len(labels)):
            return here
        y = stack.values - np.asarray(self.origin)
        frame = frame_of(*pool_covariances(y, labels))
        D = len(frame)
        floor = NOISE_FLOOR * np.maximum((y @ frame).var(0), 1.0)  # the frame's unit is the noise
        moved = replace(here, frame=frame, noise=np.ones(D), spread=np.ones(D), floor=floor)
        atoms = sum_by_atom(moved.rows(stack.values), labels)
        moved = moved.update(atoms)
        return moved if moved.log_evidence(atoms).sum() > here.log_evidence(sums).sum() else here

    def rows_change(self, stack: Stack) -> bool:
        """With standard errors rows depend on the noise, with full covariances on the frame."""
        return stack.variance is not None or self.shape == "full"

    def log_prior(self) -> float:
        """Log density of noise and spread, and of the variance of fragments where these are pooled."""
        own = float(self.noise_prior.log_density(*self.hyperparameters).sum())
        return own + fragments.log_prior_of(self._tau, self._width.size) if self.pools else own

    @property
    def pools(self) -> bool:
        """Where the width of what values are means of is known."""
        return bool(np.any(self.width)) and self.shape != "full"

    @property
    def _width(self) -> Array:
        """Never nothing, even in features that are constant at all sites."""
        return np.asarray(np.zeros_like(np.asarray(self.origin)) + np.maximum(self.width, self.floor))

    @property
    def _tau(self) -> float:
        return fragments.EXPECTED / self._width.size if self.tau is None else self.tau

    def fragment_statistics(self, stack: Stack) -> Array:
        """See `modelweld.families.math.fragments`."""
        return fragments.statistics(self._measure(stack.values), stack, self._width)

    def pool_fragments(self, statistics: Array) -> Array:
        """Rows of weighted means, with what contrasts among fragments add to the log evidence."""
        return fragments.pool(statistics, self.inflation / np.asarray(self.noise), self._width, self._tau)

    def pool_stack(self, statistics: Array, offsets: Index) -> Stack:
        """Weighted means, their variances and weights."""
        return fragments.pool_stack(statistics, np.asarray(self.origin), offsets)

    def learn_fragments(self, statistics: Array) -> Self:
        """With the most probable tau."""
        if self.learning == "nothing":
            return self
        return with_fields(self, tau=fragments.best_tau(statistics, self._width, self._tau))

    def log_contrast(self, own: Array, sums: Array) -> Array:
        """Of one fragment more beside one in the place of the atom."""
        seen, w, wy, _, _ = parts(own)
        t = self._tau * self._width
        some = np.where(w > 0, w, 1.0)
        return score_unequal(wy / some, seen, np.broadcast_to(t, wy.shape), self._measure(self.estimate(sums)), t)

    def variances(self) -> Variances | None:
        """Noise and spread; of full covariances the diagonals."""
        if self.noise is None or self.spread is None:
            return None
        if self.frame is not None:
            noise, spread = map(np.diagonal, self.covariances)
            return Variances(noise, spread, self.inflation)
        return Variances(np.asarray(self.noise), np.asarray(self.spread), self.inflation)

    @staticmethod
    def score_unequal(y: Array, seen: Array, own_variance: Array, mu: Array, extra: Array) -> Array:
        """As in `core.gaussian`, compiled where that is worth it."""
        if y.size * len(mu) < COMPILED_PREDICTIVE_FROM:
            return score_unequal(y, seen, own_variance, mu, extra)
        from modelweld.families.math import unequal_compiled

        return np.asarray(unequal_compiled.log_predictive(y, seen, own_variance, mu, extra))

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities, in the units of the values."""
        density = super().log_predictive(own, sums)
        return density if self.frame is None else np.asarray(density + own[:, :1] * self._log_det)

    def _straight(self, rows: Array) -> Array:
        straight = super()._straight(rows)
        return straight if self.frame is None else np.asarray(straight + rows[..., 0] * self._log_det)

    def _measure(self, values: Array) -> Array:
        y = super()._measure(values)
        return y if self.frame is None else np.asarray(y @ self.frame)

    def _locate(self, y: Array) -> Array:
        return super()._locate(y if self.frame is None else y @ np.linalg.inv(self.frame))

    @property
    def _log_det(self) -> float:
        return 0.0 if self.frame is None else float(np.linalg.slogdet(self.frame)[1])

    @property
    def noise_prior(self) -> NoisePrior:
        """Prior of noise and spread."""
        return NoisePrior(np.asarray(self.squares), self.near, self.degrees)
