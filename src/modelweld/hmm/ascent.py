"""One step of the ascent: all posteriors given statistics, then statistics given all posteriors, and the bound.

Bound on the log evidence (ELBO) after a step (tempered: of p(x | z)^zeta), rows' and sticks' parts as in their files:

    ln Z - KL(emissions || prior) + rows + sticks

Nothing in a step lowers it: emissions, scale of the prior, sticks and rows are each set to what raises it (sticks: to
what does not lower it), and the posterior of paths is exact given them.

States merged or deleted (structural moves, not the chain's transitions), as long as the bound rises.

A move is tried as a point with one state less, from which a few steps are made; it is accepted if the bound there is
above the present one. Pairs are tried in the order of what the evidence of their frames gains when they are one.

Shares of the states: q(u_l) = Beta(a_l, b_l), beta_l = u_l prod_{j < l} (1 - u_j), beta_{K+1} the rest of the stick.

Rows are maximised out (theta follows from bbar = E beta), so that q maximises, with c(t) = ln Gamma(sum t) - sum ln
Gamma(t),

    F(a, b) = sum_k [Ec_k - c(theta_k)] + Ec_0 - c(theta_0) - sum_l KL(Beta(a_l, b_l) || Beta(1, gamma))

E c(eta beta + kappa e_k) has no closed form. Chords above the convex ln Gamma(1 + x) and ln Gamma(kappa + x) bound it:

    Ec_k = (1 - bbar_k) [ln Gamma(eta + kappa) - ln Gamma(kappa) - ln Gamma(1 + eta)]
           + K ln eta + sum_{l != k} E ln beta_l
    Ec_0 = K ln eta0 + sum_l E ln beta_l                     (rows too if kappa = 0)

E ln beta enters linearly, with weights w_l: were it not for the terms H(bbar) in bbar, a_l = 1 + w_l and b_l = gamma +
sum_{j > l} w_j would be the answer. Natural gradient steps, (a, b) <- (1 - rho) (a, b) + rho [(1 + w, gamma + ...) +
Fisher^-1 grad H], halved until F rises, take a few evaluations where a general optimiser takes dozens.

Rows of transition probabilities (moves) and of starts: Dirichlet posteriors given the shares of states.

Row k of K states has theta_kl = eta bbar_l + kappa [k = l] + N_kl for l <= K, and eta bbar_{K+1} for all states that
are not there; the row of starts, the last one here, theta_0l = eta0 bbar_l + n_l. E ln pi_kl = psi(theta_kl) -
psi(theta_k.).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, polygamma, psi

from modelweld.core.values import Array, Index
from modelweld.hmm.forward_backward import Paths, forward_backward
from modelweld.hmm.statistics import Emissions, Prior, Statistics, fitting_scale, pooling_gains


class Setting(NamedTuple):
    """The model's constants: the power of the densities, concentrations, and whether the prior's scale is learned."""

    zeta: float
    at: Concentrations
    learn_scale: bool


@dataclass(frozen=True, eq=False)
class Problem:
    """What stays the same: features of all frames, where sequences begin, and the model's constants."""

    features: Array
    offsets: Index
    setting: Setting


@dataclass(frozen=True, eq=False)
class Posterior:
    """Of emissions and rows, given statistics; the prior as it is now, and the sticks."""

    emissions: Emissions
    rows: Rows
    sticks: Sticks
    prior: Prior

    @classmethod
    def of(
        cls, statistics: Statistics, sticks: Sticks, prior: Prior, by: Setting, order: Index | None = None
    ) -> Posterior:
        """Posteriors given statistics; share ``order[l]`` of the sticks is that of state l, and the last the rest."""
        emissions = Emissions.of(by.zeta * statistics.sums, prior)
        if by.learn_scale:
            prior = fitting_scale(emissions, prior)
        numbers = stack_counts(statistics.moves, statistics.starts)
        shares = sticks.shares if order is None else sticks.shares[order]
        return cls(emissions, Rows(theta(shares, numbers, by.at), numbers), sticks, prior)

    def paths(self, features: Array, offsets: Index, zeta: float) -> Paths:
        """Posterior of paths."""
        log_density = zeta * (features @ self.emissions.coefficients().T)
        return forward_backward(self.rows.log_start, self.rows.log_move, log_density, offsets)

    def divergence(self, at: Concentrations) -> float:
        """What the bound is below ln Z."""
        return self.emissions.divergence(self.prior) - self.rows.elbo_term() - self.sticks.elbo_term(at)


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

    def take(self, order: Index) -> Point:
        """These states only, in this order; the bound is not known."""
        sticks = Sticks(self.sticks.a[: len(order)], self.sticks.b[-len(order) :])
        return replace(self, statistics=self.statistics.take(order), sticks=sticks, bound=-np.inf)


