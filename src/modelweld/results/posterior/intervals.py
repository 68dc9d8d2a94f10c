"""Answers with intervals, from draws: where atoms are, what is true at a site, what a site not seen yet would hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import is_signless
from modelweld.core.gaussian import parts
from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.families.capabilities import Drawable, draw_atoms
from modelweld.families.real_values import Gaussian
from modelweld.inputs.notebook import decimals_of, html_table, spell
from modelweld.results.posterior.conditional import pool_board
from modelweld.results.posterior.confidence import NO_PARTNER, partners
from modelweld.results.posterior.drawn_fusions import board_of_draw
from modelweld.results.posterior.draws import Posterior
from modelweld.results.posterior.metropolis import is_gaussian
from modelweld.results.posterior.sharing_moves import NAMES, log_rates

OF_OVERSIZED = {"exists": 1.0, "probability": 0.0}
"""Probabilities for atoms of oversized sites: they exist, and no other site has them. Where they are is unknown."""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Values with intervals, one row per parameter, arrays flattened.

    Attributes
    ----------
    values, low, high : arrays (n, D)
        Posterior mean, and the ends of an interval that holds the truth with probability `level`.
    level : float
        That probability.
    """

    values: Array
    low: Array
    high: Array
    level: float

    def take(self, rows: Index) -> Self:
        """The same of some rows, in this order; -1 is an atom of an oversized site."""
        chosen = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                taken = value[rows]
                taken[rows < 0] = OF_OVERSIZED.get(name, np.nan)
                object.__setattr__(chosen, name, taken)
        return chosen

    def __repr__(self) -> str:
        n, D = self.values.shape
        return f"<{type(self).__name__}: {n} values of {D} dimensions, intervals of probability {self.level:g}>"

    def _repr_html_(self) -> str:
        half = (self.high - self.low) / 2
        decimals = [decimals_of(own, error) for own, error in zip(self.values.T, half.T, strict=True)]
        ends = np.stack([self.values, self.low, self.high], axis=-1)
        spelt = [
            [k, *("{} ({} to {})".format(*(spell(x, n) for x in cell)) for cell, n in zip(row, decimals, strict=True))]
            for k, row in enumerate(ends)
        ]
        return html_table(repr(self), ["", *(f"dimension {d}" for d in range(self.values.shape[1]))], spelt)

    @staticmethod
    def of(draws: Array, level: float) -> Intervals:
        """Of draws (S, n, D); NaN where a draw has nothing to say, and everywhere if none has."""
        with np.errstate(invalid="ignore"):
            found = np.full((3, *draws.shape[1:]), np.nan)
            for row in range(draws.shape[1]):
                own = draws[~np.isnan(draws[:, row, 0]), row]
                if len(own):
                    found[:, row] = own.mean(0), *np.quantile(own, [(1 - level) / 2, (1 + level) / 2], axis=0)
        values, low, high = found
        return Intervals(values, low, high, level)


@dataclass(frozen=True, eq=False, repr=False)
class AtomIntervals(Intervals):
    """Where the fusion's atoms are.

    Attributes
    ----------
    exists : array (n,)
        Share of draws that have the atom; intervals are of those draws.
    """

    exists: Array


@dataclass(frozen=True, eq=False, repr=False)
class NewSite(Intervals):
    """What a site not seen yet would hold: its values' intervals, one row per atom of the fusion.

    Attributes
    ----------
    probability : array (n,)
        That it holds the atom.
    unknown : float
        Expected number of its values that belong to no atom of the fusion.
    """

    probability: Array
    unknown: float


def check_level(level: float) -> None:
    """Refuse what is no probability."""
    if not 0 < level < 1:
        raise InputError(f"level is the probability of an interval, between 0 and 1; found {level!r}.")


def atom_intervals(board: Board, posterior: Posterior, fitted: Index, level: float) -> AtomIntervals:
    """Of the fitted atoms, each judged by its partner in every draw that has one."""
    for family in board.families:
        if not isinstance(family, Drawable):
            raise InputError(
                f"{type(family).__name__} does not say how an atom scatters given its values, so its intervals would "
                "be too narrow: write its draw_atoms, or use the matchings of fusion.posterior.draws()."
            )
    rng, estimates = np.random.default_rng(0), board.estimates()
    found = np.stack([_draw_partners(draw, fitted, rng, estimates) for draw in each_draw(board, posterior)])
    return AtomIntervals(**vars(Intervals.of(found, level)), exists=(~np.isnan(found[..., 0])).mean(0))


def each_draw(board: Board, posterior: Posterior) -> Iterator[Board]:
    """Boards of all draws, chain after chain; values stand in the same order in all of them."""
    for at in np.ndindex(posterior.K.shape):
        yield board_of_draw(board, posterior, at, posterior.labels[at])


