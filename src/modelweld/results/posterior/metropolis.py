"""Chains that also move hyperparameters, of any family and of the prior: Metropolis steps in their logarithms.

What is sampled is a family's `sampled`: positive numbers and arrays of such. Every sweep multiplies each by a random
factor, and entries of arrays by factors of their own. The hyperprior of each is log-normal about what it would be if a
certain share of what values differ by were noise (`prior_location`). Of one array of Gaussian values everything
moves in compiled code (`compiled_gaussian`). The parameters of the prior over matchings move as in `compiled_prior`.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.board import Board
from modelweld.core.family import Family, condition_on, gather, log_prior, rows_change, with_fields
from modelweld.core.moments import Hyperparameters
from modelweld.core.prior import Fragments
from modelweld.core.values import Array
from modelweld.families.capabilities import list_sampled, prior_location
from modelweld.families.real_values import Gaussian
from modelweld.fit.engines.choice import is_compilable
from modelweld.fit.search.parts import Parts
from modelweld.results.posterior.compiled_evidences import evidence_of, is_compiled
from modelweld.results.posterior.compiled_gaussian import ACCEPTED, draw_wide, run, values_of
from modelweld.results.posterior.compiled_prior import log_hyperprior, move_prior, name_parameters, parameters_of
from modelweld.results.posterior.compiled_sweep import Given, Moving
from modelweld.results.posterior.confidence import CHAINS, DRAWS, FEWEST_DRAWS
from modelweld.results.posterior.drawn_fusions import name_of_draw
from modelweld.results.posterior.sampler import WARM_UP, Chain

SHARE, WIDE = 0.15, 1.0
"""Share of what values differ by that is expected to be noise, and the deviation of the logarithm of a hyperparameter
about what it would be then. Expected to be near what was *learned*, draws share the errors of the fit: matches of unit
vectors stated to be .98 sure were right in .62 (24 sets of five sites), with .05 in .84."""

NEAR_LEARNED = 0.7
"""That deviation about what was learned, of families that do not say what they expect."""

ENTRIES = 2
"""Entries of an array that move by themselves in a sweep."""

FIRST_STEP, TUNING = 0.3, 0.1
"""Deviation of the first steps, and how fast its logarithm is tuned in warm-up."""

EVERY, GAUSSIAN_SWEEPS = 3, 5
"""Sweeps of matching and hyperparameters between draws that are kept: of any family, and of Gaussian values."""

FRAGMENTS = (1.0, 25.0)
"""Beta law of the share of fragments, where the fit allows any: about what estimated mixtures have (a twentieth)."""

MOST_WORK, SLOWER = 1_000_000_000, 10
"""Values x (atoms + 20) x (dimensions + 4) x sweeps that are spent: five to ten seconds; and how much longer
evidences other than Gaussian take. The constants stand for what a sweep costs beyond scores."""

MOST_IN_NUMPY = 60
"""Values up to which as many are drawn where evidences are not compiled: sweeps are fifty times as slow."""


class Sampled(NamedTuple):
    """A hyperparameter that is sampled: of which array, its name, location and deviation of its log-normal prior."""

    array: int
    name: str
    location: Array
    deviation: float

    def log_prior(self, family: Family) -> float:
        """Log density of the logarithms, up to a constant."""
        off = np.log(_size(getattr(family, self.name)) / _size(self.location)) / self.deviation
        return -0.5 * float((off * off).sum())

    def scale(self, family: Family, factor: Array | float) -> Family:
        """The family with the hyperparameter multiplied."""
        now = np.asarray(getattr(family, self.name), dtype=np.float64) * factor
        return with_fields(family, **{self.name: float(now) if now.ndim == 0 else now})


def sampled(board: Board | Parts) -> list[Sampled]:
    """What is sampled: of every array's family that learns, all that is finite and positive."""
    found = []
    for array, (family, stack) in enumerate(zip(board.families, board.stacks, strict=True)):
        expected = prior_location(family, stack, SHARE)
        deviation = NEAR_LEARNED if expected is family else WIDE
        for name in list_sampled(family) if learns(family) else ():
            learned, location = getattr(family, name), np.asarray(getattr(expected, name), dtype=np.float64)
            if learned is not None and np.isfinite(learned).all() and (_size(learned) > 0).all():
                one = np.exp(np.log(location).mean()) if np.size(learned) < location.size else location
                found.append(Sampled(array, name, np.zeros(np.shape(learned)) + one, deviation))
    return found


