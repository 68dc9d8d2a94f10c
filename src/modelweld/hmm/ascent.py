"""One step of the ascent: all posteriors given statistics, then statistics given all posteriors, and the bound.

Bound on the log evidence (ELBO) after a step (tempered: of p(x | z)^zeta), rows' and sticks' parts as in their files:

    ln Z - KL(emissions || prior) + rows + sticks

Nothing in a step lowers it: emissions, scale of the prior, sticks and rows are each set to what raises it (sticks: to
what does not lower it), and the posterior of paths is exact given them.

States merged or deleted (structural moves, not the chain's transitions), as long as the bound rises.

A move is tried as a point with one state less, from which a few steps are made; it is accepted if the bound there is
above the present one. Pairs are tried in the order of what the evidence of their frames gains when they are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Index
from modelweld.hmm.emissions import Emissions, Prior, fitting_scale, pooling_gains
from modelweld.hmm.forward_backward import Paths, forward_backward
from modelweld.hmm.statistics import Statistics
from modelweld.hmm.sticks import Concentrations, Rows, Sticks, seen, theta
from modelweld.inputs.local_model import Array


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


PAIRS_TRIED = 12
"""Pairs of states tried before merging is given up."""

STATES_TRIED = 4
"""The smallest states, which are tried to delete where no pair merges."""

TRIAL_STEPS = 3
"""Steps after a merge before the bound is looked at."""

DELETION_STEPS = 5
"""Steps after a deletion: its frames have yet to find their new states."""

SETTLING_STEPS = 4
"""Steps between two moves."""

GLANCE_STEPS = 10
"""Steps before a glance's only round of merges."""

GLANCE_PAIRS = 6
"""Pairs that a glance tries. On 14 fits it ended where 12 do, at three quarters of their time, and 4 moved zeta by 6 %;
of 33 others two moved by 7 and 10 %."""

FEWEST_FRAMES = 1.0
"""A state with fewer expected frames is dropped."""


class Step(NamedTuple):
    """One step of the history: the bound after it, the number of states, and the move that was made before it."""

    bound: float
    n_states: int
    move: str = ""


class Course:
    """The way up: a point, and the history of how it was reached."""

    def __init__(self, problem: Problem, point: Point) -> None:
        self.problem, self.point = problem, point
        self.history: list[Step] = []
        self.converged = False

    def run(self, most: int, least_gain: float) -> None:
        """All the way up: climb, then sort, merge and delete states and climb again while there get fewer of them."""
        self.climb(most, least_gain, "start")
        before = 0
        while before != self.point.K:
            before = self.point.K
            self.sort(least_gain)
            self.reduce(least_gain)
            self.climb(most, least_gain)

    def glance(self, least_gain: float) -> None:
        """Part of the way up, at half the time: as many states as at its end, nearly, and frames where they belong."""
        self.climb(GLANCE_STEPS, least_gain, "start")
        self.sort(least_gain)
        self.reduce(least_gain, GLANCE_PAIRS)

    def climb(self, most: int, least_gain: float, move: str = "") -> None:
        """Up to so many steps, until one gains less; states without frames are dropped on the way."""
        self.converged = False
        for i in count(1):
            before = self.point.bound
            self.point = step(self.problem, self.point)
            self.history.append(Step(self.point.bound, self.point.K, move))
            if self._drop_empty():
                move = "drop"  # and at least one step on: the bound is not known yet
                continue
            move = ""
            self.converged = self.point.bound - before < least_gain
            if self.converged or i >= most:
                return

    def reduce(self, least_gain: float, pairs: int = PAIRS_TRIED) -> None:
        """Merge and delete states until nothing raises the bound."""
        while self.point.K > 1:
            accepted = next(self._accept_moves(pairs), None)
            if accepted is None:
                return
            name, trial = accepted
            self.point = trial
            self.history.append(Step(trial.bound, trial.K, name))
            self.climb(SETTLING_STEPS, least_gain)

    def sort(self, least_gain: float) -> None:
        """States by decreasing size, as shares of a stick expect them."""
        order = self.point.statistics.by_size
        if (order != np.arange(len(order))).any():
            self.point = self.point.taken(order)
            self.climb(SETTLING_STEPS, least_gain, "sort")

    def _accept_moves(self, pairs: int) -> Iterator[tuple[str, Point]]:
        """Moves after which the bound is higher."""
        point, problem = self.point, self.problem
        gains = pooling_gains(problem.zeta * point.statistics.sums, point.prior)
        gains[np.tril_indices(len(gains))] = -np.inf
        best = np.argsort(-gains, axis=None, kind="stable")[:pairs]
        for i, j in zip(*np.unravel_index(best, gains.shape), strict=True):
            if gains[i, j] == -np.inf:
                break
            trial = self._try_for(_merge(point, int(i), int(j)), TRIAL_STEPS)
            if trial.bound > point.bound:
                yield "merge", trial
        for k in point.statistics.by_size[::-1][:STATES_TRIED]:
            trial = self._try_for(point.taken(np.delete(np.arange(point.K), k)), DELETION_STEPS)
            if trial.bound > point.bound:
                yield "delete", trial

    def _try_for(self, trial: Point, steps: int) -> Point:
        """The point some steps on."""
        for _ in range(steps):
            trial = step(self.problem, trial)
        return trial

    def _drop_empty(self) -> bool:
        counts = self.point.statistics.counts
        kept = np.flatnonzero(counts >= FEWEST_FRAMES)
        if 0 < len(kept) < len(counts):
            self.point = self.point.taken(kept)
            return True
        return False


def _merge(point: Point, i: int, j: int) -> Point:
    """State j added to state i."""
    fewer = point.taken(np.delete(np.arange(point.K), j))
    return Point(point.statistics.merged(i, j), fewer.sticks, point.prior)
