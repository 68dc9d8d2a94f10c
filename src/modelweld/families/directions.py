"""Directions: unit vectors v ~ vMF(theta, concentration * weight), theta ~ vMF(mean, base concentration)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import (
    ChecksValues,
    HasHyperprior,
    HasStarts,
    Predictive,
    Signless,
    ValueLearner,
    with_fields,
)
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import (
    Drawable,
    Embeds,
    Moves,
    NamesCandidates,
    Sampled,
    Shardable,
    average,
    register,
)
from modelweld.families.hyperparameters import check_choice, freeze_number, require
from modelweld.families.math import sphere
from modelweld.families.math.bessel import COLUMNS, OwnTilts, even_tilts, weigh_tilts
from modelweld.families.math.own_concentration import Mixed, contending
from modelweld.families.math.signs import LOG_2, orient, upright
from modelweld.families.math.start import NOISE_SHARES, noise_shares


@register
@dataclass(frozen=True, eq=False)
class Directions(
    ChecksValues,
    HasHyperprior,
    Predictive,
    Signless,
    HasStarts,
    NamesCandidates,
    Embeds,
    Drawable,
    Sampled,
    Shardable,
    Moves,
    ValueLearner,
):
    """Unit vectors: topics in embedding space, normalised centres or weights, square roots of probabilities.

    Parameters
    ----------
    mean : array (D,), optional
        Mean direction of the atoms, of length one.
    concentration : float, optional
        Of values about their atom, at weight one: in each direction across the sphere a value varies by about
        1 / concentration.
    base_concentration : float, optional
        Of atoms about `mean`; 0 if they are spread evenly over the sphere.
    own : bool, optional
        Whether sites may agree more closely on some atoms than on others: each atom has a concentration of its own
        where that raises the objective. False: one concentration for all. Default: unless values are `axial`
        (components and maps lie in few of their dimensions, and unrelated ones would be taken for loose copies).
    diversity : float, optional
        With `own`, the deviation of the logarithm of atoms' concentrations about that of `concentration`; 0 if all
        atoms have that.
    axial : bool
        Whether v and -v are one, as of components whose sign is arbitrary: values are matched whatever their signs, and
        come back turned to agree with their atom (`fusion.parameters.signs`), the largest entry of which is positive.
        Atoms are then spread evenly, and have no mean direction.
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned by maximum likelihood or stay as they are. What is not given is read off the
        values.
    reference : float
        Set by `starts`: the concentration at which all scatter would be noise, by which learned ones are judged (zero:
        without a hyperprior, see `modelweld.families.math.own_concentration`).

    Notes
    -----
    The `weight` of a row multiplies its concentration (ten observations instead of one). A direction is seen whole or
    not at all: all entries of a row have the same weight, and values come without `variance`.

    A row is [1, c, w v] with c = tilt(kappa) - tilt(kappa w), which is zero at weight one; weight zero gives a row of
    zeros. With sums n, c, S of such rows and the tilt of `modelweld.families.math.bessel`,

        log evidence = n (log C(0) - tilt(kappa)) + c - tilt(kappa_0) + tilt(length of kappa_0 mean + kappa S).

    With `own`, kappa is the same for all values of an atom, and the evidence is the integral over it
    (`modelweld.families.math.own_concentration`); there is then a column of c for each of a grid of concentrations, and
    one of 1 - w.

    Densities are with respect to area on the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> family = Directions(mean=[1.0, 0.0], concentration=20.0, base_concentration=2.0)
    >>> rows = family.rows(np.array([[0.0, 1.0], [0.6, 0.8]]))
    >>> family.estimate(rows.sum(0)).round(3)                 # along (2 + 20 * .6, 20 * 1.8)
    array([0.362, 0.932])
    """

    specificity = 5
    moves_as = "FadingDirections"
    sampled = ("concentration", "base_concentration")
    row_fields = ("concentration", "diversity")

    mean: ArrayLike | None = None
    concentration: float | None = None
    base_concentration: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    own: bool | None = None
    diversity: float | None = None
    axial: bool = False
    reference: float = 0.0

    def __post_init__(self) -> None:
        check_choice(self, "learning")
        if self.mean is not None:
            object.__setattr__(self, "mean", sphere.unit_vector(self.mean))
        freeze_number(self, "concentration", "one positive number")
        freeze_number(self, "base_concentration", "zero or one positive number", also=0.0)
        freeze_number(self, "diversity", "zero or one positive number", also=0.0)
        if self.axial and (self.base_concentration or self.mean is not None):
            raise InputError(
                "Directions: axial values have no mean direction, because v and -v are one; leave out mean and "
                "base_concentration."
            )
        if self.diversity and not self.differing:
            raise InputError("Directions: with own=False all atoms have one concentration; leave out the diversity.")

    @property
    def differing(self) -> bool:
        """Whether atoms may have concentrations of their own."""
        return not self.axial if self.own is None else self.own

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Rows whose length is not one, of which parts have different weights, or that come with a variance."""
        return sphere.misfit_directions(stack)

    def starts(self, stack: Stack) -> list[Self]:
        """Mean: that of the values. Concentration: from the closest pairs (`modelweld.families.math.start`)."""
        D = stack.values.shape[1]
        if self.mean is not None and np.size(self.mean) != D:
            raise InputError(f"Directions: mean has {np.size(self.mean)} entries but the values have {D} dimensions.")
        stack = self.canonical_sign(stack)
        look = sphere.measure_scatter(stack, self.axial)
        mean = sphere.direction_of(look.centre, np.eye(D)[0]) if self.mean is None else self.mean
        shares = [NOISE_SHARES[1]] if self.concentration is not None else noise_shares(stack, look.variance)
        first = [sphere.first_concentrations(D, look.scatter, share, sphere.typical_weight(stack)) for share in shares]
        given, given_base = self.concentration, 0.0 if self.axial else self.base_concentration
        return [
            replace(
                self._believing(stack, look.scatter),
                mean=None if self.axial else mean,
                concentration=given or kappa,
                base_concentration=base if given_base is None else given_base,
                diversity=0.0 if self.differing and self.diversity is None else self.diversity,
            )
            for kappa, base in first
        ]

    def prior_location(self, stack: Stack, share: float) -> Self:
        """Concentrations as in `starts`."""
        D = stack.values.shape[1]
        scatter = sphere.measure_scatter(self.canonical_sign(stack), self.axial).scatter
        kappa, base = sphere.first_concentrations(D, scatter, share, sphere.typical_weight(stack))
        return replace(self, concentration=kappa, base_concentration=0.0 if self.axial else base)

    def with_hyperprior(self, stack: Stack) -> Self:
        """The same hyperparameters, with a prior that suits these values."""
        return self._believing(stack, sphere.measure_scatter(stack, self.axial).scatter) if self.reference else self

    def _believing(self, stack: Stack, scatter: float) -> Self:
        """With the prior that goes with such a scatter of values."""
        believes = (self.differing or self.axial) and self.learning != "nothing"
        return (
            replace(self, reference=stack.values.shape[1] / (scatter * sphere.typical_weight(stack)))
            if believes
            else self
        )

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen, c, w v]: c is one column, or with `own` one for each concentration of a grid and one of 1 - w."""
        return sphere.direction_rows(upright(values) if self.axial else values, weight, self.law.kappas)

    def rows_change(self, stack: Stack) -> bool:
        """With weights other than zero and one, rows depend on the concentration."""
        return not sphere.even_weights(stack)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        found = self.law.log_evidence(rows)
        return found - LOG_2 * np.maximum(rows[..., 0] - 1, 0.0) if self.axial else found

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; of axial values with the better of their signs."""
        found = self.law.predictive(own, sums)
        return found - LOG_2 * np.logical_and.outer(own[:, 0] > 0, sums[:, 0] > 0) if self.axial else found

    def names_candidates(self, stack: Stack) -> bool:
        """Where all values weigh the same there is a bound on the cosine."""
        return sphere.even_weights(stack)

    def candidates(self, own: Array, sums: Array, odds: Array) -> tuple[Index, Index] | None:
        """Pairs whose cosine is above the atom's bound (`modelweld.families.math.own_concentration`)."""
        return contending(self.law, own, sums, odds - LOG_2 if self.axial else odds)

    def estimate(self, rows: Array) -> Array:
        """Mode (and mean direction) of the atom; of axial ones that of the two whose largest entry is positive."""
        found = self.law.mode(rows)
        return upright(found) if self.axial else found

    @property
    def is_signless(self) -> bool:
        """Whether values are axial."""
        return self.axial

    def align_sign(self, rows: Array, sums: Array) -> Array:
        """Rows of axial values turned to agree with sums."""
        if not self.axial:
            return rows
        first = 1 + self._columns
        agreement = np.einsum("...d,...d->...", rows[..., first:], sums[..., first:])
        turned = rows.copy()
        turned[..., first:] *= np.where(agreement < 0, -1.0, 1.0)[..., None]
        return turned

    def gather(self, rows: Array, labels: Index, K: int) -> tuple[Array, Array]:
        """Rows in turn face the sum of those before, then that of all others."""
        return orient(self.align_sign, rows, labels, K)

    def canonical_sign(self, stack: Stack) -> Stack:
        """Axial values with their largest entries positive."""
        return replace(stack, values=upright(stack.values)) if self.axial else stack

    def log_prior(self) -> float:
        """Log density of concentration and diversity, where they have a hyperprior."""
        return self.law.log_prior()

    def pool(self, families: Sequence[Self], share: Array) -> Self:
        """Of every number the mean, of mean directions the direction of that."""
        found = average(families, share)
        mean = None if self.axial else sphere.direction_of(np.asarray(found.mean), np.asarray(self.mean))
        return with_fields(found, mean=mean)

    def draw_atoms(self, sums: Array, rng: np.random.Generator) -> Array:
        """A concentration, then von Mises-Fisher; axial ones face as their estimate does."""
        drawn = self.law.draw(sums, rng)
        faces = (drawn * self.estimate(sums)).sum(1, keepdims=True) >= 0
        return np.where(faces, drawn, -drawn) if self.axial else drawn

    def follow(self, values: Array, before: Array, after: Array) -> Array:
        """By the rotation in the plane of the two that takes one to the other."""
        return sphere.rotate(values, before, after)

    def update(self, sums: Array) -> Self:
        """Maximum likelihood; of mean and base concentration only if there are weights other than zero and one."""
        n, c, S = self.law.parts(sums)
        return self._fit(sums, None if c.any() else even_tilts(n, S.shape[1]), np.ones(len(n)), 1.0)

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """Maximum likelihood, whatever the weights."""
        if sphere.even_weights(stack) or stack.weight is None:
            return self.update(sums)
        weight, K = stack.weight[:, 0], len(sums)
        mean = np.bincount(labels, weight, K) / np.maximum(sums[:, 0], 1.0)
        own = weigh_tilts(weight, labels, K, stack.values.shape[1])
        return self._fit(sums, own, mean, sphere.typical_weight(stack))

    def _fit(self, sums: Array, own: OwnTilts | None, weight: Array, typical: float) -> Self:
        """Learned from atoms' rows and what is known of their values, `own`."""
        if self.learning == "nothing" or not sums[:, 0].any():
            return self
        at = self.law.fit(sums, own, weight, typical)
        mean, diversity = None if self.axial else at.mean, at.diversity if self.differing else self.diversity
        return replace(self, mean=mean, concentration=at.kappa, base_concentration=at.base, diversity=diversity)

    @property
    def _columns(self) -> int:
        return COLUMNS if self.differing else 1

    @property
    def law(self) -> Mixed:
        """Of atoms and values, whether concentrations differ or not."""
        mean, base = np.zeros(1), 0.0
        if not self.axial:
            mean, base = np.asarray(self.mean, dtype=np.float64), require(self.base_concentration)
        kappa, diversity = require(self.concentration), self.diversity or 0.0
        return Mixed(mean, kappa, diversity, base, self.reference, self._columns, self.axial)
