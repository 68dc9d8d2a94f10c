"""The search round Algorithm 1: which board does the sweeps, where it starts, what follows; the best objective wins.

Nothing is decided but by the one objective; each stage keeps what it was given unless it finds something better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from modelweld.core.algorithm1 import (
    CLEAR,
    COMPILED,
    SMALLEST_RISE,
    AnyBoard,
    Movable,
    Run,
    State,
    alternate,
    is_same_partition,
)
from modelweld.core.board import Board
from modelweld.core.family import with_hyperprior
from modelweld.core.matching import Matching
from modelweld.core.plan import COMPILED_FROM, Plan
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Index, Stack, arrange
from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.families.capabilities import find_starts, is_compilable
from modelweld.fit.engines.sparse_board import SparseBoard, suits
from modelweld.fit.search.moves import LARGEST_TABLE, PATIENCE, dissolve, merge, merge_and_split
from modelweld.fit.search.split_rules import (
    believable,
    insists,
    invites_fragments,
    join_fragments,
    knows_noise,
    warn_overlap,
)
from modelweld.progress import report_progress

LARGEST_IN_PIECES = 10_000_000
"""Numbers, values times dimensions, up to which fragments are looked for after a compiled sweep: a reference board
holds five times as many, 400 MB."""


DISSOLVED_UP_TO = 100_000
"""Values up to which a compiled job of `search="auto"` dissolves atoms with full patience; beyond, with less in
proportion, so that the time of that does not grow."""

AnyBoardHere = TypeVar("AnyBoardHere", bound=Movable)


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    `moves` merges and splits; `max_sweeps` bounds each run of sweeps; small atoms are dissolved until so many were in
    vain (`patience`, zero: not at all). Large sets may be matched by a `sparse` board.
    """

    moves: bool
    max_sweeps: int
    patience: float = 0
    sparse: bool = True


def run(
    stacks: Sequence[Stack], families: Sequence[Family], prior: Prior, plan: Plan, rng: np.random.Generator
) -> tuple[AnyBoard, Run, Index]:
    """The best matching found, how it was found, and where the board's values stood when they were given."""
    compiled, N = uses_compiled(stacks, families, plan), len(stacks[0].values)
    effort = effort_of(plan, compiled, N)
    doubt = effort.moves and plan.fragments == "auto" and plan.by_evidence and all(stack.plain for stack in stacks)
    report_progress("finding where to start", 0)
    board: Movable
    if compiled:
        boards, order = compiled_boards(stacks[0], families[0], prior)
        board, progress = best_run(boards, len(stacks[0].sizes), rng, effort)
        doubt &= board.margin < CLEAR and stacks[0].values.size <= LARGEST_IN_PIECES
    else:
        fragments = plan.fragments is True or (plan.fragments == "auto" and any(s.variance is not None for s in stacks))
        arranged, order = arrange(stacks)
        starts = _side_by_side([find_starts(family, stack) for family, stack in zip(families, arranged, strict=True)])
        board, progress = find_matching(arranged, starts, prior, fragments, rng, effort)
    found = prefer_fragments(board, stacks, order, rng, effort_of(plan, False, N)) if doubt else None
    return (board, progress, order) if found is None else found


def effort_of(plan: Plan, compiled: bool, N: int) -> Effort:
    """How hard to look for the matching of N values. Compiled boards cannot split: they dissolve atoms instead.

    Examples
    --------
    >>> [effort_of(Plan("auto"), True, N).patience for N in (100, 100_000, 200_000, 1_000_000, 3_000_000)]
    [12, 12, 6, 1, 0]
    """
    moves, patience = plan.search != "plain", 0.0
    if plan.search == "thorough":
        patience = np.inf
    elif compiled and moves:
        patience = round(PATIENCE * min(1.0, DISSOLVED_UP_TO / max(N, 1)))
    return Effort(moves, plan.max_sweeps, patience, plan.engine == "auto")


def uses_compiled(stacks: Sequence[Stack], families: Sequence[Family], plan: Plan) -> bool:
    """Whether the compiled sweep does this job: by its size alone, unless the plan says so."""
    stack = stacks[0]
    able = len(stacks) == 1 and is_compilable(families[0]) and stack.plain and len(stack.values) > 0
    able = able and plan.fragments is not True
    if plan.engine == "compiled" and not able:
        raise InputError(
            "engine 'compiled' is for one array with a diagonal or scalar Gaussian, without variance, weight or copies."
        )
    return plan.engine == "compiled" or (plan.engine == "auto" and able and is_large(stack))


def is_large(stack: Stack) -> bool:
    """Whether the compiled sweep is worth its compiler."""
    N, D = stack.values.shape
    return bool(N * int(stack.sizes.max(initial=0)) * D >= COMPILED_FROM)


def compiled_boards(stack: Stack, family: Family, prior: Prior) -> tuple[list[Movable], Index]:
    """Compiled boards of one Gaussian array, one per start, and where their values stood."""
    from modelweld.fit.engines.compiled import CompiledBoard, pack

    assert isinstance(family, Gaussian)
    stack, order = pack(stack)
    return [CompiledBoard(stack, start, prior) for start in find_starts(family, stack)], order


