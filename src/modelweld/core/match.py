"""One set: values in, a matching out.

`fit` is the paper's method. What the default call adds stands around a fit as a pipeline of *screens*. A screen gets
values and the fit of whatever it forwards, and returns the matching of all values that it got. It may forward fewer
values and restore the others (outliers), fit more than once (duplicates), or only look at the matching.

    through([a, b], fit)(values)  is  a(values, fit=lambda rest: b(rest, fit))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from modelweld.core.algorithm1 import best_run
from modelweld.core.board import Board
from modelweld.core.family import Family, find_starts
from modelweld.core.matching import Matching, make_matching
from modelweld.core.plan import Plan
from modelweld.core.prior import Prior
from modelweld.core.values import Key, SetValues, Stack, arrange

Fit = Callable[[SetValues], Matching]
"""Values in, their matching out."""


class Screen(Protocol):
    """One step of the pipeline: the matching of all `values`, given the `fit` of those that it hands on."""

    def __call__(self, values: SetValues, fit: Fit) -> Matching:
        """Screen."""
        ...


def through(screens: Sequence[Screen], fit: Fit) -> Fit:
    """The fit behind these screens, of which the first sees the values first."""
    for screen in reversed(screens):
        fit = partial(screen, fit=fit)
    return fit


Parts = Mapping[Key, tuple[Stack, Family]]
"""The arrays that decide a set's matching: their values of all sites, and their families."""


class Matcher(Protocol):
    """Which values of one set are noisy copies of the same atom; `columns` names features in messages."""

    def __call__(
        self,
        parts: Parts,
        sites: Sequence[str],
        plan: Plan,
        rng: np.random.Generator,
        columns: Sequence[Sequence[str]] | None = None,
    ) -> Matching:
        """Match."""
        ...


def fit(values: SetValues, prior: Prior, max_sweeps: int, rng: np.random.Generator) -> Matching:
    """Algorithm 1 on all values, with every hyperparameter to start from; the best objective wins."""
    stacks, order = arrange(values.stacks)
    found = [find_starts(family, stack) for family, stack in zip(values.families, stacks, strict=True)]
    boards = [Board(stacks, families, prior) for families in side_by_side(found)]
    board, progress = best_run(boards, len(values.sizes), rng, max_sweeps)
    return make_matching(board, progress, values.names, order, values.offsets, progress.history[-1])


def side_by_side(lists: Sequence[list[Family]]) -> list[list[Family]]:
    """The first of each list, then the second, ...; a list that has ended goes on with its last."""
    return [[x[min(i, len(x) - 1)] for x in lists] for i in range(max(map(len, lists)))]
