"""From stacks to the best matching found: starts, Algorithm 1, copies with their guard, and moves.

Everything is decided by the one objective; each stage keeps what it was given unless it finds something better.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modelweld.copies import LARGEST_SHARE, Copies
from modelweld.errors import ModelweldWarning
from modelweld.families.base import Family
from modelweld.matching import SMALLEST_RISE, AnyBoard, Board, Progress, alternate
from modelweld.moves import merge_and_split, rematch
from modelweld.prior import Prior
from modelweld.stack import Stack


class OverlapWarning(ModelweldWarning):
    """Local components overlap too much to tell pieces of one atom from neighbours."""


CERTAIN, DOUBTFUL_SHARE = 0.99, 0.1
"""Many pieces are believed in only if at most a tenth of them is less than this sure of its atom. Simulated sites that
send atoms in pieces have 1.00 there; people's movements, whose components overlap, .44 to .91."""

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
    """The best matching found with the reference board; with or without copies, whichever is better and believable."""
    J = len(stacks[0].sizes)
    plain = best_run([Board(stacks, families, prior) for families in starts], J, rng, effort)
    if not copies:
        return _moved(plain, J, rng, effort)
    # copies from the beginning find pieces before they have gathered elsewhere; copies that come to a finished
    # matching keep what it got right
    labels, families, learned, _ = plain[0].state()
    start = min(starts, key=lambda start: abs(_log_noise(start) - _log_noise(families)))
    early, late = (Board(stacks, start, prior, Copies()) for _ in range(2))
    late.restore((labels, families, learned, Copies()))
    board, progress = max(
        (_moved(best_run([board], J, rng, effort), J, rng, effort) for board in (late, early)),
        key=lambda run: run[1].history[-1],
    )
    delta = board.copies.delta if board.copies is not None else 0.0
    if delta > LARGEST_SHARE and (delta > COLLAPSE or not unmistakable(board)):
        warnings.warn(
            f"{delta:.0%} of local parameters would be second pieces of an atom of their own site: local components "
            "overlap too much to tell pieces from neighbours, so every site holds an atom once. Fewer components "
            "there, or more restarts, would help.",
            OverlapWarning,
            stacklevel=6,
        )
    elif progress.history[-1] > plain[1].history[-1]:
        return board, progress
    return _moved(plain, J, rng, effort)


def unmistakable(board: Board) -> bool:
    """Whether almost all pieces are sure of their atom against all other atoms, the piece itself taken out of it."""
    _, held, pieces = np.unique(np.stack([board.labels, board.group]), axis=1, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(pieces[held.ravel()] > 1)
    certainty = np.empty(len(rows))
    for n, i in enumerate(rows):
        gain = np.zeros(len(board.counts))
        for family, own, sums in zip(board.families, board.rows, board.sums, strict=True):
            rest = sums.copy()
            rest[board.labels[i]] -= own[i]
            gain += family.gain(own[[i]], rest)[0]
        certainty[n] = 1 / np.exp(gain - gain[board.labels[i]]).sum()
    return bool(len(rows) == 0 or np.quantile(certainty, DOUBTFUL_SHARE) >= CERTAIN)


def _moved(run: tuple[AnyBoard, Progress], J: int, rng: np.random.Generator, effort: Effort) -> tuple[Board, Progress]:
    """Merge and split, if asked to."""
    board, progress = run
    assert isinstance(board, Board)
    return board, merge_and_split(board, J, rng, progress, effort.max_sweeps) if effort.moves else progress


def _log_noise(families: Sequence[Family]) -> float:
    """Which start a fit is nearest to, by the noise of its first family (zero for families that have none)."""
    return float(np.log(np.mean(np.asarray(getattr(families[0], "noise", 1.0)))))