def step(problem: Problem, point: Point) -> Point:
    """One step up."""
    by = problem.setting
    sticks = point.sticks.rise(stack_counts(point.statistics.moves, point.statistics.starts), by.at)
    posterior = Posterior.of(point.statistics, sticks, point.prior, by)
    paths = posterior.paths(problem.features, problem.offsets, by.zeta)
    statistics = Statistics(paths.states.T @ problem.features, paths.moves, paths.starts)
    return Point(statistics, sticks, posterior.prior, paths.log_sum - posterior.divergence(by.at))


PAIRS_TRIED, STATES_TRIED = 12, 4
"""Pairs of states tried before merging is given up; and the smallest states, tried to delete where no pair merges."""

TRIAL_STEPS, DELETION_STEPS, SETTLING_STEPS = 3, 5, 4
"""Steps after a merge before the bound is looked at, after a deletion, whose frames have yet to find their new states,
and between two moves."""

GLANCE_STEPS, GLANCE_PAIRS = 10, 6
"""Steps before a glance's only round of merges. Pairs that a glance tries. On 14 fits it ended where 12 do, at three
quarters of their time, and 4 moved zeta by 6 %; of 33 others two moved by 7 and 10 %."""

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
            self.point = self.point.take(order)
            self.climb(SETTLING_STEPS, least_gain, "sort")

    def _accept_moves(self, pairs: int) -> Iterator[tuple[str, Point]]:
        """Moves after which the bound is higher."""
        point, problem = self.point, self.problem
        gains = pooling_gains(problem.setting.zeta * point.statistics.sums, point.prior)
        gains[np.tril_indices(len(gains))] = -np.inf
        best = np.argsort(-gains, axis=None, kind="stable")[:pairs]
        for i, j in zip(*np.unravel_index(best, gains.shape), strict=True):
            if gains[i, j] == -np.inf:
                break
            fewer = point.take(np.delete(np.arange(point.K), j))
            merged = Point(point.statistics.merge(int(i), int(j)), fewer.sticks, point.prior)
            trial = self._try_for(merged, TRIAL_STEPS)
            if trial.bound > point.bound:
                yield "merge", trial
        for k in point.statistics.by_size[::-1][:STATES_TRIED]:
            trial = self._try_for(point.take(np.delete(np.arange(point.K), k)), DELETION_STEPS)
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
            self.point = self.point.take(kept)
            return True
        return False


class Concentrations(NamedTuple):
    """Hyperparameters: of moves, of staying, of starts, of the stick."""

    eta: float
    kappa: float
    eta0: float
    gamma: float


def stack_counts(moves: Array, starts: Array) -> Array:
    """Moves, starts as last row, and a last column of zeros for all states that are not there: (K + 1, K + 1)."""
    K = len(starts)
    result = np.zeros((K + 1, K + 1))
    result[:K, :K] = moves
    result[K, :K] = starts
    return result


def theta(shares: Array, numbers: Array, at: Concentrations) -> Array:
    """Parameters of all rows (K + 1, K + 1), given expected shares (K + 1,) and numbers (see `stack_counts`)."""
    K = len(shares) - 1
    weights = np.append(np.full(K, at.eta), at.eta0)
    result = np.outer(weights, shares) + numbers
    result[np.arange(K), np.arange(K)] += at.kappa
    return np.asarray(result)


@dataclass(frozen=True, eq=False)
class Rows:
    """Posteriors of the rows (K + 1, K + 1): their parameters, and the numbers of moves in them."""

    theta: Array
    numbers: Array

    @cached_property
    def expected_log(self) -> Array:
        """E ln pi."""
        return np.asarray(psi(self.theta) - psi(self.theta.sum(axis=1, keepdims=True)))

    @property
    def log_move(self) -> Array:
        """Of the states that are there (K, K)."""
        return np.asarray(self.expected_log[:-1, :-1])

    @property
    def log_start(self) -> Array:
        """Of the states that are there (K,)."""
        return np.asarray(self.expected_log[-1, :-1])

    @property
    def mean(self) -> Array:
        """Expected probabilities of moves and, last, starts, among the states that are there (K + 1, K)."""
        there = self.theta[:, :-1]
        return np.asarray(there / there.sum(axis=1, keepdims=True))

    def elbo_term(self) -> float:
        """What rows add to the bound beside the sticks' part: -sum_k [c(theta_k) + sum_l N_kl E ln pi_kl]."""
        log_beta = gammaln(self.theta).sum() - gammaln(self.theta.sum(axis=1)).sum()
        return float(log_beta - (self.numbers * self.expected_log).sum())


MOST_HALVINGS = 6
"""After so many the step is given up: the shares are as good as rounding allows, or nearly."""

SMALLEST_PARAMETER = 1e-3
"""Of a Beta: a natural step may point beyond zero."""

