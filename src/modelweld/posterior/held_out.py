"""How well a fit predicts a site that it has not seen: the log density of that site's values.

Given the matching and the hyperparameters of J sites, one more site holds an atom that m of them hold with odds
w_k = exp(steps[m]), apart from the others, and Poisson(r) new ones, r = exp(steps[0]). Summed over all assignments a of
its L values, which come in any order,

    p(values) = exp(-r) / L!  prod_k 1 / (1 + w_k)  sum_a [prod_{i at k} w_k g_ik  prod_{i new} r e_i],

g being predictive densities at atoms and e evidences of values alone. The number of values is predicted too: over all
of them and all values it integrates to one. A new site is taken to hold every atom once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.matching.board import Board
from modelweld.posterior.assignment_marginals import assignment_marginals


def log_density(board: Board, rows: Sequence[Array]) -> float:
    """Of a new group's values, of which `rows` (L, k) has the statistics of each array of the board's set."""
    from scipy.special import gammaln

    held = np.flatnonzero(board.counts)
    steps = board.prior.steps(len(board.sizes) + 1)
    joining, new = steps[board.counts[held]], steps[0]
    L = len(rows[0])
    gain, alone = np.zeros((L, len(held))), np.zeros(L)
    for family, own, sums in zip(board.families, rows, board.sums, strict=True):
        gain += family.gain(own, sums[held])
        alone += family.log_evidence(own)
    odds = gain + joining - new - alone[:, None]
    nowhere = -np.logaddexp(0.0, joining).sum() - np.exp(new) + (new + alone).sum() - gammaln(L + 1)
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
