"""How sure each match is: the share of draws in which it is right, or what a conditional probability says.

Which atom of one matching is which atom of another is the one-to-one assignment of most values in common (`partners`).
So a fusion's matches are judged with a draw, or the truth, as the answer: a value is right if the atom it was given is
the partner of the atom it is at there. Ties are common, and broken at random: where an atom of two values is two atoms
in a draw, either may be its partner. Always the same one would state too much of one value and too little of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.values import Array, Index
from modelweld.results.posterior.draws import Posterior

How = Literal["drawn", "fixed", "conditional"]

MEANING: dict[str, str] = {
    "drawn": "the probability that the match is right, with everything that may be wrong drawn from its posterior: "
    "all other matches, noise, spread and prior",
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

NO_PARTNER = -1
"""The partner of an atom that has none."""


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
        there = draw[rows, None] == partners(fitted, draw, rng)
        table += np.column_stack([there, ~there.any(1)])
    return table / len(draws)


def partners(fitted: Index, other: Index, rng: np.random.Generator) -> Index:
    """For each atom of `fitted`, numbered without gaps, the atom of `other` that is the same; NO_PARTNER where none is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> partners(np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 3, 3, 3, 7]), rng)      # two atoms of three
    array([ 7,  3, -1])
    >>> sorted({int(partners(np.array([0, 0]), np.array([3, 7]), rng)[0]) for _ in range(20)})
    [3, 7]
    """
    names, at = np.unique(other, return_inverse=True)
    at = at.ravel()
    found = np.full(int(fitted.max(initial=-1)) + 1, NO_PARTNER)
    # what is one and the same value in both is partners: ten thousand such would be a table of a gigabyte
    alone = (np.bincount(fitted)[fitted] == 1) & (np.bincount(at)[at] == 1)
    found[fitted[alone]] = other[alone]
    atoms, inner = np.unique(fitted[~alone], return_inverse=True)
    others, outer = np.unique(at[~alone], return_inverse=True)
    rows, columns = _assign(inner.ravel(), outer.ravel(), rng)
    found[atoms[rows]] = names[others[columns]]
    return found


def _assign(fitted: Index, other: Index, rng: np.random.Generator) -> tuple[Index, Index]:
    """Atoms of two matchings, both numbered without gaps, that are partners."""
    table = np.zeros((int(fitted.max(initial=-1)) + 1, int(other.max(initial=-1)) + 1))
    np.add.at(table, (fitted, other), 1)
    tie = rng.random(table.shape) / (len(table) + 1)  # less than one value in all
    rows, columns = scipy.optimize.linear_sum_assignment(table + tie, maximize=True)
    shared = table[rows, columns] > 0
    return rows[shared], columns[shared]


def is_right(fitted: Index, other: Index, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which values (N,) of `fitted` are right with `other` as the answer.

    Examples
    --------
    >>> is_right(np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 3, 3, 3, 7]), np.random.default_rng(0))
    array([ True,  True, False,  True,  True, False])
    """
    return np.asarray(partners(fitted, other, rng)[fitted] == other)