SETTLED = 1e-11
"""Relative change of shares at which `settle` ends."""

MOST_STICK_STEPS = 200
"""Steps of `settle`; a dozen are usual."""


@dataclass(frozen=True, eq=False)
class Sticks:
    """Parameters a, b (K,) of the Beta posteriors."""

    a: Array
    b: Array

    @classmethod
    def first(cls, K: int, at: Concentrations) -> Sticks:
        """The answer without the terms in bbar: nearly equal shares."""
        return cls(*_linear_answer(K, at))

    @cached_property
    def shares(self) -> Array:
        """E beta (K + 1,), the rest last."""
        u = self.a / (self.a + self.b)
        return np.append(u, 1.0) * np.cumprod(np.append(1.0, 1 - u))

    @cached_property
    def _expected_logs(self) -> tuple[Array, Array]:
        """E ln u, E ln (1 - u)."""
        both = psi(self.a + self.b)
        return psi(self.a) - both, psi(self.b) - both

    def elbo_term(self, at: Concentrations) -> float:
        """What sticks add to the bound, rows' normalisers apart: sum_k Ec_k + Ec_0 - KL."""
        K = len(self.a)
        log_u, log_rest = self._expected_logs
        A, B = _linear_answer(K, at)
        linear = betaln(self.a, self.b) + (A - self.a) * log_u + (B - self.b) * log_rest - betaln(1.0, at.gamma)
        rows = (1 - self.shares[:-1]).sum() * _chord(at) + K * K * np.log(at.eta) + K * np.log(at.eta0)
        return float(linear.sum() + rows)

    def objective(self, numbers: Array, at: Concentrations) -> float:
        """F; `numbers` are moves and starts as `stack_counts` makes them."""
        t = theta(self.shares, numbers, at)
        return self.elbo_term(at) + float(gammaln(t).sum() - gammaln(t.sum(axis=1)).sum())

    def rise(self, numbers: Array, at: Concentrations) -> Sticks:
        """After one natural gradient step, F no lower."""
        A, B = _linear_answer(len(self.a), at)
        (ga, gb), (faa, fab, fbb) = self._slopes(numbers, at), self._fisher()
        det = faa * fbb - fab**2
        to_a, to_b = A + (fbb * ga - fab * gb) / det, B + (faa * gb - fab * ga) / det
        now = self.objective(numbers, at)
        for halvings in range(MOST_HALVINGS):
            rho = 0.5**halvings
            stepped = Sticks(
                np.maximum(self.a + rho * (to_a - self.a), SMALLEST_PARAMETER),
                np.maximum(self.b + rho * (to_b - self.b), SMALLEST_PARAMETER),
            )
            if stepped.objective(numbers, at) >= now:
                return stepped
        return self

    def settle(self, numbers: Array, at: Concentrations) -> Sticks:
        """After as many steps as it takes."""
        here = self
        for _ in range(MOST_STICK_STEPS):
            before, here = here, here.rise(numbers, at)
            if (np.abs(here.shares - before.shares) <= SETTLED * before.shares).all():
                break
        return here

    def _slopes(self, numbers: Array, at: Concentrations) -> tuple[Array, Array]:
        """Of H, all terms in bbar, in a and b."""
        K = len(self.a)
        weights = np.append(np.full(K, at.eta), at.eta0)
        by_share = weights @ psi(theta(self.shares, numbers, at))
        by_share[:K] -= _chord(at)
        # u_l multiplies share l, and 1 - u_l all shares after it
        u = self.a / (self.a + self.b)
        weighted = by_share * self.shares
        after = np.cumsum(weighted[::-1])[::-1][1:]
        by_u = weighted[:K] / u - after / (1 - u)
        total = (self.a + self.b) ** 2
        return by_u * self.b / total, -by_u * self.a / total

    def _fisher(self) -> tuple[Array, Array, Array]:
        """Information of a Beta: aa, ab, bb."""
        both = polygamma(1, self.a + self.b)
        return polygamma(1, self.a) - both, -both, polygamma(1, self.b) - both


def _linear_answer(K: int, at: Concentrations) -> tuple[Array, Array]:
    """1 + w_l and gamma + sum_{j > l} w_j: w counts in how many rows E ln beta_l stands."""
    w = np.full(K + 1, K + 1.0)
    if at.kappa > 0:
        w[:K] -= 1  # not in a state's own row
    return 1 + w[:K], at.gamma + np.cumsum(w[::-1])[::-1][1:]


def _chord(at: Concentrations) -> float:
    """What 1 - bbar_k is multiplied by."""
    if at.kappa == 0:
        return 0.0
    return float(gammaln(at.eta + at.kappa) - gammaln(at.kappa) - gammaln(1 + at.eta))
