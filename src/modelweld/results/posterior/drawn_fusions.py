"""A fusion as one draw has it: that draw's matching and hyperparameters, atoms drawn given these, values that follow.

Most ways to make a fused model start from the sites' own values, not from atoms. So where an atom is drawn off its
estimate, the values matched to it are moved by as much (`Family.follow`): whatever is made of them then varies as the
atoms do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Family, with_fields
from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.values import Array, Index, Key, Stack, arrays_of, group_of_values
from modelweld.errors import InputError
from modelweld.families.capabilities import draw_atoms, follow, list_sampled, name_hyperparameters
from modelweld.inputs.local_model import LocalModel

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult
    from modelweld.results.posterior.draws import Posterior


Arrays = dict[str, Array]
"""Some arrays of a site, by name."""

DRAWN = "draw"
"""The engine of a matching that was drawn, not found."""


def name_of_draw(name: str, array: int, arrays: int) -> str:
    """How draws call a hyperparameter of one of several arrays of a set.

    Examples
    --------
    >>> name_of_draw("noise", 0, 1), name_of_draw("noise", 1, 2)
    ('noise', 'noise 1')
    """
    return name if arrays == 1 else f"{name} {array}"


def board_of_draw(board: Board, posterior: Posterior, at: tuple[Index | int, ...], labels: Index) -> Board:
    """The board at the labels and hyperparameters of one draw; the latter as learned where they were not drawn."""
    drawn, A = posterior.hyperparameters or {}, len(board.families)
    found = []
    for a, family in enumerate(board.families):
        names = {name: name_of_draw(name, a, A) for name in {*name_hyperparameters(family), *list_sampled(family)}}
        found.append(with_fields(family, **{name: drawn[key][at] for name, key in names.items() if key in drawn}))
    return Board(board.stacks, found, board.prior, board.fragments, labels)


def draw_matchings(fit: FitResult, posterior: Posterior, n: int, seed: int) -> Iterator[tuple[Matching, list[Arrays]]]:
    """Matchings of `n` draws, spread evenly over all that were kept, and the arrays of each site that follow them.

    Values of fit and posterior stand in the same order. Duplicate sites are left out: they count once.
    """
    if len(fit.matchings) != 1:
        raise InputError(
            f"models are drawn where one set was matched; this fusion matched {list(fit.matchings)}, and draws of "
            "one of them say nothing of how the others would be matched then."
        )
    kept = posterior.K.size
    if not 1 <= n <= kept:
        raise InputError(f"there are {kept} draws: ask for 1 to {kept} models, or sample more; found {n}.")
    once = fit.drop_duplicates()
    rows = np.isin(group_of_values(fit.matching.offsets), [fit.sites.index(site) for site in once.sites])
    rng = np.random.default_rng(seed)
    for number in ((np.arange(n) + 0.5) * kept / n).astype(np.int64).tolist():
        at = np.unravel_index(number, posterior.K.shape)
        yield _at_draw(once, board_of_draw(once.board(), posterior, at, posterior.labels[at][rows]), rng)


def _at_draw(fit: FitResult, board: Board, rng: np.random.Generator) -> tuple[Matching, list[Arrays]]:
    name, matching = fit.find_set()
    estimates = board.estimates()
    atoms = [draw_atoms(family, sums, rng) for family, sums in zip(board.families, board.sums, strict=True)]
    number = by_count(board.counts, estimates[0])
    drawn = replace(
        matching,
        stacked_labels=ranks(number)[board.labels],
        counts=board.counts[number],
        families=dict(zip(matching.families, board.families, strict=True)),
        values={key: values[number] for key, values in zip(matching.families, atoms, strict=True)},
        objective=board.objective(),
        engine=DRAWN,
        kept=None,
    )
    moved: list[Arrays] = [{} for _ in fit.sites]
    for key, family, stack, before, after in zip(
        matching.families, board.families, board.stacks, estimates, atoms, strict=True
    ):
        if not np.array_equal(before, after):
            values = follow_atoms(family, stack, before[board.labels], after[board.labels])
            for j, (begin, end) in enumerate(pairwise(stack.offsets.tolist())):
                moved[j] |= _arrays(values[begin:end], fit.models[j], key, name)
    return drawn, moved


def follow_atoms(family: Family, stack: Stack, before: Array, after: Array) -> Array:
    """Values (N, D) moved as their atoms were; what was not seen stays."""
    values = follow(family, stack.values, before, after)
    return values if stack.weight is None else np.where(stack.weight > 0, values, stack.values)


def _arrays(values: Array, model: LocalModel, key: Key, set_name: str) -> dict[str, Array]:
    """Values (L, D) of one site as the arrays that they are of, side by side in `inputs.sets.stack_of`."""
    found, first = {}, 0
    for name in arrays_of(key):
        position, shape = model.axes[name].index(set_name), np.shape(model.arrays[name])
        member = shape[:position] + shape[position + 1 :]
        columns = values[:, first : first + math.prod(member)].reshape(len(values), *member)
        found[name] = np.moveaxis(columns, 0, position)
        first += math.prod(member)
    return found
