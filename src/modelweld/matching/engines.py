"""Which board does the sweeps, where it starts, and how hard it looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.inputs.stack import Index, Stack, arranged
from modelweld.matching.algorithm1 import AnyBoard, Progress, State
from modelweld.matching.board import Board
from modelweld.matching.plan import COMPILED_FROM, REMATCHED_UP_TO, Plan
from modelweld.matching.result import Matching
from modelweld.matching.search import Effort, best_run, find_matching
from modelweld.priors.beta_bernoulli import Prior
from modelweld.progress import tell


def run(
    stacks: Sequence[Stack], families: Sequence[Family], plan: Plan, rng: np.random.Generator
) -> tuple[AnyBoard, Progress, Index]:
    """The best matching found, how it was found, and where the board's values stood when they were given."""
    compiled = uses_compiled(stacks, families, plan)
    unmoved = compiled and plan.search == "auto" and len(stacks[0].values) <= REMATCHED_UP_TO
    effort = Effort(
        moves=plan.search != "plain",
        rematch=plan.search == "thorough" or unmoved,  # compiled boards cannot merge and split
        max_sweeps=plan.max_sweeps,
    )
    tell("finding where to start", 0)
    if compiled:
        boards, order = compiled_boards(stacks[0], families[0], plan.prior)
        return *best_run(boards, len(stacks[0].sizes), rng, effort), order
    pieces = plan.copies is True or (plan.copies == "auto" and any(s.variance is not None for s in stacks))
    stacks, order = arranged(stacks)
    starts = _side_by_side([family.starts(stack) for family, stack in zip(families, stacks, strict=True)])
    return *find_matching(stacks, starts, plan.prior, pieces, rng, effort), order


def uses_compiled(stacks: Sequence[Stack], families: Sequence[Family], plan: Plan) -> bool:
    """Whether the compiled sweep does this job: by its size alone, unless the plan says so."""
    stack = stacks[0]
    able = len(stacks) == 1 and families[0].compilable and stack.plain and len(stack.values) > 0
    able = able and plan.copies is not True
    if plan.engine == "compiled" and not able:
        raise InputError(
            "engine 'compiled' is for one array with a diagonal or scalar Gaussian, without variance, weight or copies."
        )
    return plan.engine == "compiled" or (plan.engine == "auto" and able and is_large(stack))


def is_large(stack: Stack) -> bool:
    """Whether the compiled sweep is worth its compiler."""
    N, D = stack.values.shape
    return bool(N * int(stack.sizes.max(initial=0)) * D >= COMPILED_FROM)


def compiled_boards(stack: Stack, family: Family, prior: Prior) -> tuple[list[AnyBoard], Index]:
    """Compiled boards of one Gaussian array, one per start, and where their values stood."""
    from modelweld.matching.compiled import CompiledBoard, pack

    assert isinstance(family, Gaussian)
    stack, order = pack(stack)
    return [CompiledBoard(stack, start, prior) for start in family.starts(stack)], order


def board_at(old: Matching, stacks: Sequence[Stack], labels: Index) -> tuple[AnyBoard, Index]:
    """A board of the kind that made a matching, at these labels (NEW: none yet), and where its values stood."""
    assert old.prior is not None
    families = list(old.families.values())
    if old.engine == "compiled":
        from modelweld.matching.compiled import CompiledBoard, pack

        [family] = families
        assert isinstance(family, Gaussian)
        stack, order = pack(stacks[0])
        compiled = CompiledBoard(stack, family, old.prior)
        compiled.restore(State(labels[order], [family], old.prior, None))
        return compiled, order
    stacks, order = arranged(stacks)
    return Board(stacks, families, old.prior, old.copies, labels[order]), order


def _side_by_side(lists: Sequence[list[Family]]) -> list[list[Family]]:
    """The first of each list, then the second, ...; a list that has ended goes on with its last."""
    return [[x[min(i, len(x) - 1)] for x in lists] for i in range(max(map(len, lists)))]
