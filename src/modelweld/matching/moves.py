"""Moves beyond one group at a time, each kept only if the objective rises.

Sweeps stop where no single group can do better. Three ways out:

- `merge` joins the two atoms whose union raises the objective most, again and again; with copies also atoms that share
  groups (their values become pieces of one atom);
- `split` parts an atom in two: its farthest member alone, or two halves about the farthest pair of members;
- `rematch` frees a share of the groups and lets the sweeps match them afresh.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.stack import Index
from modelweld.matching.agglomerate import Pairs
from modelweld.matching.algorithm1 import SMALLEST_RISE, AnyBoard, Progress, alternate
from modelweld.matching.board import Board
from modelweld.progress import tell, told

FREED_SHARE = 0.3
"""Share of the groups freed in a round: enough to dissolve an atom, few enough to keep the others in place."""

PATIENCE = 8
"""Rounds in vain after which rematching ends: most of the gain is had in the first four rounds."""

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


def merge_and_split(board: Board, J: int, rng: np.random.Generator, progress: Progress, max_sweeps: int) -> Progress:
    """Merge, split and sweep in turn until none of them raises the objective."""
    history, changes = list(progress.history), list(progress.changes)
    converged = progress.converged
    for _ in range(MOST_ROUNDS):
        if merge(board) + split(board) == 0:
            break
        board.learn()
        history.append(board.objective())
        after = alternate(board, J, rng, max_sweeps)
        history += after.history
        changes += after.changes
        converged = after.converged
    return Progress(history, changes, converged)


def merge(board: Board) -> int:
    """Join pairs of atoms, the best first, as long as the objective rises; returns how many were joined."""
    if len(board.counts) < 2:
        return 0
    pairs, joined = Pairs(board), 0
    while pairs.join_best():
        joined += 1
        tell("merging atoms", joined)
    if joined:
        board.labels = pairs.tally.labels
        board.recount()
    return joined


def split(board: Board) -> int:
    """Part atoms in two where that raises the objective; returns how many were parted."""
    parted = 0
    next_label = len(board.counts)
    for k in told(range(len(board.counts)), "splitting atoms", len(board.counts)):
        members = np.flatnonzero(board.labels == k)
        if len(members) < 2:
            continue
        whole = _value_of(board, members)
        for part in _partings(board, members):
            rest = np.setdiff1d(members, part)
            if _value_of(board, part) + _value_of(board, rest) > whole + SMALLEST_RISE:
                board.labels[part] = next_label
                next_label += 1
                parted += 1
                break
    if parted:
        board.recount()
    return parted


def _value_of(board: Board, members: Index) -> float:
    """What an atom with these members adds to the objective."""
    _, pieces = np.unique(board.group[members], return_counts=True)
    value = float(board.steps[: len(pieces)].sum())
    for family, rows in zip(board.families, board.rows, strict=True):
        value += float(family.log_evidence(rows[members].sum(0)))
    # the log prior of delta is the same whatever the matching: it cancels between a whole and its parts
    return value if board.copies is None else value + board.copies.log_prob(pieces) - board.copies.log_prob(pieces[:0])


def _partings(board: Board, members: Index) -> list[Index]:
    """Which members to part from the rest: the farthest alone; those nearer to one end of the farthest pair."""
    scores = np.zeros((len(members), len(members)))
    for family, rows in zip(board.families, board.rows, strict=True):
        scores += family.gain(rows[members], rows[members])
    scores -= board.alone[members][:, None]
    closeness = scores + scores.T
    farthest = int(np.argmin(closeness.sum(1)))
    a, b = np.unravel_index(np.argmin(closeness), closeness.shape)
    half = closeness[:, a] < closeness[:, b]
    half[[a, b]] = [False, True]
    return [members[[farthest]], members[half]]
