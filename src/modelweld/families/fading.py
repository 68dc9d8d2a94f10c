"""What families of atoms that move have in common, where what was seen of an atom fades.

Compositions whose atoms move: what was seen of one is discounted as time goes by.

Directions whose atoms move: the resultant of what was seen of one becomes shorter as time goes by.

Gaussian values whose atoms move: each follows an Ornstein-Uhlenbeck path, of which `Gaussian` is the standstill.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import scipy

from modelweld.core.family import Family, HasHyperprior
from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.families.capabilities import FAMILIES, Hyperparameters, Moves, NamesHyperparameters, register
from modelweld.families.counts import PSEUDO_COUNTS, WORTH, Counts
from modelweld.families.directions import Directions
from modelweld.families.hyperparameters import require
from modelweld.families.math.bessel import slope
from modelweld.families.real_values import Gaussian

STANDSTILL = 3.0
"""Nats by which a finite memory must raise the evidence to be accepted: twenty to one. Atoms that stand still would
else be given some drift in half of all sets, and be forecast the worse for it."""


class Moving(HasHyperprior, Family):
    """A family of atoms that move, of memory `memory`: infinite, they stand still.

    Those whose sums fade (all but `Drift`) say how: `fade` gives what sums of rows (K, k) say of atoms whose expected
    value is so far (K,) on its way back to that of any; `posterior` their mean and variance (K, D), `scatter` the
    variance of typical values about them, `interval` where numbers of a mean and a variance lie.

    Attributes
    ----------
    limits : dict
        Of the class: hyperparameters that are learned between bounds.
    forgotten : tuple of str
        Of the class: fields of the family of atoms that stand still that say nothing of atoms that move.
    stands_as : type
        Of the class: that family.
    """

    memory: float
    limits: ClassVar[dict[str, tuple[float, float]]] = {}
    forgotten: ClassVar[tuple[str, ...]] = ()
    stands_as: ClassVar[type[Family]]

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        if not self.memory > 0:
            raise InputError(
                f"{type(self).__name__}: memory must be positive, or infinite for atoms that stand still; found "
                f"{self.memory!r}."
            )

    def still(self) -> Family:
        """The same family of atoms that stand still."""
        found: Family = with_fields_of(self.stands_as, self)
        return found

    def log_prior(self) -> float:
        """As of atoms that stand still; that they move at all has prior odds of one in twenty."""
        return super().log_prior() - (STANDSTILL if np.isfinite(self.memory) else 0.0)


def moving(family: Family) -> Moving | None:
    """The same family for atoms that move; None: there is none."""
    if isinstance(family, Moving):
        return family
    form = FAMILIES.get(family.moves_as) if isinstance(family, Moves) else None
    if form is None or not issubclass(form, Moving):
        return None
    found: Moving = with_fields_of(form, family, form.forgotten)
    return found


def with_fields_of(form: type[Any], family: Any, forgotten: tuple[str, ...] = ()) -> Any:
    """A family of this class with the fields that another has, too, but for some."""
    there = {field.name for field in fields(form)} - set(forgotten)
    return form(**{field.name: getattr(family, field.name) for field in fields(family) if field.name in there})


@register
@dataclass(frozen=True, eq=False)
class FadingCounts(Moving, Counts):
    """Compositions of groups that come at different times, about atoms that move: topics over years. An approximation.

    Parameters
    ----------
    memory : float
        Correlation time, in units of the times that groups have; learned. Infinite: atoms stand still.
    base, between, learning, counted, least
        As in `Counts`.

    Notes
    -----
    An atom's law at any one time is Dirichlet(base), and after a time dt its expected value is phi = exp(-dt / memory)
    of the way from the mean of all atoms, as of Wright-Fisher paths. Where sums s of total N were seen, c s are
    remembered, with A = sum of base and

        c = phi / (1 + (1 - phi) N / A),

    so that the expected value is that of the path, and two steps are one. What is approximate is that the law
    stays Dirichlet.

    Examples
    --------
    >>> import numpy as np
    >>> family = FadingCounts(base=[1.0, 1.0], between=np.inf, memory=10.0)
    >>> sums = family.rows(np.array([[30.0, 10.0]]))
    >>> later = family.fade(sums, np.array([0.5]))
    >>> family.estimate(sums).round(3), family.estimate(later).round(3)     # half way back to (1/2, 1/2)
    (array([[0.738, 0.262]]), array([[0.619, 0.381]]))
    """

    specificity = 0
    stands_as = Counts
    limits = {"base": PSEUDO_COUNTS, "between": WORTH}  # noqa: RUF012 (it is never changed)

    memory: float = np.inf

    def name_hyperparameters(self) -> Hyperparameters:
        """As `Counts`, and the memory."""
        return {**super().name_hyperparameters(), "memory": self.memory}

    def fade(self, sums: Array, correlation: Array) -> Array:
        """Less observations of the same composition."""
        A, N = float(self._base.sum()), sums[:, self._base.size]
        return np.asarray(sums * (correlation / (1 + (1 - correlation) * N / A))[:, None])

    def posterior(self, sums: Array) -> tuple[Array, Array]:
        """Of a Dirichlet distribution."""
        mean, D = self.estimate(sums), self._base.size
        return mean, mean * (1 - mean) / (1 + self._base.sum() + sums[:, D, None])

    def scatter(self, mean: Array) -> Array:
        """Of the shares of as many observations as a value is worth at most."""
        return np.asarray(mean * (1 - mean) / require(self.between))

    def interval(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """Of Beta variables, which the shares of a Dirichlet distribution are."""
        total = np.maximum(mean * (1 - mean) / variance - 1, np.finfo(float).tiny)
        a, b = np.maximum(mean * total, 1e-9), np.maximum((1 - mean) * total, 1e-9)
        low, high = (scipy.special.betaincinv(a, b, 0.5 + side * level / 2) for side in (-1, 1))
        return np.minimum(low, mean), np.maximum(high, mean)


BISECTIONS = 40
"""Of the part that is remembered: it is known to 1e-12."""


@register
@dataclass(frozen=True, eq=False)
class FadingDirections(Moving, NamesHyperparameters, Directions):
    """Unit vectors of groups that come at different times, about atoms that move. An approximation.

    Parameters
    ----------
    memory : float
        Correlation time, in units of the times that groups have; learned. Infinite: atoms stand still.
    mean, concentration, base_concentration, learning, reference
        As in `Directions`. All atoms have one concentration, and values have signs: `own`, `diversity` and `axial` are
        not for atoms that move.

    Notes
    -----
    The filter of Yurochkin et al. (streaming topics, 2019) on sums: with sums S of length s, an atom is von
    Mises-Fisher of parameter kappa S and the base's, of mean cosine A(kappa s). After a time dt it is c S, with

        A(c kappa s) = exp(-dt / memory) A(kappa s),

    the mean cosine after a random step on the sphere, so that two steps are one. What is approximate is that the law
    stays von Mises-Fisher, and that the base does not pull while an atom moves.

    Examples
    --------
    >>> import numpy as np
    >>> family = FadingDirections(mean=[1.0, 0.0, 0.0], concentration=50.0, base_concentration=0.0, memory=10.0)
    >>> sums = family.rows(np.array([[0.0, 1.0, 0.0]]))
    >>> bool(0 < family.fade(sums, np.array([0.9]))[0, 3] < 0.5)
    True
    """

    stands_as = Directions
    learns = ("mean", "concentration", "base_concentration", "memory")
    specificity = 0

    memory: float = np.inf

    def __post_init__(self) -> None:
        if self.axial or self.own or self.diversity:
            raise InputError(
                f"{type(self).__name__}: atoms that move have one concentration, values signs. Leave own, diversity "
                "and axial out, or the times."
            )
        object.__setattr__(self, "own", False)
        super().__post_init__()

    def fade(self, sums: Array, correlation: Array) -> Array:
        """Shorter sums."""
        S = sums[:, 2:]
        D, length = S.shape[1], require(self.concentration) * np.sqrt(np.einsum("kd,kd->k", S, S))
        wanted = correlation * length * slope(D, length**2)
        low, high = np.zeros(len(S)), np.ones(len(S))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            x = middle * length
            above = x * slope(D, x**2) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        part = np.where(correlation == 1, 1.0, (low + high) / 2)
        return np.asarray(sums * part[:, None])

    def posterior(self, sums: Array) -> tuple[Array, Array]:
        """The mode, and variances across and along it."""
        mean = self.estimate(sums)
        return mean, spread_about(mean, np.asarray(self.law.squares(sums)))

    def scatter(self, mean: Array) -> Array:
        """Of values of weight one."""
        return spread_about(mean, np.full(len(mean), require(self.concentration) ** 2))

    def interval(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """As of normal variables, on the sphere."""
        reach = float(scipy.special.ndtri(0.5 + level / 2)) * np.sqrt(variance)
        return np.maximum(mean - reach, -1.0), np.minimum(mean + reach, 1.0)


def spread_about(mean: Array, squared: Array) -> Array:
    """Variance of each coordinate of unit vectors about a direction (K, D), given squared concentrations (K,)."""
    D, across = mean.shape[1], slope(mean.shape[1], squared)
    along = np.maximum(1 - (D - 1) * across - squared * across**2, 0.0)
    return np.asarray(mean**2 * along[:, None] + (1 - mean**2) * across[:, None])


@register
@dataclass(frozen=True, eq=False)
class Drift(Moving, Gaussian):
    r"""Real values of groups that come at different times, about atoms that move.

    An atom is where `Gaussian` has it at any one time, N(mean, spread) in each dimension, and at times t and s its
    places are correlated by exp(-\\|t - s\\| / memory). It moves by sqrt(2 spread dt / memory) in a short time dt, and
    after a few memories it may be anywhere. Values scatter about its place of the moment, as they do in `Gaussian`.

    Parameters
    ----------
    memory : float
        Correlation time, in units of the times that groups have; learned. Infinite: atoms stand still.
    mean, noise, spread, shape, learning, inflation, width, tau, origin, floor, squares, near, degrees, frame
        As in `Gaussian`; shape "full" and the closed forms are not for atoms that move.

    Notes
    -----
    What a family does with rows, it does here for values of one moment: then a path is a place. Values at several times
    are those of a Gaussian process, which `modelweld.time` follows by Kalman filters.

    Examples
    --------
    >>> import numpy as np
    >>> family = Drift(mean=0.0, noise=1.0, spread=4.0, memory=10.0)
    >>> family.value_variances(np.array([[1.0], [2.0]]), weight=np.array([[1.0], [4.0]])).ravel()
    array([1.  , 0.25])
    """

    stands_as = Gaussian
    learns = ("mean", "noise", "spread", "memory")
    specificity = 0
    forgotten = ("width", "tau")  # sites of one day hold an atom once

    memory: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape == "full" or self.learning == "moments":
            raise InputError("Drift: shape is 'diagonal' or 'scalar', and learning 'likelihood' or 'nothing'.")

    def value_variances(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Variance (L, D) of each value about its atom; infinite where it was not seen."""
        noise = np.full(values.shape, np.asarray(self.noise))
        if weight is not None:
            with np.errstate(divide="ignore"):
                noise = noise / weight
        return noise if variance is None else np.asarray(noise + self.inflation * variance)
