"""How sure is a match if all other sites' matches are right: full conditionals of its assignment.

And how well a fit predicts a site that it has not seen (`log_density`).

Given the matching and the hyperparameters of J sites, one more site holds an atom that m of them hold with odds
w_k = exp(increments[m]), apart from the others, and Poisson(r) new ones, r = exp(increments[0]). Summed over all
assignments a of its L values, which come in any order,

    p(values) = exp(-r) / L!  prod_k 1 / (1 + w_k)  sum_a [prod_{i at k} w_k g_ik  prod_{i new} r e_i],

g being predictive densities at atoms and e evidences of values alone. The number of values is predicted too: over all
of them and all values it integrates to one. A new site is taken to hold every atom once.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import scipy

from modelweld.core.board import Board
from modelweld.core.family import log_predictive, sum_by_atom
from modelweld.core.values import Array, Index, offsets_of
from modelweld.results.posterior.assignment_marginals import assignment_marginals


def pool_board(board: Board, common: bool = False) -> tuple[Board, Index]:
    """A board whose values are means of fragments, each group's of an atom it holds; where each value went.

    The board itself where nothing is pooled. Which values are fragments of one is not in doubt on it; with `common`
    only where several groups hold an atom in fragments: all others are values of their own.
    """
    if board.statistics is None:
        return board, np.arange(len(board.labels))
    other, K, N = copy(board), len(board.counts), len(board.labels)
    held, size = np.unique(board.group * K + board.labels, return_counts=True)
    pooled = np.bincount(held % K, size > 1, K) >= (2 if common else 0)
    name = np.where(pooled[board.labels], board.labels, K + np.arange(N))
    _, first, cell = np.unique(board.group * (K + N) + name, return_index=True, return_inverse=True)
    other.group, other.labels = board.group[first], board.labels[first]
    other.offsets = offsets_of(np.bincount(other.group, minlength=len(board.sizes)))
    other.stacks = [board.pooling.pool_stack(sum_by_atom(board.statistics, cell), other.offsets)]
    other.sizes, other.statistics = other.stacks[0].sizes, None
    if not common:
        other.fragments, other.may_repeat = None, False
    other.make_rows()
    other.recount()
    other.score_alone()
    return other, cell


def conditional(board: Board, j: int) -> Array:
    """P(value of group j -> atom | the other groups' matching, hyperparameters): (L_j, K + 1), last column a new atom.

    Without group j, the atoms that it alone holds do not exist: their columns are zero, and the probability of such an
    atom is in the last column. Fragments that are pooled are judged by their mean, as one; where they are not, a group
    that holds an atom in several is judged one value at a time, given its others. *Conditional*: see
    `modelweld.Fusion.confidence` for what that leaves out.
    """
    pooled, cell = pool_board(board)
    return np.asarray(_conditional(pooled, j)[cell[board.values_of(j)] - pooled.values_of(j).start])


def _conditional(pooled: Board, j: int) -> Array:
    group = pooled.values_of(j)
    held = pooled.labels[group]
    in_fragments = pooled.fragments is not None and len(np.unique(held)) < len(held)
    judged = [slice(v, v + 1) for v in range(group.start, group.stop)] if in_fragments else [group]
    return np.concatenate([assignment_marginals(_scores_of(pooled, values, group)) for values in judged])


def _scores_of(board: Board, judged: slice, group: slice) -> Array:
    """Of the `judged` values of a group, given its other values and all other groups."""
    K = len(board.counts)
    others = np.delete(board.labels[group], np.r_[judged] - group.start)
    held = board.remember(group)
    try:
        board.take(judged, counted=False)
        board.counts[np.unique(held.atoms)] -= 1  # of other groups
        fragments = np.bincount(others, minlength=K)
        there = board.counts + fragments > 0
        scores = np.full((judged.stop - judged.start, K), -np.inf)
        scores[:, there] = board.scores(judged, np.flatnonzero(there))
        if board.fragments is not None and fragments.any():
            # a further fragment pays log delta + log(fragments) where a first one pays log(1 - delta) and the prior's
            # step
            delta = board.fragments.delta
            further = np.log(delta) + np.log(fragments + 1.0) - np.log1p(-delta) - board.increments[board.counts]
            scores = scores + np.where(fragments > 0, further, 0.0)
    finally:
        board.put_back(held)
    return scores


def confidences(board: Board) -> list[Array]:
    """Conditional probabilities (L_j,) of the atoms that the values of each group were given."""
    (pooled, cell), (J, K) = pool_board(board), (len(board.sizes), len(board.counts))
    alone = (np.bincount(pooled.labels, minlength=K) == 1) & (pooled.counts == 1)  # then it was given a new atom
    given = np.where(alone[pooled.labels], K, pooled.labels)[:, None]
    found = [np.take_along_axis(_conditional(pooled, j), given[pooled.values_of(j)], 1)[:, 0] for j in range(J)]
    return np.split(np.concatenate([np.zeros(0), *found])[cell], board.offsets[1:-1])


def log_density(board: Board, rows: Sequence[Array]) -> float:
    """Of a new group's values, of which `rows` (L, k) has the statistics of each array of the board's set."""
    held = np.flatnonzero(board.counts)
    steps = board.prior.increments(len(board.sizes) + 1)
    joining, new = steps[board.counts[held]], steps[0]
    L = len(rows[0])
    gain, alone = np.zeros((L, len(held))), np.zeros(L)
    for family, own, sums in zip(board.families, rows, board.sums, strict=True):
        gain += log_predictive(family, own, sums[held])
        alone += family.log_evidence(own)
    odds = gain + joining - new - alone[:, None]
    nowhere = -np.logaddexp(0.0, joining).sum() - np.exp(new) + (new + alone).sum() - scipy.special.gammaln(L + 1)
    return float(nowhere + log_sum_of_assignments(odds))


def log_sum_of_assignments(scores: Array) -> float:
    """Log of the sum over assignments of exp(sum of their scores), a new atom scoring zero.

    Any assignment's weight over its probability is that sum; the probability is the product of marginals, row after
    row, given the rows before. As exact as they are.

    Examples
    --------
    >>> tie = np.array([[2.0], [2.0]])               # two values, one atom: 1 + e^2 + e^2
    >>> bool(np.isclose(log_sum_of_assignments(tie), np.log(1 + 2 * np.exp(2))))
    True
    """
    total, left = 0.0, scores
    while len(left):
        table = assignment_marginals(left)[0]
        choice = int(table.argmax())
        is_new = choice == left.shape[1]
        total += (0.0 if is_new else float(left[0, choice])) - float(np.log(table[choice]))
        left = left[1:] if is_new else np.delete(left[1:], choice, axis=1)
    return total
