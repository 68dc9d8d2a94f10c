"""Factors: real vectors whose sign means nothing, v or -v ~ N(theta, noise / weight), theta ~ N(0, spread)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import Signless
from modelweld.core.moments import Effects
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import Embeds, first_row, register
from modelweld.families.math.signs import LOG_2, mirror, orient, upright
from modelweld.families.math.start import Look
from modelweld.families.real_values import Gaussian


@register
@dataclass(frozen=True, eq=False)
class Factors(Signless, Embeds, Gaussian):
    """Real vectors of which v and -v are one: loadings, components, factors, whose length means something.

    Values are matched whatever their signs, and come back turned to agree with their atom (`fusion.parameters.signs`),
    the largest entry of which is positive. Where lengths mean nothing, there is ``Directions(axial=True)``.

    Parameters
    ----------
    noise, spread : array or float, optional
        Starting values: variance of a value about its atom, and of atoms about zero. What is not given is read off the
        values.
    shape : {"diagonal", "scalar"}
        Whether noise and spread are learned per dimension or as one number.
    learning, width, tau, floor, squares, near, degrees
        As in `Gaussian`. Factors have no `mean` and no `origin` but zero, no `frame`, and values come without
        `variance`, so that `inflation` says nothing.

    Notes
    -----
    A row is that of `Gaussian`, measured from zero, and one number more: whether anything was seen. Signs are found
    with the matching, by one objective (`modelweld.families.math.signs`): the evidence of n values with the signs at
    which it is highest, less (n - 1) log 2.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = 3 * rng.normal(size=(3, 6))
    >>> sites = [rng.choice([-1, 1], (3, 1)) * loadings + 0.1 * rng.normal(size=(3, 6)) for _ in range(4)]
    >>> fusion = modelweld.fuse(sites, Factors())
    >>> aligned = [sign[:, None] * site for sign, site in zip(fusion.parameters.signs, sites)]
    >>> fusion.K, bool(np.abs(aligned[0] - fusion.atoms[fusion.labels[0]]).max() < 0.5)
    (3, True)
    """

    learns: ClassVar[tuple[str, ...]] = ("noise", "spread")
    sampled: ClassVar[tuple[str, ...]] = ()
    specificity = 0
    moves_as = ""
    has_places = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(np.asarray(self.origin)) or (self.mean is not None and np.any(np.asarray(self.mean))):
            raise InputError("Factors: values without signs lie about zero, because v and -v are one; leave out mean.")
        if self.shape == "full":
            raise InputError("Factors: shape is 'diagonal' or 'scalar'; full covariances are for values with signs.")

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Rows that come with a variance."""
        found = None if stack.variance is None else first_row((stack.variance != 0).any(1))
        return None if found is None else (found, "come without a variance; a weight says how well each is known")

    def first_look(self, stack: Stack, noise: ArrayLike | None = None, spread: ArrayLike | None = None) -> Look:
        """Of values and the same turned round."""
        first = super().first_look(replace(mirror(stack), variance=None), noise, spread)
        return first._replace(origin=np.zeros(stack.values.shape[1]))

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Those of `Gaussian`, and whether anything was seen: (L, 5 D + 1)."""
        seen = np.ones(len(values)) if weight is None else (weight > 0).any(1).astype(np.float64)
        rows = super().rows(upright(values if weight is None else np.where(weight > 0, values, 0.0)), None, weight)
        return np.column_stack([rows, seen])

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows, as they are turned, and of their signs."""
        return super().log_evidence(rows[..., :-1]) - LOG_2 * np.maximum(rows[..., -1] - 1, 0.0)

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities with the better of two signs."""
        better = np.maximum(super().log_predictive(own, sums), super().log_predictive(self._turn(own), sums))
        return np.asarray(better - LOG_2 * np.logical_and.outer(own[:, -1] > 0, sums[:, -1] > 0))

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of the atom; that of the two whose largest entry is positive."""
        return upright(super().estimate(rows))

    def align_sign(self, rows: Array, sums: Array) -> Array:
        """Rows turned to agree with sums: of the square of the sum of both, what depends on the sign is positive."""
        D, (_, noise, spread) = rows.shape[-1] // 5, self.hyperparameters
        W, S = slice(D, 2 * D), slice(2 * D, 3 * D)
        ratio = spread / noise
        curve = ratio / noise / (1 + ratio * (rows[..., W] + sums[..., W]))
        agree = np.einsum("...d,...d,...d->...", curve, rows[..., S], sums[..., S]) >= 0
        return np.where(agree[..., None], rows, self._turn(rows))

    def agreement(self, stack: Stack, atoms: Array) -> Array:
        """In units of the noise."""
        stack, noise = stack.blind(), np.asarray(self.noise)
        weight = 1.0 if stack.weight is None else stack.weight
        return np.asarray((stack.values * atoms * weight / noise).sum(1))

    def gather(self, rows: Array, labels: Index, K: int) -> tuple[Array, Array]:
        """Rows in turn face the sum of those before, then that of all others."""
        return orient(self.align_sign, rows, labels, K)

    def canonical_sign(self, stack: Stack) -> Stack:
        """Values with their largest entries positive."""
        stack = stack.blind()
        return replace(stack, values=upright(stack.values))

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """Moved as their atom is, or the other way where they are turned round."""
        sides = np.where((values * before).sum(1, keepdims=True) < 0, -1.0, 1.0)
        return np.asarray(values + sides * (after - before))

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`."""
        return self.update(sums)

    def fit_to(self, effects: Effects) -> Self:
        """The same family with the noise and spread that suit a matching; the mean stays zero."""
        return super().fit_to(replace(effects, averages=np.zeros_like(effects.averages)))

    def _turn(self, rows: Array) -> Array:
        """Rows of the values turned round."""
        D = rows.shape[-1] // 5
        turned = rows.copy()
        turned[..., 2 * D : 3 * D] *= -1.0
        return turned
