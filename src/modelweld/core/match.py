"""One set: values in, a matching out; and the plan of it, decided once and then passed on.

`fit` is the paper's method. What the default call adds stands around a fit as a pipeline of *screens*. A screen gets
values and the fit of whatever it forwards, and returns the matching of all values that it got. It may forward fewer
values and restore the others (outliers), fit more than once (duplicates), or only look at the matching.

    through([a, b], fit)(values)  is  a(values, fit=lambda rest: b(rest, fit))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import numpy as np

from modelweld.core.algorithm1 import best_run
from modelweld.core.board import Board
from modelweld.core.family import Family, find_starts
from modelweld.core.matching import Matching, make_matching
from modelweld.core.prior import Prior
from modelweld.core.values import Key, SetValues, Stack, arrange
from modelweld.errors import InputError

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


Auto = Literal["auto"]
EngineName = Literal["auto", "numpy", "compiled"]
Effort = Literal["auto", "plain", "thorough"]

MOST_SWEEPS = 200
"""Ten times what the hardest simulated sets needed; rounds of moves that follow end after as many, too."""


@dataclass(frozen=True)
class Plan:
    """How a set is matched.

    Attributes
    ----------
    prior : Prior or "auto"
        The prior over matchings; "auto": what suits the number of sites that are fitted.
    splits : bool or "auto"
        Whether a site may hold an atom in several fragments; "auto": where fitted models have standard errors.
    by_evidence : bool
        Whether "auto" finds fragments where the objective insists, and nowhere else: of plain values.
    outliers : bool or "auto"
        Whether gross outliers and oversized sites are excluded; "auto": unless the kind of model has none.
    site_effects : bool or "auto"
        Whether offsets and scales of sites are estimated and corrected; "auto": where they are evident.
    duplicates : bool
        Whether sites that sent the same values are fitted once.
    search : {"auto", "plain", "thorough"}
        How hard to look.
    max_sweeps : int
        Sweeps after which a run ends.
    warn : bool
        Whether to warn of that.
    engine : {"auto", "numpy", "compiled"}
        What does the sweeps.
    """

    prior: Prior | Auto
    splits: bool | Auto = "auto"
    by_evidence: bool = True
    outliers: bool | Auto = "auto"
    site_effects: bool | Auto = "auto"
    duplicates: bool = True
    search: Effort = "auto"
    max_sweeps: int = MOST_SWEEPS
    warn: bool = True
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior) and self.prior != "auto":
            raise InputError(f"prior must be a Prior, such as BetaBernoulli(), or 'auto'; found {self.prior!r}.")
        if self.engine not in ("auto", "numpy", "compiled"):
            raise InputError(f"engine is 'auto', 'numpy' or 'compiled'; found {self.engine!r}.")
        if self.search not in ("auto", "plain", "thorough"):
            raise InputError(f"search is 'auto', 'plain' or 'thorough'; found {self.search!r}.")
        if self.splits not in (True, False, "auto"):
            raise InputError(f"splits is True, False or 'auto'; found {self.splits!r}.")
        if self.site_effects not in (True, False, "auto"):
            raise InputError(f"site_effects is True, False or 'auto'; found {self.site_effects!r}.")
        if self.max_sweeps < 1:
            raise InputError(f"max_sweeps must be at least 1; found {self.max_sweeps}.")

    @property
    def looks_for_effects(self) -> bool:
        """Whether site effects are looked for: not where the search is plain, unless they are asked for."""
        return self.site_effects is True or (self.site_effects == "auto" and self.search != "plain")

    def splits_of(self, stacks: Sequence[Stack]) -> bool:
        """Whether sites of these values may hold atoms in several fragments."""
        errors = not self.by_evidence and any(stack.variance is not None for stack in stacks)
        return self.splits is True or (self.splits == "auto" and errors)


Parts = Mapping[Key, tuple[Stack, Family]]
"""The arrays that decide a set's matching: their values of all sites, and their families."""


def fit(values: SetValues, prior: Prior, max_sweeps: int, rng: np.random.Generator) -> Matching:
    """Algorithm 1 on all values, with every hyperparameter to start from; the best objective wins."""
    stacks, order = arrange(values.stacks)
    found = [find_starts(family, stack) for family, stack in zip(values.families, stacks, strict=True)]
    boards = [Board(stacks, families, prior) for families in side_by_side(found)]
    board, progress = best_run(boards, len(values.sizes), rng, max_sweeps)
    return make_matching(board, progress, values.names, order, values.offsets)


def side_by_side(lists: Sequence[list[Family]]) -> list[list[Family]]:
    """The first of each list, then the second, ...; a list that has ended goes on with its last."""
    return [[x[min(i, len(x) - 1)] for x in lists] for i in range(max(map(len, lists)))]
