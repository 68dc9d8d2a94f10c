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
    if delta > LARGEST_SHARE:
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


def _moved(run: tuple[AnyBoard, Progress], J: int, rng: np.random.Generator, effort: Effort) -> tuple[Board, Progress]:
    """Merge and split, if asked to."""
    board, progress = run
    assert isinstance(board, Board)
    return board, merge_and_split(board, J, rng, progress, effort.max_sweeps) if effort.moves else progress


def _log_noise(families: Sequence[Family]) -> float:
    """Which start a fit is nearest to, by the noise of its first family (zero for families that have none)."""
    return float(np.log(np.mean(np.asarray(getattr(families[0], "noise", 1.0)))))
