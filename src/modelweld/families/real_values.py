"""Real values: what `modelweld.Gaussian` adds to the paper's (`core.gaussian`).

Hyperparameters are read off the values and have a prior, standard errors and full covariances are learned with, atoms
are located for screening, and drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import ChecksValues, HasHyperprior, HasPlaces, Pools, ValueLearner, Variances, with_fields
from modelweld.core.gaussian import Gaussian as PaperGaussian
from modelweld.core.gaussian import parts, score_unequal
from modelweld.core.moments import Effects
from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import Drawable, Moves, NamesHyperparameters, Sampled, register
from modelweld.families.hyperparameters import check_choice, check_single, check_sizes, freeze_vectors
from modelweld.families.math import fragments, unions
from modelweld.families.math.random_effects import full_covariances, learn_frame, maximise
from modelweld.families.math.standard_errors import maximise_with_variance
from modelweld.families.math.start import SHARE_OF_WIDTH, Look, NoisePrior, look, noise_prior_of, prefer_given

FIRST_SHARES, LEAST_SPREAD = (0.5, SHARE_OF_WIDTH), 0.1
"""First noises in units of the width, and the first spread in units of the total variance, at least. From the first
alone two or three sites end with groups too few (ARI .943; .972 with both)."""


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
        does not fall below `floor`; `squares`, `near` and `degrees` are the hyperprior of noise and spread (zero:
        nothing, see `modelweld.families.math.start`). With full covariances `frame` is the matrix (D, D) that
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

    learning: Literal["likelihood", "moments", "nothing"] = "likelihood"
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
        return full_covariances(self)

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
            width = self._width.mean(keepdims=True) if self.scalar else self._width
            least = LEAST_SPREAD * first.total
            return [(share * width, np.maximum(first.total - share * width, least)) for share in FIRST_SHARES]
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
            return learn_frame(self.update(sums), stack, labels, sums)
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

    def fit_to(self, effects: Effects) -> Self:
        """By maximum likelihood, unless closed forms are asked for."""
        if self.learning != "likelihood":
            return super().fit_to(effects)
        at = self.hyperparameters
        return self.with_hyperparameters(maximise(effects, at, np.asarray(self.floor), self.scalar, self.noise_prior))

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

    @property
    def fragment_variance(self) -> Array:
        """Variance (D,) of fragments of one atom about their mean."""
        return np.asarray(self._tau * self._width)

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
        t = self.fragment_variance
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

    def log_evidence_of_all_unions(self, sums: Array) -> Array | None:
        """By matrix products, where that is quicker than pair by pair."""
        return unions.log_evidence_of_all(sums, self._straight(sums), self.hyperparameters)

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
