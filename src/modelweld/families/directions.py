"""Directions: unit vectors v ~ vMF(theta, concentration * weight), theta ~ vMF(mean, base concentration)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.families.checks import check_choice, freeze_number, known
from modelweld.families.math.bessel import tilt
from modelweld.families.math.start import NOISE_SHARES, noise_shares, total_variance
from modelweld.families.math.unit_vectors import even_weights, misfit_directions, typical_weight, unit_vector
from modelweld.families.math.von_mises_fisher import At, Weights, direction_of, first_concentrations
from modelweld.families.registry import register
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack


@register
@dataclass(frozen=True, eq=False)
class Directions(Family):
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
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned by maximum likelihood or stay as they are. What is not given is read off the
        values.

    Notes
    -----
    The `weight` of a row multiplies its concentration (ten observations instead of one). A direction is seen whole or
    not at all: all entries of a row have the same weight, and values come without `variance`.

    A row is [1, c, w v] with c = tilt(kappa) - tilt(kappa w), which is zero at weight one; weight zero gives a row of
    zeros. With sums n, c, S of such rows and the tilt of `modelweld.families.math.bessel`,

        log evidence = n (log C(0) - tilt(kappa)) + c - tilt(kappa_0) + tilt(length of kappa_0 mean + kappa S).

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
    walked = ("concentration", "base_concentration")

    mean: ArrayLike | None = None
    concentration: float | None = None
    base_concentration: float | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"

    def __post_init__(self) -> None:
        check_choice(self, "learning")
        if self.mean is not None:
            object.__setattr__(self, "mean", unit_vector(self.mean))
        freeze_number(self, "concentration", "one positive number")
        freeze_number(self, "base_concentration", "zero or one positive number", zero=True)

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Rows whose length is not one, of which parts have different weights, or that come with a variance."""
        return misfit_directions(stack)

    def starts(self, stack: Stack) -> list[Self]:
        """Mean: that of the values. Concentration: from the closest pairs (`modelweld.families.math.start`)."""
        D = stack.values.shape[1]
        if self.mean is not None and np.size(self.mean) != D:
            raise InputError(f"Directions: mean has {np.size(self.mean)} entries but the values have {D} dimensions.")
        centre, total = total_variance(stack, pooled=True)
        mean = direction_of(centre, np.eye(D)[0]) if self.mean is None else self.mean
        shares = [NOISE_SHARES[1]] if self.concentration is not None else noise_shares(stack, total)
        scatter = min(D * float(total[0]), 1.0)  # 1 - length^2
        first = [first_concentrations(D, scatter, share, typical_weight(stack)) for share in shares]
        given, own = self.concentration, self.base_concentration
        return [
            replace(self, mean=mean, concentration=given or kappa, base_concentration=base if own is None else own)
            for kappa, base in first
        ]

    def embedded(self, values: Array) -> Array:
        """Unit vectors as they are."""
        return values

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen, c, w v], (L, D + 2)."""
        L, D = values.shape
        lengths = np.sqrt(np.einsum("ld,ld->l", values, values))
        rows = np.empty((L, D + 2))
        rows[:, 0], rows[:, 1] = 1.0, 0.0
        if weight is None:
            np.divide(values, lengths[:, None], out=rows[:, 2:])
            return rows
        w, seen = weight[:, 0], weight[:, 0] > 0
        np.multiply(values, (w / np.where(seen, lengths, 1.0))[:, None], out=rows[:, 2:])
        kappa = known(self.concentration)
        rows[:, 1] = tilt(D, np.asarray(kappa**2)) - tilt(D, (kappa * w) ** 2)
        rows[~seen] = 0.0
        return rows

    def rows_change(self, stack: Stack) -> bool:
        """With weights other than zero and one, rows depend on the concentration."""
        return not even_weights(stack)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        return self._at.log_evidence(rows)

    def gain(self, own: Array, sums: Array) -> Array:
        """Log predictive densities."""
        return self._at.predictive(own, sums)

    def estimate(self, rows: Array) -> Array:
        """Mode (and mean direction) of the atom."""
        return self._at.mode(rows)

    def update(self, sums: Array) -> Self:
        """Maximum likelihood; of mean and base concentration only if there are weights other than zero and one."""
        if sums[:, 1].any():
            return self._learned(sums, None, 1.0)
        return self._learned(sums, Weights(np.ones(1), sums[:, 0].sum(keepdims=True)), 1.0)

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """Maximum likelihood, whatever the weights."""
        if even_weights(stack) or stack.weight is None:
            return self.update(sums)
        weight, number = np.unique(stack.weight[:, 0], return_counts=True)
        return self._learned(sums, Weights(weight, number.astype(np.float64)), typical_weight(stack))

    def _learned(self, sums: Array, weights: Weights | None, typical: float) -> Self:
        if self.learning == "nothing" or not sums[:, 0].any():
            return self
        mean, kappa, base = self._at.learned(sums, weights, typical)
        return replace(self, mean=mean, concentration=kappa, base_concentration=base)

    @property
    def _at(self) -> At:
        return At(np.asarray(self.mean, dtype=np.float64), known(self.concentration), known(self.base_concentration))
