"""Groups that are freed and matched afresh: some, at random; then those that hold a small atom, atom by atom.

Sweeps stop where no single group can do better. Two atoms in one, and whatever else is wrong, need groups that nobody
thought of: `rematch` frees a share of all. An atom too many is held by few groups, none of which leaves it alone:
`dissolve` frees them all at once, so that they meet the other atoms without it. In this order: where atoms too many
went first, two in one were left more often.

What does not raise the objective is undone.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import SMALLEST_RISE, AnyBoard, Movable, Run, alternate, is_same_partition
from modelweld.matching.moves import MOST_ROUNDS

PATIENCE = 6
"""Rounds at random, or atoms dissolved, in vain after which it ends. At four, one set in ten ended 5 to 19 nats lower;
at eight, none ended higher that had not at six."""

WORTH_A_RUN = 20.0
"""Nats by which a matching without an atom may be behind, when the groups that held it have found new places and the
others have not answered yet. At 10 and at 40 fewer and more runs of sweeps follow, and answers are the same."""

FREED_SHARE = 0.3
"""Share of the groups freed in a round: enough to dissolve an atom, few enough to keep the others in place."""

HOME_AGAIN = 2
"""Rounds in vain that one counts for after whose first sweep every value is where it was. At four, one set in a hundred
ends 3 nats lower; at one, none does that does not at two, and it takes a third longer."""

WORTH_WAITING = 0.5
"""Nats by which a round at random must raise the objective for patience to be renewed, unless the search is thorough:
rises of a tenth go on and on, and labels hardly change."""

MOST_SWEEPS_AFRESH = 400
"""Sweeps after which matching afresh ends, unless the search is thorough: where dimensions are few and atoms overlap,
rises of a tenth of a nat go on and on. Of 130 simulated sets one needed 600, the others at most 270."""


def dissolve(
    board: Movable,
    J: int,
    rng: np.random.Generator,
    progress: Run,
    max_sweeps: int,
    patience: int = PATIENCE,
    most_sweeps: float = MOST_SWEEPS_AFRESH,
) -> Run:
    """Free the groups that hold an atom and match them again, from the smallest atom on; the best matching is left.

    After each rise the smallest atom is the first again; the run ends at `patience` atoms in vain.
    """
    history, changes = list(progress.history), list(progress.changes)
    converged, in_vain, most = progress.converged, 0, patience
    for _ in range(MOST_ROUNDS):
        atoms = smallest_first(board)
        most = min(patience, len(atoms))
        if in_vain >= most or len(changes) - progress.sweeps >= most_sweeps:
            break
        before = board.state()
        is_home = partial(_is_at, board, before.labels)
        board.release(board.holders(int(atoms[in_vain])))
        board.place_new()
        if is_home():
            in_vain += 1
            continue
        if board.objective() > history[-1] - WORTH_A_RUN:
            attempt = alternate(board, J, rng, max_sweeps, is_home, history[-1])
            changes += attempt.changes
            if not attempt.came_home and attempt.history[-1] > history[-1] + SMALLEST_RISE:
                history.append(attempt.history[-1])
                converged, in_vain = attempt.converged, 0
                continue
        board.restore(before)
        in_vain += 1
    return Run(history, changes, converged, cut_short=progress.cut_short or in_vain < most)


def smallest_first(board: Movable) -> Index:
    """Atoms that several groups hold, by their number; among equals by the first of their values by content."""
    atoms, first = np.unique(board.labels_by_content(), return_index=True)
    counts = board.counts[atoms]
    order = np.lexsort((first, counts))
    return np.asarray(atoms[order][counts[order] > 1])


def rematch(
    board: AnyBoard,
    J: int,
    rng: np.random.Generator,
    progress: Run,
    max_sweeps: int,
    patience: int = PATIENCE,
    most_sweeps: float = MOST_SWEEPS_AFRESH,
    worth_waiting: float = SMALLEST_RISE,
) -> Run:
    """Free some groups and match them again, round after round; the board is left at the best matching found.

    A round that comes to where it began, or to where the last one in vain ended, is over: what follows is known.
    """
    history, changes = list(progress.history), list(progress.changes)
    converged = progress.converged
    in_vain, left = 0, list[Index]()
    for _ in range(MOST_ROUNDS):
        if in_vain >= patience or len(changes) - progress.sweeps >= most_sweeps:
            break
        before = board.state()
        board.release(rng.permutation(J)[: max(1, round(FREED_SHARE * J))])
        attempt = alternate(board, J, rng, max_sweeps, partial(_is_at, board, before.labels, *left))
        changes += attempt.changes
        home = attempt.came_home and _is_at(board, before.labels)
        if home and attempt.sweeps == 1:  # nothing was learned on the way
            in_vain += HOME_AGAIN
        elif not attempt.came_home and attempt.history[-1] > history[-1] + SMALLEST_RISE:
            # on its way the attempt may have been below what was; the history is that of matchings kept
            in_vain = 0 if attempt.history[-1] > history[-1] + worth_waiting else in_vain + 1
            history.append(attempt.history[-1])
            converged = attempt.converged
        else:
            left = left if home else [board.labels]
            board.restore(before)
            in_vain += 1
    return Run(history, changes, converged, cut_short=progress.cut_short or in_vain < patience)


def _is_at(board: AnyBoard, *ends: Index) -> bool:
    """Whether a board's values belong together as the labels of one of these ends say."""
    return any(is_same_partition(board.labels, labels) for labels in ends)
