"""A matching taken up again: values come, go or are asked about, and what was learned is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from modelweld.core.algorithm1 import COMPILED, Run, alternate
from modelweld.core.family import with_hyperprior
from modelweld.core.match import MOST_SWEEPS
from modelweld.core.matching import Matching, make_matching
from modelweld.core.values import Index, SetValues, Stack
from modelweld.fit.engines.choice import is_sparse
from modelweld.fit.engines.sweep_engines import Compiled, Engine, Movable, Reference, Sparse

BoardAt = Callable[[Matching, SetValues, Index, bool], tuple[Any, Index]]
"""The board of a matching at these labels, with hyperparameters learned anew or not, and where its values stood."""


def refit(
    old: Matching, values: SetValues, labels: Index, at: BoardAt, rng: np.random.Generator, learn: bool
) -> Matching:
    """The matching of values that one comes to from `labels` (NEW: none yet) and the old hyperparameters."""
    board, order = at(old, values, labels, learn)
    board.place_new()
    progress = Run([board.objective()], [], True)
    if learn:
        board.learn()
        progress = alternate(board, len(values.sizes), rng, MOST_SWEEPS)
    return make_matching(board, progress, list(old.families), order, values.offsets)


def board_at(old: Matching, values: SetValues, labels: Index, from_scratch: bool) -> tuple[Movable, Index]:
    """A board of the engine that made a matching, at these labels (NEW: none yet), and where its values stood.

    With `from_scratch`, the hyperprior is read off these values, as `fuse` would.
    """
    assert old.prior is not None
    engine = engine_of(old, values.stacks)
    stacks, order = engine.arrange(values.stacks)
    families = list(old.families.values())
    if from_scratch:
        families = [with_hyperprior(family, stack) for family, stack in zip(families, stacks, strict=True)]
    return engine.board(stacks, families, old.prior, old.splits, labels[order]), order


def engine_of(old: Matching, stacks: Sequence[Stack]) -> Engine:
    """The engine that made a matching, for these values."""
    assert old.prior is not None
    if old.engine == COMPILED:
        return Compiled()
    sparse = old.engine == "sparse" and is_sparse(stacks, list(old.families.values()), old.prior)
    return Sparse() if sparse else Reference()
