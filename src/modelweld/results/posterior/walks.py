"""Chains that also move hyperparameters, of any family and of the prior: random walks in their logarithms.

What is drawn is a family's `sampled`: positive numbers and arrays of such. Every sweep multiplies each by a random
factor, and entries of arrays by factors of their own. Each is believed to be what it would be if a certain share of
what values differ by were noise (`Family.expecting`), give or take WIDE; the prior over matchings has the parameters
and beliefs of the compiled chains (`compiled_beliefs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.board import Board
from modelweld.core.family import Family, condition_on, gather, log_prior, rows_change, with_fields
from modelweld.core.values import Array
from modelweld.families.capabilities import prior_location, sampled_of
from modelweld.fit.priors.spectrum import JUNK_SHARE
from modelweld.fit.search.parts import Parts
from modelweld.results.posterior.compiled_beliefs import log_belief
from modelweld.results.posterior.compiled_evidences import evidence_of, is_compiled
from modelweld.results.posterior.compiled_hyperparameters import ACCEPTED, move_prior
from modelweld.results.posterior.compiled_state import JUNK, LOG_A, LOG_ATOMS, LOG_B, SINGLE
from modelweld.results.posterior.confidence import DRAWS, FEWEST_DRAWS
from modelweld.results.posterior.drawn_fusions import drawn_name
from modelweld.results.posterior.joint import TUNING, first_prior, is_drawn, named_prior
from modelweld.results.posterior.sampler import Chain

SHARE, WIDE = 0.15, 1.0
"""Share of what values differ by that is expected to be noise, and the deviation of the logarithm of a hyperparameter
about what it would be then. Believed to be near what was *learned*, draws share the errors of the fit: matches of unit
vectors stated to be .98 sure were right in .62 (24 sets of five sites), with .05 in .84."""

NEAR_LEARNED = 0.7
"""That deviation about what was learned, of families that do not say what they expect."""

ENTRIES = 2
"""Entries of an array that are walked by themselves in a sweep."""

FIRST_STEP = 0.3
"""Deviation of a walk's first steps."""

EVERY = 3
"""Sweeps of matching and hyperparameters between draws that are kept."""

MOST_WALKED = 3_000
"""Draws x (values x (atoms + 20) x dimensions / 2500 + 5) that are spent: ten seconds or so, for two chains."""

WALKED_UP_TO = 60
"""Values up to which as many are drawn where evidences are not compiled: sweeps are fifty times as slow."""


class Walked(NamedTuple):
    """A hyperparameter that is walked: of which array, its name, what it is believed to be, and how firmly."""

    array: int
    name: str
    believed: Array
    deviation: float

    def log_belief(self, family: Family) -> float:
        """Log density of the logarithms, up to a constant."""
        off = np.log(_size(getattr(family, self.name)) / _size(self.believed)) / self.deviation
        return -0.5 * float((off * off).sum())

    def moved(self, family: Family, entry: int | None, factor: float) -> Family:
        """The family with the hyperparameter, or one entry of it, multiplied."""
        now = np.array(getattr(family, self.name), dtype=np.float64)
        if entry is None:
            now = now * factor
        else:
            now.ravel()[entry] *= factor
        return with_fields(family, **{self.name: float(now) if now.ndim == 0 else now})


def walked(board: Board | Parts) -> list[Walked]:
    """What is walked: of every array's family that learns, all that is finite and positive."""
    found = []
    for array, (family, stack) in enumerate(zip(board.families, board.stacks, strict=True)):
        expected = prior_location(family, stack, SHARE)
        deviation = NEAR_LEARNED if expected is family else WIDE
        for name in sampled_of(family) if learns(family) else ():
            learned, believed = getattr(family, name), np.asarray(getattr(expected, name), dtype=np.float64)
            if learned is not None and np.isfinite(learned).all() and (_size(learned) > 0).all():
                one = np.exp(np.log(believed).mean()) if np.size(learned) < believed.size else believed
                found.append(Walked(array, name, np.zeros(np.shape(learned)) + one, deviation))
    return found


def _size(value: ArrayLike) -> Array:
    """What must be positive: the numbers themselves, or the mean variance of a covariance (D, D), walked as a whole."""
    numbers = np.asarray(value, dtype=np.float64)
    return np.asarray(np.trace(numbers) / len(numbers)) if numbers.ndim == 2 else numbers


def affordable_walks(board: Board | Parts) -> int:
    """Draws per chain that take seconds; zero where values are too many, or nothing is walked."""
    N, columns = len(board.labels), sum(stack.values.shape[1] for stack in board.stacks)
    work = N * (np.count_nonzero(board.counts) + 20) * columns
    draws = int(MOST_WALKED / (work / 2500 + 5))
    if draws < FEWEST_DRAWS or not walked(board):
        return 0
    if all(is_compiled(family, sums) for family, sums in zip(board.families, board.sums, strict=True)):
        return min(draws, DRAWS)
    return FEWEST_DRAWS if N <= WALKED_UP_TO else 0


