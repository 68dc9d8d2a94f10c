"""Whether pieces (over-segmentation) are believed: few always, many only where they cannot be neighbouring atoms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.errors import Finding, OverlapWarning, OversplitWarning, warn_user
from modelweld.inputs.stack import Index, group_of_values
from modelweld.matching.board import Board
from modelweld.matching.result import Matching
from modelweld.priors.pieces import LARGEST_SHARE

CERTAIN, DOUBTFUL_SHARE = 0.75, 0.1
"""Many pieces are believed in only if at most a tenth of them is less than this sure of its atom. On simulated sites
that send atoms in pieces they are better from .75 on (experiments/strength/guard.py), in few dimensions as well;
people's movements, whose components overlap, reach .72."""

COLLAPSE = 0.42
"""Where more of all values would be second pieces, atoms are not split: everything falls together. Sites of very
unequal weights that are told too many components come near to that (experiments/right, D=2, Dirichlet(.3): ARI .709 at
.4, .756 at .42)."""

OVERSPLIT, FEWEST_SECOND = 1.5, 4
"""Pieces per atom, on average, and pieces beyond the first of their atom from which a site is named, if most others are
not like it. A mixture of eight components that is told two too many has 1.25 and 2: every site has some."""


def believable(board: Board) -> bool:
    """Whether the pieces found are few, or at least unmistakable.

    A minority of sites may split as they like: their pieces say nothing of how the others are split.
    """
    if board.delta <= LARGEST_SHARE:
        return True
    few = board.delta <= COLLAPSE or share_elsewhere(board) <= LARGEST_SHARE
    return few and certainty(board) >= CERTAIN


def warn_overlap(board: Board) -> None:
    """Say that the pieces found are not believed."""
    warn_user(
        f"{board.delta:.0%} of local parameters would be second pieces of an atom of their own site: local components "
        "overlap too much to tell pieces from neighbours, so every site holds an atom once. Fewer components "
        "there, or more restarts, would help.",
        OverlapWarning,
    )


def share_elsewhere(board: Board) -> float:
    """Share of second pieces among the values of all groups but the minority that splits most."""
    second = _second_pieces(board.labels, board.group, len(board.sizes))
    return _share(second, board.sizes, _splitting_least(second, board.sizes))


def falls_together(board: Board) -> bool:
    """Whether most groups have so many second pieces that atoms were not split: neighbours were joined."""
    return share_elsewhere(board) > COLLAPSE


def _second_pieces(labels: Index, group: Index, J: int) -> Index:
    """Pieces beyond the first of its atom, of each group."""
    held = np.unique(np.stack([labels, group]), axis=1)[1]
    return np.asarray(np.bincount(group, minlength=J) - np.bincount(held, minlength=J))


def _splitting_least(second: Index, sizes: Index) -> Index:
    """The groups but for the minority with the largest numbers of second pieces; of two groups, the other one."""
    filled = np.flatnonzero(sizes)
    minority = max((len(filled) - 1) // 2, 1)
    return filled[np.argsort(second[filled], kind="stable")][: len(filled) - minority]


def _share(second: Index, sizes: Index, groups: Index) -> float:
    """Share of second pieces among the values of some groups."""
    return float(second[groups].sum() / max(sizes[groups].sum(), 1))


def name_oversplit(matching: Matching, sites: Sequence[str]) -> list[Finding]:
    """Sites that sent their atoms in pieces, if they are a minority and the others did not."""
    sizes = np.diff(matching.offsets)
    second = _second_pieces(matching.stacked_labels, group_of_values(matching.offsets), len(sizes))
    split = (second >= FEWEST_SECOND) & (sizes >= OVERSPLIT * (sizes - second))
    whole = np.flatnonzero(~split & (sizes > 0))
    if 2 * split.sum() > np.count_nonzero(sizes) or _share(second, sizes, whole) > LARGEST_SHARE:
        return []
    return [
        Finding(
            f" sent about {sizes[j] / (sizes[j] - second[j]):.2g} pieces of every atom it holds "
            f"({sizes[j]} values, {sizes[j] - second[j]} atoms); most others hold theirs whole. Its pieces are taken "
            "together. Fewer components there, or more restarts, would help; with copies=False each would be an atom "
            "of its own.",
            OversplitWarning,
            [sites[j]],
        )
        for j in np.flatnonzero(split).tolist()
    ]


def certainty(board: Board) -> float:
    """How sure the most doubtful tenth of all pieces is of its atom, at most; 1 where nothing is in pieces.

    A piece is taken out of its atom and compared with it and all other atoms, all equally probable beforehand.
    """
    from scipy.special import logsumexp

    _, held, pieces = np.unique(np.stack([board.labels, board.group]), axis=1, return_inverse=True, return_counts=True)
    among = np.flatnonzero(pieces[held.ravel()] > 1)
    if not len(among):
        return 1.0
    rest, atoms, gain = board.copy(), np.arange(len(board.counts)), np.empty((len(among), len(board.counts)))
    for row, i in enumerate(among[:, None]):
        before = rest.remember(i)
        rest.take(i, counted=False)
        gain[row] = rest.gain(i, atoms)[0]
        rest.put_back(before)
    own = gain[np.arange(len(among)), board.labels[among]]
    return float(np.quantile(np.exp(own - logsumexp(gain, axis=1)), DOUBTFUL_SHARE))