def _draw_partners(draw: Board, fitted: Index, rng: np.random.Generator, estimates: Sequence[Array]) -> Array:
    """A draw (K, D) of each fitted atom's partner; NaN where there is none."""
    partner, found = partners(fitted, draw.labels, rng), []
    for family, sums, estimate in zip(draw.families, draw.sums, estimates, strict=True):
        atoms = draw_atoms(family, sums, rng)[partner]
        if is_signless(family):  # the same way round in every draw
            atoms = np.where((atoms * estimate).sum(1, keepdims=True) < 0, -atoms, atoms)
        found.append(atoms)
    return np.where((partner == NO_PARTNER)[:, None], np.nan, np.concatenate(found, axis=1))


def true_values(draw: Board, rows: slice) -> tuple[Array, Array]:
    """Mean and variance of the true local values of these rows: their atom by all *others*, and what was sent."""
    family, stack, at = _gaussian(draw), draw.stacks[0].blind(), draw.labels[rows]
    assert stack.variance is not None
    mean, noise, spread = family.hyperparameters
    _, W, S, *_ = parts(draw.sums[0])
    _, own, weighted, *_ = parts(draw.rows[0][rows])
    y, error = stack.values[rows] - np.asarray(family.origin), family.inflation * stack.variance[rows]
    q = noise / spread + W[at] - own
    middle = (noise / spread * mean + S[at] - weighted) / q
    weight = 1.0 if stack.weight is None else np.where(own > 0, stack.weight[rows], 1.0)
    about = noise / q + noise / weight
    trusted = np.where(own > 0, about / (about + error), 0.0)  # in what was sent, not in the atom
    return middle + trusted * (y - middle) + np.asarray(family.origin), (1.0 - trusted) * about


def _gaussian(board: Board) -> Gaussian:
    """The family of one array of Gaussian values; others are refused."""
    family = board.families[0]
    if not isinstance(family, Gaussian) or not is_gaussian(board):
        raise InputError(
            "intervals of values take one array of Gaussian values; fusion.posterior.draws() has what else there is."
        )
    return family


def site_intervals(board: Board, posterior: Posterior, j: int, level: float) -> Intervals:
    """True local values of site j: its own, pooled with its atoms' as far as standard errors and noise say.

    Fragments that are pooled keep their distance from their mean, which is what is known better.
    """
    if board.stacks[0].variance is None:
        raise InputError(
            "a site's own answer differs from what it sent only where sites send standard errors: give LocalModel a "
            "variance, or fitted models their numbers of points."
        )
    rng, values, draws = np.random.default_rng(0), board.values_of(j), []
    for draw in each_draw(board, posterior):
        pooled, cell = pool_board(draw)
        rows, at = pooled.values_of(j), cell[values]
        mean, variance = true_values(pooled, rows)
        drawn = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
        draws.append(drawn[at - rows.start] + draw.stacks[0].values[values] - pooled.stacks[0].values[at])
    return Intervals.of(np.stack(draws), level)


def new_site(board: Board, posterior: Posterior, fitted: Index, level: float) -> NewSite:
    """What one more site would hold: the prior's odds of joining each atom, and its values there."""
    J, rng = len(board.sizes), np.random.default_rng(0)
    K = int(fitted.max()) + 1
    draws, held, unknown = [], np.zeros(K), 0.0
    for number, draw in enumerate(each_draw(board, posterior)):
        steps = _steps(board, posterior, number, J + 1)
        joins = 1 / (1 + np.exp(-steps[draw.counts]))
        at = partners(fitted, draw.labels, rng)
        held += np.where(at == NO_PARTNER, 0.0, joins[at])
        unknown += np.exp(steps[0]) + np.delete(joins, at[at != NO_PARTNER]).sum()
        family = _gaussian(draw)
        atoms = draw_atoms(family, draw.sums[0], rng)
        sent = atoms + np.sqrt(family.hyperparameters.noise) * rng.standard_normal(atoms.shape)
        draws.append(np.where((at == NO_PARTNER)[:, None], np.nan, sent[at]))
    n = posterior.K.size
    return NewSite(**vars(Intervals.of(np.stack(draws), level)), probability=held / n, unknown=float(unknown / n))


def _steps(board: Board, posterior: Posterior, number: int, J: int) -> Array:
    """Log prior odds of joining an atom that m of J - 1 groups hold, in the draw of this number."""
    drawn = posterior.hyperparameters or {}
    if "a" not in drawn:
        return board.prior.increments(J)
    return np.diff(log_rates([float(drawn[name].ravel()[number]) for name in NAMES], J, J - 1), prepend=0.0)
