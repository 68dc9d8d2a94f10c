"""One step of the ascent: all posteriors given statistics, then statistics given all posteriors, and the bound.

Bound on the log evidence (ELBO) after a step (tempered: of p(x | z)^zeta), rows' and sticks' parts as in their files:

    ln Z - KL(emissions || prior) + rows + sticks

Nothing in a step lowers it: emissions, scale of the prior, sticks and rows are each set to what raises it (sticks: to
what does not lower it), and the posterior of paths is exact given them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modelweld.hmm.emissions import Emissions, Prior, fitting_scale
from modelweld.hmm.forward_backward import Paths, forward_backward
from modelweld.hmm.statistics import Statistics
from modelweld.hmm.sticks import Sticks
from modelweld.hmm.transitions import Concentrations, Rows, seen, theta
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index


@dataclass(frozen=True, eq=False)
class Problem:
    """What stays the same: features of all frames, where sequences begin, and the model's constants."""

    features: Array
    offsets: Index
    zeta: float
    at: Concentrations
    learn_scale: bool


@dataclass(frozen=True, eq=False)
class Posterior:
    """Of emissions and rows, given statistics; the prior as it is now, and the sticks."""

    emissions: Emissions
    rows: Rows
    sticks: Sticks
    prior: Prior

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        sticks: Sticks,
        prior: Prior,
        *,
        zeta: float,
        at: Concentrations,
        learn_scale: bool,
        order: Index | None = None,
    ) -> Posterior:
        """Posteriors given statistics; share ``order[l]`` of the sticks is that of state l, and the last the rest."""
        emissions = Emissions.of(zeta * statistics.sums, prior)
        if learn_scale:
            prior = fitting_scale(emissions, prior)
        numbers = seen(statistics.moves, statistics.starts)
        shares = sticks.shares if order is None else sticks.shares[order]
        return cls(emissions, Rows(theta(shares, numbers, at), numbers), sticks, prior)

    def paths(self, features: Array, offsets: Index, zeta: float) -> Paths:
        """Posterior of paths."""
        log_density = zeta * (features @ self.emissions.coefficients().T)
        return forward_backward(self.rows.log_start, self.rows.log_move, log_density, offsets)

    def divergence(self, at: Concentrations) -> float:
        """What the bound is below ln Z."""
        return self.emissions.divergence(self.prior) - self.rows.bound() - self.sticks.bound(at)


@dataclass(frozen=True, eq=False)
class Point:
    """Where the ascent is: statistics, and sticks and prior they were made with; the bound there."""

    statistics: Statistics
    sticks: Sticks
    prior: Prior
    bound: float = -np.inf

    @property
    def K(self) -> int:
        """Number of states."""
        return len(self.statistics.starts)

    def taken(self, order: Index) -> Point:
        """These states only, in this order; the bound is not known."""
        sticks = Sticks(self.sticks.a[: len(order)], self.sticks.b[-len(order) :])
        return replace(self, statistics=self.statistics.taken(order), sticks=sticks, bound=-np.inf)


def step(problem: Problem, point: Point) -> Point:
    """One step up."""
    sticks = point.sticks.risen(seen(point.statistics.moves, point.statistics.starts), problem.at)
    posterior = Posterior.of(
        point.statistics, sticks, point.prior, zeta=problem.zeta, at=problem.at, learn_scale=problem.learn_scale
    )
    paths = posterior.paths(problem.features, problem.offsets, problem.zeta)
    statistics = Statistics(paths.states.T @ problem.features, paths.moves, paths.starts)
    return Point(statistics, sticks, posterior.prior, paths.log_sum - posterior.divergence(problem.at))
