"""Atoms that are dissolved: all groups that hold a small one are freed at once, and meet the other atoms without it.

An atom too many is held by few groups, none of which leaves it alone. Kept only if the objective rises.
"""

from __future__ import annotations

import numpy as np

from modelweld.core.algorithm1 import CLEAR, SMALLEST_RISE, Run, alternate, is_same_partition
from modelweld.core.board import Board
from modelweld.core.match import MOST_SWEEPS
from modelweld.core.values import Flags, Index
from modelweld.fit.engines.sweep_engines import Movable

PATIENCE = 12
"""Atoms dissolved in vain after which that ends. Of 48 simulated sets of much noise, none ended higher by more than 16
nats with all of them; with six, one ended 16 nats lower."""

WORTH_A_RUN = 20.0
"""Nats by which a matching without an atom may be behind, when the groups that held it have found new places and the
others have not answered yet. At 10 and at 40 fewer and more runs of sweeps follow, and answers are the same."""


def dissolve(
    board: Movable, J: int, rng: np.random.Generator, progress: Run, max_sweeps: int, patience: float = PATIENCE
) -> Run:
    """Free the groups that hold an atom and match them again, from the smallest atom on; the best matching is left.

    An attempt is judged at the hyperparameters of the matching that it must beat; only what beats it learns. After each
    rise the smallest atom is the first again; it ends at `patience` atoms in vain, or at all of them.
    """
    history, changes = list(progress.history), list(progress.changes)
    converged, in_vain, rises = progress.converged, 0, 0
    first = smallest_first(board)
    while rises < MOST_SWEEPS and in_vain < min(patience, len(first)):
        before = board.state()

        def is_back(home: Index = before.labels) -> bool:
            return is_same_partition(board.labels, home)

        board.release(board.holders(int(board.labels_by_content()[first[in_vain]])))
        board.place_new()
        in_vain += 1
        if is_back():
            continue
        if board.objective() > history[-1] - WORTH_A_RUN:
            attempt = alternate(board, J, rng, max_sweeps, is_back, history[-1], learns=False)
            changes += attempt.changes
            if not attempt.returned and attempt.history[-1] > history[-1] + SMALLEST_RISE:
                board.learn()
                attempt = alternate(board, J, rng, max_sweeps)
                changes += attempt.changes
                history.append(attempt.history[-1])
                converged, in_vain, rises, first = attempt.converged, 0, rises + 1, smallest_first(board)
                continue
        board.restore(before)
    return Run(history, changes, converged, cut_short=progress.cut_short or rises == MOST_SWEEPS)


def contested(board: Movable) -> Flags:
    """Atoms (K,) of which some value may be elsewhere: what is freed of others comes home."""
    if not isinstance(board, Board):
        return np.full(len(board.counts), board.margin < CLEAR)
    leads = [_leads(board, board.values_of(j)) for j in range(len(board.sizes))]
    return np.bincount(board.labels[~np.concatenate(leads)], minlength=len(board.counts)) > 0


def _leads(board: Board, group: slice) -> Flags:
    """Whether the best place of each value of a group is better than its second best by `CLEAR` nats."""
    held = board.remember(group)
    board.take(group)
    scores = board.scores(group, np.flatnonzero(board.counts))
    board.put_back(held)
    best = np.sort(np.hstack([scores, np.zeros((len(scores), 1))]), axis=1)
    return np.asarray((np.diff(best)[:, -1:] >= CLEAR).all(1))


def smallest_first(board: Movable) -> Index:
    """The first value, by content, of each contested atom that several groups hold, by their number."""
    atoms, first = np.unique(board.labels_by_content(), return_index=True)
    counts = board.counts[atoms]
    order = np.lexsort((first, counts))
    return np.asarray(first[order][(counts > 1)[order] & contested(board)[atoms[order]]])