def best_run(
    boards: Sequence[AnyBoardHere], J: int, rng: np.random.Generator, effort: Effort
) -> tuple[AnyBoardHere, Run]:
    """Algorithm 1 from every start; the first of the best objectives, its atoms merged, split and dissolved."""
    board, *others = boards
    progress = alternate(board, J, rng, effort.max_sweeps)
    for other in others:
        attempt = alternate(other, J, rng, effort.max_sweeps, to_beat=progress.history[-1] if effort.moves else -np.inf)
        if attempt.history[-1] > progress.history[-1] + SMALLEST_RISE:
            board, progress = other, attempt
    if effort.moves and board.margin < CLEAR:
        progress = merge_and_split(board, J, rng, progress, effort.max_sweeps)
        progress = dissolve(board, J, rng, progress, effort.max_sweeps, effort.patience)
    return board, progress


def find_matching(
    stacks: Sequence[Stack],
    starts: Sequence[Sequence[Family]],
    prior: Prior,
    fragments: bool,
    rng: np.random.Generator,
    effort: Effort,
) -> tuple[Board, Run]:
    """The best matching found with the reference board; in fragments only if they are there and believable.

    Where fragments were allowed and none is held, that matching is the answer: matchings without fragments are worth
    the same whether fragments are allowed or not, but for a constant, so that no sweep, union or split can raise it.
    """
    if fragments:
        board, progress = find_fragments(stacks, starts, prior, rng, effort)
        if not (board.fragments_held() > 1).any():  # then what is best among more matchings is best among these
            whole = board.without_fragments()
            return whole, Run([whole.objective()], progress.changes, progress.converged, cut_short=progress.cut_short)
        if believable(board):
            return board, progress
        warn_overlap(board)
    J = len(stacks[0].sizes)
    make = SparseBoard if effort.sparse and suits(stacks, starts[0], prior) else Board
    boards = [make(stacks, families, prior) for families in starts]
    return best_run(boards, J, rng, effort)


def find_fragments(
    stacks: Sequence[Stack], starts: Sequence[Sequence[Family]], prior: Prior, rng: np.random.Generator, effort: Effort
) -> tuple[Board, Run]:
    """The best matching found with atoms in fragments, whether there are any or not."""
    J = len(stacks[0].sizes)
    boards = [Board(stacks, families, prior, Fragments()) for families in starts]
    if effort.moves and len(boards[0].labels) ** 2 <= LARGEST_TABLE:
        boards = [best_agglomerated(boards)]
    return best_run(boards, J, rng, effort)


def prefer_fragments(
    whole: Movable, stacks: Sequence[Stack], order: Index, rng: np.random.Generator, effort: Effort
) -> tuple[Board, Run, Index] | None:
    """The best matching of plain values with atoms in fragments, where these are evident beside the one without them.

    The values of that one, `whole`, stood in `order`.
    """
    joined, J = join_fragments(whole), len(whole.sizes)
    if not joined:
        return None
    stacks, arranged = arrange(stacks)
    at = np.argsort(order)[arranged]
    starts = [Board(stacks, whole.families, whole.prior, Fragments(), labels[at]) for labels in joined]
    rng = rng.spawn(1)[0]  # what follows draws as it would have
    runs = [best_run([b], J, rng, effort) for b in starts if invites_fragments(b, whole)]
    runs = [run for run in runs if insists(run[0], whole) and knows_noise(run[0])]
    runs.sort(key=lambda run: -run[0].objective())
    for board, progress in runs:
        if believable(board):
            return board, progress, arranged
    if runs:
        warn_overlap(runs[0][0])
    return None


def best_agglomerated(boards: Sequence[Board]) -> Board:
    """The best of boards that were agglomerated; where two come to one matching, only the first is learned from."""
    best, *others = boards
    agglomerate(best).learn()
    found = [best.labels]
    for board in others:
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


def _side_by_side(lists: Sequence[list[Family]]) -> list[list[Family]]:
    """The first of each list, then the second, ...; a list that has ended goes on with its last."""
    return [[x[min(i, len(x) - 1)] for x in lists] for i in range(max(map(len, lists)))]


def board_at(
    old: Matching, stacks: Sequence[Stack], labels: Index, *, from_scratch: bool = False
) -> tuple[AnyBoard, Index]:
    """A board of the kind that made a matching, at these labels (NEW: none yet), and where its values stood.

    With `from_scratch`, what is believed of hyperparameters is read off these values, as `fuse` would.
    """
    assert old.prior is not None
    families = list(old.families.values())
    if old.engine == COMPILED:
        from modelweld.fit.engines.compiled import CompiledBoard, pack

        [family] = families
        assert isinstance(family, Gaussian)
        stack, order = pack(stacks[0])
        family = with_hyperprior(family, stack) if from_scratch else family
        compiled = CompiledBoard(stack, family, old.prior)
        compiled.restore(State(labels[order], [family], old.prior, None))
        return compiled, order
    stacks, order = arrange(stacks)
    if from_scratch:
        families = [with_hyperprior(family, stack) for family, stack in zip(families, stacks, strict=True)]
    make = SparseBoard if old.engine == SparseBoard.engine and suits(stacks, families, old.prior) else Board
    return make(stacks, families, old.prior, old.splits, labels[order]), order
