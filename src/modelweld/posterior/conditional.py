"""How sure is a match if all other sites' matches are right: full conditionals of its assignment, their calibration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.matching.board import Board
from modelweld.posterior.assignment_marginals import assignment_marginals


def conditional(board: Board, j: int) -> Array:
    """P(value of group j -> atom | the other groups' matching, hyperparameters): (L_j, K + 1), last column a new atom.

    Without group j, the atoms that it alone holds do not exist: their columns are zero, and the probability of such an
    atom is in the last column. A group that holds an atom in several pieces is judged one value at a time, given its
    others. *Conditional*: see `modelweld.Fusion.confidence` for what that leaves out.
    """
    group = board.values_of(j)
    held = board.labels[group]
    if board.pieces is not None and len(np.unique(held)) < len(held):
        return np.concatenate([_conditional(board, slice(v, v + 1), group) for v in range(group.start, group.stop)])
    return _conditional(board, group, group)


def _conditional(board: Board, judged: slice, group: slice) -> Array:
    """The table of the `judged` values of a group, given its other values and all other groups."""
    rest, K = board.copy(), len(board.counts)
    others = np.delete(board.labels[group], np.r_[judged] - group.start)
    rest.take(judged, counted=False)
    rest.counts[np.unique(board.labels[group])] -= 1  # of other groups
    pieces = np.bincount(others, minlength=K)
    atoms = np.flatnonzero(rest.counts + pieces)
    scores = rest.scores(judged, atoms)
    if board.pieces is not None and pieces.any():
        # a further piece pays log delta + log(pieces) where a first one pays log(1 - delta) and the prior's step
        delta, r = board.pieces.delta, pieces[atoms]
        further = np.log(delta) + np.log(r + 1.0) - np.log1p(-delta) - rest.steps[rest.counts[atoms]]
        scores = scores + np.where(r > 0, further, 0.0)
    table = np.zeros((scores.shape[0], K + 1))
    table[:, [*atoms, -1]] = assignment_marginals(scores)
    return table


def confidence(board: Board, j: int) -> Array:
    """Conditional probability (L_j,) of the atoms that the values of group j were given."""
    held = board.labels[board.values_of(j)]
    table = conditional(board, j)
    pieces = np.bincount(held, minlength=len(board.counts))
    column = np.where((board.counts[held] == 1) & (pieces[held] == 1), -1, held)
    return np.asarray(table[np.arange(len(held)), column])


class Bin(NamedTuple):
    """Statements of about the same probability, and how many of them were right."""

    low: float
    high: float
    stated: float
    true: float
    number: int


def calibration(stated: ArrayLike, correct: ArrayLike, bins: int = 10) -> list[Bin]:
    """Stated probabilities against true frequencies, in bins of equal width; bins without statements are left out.

    Parameters
    ----------
    stated : array of float
        Probabilities that were stated.
    correct : array of bool, same shape
        Whether what was stated turned out right.
    bins : int
        Number of bins between 0 and 1.

    Returns
    -------
    list of Bin
        Each with its limits, the mean probability stated, the share that was right, and the number of statements.

    Examples
    --------
    >>> for row in calibration([0.1, 0.1, 0.9, 0.95], [False, False, True, False], bins=2):
    ...     print(f"{row.low:.1f}-{row.high:.1f}  stated {row.stated:.2f}  true {row.true:.2f}  {row.number}")
    0.0-0.5  stated 0.10  true 0.00  2
    0.5-1.0  stated 0.93  true 0.50  2
    """
    p, right = np.asarray(stated, dtype=np.float64).ravel(), np.asarray(correct, dtype=bool).ravel()
    if p.shape != right.shape:
        raise InputError(f"calibration: one verdict per statement; found {len(p)} statements, {len(right)} verdicts.")
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("calibration: statements are probabilities, between 0 and 1.")
    if bins < 1:
        raise InputError(f"calibration: bins must be at least 1; found {bins}.")
    of = np.minimum((p * bins).astype(np.int64), bins - 1)
    return [
        Bin(b / bins, (b + 1) / bins, float(p[of == b].mean()), float(right[of == b].mean()), int((of == b).sum()))
        for b in np.unique(of).tolist()
    ]
