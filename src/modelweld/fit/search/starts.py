"""The search round Algorithm 1: which board does the sweeps, where it starts, what follows; the best objective wins.

Nothing is decided but by the one objective; each stage keeps what it was given unless it finds something better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.core.algorithm1 import CLEAR, AnyBoard, Run, is_same_partition
from modelweld.core.board import Board
from modelweld.core.family import find_starts
from modelweld.core.match import Plan, side_by_side
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Index, Stack
from modelweld.families import Family
from modelweld.fit.engines.choice import engine_for
from modelweld.fit.engines.sweep_engines import Compiled, Engine, Movable
from modelweld.fit.search.dissolution import PATIENCE
from modelweld.fit.search.moves import LARGEST_TABLE, Effort, merge, search_from
from modelweld.fit.search.split_rules import prefer_fragments
from modelweld.progress import report_progress

LARGEST_IN_FRAGMENTS = 10_000_000
"""Numbers, values times dimensions, up to which fragments are looked for after a compiled sweep: a reference board
holds five times as many, 400 MB."""


DISSOLVED_UP_TO = 100_000
"""Values up to which `search="auto"` dissolves atoms with full patience; beyond, with less in
proportion, so that the time of that does not grow."""

MANY_FRAGMENTS = 0.4
"""Share of fragments at which atoms are joined from later starts, whose noise is less, where fragments are pooled: two
atoms that ten sites hold side by side lose thirty nats by being joined where few fragments are expected, and
hardly any where they are many."""


def run(
    stacks: Sequence[Stack], families: Sequence[Family], prior: Prior, plan: Plan, rng: np.random.Generator
) -> tuple[AnyBoard, Run, Index]:
    """The best matching found, how it was found, and where the board's values stood when they were given."""
    engine, N = engine_for(stacks, families, prior, plan), len(stacks[0].values)
    apart = plan.splits_of(stacks)
    effort = effort_of(plan, apart, N)
    doubt = effort.moves and plan.splits == "auto" and plan.by_evidence and not apart
    report_progress("finding where to start", 0)
    arranged, order = engine.arrange(stacks)
    starts = side_by_side([find_starts(family, stack) for family, stack in zip(families, arranged, strict=True)])
    board, progress = find_matching(engine, arranged, starts, prior, apart, rng, effort)
    if isinstance(engine, Compiled):
        doubt &= board.margin < CLEAR and stacks[0].values.size <= LARGEST_IN_FRAGMENTS
    found = prefer_fragments(board, stacks, order, rng, effort) if doubt else None
    return (board, progress, order) if found is None else found


def effort_of(plan: Plan, apart: bool, N: int) -> Effort:
    """How hard to look for the matching of N values; where that begins with all of them `apart`, none is dissolved.

    Examples
    --------
    >>> [effort_of(Plan("auto"), False, N).patience for N in (100, 100_000, 200_000, 1_000_000, 3_000_000)]
    [12, 12, 6, 1, 0]
    """
    patience = 0.0 if apart else round(PATIENCE * min(1.0, DISSOLVED_UP_TO / max(N, 1)))
    return Effort(plan.search != "plain", plan.max_sweeps, np.inf if plan.search == "thorough" else patience)


def find_matching(
    engine: Engine,
    stacks: Sequence[Stack],
    starts: Sequence[Sequence[Family]],
    prior: Prior,
    fragments: bool,
    rng: np.random.Generator,
    effort: Effort,
) -> tuple[Movable, Run]:
    """The best matching found; in fragments only if they are there.

    Where fragments were allowed and none is held, that matching is the answer: matchings without fragments are worth
    the same whether fragments are allowed or not, but for a constant, so that no sweep, union or split can raise it.
    """
    if fragments:
        board, progress = find_fragments(stacks, starts, prior, rng, effort)
        if not (board.fragments_held() > 1).any():  # then what is best among more matchings is best among these
            whole = board.without_fragments()
            return whole, Run([whole.objective()], progress.changes, progress.converged, cut_short=progress.cut_short)
        return board, progress
    boards = [engine.board(stacks, families, prior) for families in starts]
    return search_from(boards, len(stacks[0].sizes), rng, effort)


def find_fragments(
    stacks: Sequence[Stack], starts: Sequence[Sequence[Family]], prior: Prior, rng: np.random.Generator, effort: Effort
) -> tuple[Board, Run]:
    """The best matching found with atoms in fragments, whether there are any or not."""
    J = len(stacks[0].sizes)
    boards = [Board(stacks, families, prior, Fragments()) for families in starts]
    if effort.moves and len(boards[0].labels) ** 2 <= LARGEST_TABLE:
        boards = [best_agglomerated(boards)]
    return search_from(boards, J, rng, effort)


def best_agglomerated(boards: Sequence[Board]) -> Board:
    """The best of boards that were agglomerated; where two come to one matching, only the first is learned from."""
    best, *others = boards
    agglomerate(best).learn()
    found = [best.labels]
    for board in others:
        if board.statistics is not None:  # else fragments scatter like values, and overlap with neighbours
            board.fragments = Fragments(MANY_FRAGMENTS)
        agglomerate(board)
        if any(is_same_partition(board.labels, labels) for labels in found):
            continue
        found.append(board.labels)
        board.learn()
        best = max(best, board, key=lambda board: board.objective())
    return best


def agglomerate(board: Board) -> Board:
    """The board with every value an atom, the best pairs of atoms joined until none raises the objective.

    Sweeps from nothing match fragments one group at a time, after the first of them have gathered elsewhere; this sees
    all groups at once, and does not depend on their order.
    """
    board.labels = np.arange(len(board.labels))
    board.recount()
    merge(board)
    return board
