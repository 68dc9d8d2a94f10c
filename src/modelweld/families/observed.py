"""What `Rates`, `Proportions` and `Counts` share: values whose effective sample size is below that of the site's data.

How much sites differ beyond chance is `between`, see `modelweld.families.math.event_densities`. Rows (sufficient
statistics) depend on it, so it is learned from the values; the atoms' hyperparameters alone are learned from sums. Both
by climbing in logarithms.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.family import ChecksValues, HasStarts, Predictive, ValueLearner, with_fields
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import Drawable, Embeds, NamesHyperparameters, Sampled, Shardable
from modelweld.families.hyperparameters import require
from modelweld.families.math.event_densities import Own, Poisson, likelihood_of_atoms, likelihood_of_values
from modelweld.families.math.maximise import LogLikelihood, climb
from modelweld.families.math.share_starts import StartsByShare


class Search(NamedTuple):
    """Logarithms of hyperparameters to climb from, their bounds, and units in which curvatures are about one."""

    start: Array
    low: Array
    high: Array
    unit: Array | float = 1.0


class Observed(
    ChecksValues, Predictive, NamesHyperparameters, HasStarts, Embeds, Drawable, Sampled, Shardable, ValueLearner
):
    """Values whose `weight` is a number of observations. Subclasses are dataclasses with the two fields below.

    They write, besides what every family does, the likelihood of logarithms of hyperparameters given sums of rows
    (`of_atoms`) and given values (`of_values`, that of `between` last), and the `bounds` to search between.
    """

    between: ArrayLike | None
    learning: Literal["likelihood", "nothing"]

    bounds: ClassVar[tuple[tuple[float, float], ...]]
    """Of what it `learns`, which has `between` last."""

    @abstractmethod
    def of_atoms(self, sums: Array) -> LogLikelihood:
        """Log likelihood of the atoms' hyperparameters, given what values are worth."""

    @abstractmethod
    def of_values(self, stack: Stack, labels: Index) -> LogLikelihood:
        """The same together with `between`."""

    @property
    def exact(self) -> bool:
        """Whether sites differ by chance only, so that numbers of observations are taken as stated."""
        return self.between is not None and bool(np.isinf(self.between).all())

    def rows_change(self, stack: Stack) -> bool:
        """Rows depend on what a value is worth."""
        return not self.exact and self.learning != "nothing"

    def update(self, sums: Array) -> Self:
        """Maximum likelihood of the atoms' hyperparameters, given what values are worth."""
        if self.learning == "nothing":
            return self
        return self.climb_on(self.of_atoms(sums), sums, between=False)

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """As `update`, and `between`; that stays where no atom has two values, because then nothing tells it."""
        if not (self.rows_change(stack) and self.tells(labels)):
            return self.update(sums)
        return self.climb_on(self.of_values(stack, labels), sums, between=True)

    def tells(self, labels: Index) -> bool:
        """Whether a matching tells how much sites differ."""
        return not self.exact and len(np.unique(labels)) < len(labels)

    def search(self, sums: Array, between: bool) -> Search:
        """Where to look for hyperparameters, one per dimension, `between` (one number) last among them or not."""
        D, *atoms = self.width(sums), *(np.asarray(getattr(self, name)) for name in self.learns[:-1])
        start = np.concatenate([np.zeros(D) + np.log(x) for x in atoms])
        low, high = (np.repeat(np.log([bound[i] for bound in self.bounds[:-1]]), D) for i in (0, 1))
        if not between:
            return Search(start, low, high)
        return Search(
            *map(np.append, (start, low, high), np.log([float(np.asarray(require(self.between))), *self.bounds[-1]]))
        )

    def at(self, logs: Array, between: bool) -> Self:
        """The same family with hyperparameters of these logarithms."""
        found = np.exp(logs)
        atoms = np.split(found[: len(found) - between], len(self.learns) - 1)
        return with_fields(
            self, **dict(zip(self.learns, atoms, strict=False)), **({"between": float(found[-1])} if between else {})
        )

    def width(self, sums: Array) -> int:
        """Number of dimensions of the values behind sums of two statistics each, and a carrier."""
        return int(sums.shape[1] - 1) // 2

    def climb_on(self, log_likelihood: LogLikelihood, sums: Array, between: bool) -> Self:
        """The family with hyperparameters from the top."""
        return self.at(climb(log_likelihood, *self.search(sums, between)), between)

    def refuse_variance(self, observations: str) -> None:
        """What a value is worth is known by its weight alone."""
        raise InputError(
            f"{type(self).__name__}: what a value is worth is its weight ({observations}); it takes no variance."
        )


