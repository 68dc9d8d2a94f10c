"""Algorithm 1 of the paper: one-group assignments in turn with hyperparameters, all raising one objective.

    objective = log P(matching) + sum over atoms of the log evidence of the values matched to them

`alternate` is the algorithm. What it works on is a *board*: the state of a matching, which improves itself group by
group. `core.board.Board` is the reference, for every family; `fit.engines.compiled.CompiledBoard` does the same for
large Gaussian jobs, and `shards.centre.Centre` matches the atoms of shards as if shards were groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from modelweld.core.family import Family
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Array, Index
from modelweld.progress import report_progress

NEW = -1
"""The choice of a value that becomes a new atom."""

COMPILED = "compiled"
"""The engine whose boards keep sums of atoms, and not their members' rows."""

SMALLEST_RISE = 1e-7
"""Nats by which a new assignment must beat the present one: ties and rounding are not improvements."""


CLEAR = 5.0
"""Nats: where every value is where it is by so many, groups that are freed come home. Of 95 simulated sets that were
clear by five, and of 18 clear by two or three, freeing groups raised none; of 25 that were not, three."""

DOMINATED_SWEEPS = 30
"""Sweeps, each rising as the last one did, that a run may be short of another before it is given up."""


class Sweepable(Protocol):
    """What Algorithm 1 asks for."""

    def sweep(self, order: Index) -> int:
        """Give each group in turn its best assignment; returns how many groups changed."""

    def learn(self) -> None:
        """Update hyperparameters given the matching."""

    def objective(self) -> float:
        """The one number."""


class AnyBoard(Sweepable, Protocol):
    """What is left when a run is over: labels number the atoms, `counts` are their groups."""

    engine: str
    labels: Index

    @property
    def prior(self) -> Prior:
        """How probable matchings are."""

    @property
    def counts(self) -> Index:
        """Number of groups at each atom."""

    @property
    def families(self) -> Sequence[Family]:
        """The families with their present hyperparameters."""

    @property
    def delta(self) -> float:
        """Learned share of fragments beyond the first; zero where every group holds an atom once."""

    def estimates(self) -> list[Array]:
        """Global values (K, D) of each array."""


SomeBoard = TypeVar("SomeBoard", bound=Sweepable)


class State(NamedTuple):
    """A matching and the hyperparameters it was left at."""

    labels: Index
    families: list[Family]
    prior: Prior
    fragments: Fragments | None


@dataclass
class Run:
    """How a run went: the objective after every sweep and every update, and whether the last sweep was idle.

    A run that `came_home` was at the matching that it was let out from, and ended there; one that was `cut_short` still
    found better matchings when it had done as much as it may.
    """

    history: list[float] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    converged: bool = False
    returned: bool = False
    cut_short: bool = False

    @property
    def sweeps(self) -> int:
        """Number of sweeps so far."""
        return len(self.changes)

    def is_dominated(self, to_beat: float) -> bool:
        """Whether it would take many sweeps more, each rising as the last one did, to come to an objective.

        Rises become smaller from sweep to sweep.
        """
        if len(self.history) < 4:
            return False
        rise = self.history[-1] - self.history[-3]
        return to_beat - self.history[-1] > DOMINATED_SWEEPS * rise


def alternate(
    board: Sweepable,
    J: int,
    rng: np.random.Generator,
    max_sweeps: int,
    is_back: Callable[[], bool] | None = None,
    to_beat: float = -np.inf,
    learns: bool = True,
) -> Run:
    """Algorithm 1: until nothing changes, match every group given the others, then learn hyperparameters.

    Where groups were freed and all are where they were (`is_home`), what follows is known.
    A run that will hardly come to an objective `to_beat` is given up; one that never `learns` keeps hyperparameters.
    """
    progress = Run()
    while progress.sweeps < max_sweeps:
        progress.changes.append(board.sweep(rng.permutation(J)))
        if is_back is not None and is_back():
            progress.returned = progress.converged = True
            break
        progress.history.append(board.objective())
        if progress.changes[-1] == 0:
            progress.converged = True
            break
        if learns:
            report_progress(f"learning hyperparameters after sweep {progress.sweeps}", 0)
            board.learn()
            progress.history.append(board.objective())
        if progress.is_dominated(to_beat):
            break
    return progress


def best_run(
    boards: Sequence[SomeBoard], J: int, rng: np.random.Generator, max_sweeps: int, *, give_up: bool = False
) -> tuple[SomeBoard, Run]:
    """Algorithm 1 from every start: the first of the best objectives.

    With `give_up`, runs end early that will hardly come to the best objective so far.
    """
    board, *others = boards
    progress = alternate(board, J, rng, max_sweeps)
    for other in others:
        attempt = alternate(other, J, rng, max_sweeps, to_beat=progress.history[-1] if give_up else -np.inf)
        if attempt.history[-1] > progress.history[-1] + SMALLEST_RISE:
            board, progress = other, attempt
    return board, progress


def is_same_partition(labels: Index, others: Index) -> bool:
    """Whether two numberings say the same of which values belong together.

    Examples
    --------
    >>> one = np.array([0, 1, 0])
    >>> is_same_partition(one, np.array([5, 2, 5])), is_same_partition(one, np.array([0, 0, 0]))
    (True, False)
    """
    there, back = np.zeros(labels.max(initial=0) + 1, np.int64), np.zeros(others.max(initial=0) + 1, np.int64)
    there[labels], back[others] = others, labels
    return bool((there[labels] == others).all() and (back[others] == labels).all())


def best_assignment(scores: Array, surcharge: Array, most_new: int) -> Index:
    """Column of each row of `scores` (L, K), at most one row per column, or NEW.

    Scores are match minus new, so a new atom scores zero less its `surcharge` (the k-th new one pays the k-th).
    Without surcharges, clipping at zero does away with columns for new atoms.
    """
    from scipy.optimize import linear_sum_assignment

    L, K = scores.shape
    choice = np.full(L, NEW, dtype=np.int64)
    if most_new >= L and not surcharge.any():
        rows, columns = linear_sum_assignment(np.maximum(scores, 0.0), maximize=True)
        choice[rows] = np.where(scores[rows, columns] > 0, columns, NEW)
        return choice
    dummies = max(most_new, L - K)
    padded = np.hstack([scores, np.broadcast_to(-surcharge[:dummies], (L, dummies))])
    _, columns = linear_sum_assignment(padded, maximize=True)
    return np.where(columns < K, columns, NEW)