def _size(value: ArrayLike) -> Array:
    """What must be positive: the numbers themselves, or the mean variance of a covariance (D, D), scaled as a whole."""
    numbers = np.asarray(value, dtype=np.float64)
    return np.asarray(np.trace(numbers) / len(numbers)) if numbers.ndim == 2 else numbers


def is_drawable(board: Board | Parts) -> bool:
    """Whether there is something to sample, or all there is of one Gaussian array was given by the user."""
    return bool(sampled(board)) or is_gaussian(board)


def is_gaussian(board: Board | Parts) -> bool:
    """Whether values are one Gaussian array whose dimensions are independent."""
    return len(board.families) == 1 and is_compilable(board.families[0]) and len(board.labels) > 0


def chain_for(board: Board, fixed: bool | None) -> type[Chain]:
    """Which chain draws a board; None: hyperparameters of Gaussian values move, those of others do not."""
    if fixed or (fixed is None and not is_gaussian(board)):
        return Chain
    return GaussianChain if is_gaussian(board) else MetropolisChain


def affordable_draws(board: Board | Parts) -> int:
    """Draws per chain that can be had within seconds; zero where too few can, or none at all."""
    N, columns = len(board.labels), sum(stack.values.shape[1] for stack in board.stacks)
    if not is_drawable(board):
        return 0
    if not all(is_compiled(family, sums) for family, sums in zip(board.families, board.sums, strict=True)):
        return FEWEST_DRAWS if N <= MOST_IN_NUMPY else 0
    sweep = N * (np.count_nonzero(board.counts) + 20) * (columns + 4)
    cost = 1 if is_gaussian(board) else SLOWER
    draws = int(MOST_WORK / (sweep * cost * CHAINS * GAUSSIAN_SWEEPS * (1 + WARM_UP)))
    return 0 if draws < FEWEST_DRAWS else min(draws, DRAWS)


def learns(family: Family) -> bool:
    """Whether hyperparameters are learned, so that they may be drawn, too."""
    return getattr(family, "learning", "nothing") != "nothing"