class PerCoordinate(StartsByShare, Observed):
    """Coordinates are independent: a row is two statistics of each, then the sum of carriers, (L, 2 D + 1)."""

    observations: ClassVar[str]
    """What a weight is, for a message."""

    @property
    @abstractmethod
    def density(self) -> Poisson:
        """How a value scatters about its atom."""

    @property
    @abstractmethod
    def prior(self) -> tuple[Array, Array]:
        """The two hyperparameters of atoms, as they are added to statistics."""

    def own(self, values: Array, weight: Array | None) -> Own:
        """What sites know of the worth of their values: one observation if that is all there is; else nothing."""
        ones = np.ones_like(values)
        if weight is None:
            return Own(ones, float(self.exact) * ones, ones)
        return Own((weight > 0).astype(np.float64), 1.0 / np.where(weight > 0, weight, 1.0), ones)

    def steady(self, stack: Stack) -> Stack:
        """Values whose noise does not depend on where they are."""
        return replace(stack, values=self.density.steady(stack.values, stack.seen), moments=None)

    def embed(self, values: Array) -> Array:
        """Where noise does not depend on where values are."""
        return self.density.steady(values, values > 0)

    def shares(self, steady: Stack) -> list[float]:
        """One where noise is known."""
        return [0.5] if self.exact else super().shares(steady)

    def prior_location(self, stack: Stack, share: float) -> Self:
        """As `starts`, of nothing given but `between` where it is infinite."""
        given = dict.fromkeys(self.learns) | {"between": self.between if self.exact else None}
        return with_fields(self, **given).with_share(stack, share)

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Statistics side by side and the summed carrier, (L, 2 D + 1)."""
        if variance is not None:
            self.refuse_variance(self.observations)
        values = values if weight is None else np.where(weight > 0, values, 0.0)
        own, known = self.own(values, weight), np.ones_like(values) if weight is None and self.exact else weight
        w = own.effective_size(np.asarray(require(self.between)))
        fixed = np.where(own.seen > 0, self.density.constant_carrier(values, known), 0.0)
        carrier = self.density.carrier(values, w)[0] + fixed
        return np.concatenate([*self.density.statistics(w, values), carrier.sum(-1, keepdims=True)], axis=-1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows (equation in the class's notes)."""
        P, R, H = parts(rows)
        return np.asarray(self.density.log_evidence(*self.prior, P, R).sum(-1) + H[..., 0])

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities; what depends on atoms only is taken out where all values are worth the same."""
        (p, r, h), (P, R, _), (a, b) = parts(own), parts(sums), self.prior
        return self.density.predictive(p, r, a + P, b + R) + h

    def of_atoms(self, sums: Array) -> LogLikelihood:
        """Of logarithms (2 D,) of the atoms' hyperparameters."""
        return likelihood_of_atoms(self.density, *parts(sums)[:2])

    def of_values(self, stack: Stack, labels: Index) -> LogLikelihood:
        """Of those and of `between`."""
        return likelihood_of_values(self.density, stack.values, self.own(stack.values, stack.weight), labels)


def parts(rows: Array) -> tuple[Array, Array, Array]:
    """Two statistics per dimension and the summed carrier, which stand side by side in rows (..., 2 D + 1)."""
    D = rows.shape[-1] // 2
    return rows[..., :D], rows[..., D : 2 * D], rows[..., 2 * D :]
