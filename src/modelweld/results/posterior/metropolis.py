"""What moves with a matching: hyperparameters of every family, and what is expected of sharing.

Of any family those move that it lists as `sampled`, positive numbers and arrays of such, by Metropolis steps in their
logarithms: every sweep multiplies each by a random factor, and entries of arrays by factors of their own. The prior of
each is log-normal about what it would be if a certain share of what values differ by were noise (`prior_location`), the
entries of an array about a common level. Gaussian values have moves of their own (`gaussian_moves`).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.board import Board
from modelweld.core.family import Family, condition_on, gather, log_prior, rows_change, with_fields
from modelweld.core.values import Array, Stack
from modelweld.families.capabilities import list_sampled, prior_location
from modelweld.fit.engines.choice import is_compilable
from modelweld.fit.search.parts import Parts
from modelweld.results.posterior.compiled_evidences import evidence_of, is_compiled
from modelweld.results.posterior.confidence import CHAINS, DRAWS, FEWEST_DRAWS
from modelweld.results.posterior.drawn_fusions import name_of_draw
from modelweld.results.posterior.gaussian_moves import GaussianMove
from modelweld.results.posterior.sampler import ACCEPTED, SWEEPS, WARM_UP, Chain, Move
from modelweld.results.posterior.sharing_moves import FragmentMove, SharingMove, is_drawn

SHARE, WIDE = 0.15, 1.0
"""Share of what values differ by that is expected to be noise, and the deviation of the logarithm of a hyperparameter
about what it would be then. Expected to be near what was *learned*, draws share the errors of the fit: matches of unit
vectors stated to be .98 sure were right in .62 (24 sets of five sites), with .05 in .84."""

NEAR_LEARNED = 0.7
"""That deviation about what was learned, of families that do not say what they expect."""

ENTRIES = 2
"""Entries of an array that move by themselves in a sweep."""

FIRST_STEP = 0.3
"""Deviation of the first steps."""

MOST_WORK, SLOWER = 1_000_000_000, 10
"""Values x (atoms + 20) x (dimensions + 4) x sweeps that are spent: five to ten seconds; and how much longer
evidences other than Gaussian take. The constants stand for what a sweep costs beyond scores."""

MOST_IN_NUMPY = 60
"""Values up to which as many are drawn where evidences are not compiled: sweeps are fifty times as slow."""


def moves_of(board: Board, fixed: bool | None) -> list[Move]:
    """What moves; None: hyperparameters of Gaussian values do, those of others do not."""
    if fixed or (fixed is None and not is_gaussian(board)):
        return []
    found: list[Move] = []
    for array, (family, stack) in enumerate(zip(board.families, board.stacks, strict=True)):
        if is_compilable(family) and learns(family):
            found.append(GaussianMove(board, array))
        else:
            make = partial(FamilyMove, array=array, arrays=len(board.families), stack=stack)
            found += [make(name, *law) for name, law in sampled(family, stack).items()]
    found += [SharingMove(board)] if is_drawn(board.prior) else []
    return [*found, FragmentMove()] if board.fragments is not None and found else found


def sampled(family: Family, stack: Stack) -> dict[str, tuple[Array, float]]:
    """What of a family that learns is sampled, all that is finite and positive: location and deviation of its prior."""
    expected, found = prior_location(family, stack, SHARE), {}
    for name in list_sampled(family) if learns(family) else ():
        learned, location = getattr(family, name), np.asarray(getattr(expected, name), dtype=np.float64)
        if learned is not None and np.isfinite(learned).all() and (_size(learned) > 0).all():
            one = np.exp(np.log(location).mean()) if np.size(learned) < location.size else location
            found[name] = np.zeros(np.shape(learned)) + one, NEAR_LEARNED if expected is family else WIDE
    return found


def _size(value: ArrayLike) -> Array:
    """What must be positive: the numbers themselves, or the mean variance of a covariance (D, D), scaled as a whole."""
    numbers = np.asarray(value, dtype=np.float64)
    return np.asarray(np.trace(numbers) / len(numbers)) if numbers.ndim == 2 else numbers


def learns(family: Family) -> bool:
    """Whether hyperparameters are learned, so that they may be drawn, too."""
    return getattr(family, "learning", "nothing") != "nothing"


def is_drawable(board: Board | Parts) -> bool:
    """Whether there is something to sample, or all there is of one Gaussian array was given by the user."""
    return is_gaussian(board) or any(map(sampled, board.families, board.stacks))


def is_gaussian(board: Board | Parts) -> bool:
    """Whether values are one Gaussian array whose dimensions are independent."""
    return len(board.families) == 1 and is_compilable(board.families[0]) and len(board.labels) > 0


def affordable_draws(board: Board | Parts) -> int:
    """Draws per chain that can be had within seconds; zero where too few can, or none at all."""
    N, columns = len(board.labels), sum(stack.values.shape[1] for stack in board.stacks)
    if not is_drawable(board):
        return 0
    if not all(is_compiled(family, sums) for family, sums in zip(board.families, board.sums, strict=True)):
        return FEWEST_DRAWS if N <= MOST_IN_NUMPY else 0
    sweep = N * (np.count_nonzero(board.counts) + 20) * (columns + 4)
    cost = 1 if is_gaussian(board) else SLOWER
    draws = int(MOST_WORK / (sweep * cost * CHAINS * SWEEPS * (1 + WARM_UP)))
    return 0 if draws < FEWEST_DRAWS else min(draws, DRAWS)


class FamilyMove(Move):
    """A hyperparameter of a family: of which array, its name, location and deviation of its log-normal prior."""

    def __init__(self, name: str, location: Array, deviation: float, *, array: int, arrays: int, stack: Stack) -> None:
        self.name, self.location, self.deviation = name, location, deviation
        self.array, self.arrays, self.stack = array, arrays, stack
        self.log_steps = np.full(2, np.log(FIRST_STEP))

    def step(self, chain: Chain, rate: float) -> None:
        """All of it, then entries."""
        self._metropolis(chain, None, rate)
        if self.location.ndim == 1 and self.location.size > 1:
            for entry in chain.rng.integers(self.location.size, size=ENTRIES).tolist():
                self._metropolis(chain, entry, rate)

    def _metropolis(self, chain: Chain, entry: int | None, rate: float) -> None:
        family, stack, kind = chain.families[self.array], self.stack, 0 if entry is None else 1
        factor = np.exp(np.exp(self.log_steps[kind]) * chain.rng.standard_normal())
        at = np.asarray(getattr(family, self.name), dtype=np.float64)
        at = at * (factor if entry is None else np.where(np.arange(at.size) == entry, factor, 1.0))
        new = condition_on(with_fields(family, **{self.name: float(at) if at.ndim == 0 else at}), stack)
        rows, sums, held = chain.rows[self.array], chain.sums[self.array], chain.counts > 0
        if rows_change(new, stack):
            rows = new.rows(stack.values, stack.variance, stack.weight)
            rows, sums = gather(new, rows, chain.labels, len(chain.counts))
        here = evidence_of(family, chain.sums[self.array][held]) + log_prior(family) + self.log_density(family)
        there = evidence_of(new, sums[held]) + log_prior(new) + self.log_density(new)
        accepted = bool(np.log(chain.rng.random()) < there - here)  # NaN is not
        self.log_steps[kind] += rate * (accepted - ACCEPTED)
        if accepted:
            chain.families[self.array], chain.rows[self.array], chain.sums[self.array] = new, rows, sums

    def log_density(self, family: Family) -> float:
        """Log density of the logarithms, up to a constant."""
        off = np.log(_size(getattr(family, self.name)) / _size(self.location)) / self.deviation
        return -0.5 * float((off * off).sum())

    def log_prior(self, chain: Chain) -> float:
        """Of where it is."""
        return self.log_density(chain.families[self.array])

    def drawn(self, chain: Chain) -> dict[str, ArrayLike]:
        """By name."""
        return {name_of_draw(self.name, self.array, self.arrays): getattr(chain.families[self.array], self.name)}