class MetropolisChain(Chain):
    """A chain whose hyperparameters move with its matching."""

    def __init__(self, board: Board, rng: np.random.Generator) -> None:
        self.stacks, self.sampled, self.parameters = board.stacks, sampled(board), parameters_of(board)
        self.log_steps = {(s.array, s.name): np.full(2, np.log(FIRST_STEP)) for s in self.sampled}
        super().__init__(board, rng)
        self.random, self.rate = rng.integers(2**63, size=1).astype(np.uint64), TUNING
        self.remade = {(s.array, s.name) for s in self.sampled if self._changes_rows(s)}

    def _changes_rows(self, s: Sampled) -> bool:
        """Whether rows depend on this hyperparameter, and must be made again when it moves."""
        family, stack = self.families[s.array], self.stacks[s.array]
        if not rows_change(family, stack):
            return False
        rows = condition_on(s.scale(family, 1.5), stack).rows(stack.values, stack.variance, stack.weight)
        return not np.array_equal(rows, self.rows[s.array])

    def forget(self) -> None:
        """Count moves from here on, and let steps be what they are."""
        super().forget()
        self.rate = 0.0

    def start(self, number: int) -> None:
        """As fitted or dispersed, with steps to be tuned."""
        self.rate = TUNING
        super().start(number)

    def sweep(self) -> None:
        """Matching, then hyperparameters given it."""
        for _ in range(EVERY):
            super().sweep()
            self.move_hyperparameters()
            self.draw_delta()

    def move_hyperparameters(self) -> None:
        """All that is sampled, given the matching."""
        held = self.counts > 0
        self.here = [evidence_of(family, sums[held]) for family, sums in zip(self.families, self.sums, strict=True)]
        for s in self.sampled:
            self.move(s, None)
            if s.location.ndim == 1 and s.location.size > 1:
                for entry in self.rng.integers(s.location.size, size=ENTRIES).tolist():
                    self.move(s, entry)
        if self.parameters.are_drawn:
            move_prior(self.counts, self.parameters, self.R, self.random)
            self.increments = np.diff(self.R)

    def draw_delta(self) -> None:
        """The share of fragments from its conditional, a Beta law."""
        if self.fragments is not None and (self.sampled or self.parameters.are_drawn):
            once = int(self.counts.sum())
            delta = self.rng.beta(FRAGMENTS[0] + len(self.labels) - once, FRAGMENTS[1] + once)
            self.fragments = Fragments(max(delta, np.finfo(float).tiny))

    def move(self, s: Sampled, entry: int | None) -> None:
        """Metropolis step of a hyperparameter, or of an entry of it."""
        a, family, stack = s.array, self.families[s.array], self.stacks[s.array]
        steps, kind = self.log_steps[a, s.name], 0 if entry is None else 1
        factor = np.exp(np.exp(steps[kind]) * self.rng.standard_normal())
        if entry is not None:
            factor = np.where(np.arange(s.location.size) == entry, factor, 1.0)
        new, rows, sums = condition_on(s.scale(family, factor), stack), self.rows[a], self.sums[a]
        if (a, s.name) in self.remade:
            rows = new.rows(stack.values, stack.variance, stack.weight)
            rows, sums = gather(new, rows, self.labels, len(self.counts))
        there = evidence_of(new, sums[self.counts > 0])
        rise = there - self.here[a] + log_prior(new) - log_prior(family) + s.log_prior(new) - s.log_prior(family)
        accepted = bool(np.log(self.rng.random()) < rise)  # NaN is not
        steps[kind] += self.rate * (accepted - ACCEPTED)
        if accepted:
            self.families[a], self.rows[a], self.sums[a], self.here[a] = new, rows, sums, there

    def objective(self) -> float:
        """Log density of matching, values and hyperparameters, up to a constant."""
        own = sum(map(log_prior, self.families))
        own += sum(s.log_prior(self.families[s.array]) for s in self.sampled)
        prior = log_hyperprior(self.parameters) if self.parameters.are_drawn else 0.0
        return float(super().objective() + own + prior)

    def hyperparameters(self) -> dict[str, Array]:
        """Hyperparameters as they are now, by name."""
        A = len(self.families)
        found = {name_of_draw(s.name, s.array, A): getattr(self.families[s.array], s.name) for s in self.sampled}
        if self.fragments is not None:
            found["delta"] = self.fragments.delta
        found |= name_parameters(self.parameters.at) if self.parameters.are_drawn else {}
        return {name: np.array(value) for name, value in found.items()}


class GaussianChain(MetropolisChain):
    """The same of one array of Gaussian values: all in compiled code."""

    def __init__(self, board: Board, rng: np.random.Generator) -> None:
        self.values = values_of(board)
        super().__init__(board, rng)

    def sweep(self) -> None:
        """Matching, prior and hyperparameters in turn, then the share of fragments."""
        Chain.sweep(self)
        self.draw_delta()
        draw_wide(self.values, self.rng)

    def run(self, given: Given, state: Moving) -> None:
        """Move the compiled state and hyperparameters."""
        run(given, state, self.values, self.parameters, self.rate, GAUSSIAN_SWEEPS, self.tried, self.done)
        at = Hyperparameters(self.values.mean.copy(), *self.values.at.copy())
        self.families, self.rows = [cast("Gaussian", self.families[0]).with_hyperparameters(at)], [given.rows]

    def hyperparameters(self) -> dict[str, Array]:
        """As of others, with the mean and the share of values that scatter more; what a user gave stays."""
        own = {name: np.array(getattr(self.families[0], name)) for name in ("mean", "noise", "spread")}
        own["wide"] = 1.0 - np.exp(self.values.log_shares[0])
        return own | super().hyperparameters()
