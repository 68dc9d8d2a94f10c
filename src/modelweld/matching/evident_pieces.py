"""Pieces among values without standard errors: atoms in pieces only where the objective insists on them.

Where sites send atoms in pieces, the matching that holds every atom once has an atom for each piece. The search for
pieces starts from those atoms, joined at the noise of that matching, which values of different sites taught it: two of
one say nothing of it. What it takes grows with the number of atoms, however many values there are.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import Movable, is_same_partition
from modelweld.matching.board import Board
from modelweld.matching.moves import LARGEST_TABLE, Pairs
from modelweld.matching.piece_guard import falls_together
from modelweld.matching.tally import Tally
from modelweld.priors.pieces import Pieces

EVIDENT = 10.0
"""Nats by which pieces must raise the objective: atoms that merely overlap raise it by 2 or 3, sites that split theirs
by a hundred."""

FEWEST_MATCHED = 20
"""Groups beyond the first of their atoms from which the noise is known well enough to tell pieces by it: among fewer,
two values that happen to coincide bring it down."""

SHARES = (0.5, Pieces().delta)
"""Shares of pieces at which atoms are joined, one start of the search for each. At a half one piece more costs nothing;
at .05 two atoms that forty sites hold side by side lose a hundred nats by being joined, and stay two. At .05 neighbours
that overlap stay apart where few atoms are in pieces; at a half they are joined."""


def join_pieces(whole: Movable) -> list[Index]:
    """Labels of a matching without pieces after its atoms were joined, the best two first, at each share."""
    K, J = len(whole.counts), len(whole.sizes)
    found: list[Index] = []
    if len(whole.labels) <= FEWEST_MATCHED or K < 2 or K * max(K, J) > LARGEST_TABLE:
        return found
    for share in SHARES:
        pairs = Pairs(whole, Pieces(share))
        if not pairs.join_all():  # at smaller shares no two atoms are rather joined than at this one
            break
        new = not any(is_same_partition(pairs.tally.labels, labels) for labels in found)
        if new and _rise(pairs.tally, whole) > 0:  # what is then learned and swept may make them evident
            found.append(pairs.tally.labels)
    return found


def _rise(joined: Tally, whole: Movable) -> float:
    """By how much joined atoms are more probable than those of `whole`, at the share of pieces they are held in."""
    before, held, pieces = whole.tally(), joined.counts > 0, joined.pieces_held()
    value = joined.evidence([sums[held] for sums in joined.sums]) - before.evidence(before.sums)
    value += whole.prior.log_prob(joined.counts[held], whole.sizes) - whole.prior.log_prob(before.counts, whole.sizes)
    return value + Pieces().learned(pieces).log_prob(pieces)


def invites_pieces(joined: Board, whole: Movable) -> bool:
    """Whether joined atoms are insisted on once the share of pieces is learned, and a sweep leaves some in pieces.

    Where most sites' values fall together, neighbours were joined, not pieces.
    """
    joined.learn()
    if falls_together(joined) or not insists(joined, whole):
        return False
    joined.sweep(np.arange(len(joined.sizes)))
    return _holds_pieces(joined)


def insists(board: Board, whole: Movable) -> bool:
    """Whether atoms are held in pieces, and the objective is higher for it by enough."""
    return _holds_pieces(board) and board.objective() > whole.objective() + EVIDENT


def knows_noise(board: Board) -> bool:
    """Whether enough values are matched to tell pieces by their noise."""
    return bool(board.counts.sum() - len(board.counts) >= FEWEST_MATCHED)


def _holds_pieces(board: Board) -> bool:
    return bool((board.pieces_held() > 1).any())