def learns(family: Family) -> bool:
    """Whether hyperparameters are learned, so that they may be drawn, too."""
    return getattr(family, "learning", "nothing") != "nothing"


class WalkingChain(Chain):
    """A chain whose hyperparameters move with its matching."""

    def __init__(self, board: Board, rng: np.random.Generator) -> None:
        self.stacks, self.sizes, self.prior = board.stacks, board.sizes, board.prior
        self.walked = walked(board)
        self.log_steps = {(w.array, w.name): np.full(2, np.log(FIRST_STEP)) for w in self.walked}
        self.draws_prior, self.rate = is_drawn(board.prior, len(board.sizes)), TUNING
        size = float(board.sizes[board.sizes > 0].mean())
        self.size = float(np.log(size)), JUNK_SHARE * size
        self.rest = np.zeros(SINGLE)
        self.rest[[LOG_A, LOG_B, LOG_ATOMS, JUNK]] = first_prior(board.prior, len(board.counts))
        super().__init__(board, rng)
        self.random = rng.integers(2**63, size=1).astype(np.uint64)
        self.remade = {(w.array, w.name) for w in self.walked if self._changes_rows(w)}

    def _changes_rows(self, w: Walked) -> bool:
        """Whether rows depend on this hyperparameter, and must be made again when it moves."""
        family, stack = self.families[w.array], self.stacks[w.array]
        if not rows_change(family, stack):
            return False
        rows = condition_on(w.moved(family, None, 1.5), stack).rows(stack.values, stack.variance, stack.weight)
        return not np.array_equal(rows, self.rows[w.array])

    def forget(self) -> None:
        """Count moves from here on, and let steps be what they are."""
        super().forget()
        self.rate = 0.0

    def start(self, number: int) -> None:
        """As fitted or dispersed, with steps to be tuned."""
        self.rate = TUNING
        super().start(number)

    def sweep(self) -> None:
        """Matching, then hyperparameters given it, several times: neighbours tell little more than one of them."""
        for _ in range(EVERY):
            self.sweep_once()

    def sweep_once(self) -> None:
        """Matching, then hyperparameters given it."""
        super().sweep()
        held = self.counts > 0
        self.here = [evidence_of(family, sums[held]) for family, sums in zip(self.families, self.sums, strict=True)]
        for w in self.walked:
            self.walk(w, None)
            if w.believed.ndim == 1 and w.believed.size > 1:
                for entry in self.rng.integers(w.believed.size, size=ENTRIES).tolist():
                    self.walk(w, entry)
        if self.draws_prior:
            self.walk_prior()

    def objective(self) -> float:
        """Log density of matching, values and hyperparameters, up to a constant."""
        believed = sum(w.log_belief(self.families[w.array]) for w in self.walked)
        prior = log_belief(self.rest, *self.size, len(self.sizes)) if self.draws_prior else 0.0
        return float(super().objective() + believed + prior)

    def walk(self, w: Walked, entry: int | None) -> None:
        """One step of a hyperparameter, by the rule of Metropolis."""
        family, stack, held = self.families[w.array], self.stacks[w.array], np.flatnonzero(self.counts)
        steps, kind = self.log_steps[w.array, w.name], 0 if entry is None else 1
        factor = float(np.exp(np.exp(steps[kind]) * self.rng.standard_normal()))
        new = condition_on(w.moved(family, entry, factor), stack)
        rows, sums = self.rows[w.array], self.sums[w.array]
        if (w.array, w.name) in self.remade:
            rows = new.rows(stack.values, stack.variance, stack.weight)
            rows, sums = gather(new, rows, self.labels, len(self.counts))
        there = evidence_of(new, sums[held])
        rise = there - self.here[w.array]
        rise += log_prior(new) - log_prior(family) + w.log_belief(new) - w.log_belief(family)
        accepted = bool(np.log(self.rng.random()) < rise)  # NaN is not
        steps[kind] += self.rate * (accepted - ACCEPTED)
        if accepted:
            self.families[w.array], self.rows[w.array], self.sums[w.array], self.here[w.array] = new, rows, sums, there

    def walk_prior(self) -> None:
        """The prior's parameters, and what follows from them."""
        R = np.append(self.R, 0.0)
        move_prior(self.counts, self.rest, *self.size, R, self.random)
        self.R, self.increments = R[:-1], np.diff(R[:-1])

    def drawn(self) -> dict[str, Array]:
        """Hyperparameters as they are now, by name."""
        found = {
            drawn_name(w.name, w.array, len(self.families)): np.array(getattr(self.families[w.array], w.name))
            for w in self.walked
        }
        return found | named_prior(self.rest) if self.draws_prior else found
