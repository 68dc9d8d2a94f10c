"""Moves beyond one group at a time, each kept only if the objective rises.

Sweeps stop where no single group can do better. `rematch` gets out of such places: it frees a share of the groups,
lets the sweeps match them afresh against the rest, and keeps the outcome if it is better than what was.
"""

from __future__ import annotations

import numpy as np

from modelweld.matching import SMALLEST_RISE, AnyBoard, Progress, alternate

FREED_SHARE = 0.3
"""Share of the groups freed in a round: enough to dissolve an atom, few enough to keep the others in place."""

PATIENCE = 8
"""Rounds in vain after which the search ends: most of the gain is had in the first four rounds."""

MOST_ROUNDS = 200


def rematch(board: AnyBoard, J: int, rng: np.random.Generator, progress: Progress, max_sweeps: int) -> Progress:
    """Free some groups and match them again, round after round; the board is left at the best matching found."""
    history, changes = list(progress.history), list(progress.changes)
    converged = progress.converged
    in_vain = 0
    for _ in range(MOST_ROUNDS):
        if in_vain == PATIENCE:
            break
        before = board.state()
        board.release(rng.permutation(J)[: max(1, round(FREED_SHARE * J))])
        attempt = alternate(board, J, rng, max_sweeps)
        changes += attempt.changes
        if attempt.history[-1] > history[-1] + SMALLEST_RISE:
            # on its way the attempt may have been below what was; the history is that of matchings kept
            history.append(attempt.history[-1])
            converged = attempt.converged
            in_vain = 0
        else:
            board.restore(before)
            in_vain += 1
    return Progress(history, changes, converged)
