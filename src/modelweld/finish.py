"""From a board to the matching a user sees: labels in the order given, atoms by decreasing count, artefacts last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.artefacts import artefacts
from modelweld.local import Array
from modelweld.matched import Key, Matching
from modelweld.matching import AnyBoard, Board, Progress
from modelweld.stack import Index


def finished(
    board: AnyBoard, progress: Progress, names: Sequence[Key], rows: Index, offsets: Index, engine: str
) -> Matching:
    """The board's matching; row i of the board is row ``rows[i]`` as it was given."""
    values = board.estimates()
    found = artefacts(board) if isinstance(board, Board) else []
    number = by_count(board.counts, values[0])
    last = np.isin(number, [artefact.atom for artefact in found])
    number = np.concatenate([number[~last], number[last]])
    rank = np.empty(len(number), dtype=np.int64)
    rank[number] = np.arange(len(number))
    labels = np.empty(len(rows), dtype=np.int64)
    labels[rows] = rank[board.labels]
    return Matching(
        stacked_labels=labels,
        offsets=offsets,
        counts=board.counts[number],
        families=dict(zip(names, board.families, strict=True)),
        values={name: v[number] for name, v in zip(names, values, strict=True)},
        prior=board.prior,
        objective=float(progress.history[-1]),
        history=tuple(map(float, progress.history)),
        changes=tuple(progress.changes),
        converged=progress.converged,
        engine=engine,
        delta=board.copies.delta if isinstance(board, Board) and board.copies is not None else 0.0,
        artefacts=tuple(artefact.renumbered(rank) for artefact in found),
    )


def by_count(counts: Index, values: Array) -> Index:
    """Atoms by decreasing count, then by content, so that their numbers do not depend on the order of arrival."""
    order = np.lexsort((values[:, 0], -counts))
    tied = (np.diff(counts[order]) == 0) & (np.diff(values[order, 0]) == 0)
    return np.lexsort((*values.T[::-1], -counts)) if tied.any() else order
