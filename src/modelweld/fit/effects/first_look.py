"""Site effects, a first look: other units, found from means and deviations; and whether other effects may be there.

Where every site shares half of its values, sites hang together and no offset or scale gains much at these labels, there
is nothing to find. Most sites are such, and a call then enters this file and `slopes` alone: not the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from modelweld.core.board import Board
from modelweld.core.family import Family, sum_by_atom
from modelweld.core.gaussian import parts
from modelweld.core.match import Plan
from modelweld.core.matching import Matching
from modelweld.core.values import Flags, Index, Stack, group_of_values, offsets_of
from modelweld.families.real_values import Gaussian
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.search import search_effects
from modelweld.fit.effects.slopes import (
    FEWEST_SCALED,
    FEWEST_SHIFTED,
    Slopes,
    allow,
    count_shared,
    is_spread_out,
    log_odds,
)
from modelweld.fit.screening.screens import find_oversized
from modelweld.fit.screening.totals import BY_THEMSELVES, Totals, find_units, name_standardised, total_stack

SLIGHT, DEVIATIONS = 4.0, 3.0
"""Nats beyond their prices that all effects gain together, given labels, or deviations above what chance gives, below
which there is nothing to solve for."""

MOST_SITES, MOST_NUMBERS = 256, 1_000_000
"""Sites, and values times features, up to which effects are looked for: there is an equation for each site."""


def find_site_effects(
    stack: Stack,
    matching: Matching,
    plan: Plan,
    family_of: Callable[[SiteEffects | None], Family],
    totals: Sequence[Totals | None] | None = None,
    of_values: Sequence[Totals | None] | None = None,
) -> SiteEffects | None:
    """Units, and site effects that explain values much better than the matching without any; None if there are none.

    `family_of` gives the family of values whose units are corrected. `totals` are means and deviations of all points of
    sites, where components say how wide they are; else values stand for points, and theirs may be known (`of_values`).
    """
    [family], prior = matching.families.values(), matching.prior
    if not may_differ(stack, family, plan) or prior is None:
        return None
    *doubtful, rows = tried = choose_rows(stack, matching)
    own = group_of_values(stack.offsets)[rows]
    some = stack.take(rows, offsets_of(np.bincount(own, minlength=len(stack.sizes))))
    spread_out = is_spread_out(stack)
    known = of_values or total_stack(stack) if totals is None else totals
    units = find_units(known, spread_out)
    if np.count_nonzero(some.sizes >= FEWEST_SHIFTED) < 2:  # duplicates and outliers may be all there is
        return units
    board = Board([some], [family], prior, None, matching.stacked_labels[rows])
    sure = bool(plan.site_effects is True or doubtful or (totals and name_standardised(totals)))
    slight, together = not sure and is_slight(board, spread_out), not sure and units is None and all_share(board)
    if slight and together:
        return None
    return search_effects(stack, family_of(units), matching, plan, totals, units, tried, slight, together)


def may_differ(stack: Stack, family: Family, plan: Plan) -> bool:
    """Whether effects of such values are looked for."""
    real = type(family) is Gaussian and family.shape != "full" and family.learning == "likelihood"
    several = np.count_nonzero(stack.sizes >= FEWEST_SHIFTED) >= 2 and len(stack.sizes) <= MOST_SITES
    return plan.looks_for_effects and real and bool(several) and stack.values.size <= MOST_NUMBERS


def choose_rows(stack: Stack, matching: Matching) -> list[Index]:
    """Values that were fitted and are no copies; first with those of whole sites that were not: they may be far off."""
    own = group_of_values(stack.offsets)
    kept = np.ones(len(own), dtype=bool) if matching.kept is None else matching.kept
    counted = ~np.isin(own, list(matching.duplicates or ()))
    gone = (np.bincount(own, kept, len(stack.sizes)) == 0) & (stack.sizes >= FEWEST_SCALED)
    gone[find_oversized(stack.sizes)] = False
    return [np.flatnonzero(rows & counted) for rows in ([kept | gone[own]] if gone.any() else []) + [kept]]


def is_slight(board: Board, spread_out: Flags) -> bool:
    """Whether offsets and scales gain little, given labels: together, or neither some nor all more than by chance."""
    [stack], [family] = board.stacks, board.families
    J, D = len(board.sizes), stack.values.shape[1]
    zero, spread = np.zeros((J, D)), np.zeros(D) + family.hyperparameters[2]  # type: ignore[attr-defined]
    e, number = np.zeros((D, 2 * J)), np.arange(1, J * D // 2 + 1)
    with np.errstate(all="ignore"):
        slopes = Slopes(board, SiteEffects(zero, zero), spread, allow(stack, spread_out))
        gains = np.sort(np.maximum(slopes.gains(e).max(0), 0.0), axis=None)[::-1]
        best = (gains.cumsum()[: len(number)] + log_odds(number, J * D)).max(initial=0.0)
        mean, deviation = slopes.gain_by_chance(e) if best < SLIGHT <= gains.sum() else (0.0, 0.0)
    return bool(gains.sum() < SLIGHT or (best < SLIGHT and gains.sum() < mean + DEVIATIONS * deviation))


def all_share(board: Board) -> bool:
    """Whether every site shares half of its values, and sites that share a quarter with each other hang together.

    Not where values lie so far from their atoms that offsets may be what keeps them apart, and sites' means differ more
    than those of as many values of one site by chance.
    """
    (_, noise, spread), (_, weight, *_) = board.families[0].hyperparameters, parts(board.rows[0])  # type: ignore[attr-defined]
    J, K, size = len(board.sizes), len(board.counts), board.sizes
    if np.median(weight * spread / noise) < BY_THEMSELVES**-2:
        number, W, S, Q, _ = parts(sum_by_atom(board.rows[0], board.group, J))
        means = S * S / np.where(W > 0, W, 1.0)
        within = (Q - means).sum(0) / np.maximum(number - 1, 0).sum(0)
        between = (means.sum(0) - S.sum(0) ** 2 / np.where(W.sum(0) > 0, W.sum(0), 1.0)) / (np.count_nonzero(size) - 1)
        varied = within > 0
        if (between[varied] / within[varied]).sum() > varied.sum():
            return False
    held = np.zeros((J, K))
    held[board.group, board.labels] = 1.0
    linked = 4 * (held @ held.T) >= np.maximum(np.minimum(size[:, None], size), 1)
    pieces = scipy.sparse.csgraph.connected_components(linked[size > 0][:, size > 0])[0]
    return bool((2 * count_shared(board) >= size).all() and pieces <= 1)
