"""From stacks to the best matching found: starts, Algorithm 1, copies with their guard, and moves.

Everything is decided by the one objective; each stage keeps what it was given unless it finds something better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modelweld.errors import OverlapWarning, warn_user
from modelweld.families.base import Family
from modelweld.inputs.stack import Stack
from modelweld.matching.algorithm1 import SMALLEST_RISE, AnyBoard, Progress, alternate
from modelweld.matching.board import Board
from modelweld.matching.moves import merge, merge_and_split, rematch
from modelweld.priors.beta_bernoulli import Prior
from modelweld.priors.pieces import LARGEST_SHARE, Copies

CERTAIN, DOUBTFUL_SHARE = 0.9, 0.1
"""Many pieces are believed in only if at most a tenth of them is less than this sure of its atom. On simulated sites
that send atoms in pieces copies are better from .75 on (experiments/strength/guard.py); people's movements, whose
components overlap, reach .72."""

LARGEST_AGGLOMERATED = 2000
"""Values up to which copies start from an agglomeration: its table of pairs is 32 MB then. Beyond, from nothing."""

COLLAPSE = 1 / 3
"""Where more than a third of all values would be second pieces, atoms are not split: everything falls together."""


@dataclass(frozen=True)
class Effort:
    """How hard to look: `moves` merges and splits, `rematch` frees groups, `max_sweeps` bounds each run of sweeps."""

    moves: bool
    rematch: bool
    max_sweeps: int


def best_run(boards: Sequence[AnyBoard], J: int, rng: np.random.Generator, effort: Effort) -> tuple[AnyBoard, Progress]:
    """Algorithm 1 from every start; the first of the best objectives."""
    board, *others = boards
    progress = alternate(board, J, rng, effort.max_sweeps)
    for other in others:
        attempt = alternate(other, J, rng, effort.max_sweeps)
        if attempt.history[-1] > progress.history[-1] + SMALLEST_RISE:
            board, progress = other, attempt
    if effort.rematch:
        progress = rematch(board, J, rng, progress, effort.max_sweeps)
    return board, progress


def find_matching(
    stacks: Sequence[Stack],
    starts: Sequence[Sequence[Family]],
    prior: Prior,
    copies: bool,
    rng: np.random.Generator,
    effort: Effort,
) -> tuple[Board, Progress]:
    """The best matching found with the reference board; with copies only if they are there and believable."""
    J = len(stacks[0].sizes)
    if copies:
        boards = [Board(stacks, families, prior, Copies()) for families in starts]
        if effort.moves and len(boards[0].labels) <= LARGEST_AGGLOMERATED:
            boards = [max(map(agglomerated, boards), key=lambda board: board.objective())]
        board, progress = _moved(best_run(boards, J, rng, effort), J, rng, effort)
        if (board.pieces() > 1).any() and believable(board):
            return board, progress
    return _moved(best_run([Board(stacks, families, prior) for families in starts], J, rng, effort), J, rng, effort)


def agglomerated(board: Board) -> Board:
    """The board with every value an atom, the best pairs of atoms joined until none raises the objective.

    Sweeps from nothing match pieces one group at a time, after the first of them have gathered elsewhere; this sees
    all groups at once, and does not depend on their order.
    """
    board.labels = np.arange(len(board.labels))
    board.recount()
    merge(board)
    board.learn()
    return board


def believable(board: Board) -> bool:
    """Whether the pieces found are few, or at least unmistakable; if not, a warning says so."""
    delta = board.copies.delta if board.copies is not None else 0.0
    if delta <= LARGEST_SHARE or (delta <= COLLAPSE and certainty(board) >= CERTAIN):
        return True
    warn_user(
        f"{delta:.0%} of local parameters would be second pieces of an atom of their own site: local components "
        "overlap too much to tell pieces from neighbours, so every site holds an atom once. Fewer components "
        "there, or more restarts, would help.",
        OverlapWarning,
    )
    return False


def certainty(board: Board) -> float:
    """How sure the most doubtful tenth of all pieces is of its atom, at most; 1 where nothing is in pieces.

    A piece is taken out of its atom and compared with it and all other atoms, all equally probable beforehand.
    """
    from scipy.special import logsumexp

    _, held, pieces = np.unique(np.stack([board.labels, board.group]), axis=1, return_inverse=True, return_counts=True)
    sure = []
    for i in np.flatnonzero(pieces[held.ravel()] > 1):
        gain = np.zeros(len(board.counts))
        for family, own, sums in zip(board.families, board.rows, board.sums, strict=True):
            rest = sums.copy()
            rest[board.labels[i]] -= own[i]
            gain += family.gain(own[[i]], rest)[0]
        sure.append(np.exp(gain[board.labels[i]] - logsumexp(gain)))
    return float(np.quantile(sure, DOUBTFUL_SHARE)) if sure else 1.0


def _moved(run: tuple[AnyBoard, Progress], J: int, rng: np.random.Generator, effort: Effort) -> tuple[Board, Progress]:
    """Merge and split, if asked to."""
    board, progress = run
    assert isinstance(board, Board)
    return board, merge_and_split(board, J, rng, progress, effort.max_sweeps) if effort.moves else progress
