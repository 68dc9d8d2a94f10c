"""Which engine does the sweeps of a job: by the input alone, whatever has been compiled before.

So the same call gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from modelweld.core.family import Family
from modelweld.core.match import Plan
from modelweld.core.prior import Prior
from modelweld.core.values import Stack
from modelweld.errors import InputError
from modelweld.families.capabilities import names_candidates
from modelweld.families.real_values import Gaussian
from modelweld.fit.engines.sweep_engines import Compiled, Engine, Reference, Sparse

COMPILED_FROM, OF_A_SITE = 2_000_000, 10_000
"""Local parameters x largest group x dimensions from which the compiled sweep is used, and how many of these a site
counts for besides: a step of numpy's. Below, plain numpy takes seconds at most, less than the compiler."""

SPARSE_FROM = 1_000_000
"""Values x largest group from which the sparse board is used: below, the reference takes a second."""


def engine_for(stacks: Sequence[Stack], families: Sequence[Family], prior: Prior, plan: Plan) -> Engine:
    """The engine of this job: by its size, unless the plan says so."""
    if uses_compiled(stacks, families, plan):
        return Compiled()
    return Sparse() if plan.engine == "auto" and is_sparse(stacks, families, prior) else Reference()


def uses_compiled(stacks: Sequence[Stack], families: Sequence[Family], plan: Plan) -> bool:
    """Whether the compiled sweep does this job: by its size alone, unless the plan says so."""
    stack = stacks[0]
    if plan.engine == "numpy" or (plan.engine == "auto" and not is_large(stack)):
        return False
    able = len(stacks) == 1 and is_compilable(families[0]) and stack.plain and len(stack.values) > 0
    able = able and plan.splits is not True
    if plan.engine == "compiled" and not able:
        raise InputError(
            "engine 'compiled' is for one array with a diagonal or scalar Gaussian, without variance, weight or splits."
        )
    return able


def is_compilable(family: Family) -> bool:
    """Whether the compiled engine knows a family: not full covariances, nor subclasses, which may score otherwise."""
    return type(family) is Gaussian and family.shape != "full"


def is_large(stack: Stack) -> bool:
    """Whether the compiled sweep is worth its compiler."""
    N, D = stack.values.shape
    return bool(N * int(stack.sizes.max(initial=0)) * D + OF_A_SITE * len(stack.sizes) >= COMPILED_FROM)


def is_sparse(stacks: Sequence[Stack], families: Sequence[Family], prior: Prior) -> bool:
    """Whether the sparse board does such a job, and is worth it."""
    if len(stacks) != 1 or len(stacks[0].values) * int(stacks[0].sizes.max(initial=0)) < SPARSE_FROM:
        return False
    L = int(stacks[0].sizes.max())
    return names_candidates(families[0], stacks[0]) and not prior.surcharge(L).any() and prior.most_new(L, 10**9) >= L
