"""From a board to the matching a user sees: labels in the order given, atoms by decreasing count, artefacts last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from modelweld.families.base import Family
from modelweld.inputs.keys import Key
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, group_of_rows
from modelweld.matching.algorithm1 import AnyBoard, Progress
from modelweld.matching.result import Artefact, Matching
from modelweld.priors.beta_bernoulli import Prior


def finished(
    board: AnyBoard,
    progress: Progress,
    names: Sequence[Key],
    order: Index,
    offsets: Index,
    found: Sequence[Artefact] = (),
) -> Matching:
    """The board's matching; value i of the board is value ``order[i]`` as it was given."""
    values = board.estimates()
    number = by_count(board.counts, values[0])
    last = np.isin(number, [artefact.atom for artefact in found])
    number = np.concatenate([number[~last], number[last]])
    rank = ranks(number)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = rank[board.labels]
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
        engine=board.engine,
        delta=board.delta,
        artefacts=tuple(artefact.renumbered(rank) for artefact in found),
    )


def by_labels(
    labels: Index,
    offsets: Index,
    name: str,
    values: Array,
    engine: str,
    *,
    prior: Prior | None = None,
    families: Mapping[Key, Family] | None = None,
    objective: float = float("nan"),
) -> Matching:
    """The matching of a method that is not `fuse`, from labels and the atoms' values, numbered as `fuse` numbers them.

    An atom counts once per site, also where a site holds it more than once.
    """
    held = np.unique(np.stack([labels, group_of_rows(offsets)]), axis=1)[0]
    counts = np.bincount(held, minlength=len(values))
    number = by_count(counts, values)
    return Matching(
        stacked_labels=ranks(number)[labels],
        offsets=offsets,
        counts=counts[number],
        families=families or {},
        values={name: values[number]},
        prior=prior,
        objective=objective,
        history=() if np.isnan(objective) else (objective,),
        changes=(),
        converged=True,
        engine=engine,
    )


def ranks(number: Index) -> Index:
    """Where each atom stands in an order of all of them."""
    rank = np.empty(len(number), dtype=np.int64)
    rank[number] = np.arange(len(number))
    return rank


def by_count(counts: Index, values: Array) -> Index:
    """Atoms by decreasing count, then by content, so that their numbers do not depend on the order of arrival."""
    order = np.lexsort((values[:, 0], -counts))
    tied = (np.diff(counts[order]) == 0) & (np.diff(values[order, 0]) == 0)
    return np.lexsort((*values.T[::-1], -counts)) if tied.any() else order
