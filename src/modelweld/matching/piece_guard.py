"""Whether pieces (over-segmentation) are believed: few always, many only where they cannot be neighbouring atoms."""

from __future__ import annotations

import numpy as np

from modelweld.errors import OverlapWarning, warn_user
from modelweld.matching.board import Board
from modelweld.priors.pieces import LARGEST_SHARE

CERTAIN, DOUBTFUL_SHARE = 0.75, 0.1
"""Many pieces are believed in only if at most a tenth of them is less than this sure of its atom. On simulated sites
that send atoms in pieces they are better from .75 on (experiments/strength/guard.py), in few dimensions as well;
people's movements, whose components overlap, reach .72."""

COLLAPSE = 0.4
"""Where more of all values would be second pieces, atoms are not split: everything falls together. Sites of very
unequal weights that are told too many components send up to that many (experiments/right)."""


def believable(board: Board) -> bool:
    """Whether the pieces found are few, or at least unmistakable; if not, a warning says so."""
    delta = board.delta
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
        rest, one = board.copy(), np.array([i])
        rest.take(one, counted=False)
        gain = rest.gain(one, np.arange(len(board.counts)))[0]
        sure.append(np.exp(gain[board.labels[i]] - logsumexp(gain)))
    return float(np.quantile(sure, DOUBTFUL_SHARE)) if sure else 1.0
