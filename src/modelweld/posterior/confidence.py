"""How sure each match is: the share of draws in which it is right, or what a conditional probability says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.board import Board
from modelweld.matching.parts import Parts
from modelweld.posterior.draws import Posterior
from modelweld.posterior.joint import EVERY, WARM_UP, drawable
from modelweld.posterior.overlap import NOBODY, is_right, partners

How = Literal["drawn", "fixed", "conditional"]

MEANING: dict[str, str] = {
    "drawn": "the probability that the match is right, with everything that may be wrong drawn from its posterior: "
    "all other matches, noise, spread, trust and prior",
    "fixed": "the probability that the match is right, with all other matches drawn from their posterior, at the "
    "learned hyperparameters: somewhat too sure",
    "conditional": "the probability of the match if all other sites’ matches are right: use it to rank, not as a "
    "promise",
}
"""What a confidence means, by how it was computed."""

DRAWS, CHAINS = 200, 2
"""Matchings that confidences, intervals and sites' answers rest on: the standard error of a probability of .9 is .02
even where draws are worth half their number, and two chains suffice to see that they disagree."""

SURE = 0.8
"""Confidence below which a match is called doubtful, wherever that is said: it is wrong more often than once in five
times."""

FEWEST_DRAWS = 50
"""Below, a stated .97 would rest on one draw or two."""

MOST_WORK = 1_000_000_000
"""Values x (atoms + 20) x (dimensions + 4) x sweeps that are spent: five to ten seconds. The constants stand for what a
sweep costs beyond scores."""


class Confidence(list[Array]):
    """Confidences, one array (L_j,) per site.

    Attributes
    ----------
    how : {"drawn", "fixed", "conditional"}
        What they are: see `meaning`.
    r_hat : dict of str to float, or None
        Whether the chains agree, where there were any: below 1.05 they do.

    Examples
    --------
    >>> stated = Confidence([np.array([0.9])], "conditional")
    >>> stated[0], stated.meaning[:40]
    (array([0.9]), 'the probability of the match if all othe')
    """

    def __init__(self, sites: Iterable[Array], how: How, r_hat: Mapping[str, float] | None = None) -> None:
        super().__init__(sites)
        self.how, self.r_hat = how, r_hat

    @property
    def meaning(self) -> str:
        """In plain words."""
        return MEANING[self.how]


def affordable_draws(board: Board | Parts) -> int:
    """Draws per chain that can be had within seconds; zero where too few can, or none at all."""
    if not drawable(board):
        return 0
    N, D = board.stacks[0].values.shape
    sweep = N * (np.count_nonzero(board.counts) + 20) * (D + 4)
    draws = int(MOST_WORK / (sweep * CHAINS * (EVERY + WARM_UP)))
    return 0 if draws < FEWEST_DRAWS else min(draws, DRAWS)


def shares_right(posterior: Posterior, fitted: Index) -> Array:
    """Share (N,) of draws in which the fitted atom of each value is the one it is at; both in the same order."""
    draws = posterior.labels.reshape(-1, posterior.labels.shape[-1])
    rng = np.random.default_rng(0)
    return np.asarray(np.mean([is_right(fitted, draw, rng) for draw in draws], axis=0))


def shares_at(posterior: Posterior, fitted: Index, rows: Index) -> Array:
    """Share (n, K + 1) of draws in which each of these values is at each fitted atom, the last: at none of them."""
    K = int(fitted.max(initial=-1)) + 1
    table = np.zeros((len(rows), K + 1))
    draws = posterior.labels.reshape(-1, posterior.labels.shape[-1])
    rng = np.random.default_rng(0)  # as for `shares_right`
    for draw in draws:
        at = partners(fitted, draw, rng)
        fitted_atom = {int(name): k for k, name in enumerate(at) if name != NOBODY}
        for row, value in enumerate(rows):
            table[row, fitted_atom.get(int(draw[value]), K)] += 1
    return table / len(draws)
