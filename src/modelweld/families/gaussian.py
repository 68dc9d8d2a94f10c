"""Gaussian family: v ~ N(theta, noise / weight + variance), theta ~ N(mean, spread)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import (
    ChecksValues,
    HasHyperprior,
    Predictive,
    Unites,
    ValueLearner,
    sum_by_atom,
    with_fields,
)
from modelweld.core.random_effects import Effects, Hyperparameters, NoisePrior, maximise, moments, narrowed
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import (
    Compilable,
    Drawable,
    HasPlaces,
    HasStarts,
    Location,
    Moves,
    NamesHyperparameters,
    Sampled,
    Variances,
)
from modelweld.families.checks import check_choice, check_single, check_sizes, freeze_vectors
from modelweld.families.math.joint_diagonal import frame_of, pooled_covariances
from modelweld.families.math.noise_prior import believed
from modelweld.families.math.predictive import normal_log_predictive
from modelweld.families.math.standard_errors import maximise_with_variance
from modelweld.families.math.start import NOISE_FLOOR, Look, chosen, look
from modelweld.families.registry import register


@register
@dataclass(frozen=True, eq=False)
class Gaussian(
    ChecksValues,
    HasHyperprior,
    Predictive,
    Unites,
    NamesHyperparameters,
    HasStarts,
    Compilable,
    HasPlaces,
    Drawable,
    Sampled,
    Moves,
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
    resolution : array or float
        Noise is at least so much, whatever the likelihood says: how finely sites could tell values apart at all.
    origin, floor, squares, near, degrees, frame : array or float, optional
        Set by `starts` and learning: values are measured from `origin` before they are squared (rounding only); noise
        does not fall below `floor`; `squares`, `near` and `degrees` are what is believed of noise and spread (zero:
        nothing, see `modelweld.families.math.noise_prior`). With full covariances `frame` is the matrix (D, D) that
        makes them diagonal: noise and spread are those of its coordinates, and `covariances` gives both as matrices.

    Notes
    -----
    A row is, per dimension, [seen, w, w y, w y^2, log w] with y = v - origin and w = 1 / (1 / weight + trust variance
    / noise); weight zero gives a row of zeros. With sums n, W, S, Q, G of such rows, rho = spread / noise and mean m
    measured from the origin,

        log evidence = G/2 - n/2 log(2 pi noise) - 1/2 log(1 + rho W)
                       - [Q - 2 m S + m^2 W - rho (S - m W)^2 / (1 + rho W)] / (2 noise).

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

    mean: ArrayLike | None = None
    noise: ArrayLike | None = None
    spread: ArrayLike | None = None
    shape: Literal["diagonal", "scalar", "full"] = "diagonal"
    learning: Literal["likelihood", "moments", "nothing"] = "likelihood"
    inflation: float = 1.0
    resolution: ArrayLike = 0.0
    origin: ArrayLike = 0.0
    floor: ArrayLike = 0.0
    squares: ArrayLike = 0.0
    near: float = 0.0
    degrees: float = 0.0
    frame: Array | None = None

    def __post_init__(self) -> None:
        check_choice(self, "shape", ("diagonal", "scalar", "full"))
        check_choice(self, "learning", ("likelihood", "moments", "nothing"))
        freeze_vectors(self, "mean", "resolution", "origin", "floor", "squares")
        freeze_vectors(self, "noise", "spread", positive=True)
        if self.scalar:
            check_single(self, "noise", "spread")
            object.__setattr__(self, "resolution", np.mean(np.asarray(self.resolution), keepdims=True))

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Mean measured from the origin, noise, spread; in the coordinates of the frame where there is one."""
        mean = self._measure(np.asarray(self.mean, dtype=np.float64))
        return Hyperparameters(mean, np.asarray(self.noise), np.asarray(self.spread))

    @property
    def covariances(self) -> tuple[Array, Array]:
        """Noise and spread as matrices (D, D)."""
        D = np.asarray(self.mean).size
        noise, spread = (np.eye(D) * np.asarray(x) for x in (self.noise, self.spread))
        if self.frame is None:
            return noise, spread
        back = np.linalg.inv(self.frame)
        return back.T @ noise @ back, back.T @ spread @ back

    @property
    def scalar(self) -> bool:
        """Whether one noise and one spread serve all dimensions."""
        return self.shape == "scalar"

    def starts(self, stack: Stack) -> list[Self]:
        """Origin, floor and all hyperparameters not given, free of units: see `modelweld.families.math.start`."""
        check_sizes(self, ("mean", "noise", "spread", "resolution"), stack.values.shape[1])
        first = self.first_look(stack, self.noise, self.spread)
        scaled = self.scaled(first.origin, first.total).believing_look(first)
        return [
            with_fields(
                scaled,
                mean=chosen(self.mean, first.origin),
                noise=np.maximum(chosen(self.noise, share * first.total * first.typical), scaled.floor),
                spread=chosen(self.spread, (1 - share) * first.total),
            )
            for share in first.shares
        ]

    def first_look(self, stack: Stack, noise: ArrayLike | None = None, spread: ArrayLike | None = None) -> Look:
        """What values tell before anything is matched."""
        return look(stack, self.scalar, noise, spread)

    def scaled(self, origin: Array, total: Array) -> Self:
        """The same family for values of this mean and variance, from which the least noise follows."""
        return with_fields(self, origin=origin, floor=np.maximum(NOISE_FLOOR * total, np.asarray(self.resolution)))

    def with_hyperprior(self, stack: Stack) -> Self:
        """The same hyperparameters, with a prior that suits these values."""
        return self.believing_look(self.first_look(stack)) if np.any(self.squares) else self

    def believing_look(self, first: Look) -> Self:
        """With the prior that goes with a first look; closed forms and full covariances have none."""
        if self.learning != "likelihood" or self.shape == "full":
            return self
        return with_fields(self, **believed(first, np.asarray(self.resolution))._asdict())

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen, w, w y, w y^2, log w] side by side, (L, 5 D)."""
        if self.shape == "full" and (variance is not None or weight is not None):
            raise InputError("Gaussian: shape 'full' takes plain values; with variance or weight use 'diagonal'.")
        y = self._measure(values)
        if variance is None and weight is None:
            D = y.shape[-1]
            rows = np.empty((*y.shape[:-1], 5 * D))
            rows[..., : 2 * D], rows[..., 2 * D : 3 * D], rows[..., 4 * D :] = 1.0, y, 0.0
            np.multiply(y, y, out=rows[..., 3 * D : 4 * D])
            return rows
        inverse = np.ones_like(y)
        seen = inverse if weight is None else (weight > 0).astype(np.float64)
        if weight is not None:
            inverse = 1.0 / np.where(weight > 0, weight, 1.0)
        if variance is not None:
            inverse = inverse + self.inflation * variance / self.hyperparameters.noise
        w = seen / inverse
        return np.concatenate([seen, w, w * y, w * y * y, -seen * np.log(inverse)], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        _, W, S, _, _ = _parts(rows)
        return self._straight(rows) + self._bent(W, S)

    def log_evidence_of_unions(self, sums: Array, a: Index, b: Index) -> Array:
        """What is linear in sums is that of both atoms; the rest asks for two of their five parts."""
        _, W, S, _, _ = _parts(sums)
        straight = self._straight(sums)
        return straight[a] + straight[b] + self._bent(W[a] + W[b], S[a] + S[b])

    def _straight(self, rows: Array) -> Array:
        """The part of the log evidence that is linear in rows."""
        m, noise, _ = self.hyperparameters
        inverse, D = 1.0 / noise, rows.shape[-1] // 5
        line = np.ones(5 * D)
        line[:D], line[3 * D : 4 * D] = -np.log(2 * np.pi * noise), -inverse
        line[D : 2 * D], line[2 * D : 3 * D] = -m * m * inverse, 2 * m * inverse
        straight = 0.5 * (rows @ line)
        return np.asarray(straight if self.frame is None else straight + rows[..., 0] * self._log_det)

    def _bent(self, W: Array, S: Array) -> Array:
        """The part that is not: of atoms with summed weights W and weighted sums S."""
        m, noise, spread = self.hyperparameters
        rho = spread / noise
        shrink = 1 + rho * W
        bent = S - m * W  # in place from here on: this is where the time of questions and of small jobs goes
        bent *= bent
        bent *= rho / noise
        bent /= shrink
        bent -= np.log(shrink, out=shrink)
        return np.asarray(0.5 * bent.sum(-1))

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of the atom: origin + (m + rho S) / (1 + rho W)."""
        return self.posterior_mean(*_parts(rows)[1:3])

    def posterior_mean(self, W: Array, S: Array) -> Array:
        """Of atoms with summed weights W and weighted sums S measured from the origin."""
        m, noise, spread = self.hyperparameters
        rho = spread / noise
        return self._locate((m + rho * S) / (1 + rho * W))

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """Normal; where `resolution` holds the noise up, by which values are told apart, as narrow as values lie."""
        n, W, S, Q, _ = _parts(sums)
        _, noise, spread = self.hyperparameters
        variance = spread / (1 + spread / noise * W)
        if np.any(self.resolution):
            variance = variance * narrowed(n, Q - S * S / np.where(W > 0, W, 1.0), noise, rng)
        y = self._measure(self.estimate(sums))
        return self._locate(y + np.sqrt(variance) * rng.standard_normal(y.shape))

    def update(self, sums: Array) -> Self:
        """Maximum likelihood (or the paper's closed forms) of mean, noise and spread."""
        return self.with_learned(Effects.from_sums(*_parts(sums)))

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
        at = maximise_with_variance(y, stack, labels, self.hyperparameters, self.inflation, *self._limits)
        return self.with_hyperparameters(at)

    def _in_best_frame(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """Learned in the present frame, or in the one that suits the present matching, whichever is more likely."""
        here = self.update(sums)
        if len(np.unique(labels)) in (1, len(labels)):
            return here
        y = stack.values - self._origin
        frame = frame_of(*pooled_covariances(y, labels))
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
        """Log density of noise and spread."""
        return float(self.belief.log_density(*self.hyperparameters).sum())

    @property
    def is_compilable(self) -> bool:
        """Full covariances are not compiled; nor are subclasses, which may score in a way of their own."""
        return type(self) is Gaussian and self.shape != "full"

    def variances(self) -> Variances | None:
        """Noise and spread; of full covariances the diagonals."""
        if self.noise is None or self.spread is None:
            return None
        if self.frame is not None:
            noise, spread = map(np.diagonal, self.covariances)
            return Variances(noise, spread, self.inflation)
        return Variances(np.asarray(self.noise), np.asarray(self.spread), self.inflation)

    def locate(self, rows: Array, sums: Array) -> Location | None:
        """Places, unless covariances are full: dimensions then depend on each other."""
        if self.frame is not None:
            return None
        seen, w, wy, _, log_w = _parts(rows)
        _, noise, spread = self.hyperparameters
        return Location(
            values=wy / np.where(w > 0, w, 1.0),
            seen=seen,
            precision=w / noise,
            peak=0.5 * (log_w - seen * np.log(2 * np.pi * noise)).sum(1),
            places=self._measure(self.estimate(sums)),
            uncertain=spread / (1 + spread / noise * _parts(sums)[1]),
            noise=noise,
            about=lambda place, spread: self.with_hyperparameters(Hyperparameters(place, noise, spread)),
        )

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; one matrix product where all values are equally well known."""
        seen, w, wy, _, _ = _parts(own)
        _, W, S, _, _ = _parts(sums)
        m, noise, spread = self.hyperparameters
        shrink = 1 + spread / noise * W
        mu, extra = (m + spread / noise * S) / shrink, spread / shrink
        density = normal_log_predictive(seen, w, wy, noise, mu, extra)
        return density if self.frame is None else np.asarray(density + seen[:, :1] * self._log_det)

    def with_learned(self, effects: Effects) -> Self:
        """The same family with the hyperparameters that suit a matching."""
        if self.learning == "nothing":
            return self
        if self.learning == "moments":
            return self.with_hyperparameters(moments(effects, self.hyperparameters, *self._limits[:2]))
        return self.with_hyperparameters(maximise(effects, self.hyperparameters, *self._limits))

    @property
    def _origin(self) -> Array:
        return np.asarray(self.origin, dtype=np.float64)

    def _measure(self, values: Array) -> Array:
        """Values in the coordinates everything is computed in."""
        y = values - self._origin
        return y if self.frame is None else np.asarray(y @ self.frame)

    def _locate(self, y: Array) -> Array:
        """And back."""
        return np.asarray(self._origin + (y if self.frame is None else y @ np.linalg.inv(self.frame)))

    @property
    def _log_det(self) -> float:
        return 0.0 if self.frame is None else float(np.linalg.slogdet(self.frame)[1])

    @property
    def belief(self) -> NoisePrior:
        """What is believed of noise and spread before anything is matched."""
        return NoisePrior(np.asarray(self.squares), self.near, self.degrees)

    @property
    def _limits(self) -> tuple[Array, bool, NoisePrior]:
        return np.asarray(self.floor), self.scalar, self.belief

    def with_hyperparameters(self, at: Hyperparameters) -> Self:
        """The same family with these hyperparameters (mean measured from the origin)."""
        return with_fields(self, mean=self._locate(at.mean), noise=at.noise, spread=at.spread)


def _parts(rows: Array) -> list[Array]:
    """The five statistics that stand side by side in rows (..., 5 D)."""
    D = rows.shape[-1] // 5
    return [rows[..., i * D : (i + 1) * D] for i in range(5)]
