"""Site effects: sites that differ from the others by an offset or a scale in some features (batch, scanner, unit).

A value of site j is v = exp(g_j) (y + s_j) in each feature, and y is what the family describes: a noisy copy of an
atom. Most effects are exactly zero (spike); the others are normal about zero (slab), with the variance of the atoms or
their own mean square, whichever is larger. Given labels, the log density of all values is quadratic in the offsets s
and nearly so in the log scales g: both follow from linear equations (`Design`). An effect e adds to the objective

    - e^2 / (2 t) - 1/2 log(1 + t A),    t: variance of the slab, A: curvature of the log density in e,

and which of them are not zero has a Beta-binomial prior. Labels are proposed by fits of corrected values, from several
starts. Nobody knows which site is right: the median one has no effect.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.board import Board
from modelweld.core.family import Family, with_fields
from modelweld.core.match import Plan
from modelweld.core.matching import Matching, SiteEffects
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import (
    Array,
    Flags,
    Index,
    Stack,
    canonical_order,
    group_of_values,
    offsets_of,
    total_variance,
)
from modelweld.errors import ModelweldWarning
from modelweld.families.real_values import Gaussian
from modelweld.fit.effects.effect_starts import ScaledStarts, shifted_starts, site_means, totals_of
from modelweld.fit.effects.equations import Design
from modelweld.fit.screening.distances import middle
from modelweld.fit.search.starts import run

EVIDENT = 10.0
"""Nats by which site effects must raise the objective over that without any, if features are independent."""

FEWEST_SHIFTED, FEWEST_SCALED = 3, 4
"""Values of a site from which an offset, or a scale, is looked for: two always agree about something."""

LEAST_SPREAD = 0.25
"""Median absolute difference over the deviation of a typical site's values: .67 of normal ones, none where most are
zero."""

MOST_ROUNDS = 12
"""Of effects and hyperparameters in turn, and of labels and effects in turn."""

SMALLEST_RISE = 1e-3
"""Nats below which a round is the last."""

MOST_SITES, MOST_NUMBERS = 256, 1_000_000
"""Sites, and values times features, up to which effects are looked for: there is an equation for each site."""


def find_site_effects(
    stack: Stack, family: Family, matching: Matching, plan: Plan, scaled: ScaledStarts
) -> SiteEffects | None:
    """Site effects that explain values much better than the matching without any; None if there are none.

    `scaled` are effects to start from, features in another unit first.
    """
    J, prior = len(stack.sizes), matching.prior
    if not isinstance(family, Gaussian) or not may_differ(stack, family, plan) or prior is None:
        return None
    copies = dict(matching.duplicates or {})
    kept_sites = np.ones(J, dtype=bool)
    if matching.kept is not None:
        kept_sites = np.bincount(group_of_values(stack.offsets), matching.kept, J) > 0
    for rows in _fitted_rows(stack, matching, list(copies)):
        some = stack.take(rows, offsets_of(np.bincount(group_of_values(stack.offsets)[rows], minlength=J)))
        if np.count_nonzero(some.sizes >= FEWEST_SHIFTED) < 2:  # duplicates and outliers may be all there is
            return None
        sites, order = canonical_order([some])
        some = some.take(order, offsets_of(some.sizes[sites]))
        problem = Problem(some, family, plan, prior, scaled.of(sites))
        with np.errstate(all="ignore"):
            found, unlike = search(problem, matching.stacked_labels[rows][order])
        scaled_far = found is not None and ((found.log_scale != 0).sum(1) > 1)[~kept_sites[sites]].any()
        if not unlike and not scaled_far:  # of a site that was excluded whole, an offset or one unit is believed
            break
    if found is None or not all(np.isfinite(x).all() for x in found):
        return None
    effects = found.of(np.argsort(sites))
    for copy, first in copies.items():
        effects.offset[copy], effects.log_scale[copy] = effects.offset[first], effects.log_scale[first]
    return effects


def may_differ(stack: Stack, family: Family, plan: Plan) -> bool:
    """Whether effects of such values are looked for."""
    real = type(family) is Gaussian and family.shape != "full" and family.learning == "likelihood"
    several = np.count_nonzero(stack.sizes >= FEWEST_SHIFTED) >= 2 and len(stack.sizes) <= MOST_SITES
    return plan.looks_for_effects and real and bool(several) and stack.values.size <= MOST_NUMBERS


def _fitted_rows(stack: Stack, matching: Matching, copies: list[int]) -> Iterator[Index]:
    """Values that were fitted; but first with those of sites of which none was, which may only be far off."""
    own = group_of_values(stack.offsets)
    kept = np.ones(len(own), dtype=bool) if matching.kept is None else matching.kept
    counted = ~np.isin(own, copies)
    gone = (np.bincount(own, kept, len(stack.sizes)) == 0) & (stack.sizes >= FEWEST_SCALED)
    if gone.any():
        yield np.flatnonzero((kept | gone[own]) & counted)
    yield np.flatnonzero(kept & counted)


class Fitted(NamedTuple):
    """Effects, the labels they go with, and the objective."""

    value: float
    effects: SiteEffects
    labels: Index


@dataclass(frozen=True, eq=False)
class Problem:
    """Values of all sites in canonical order, what they are judged by, and effects with scales to start from.

    Sites that are `unlike` all others have no effects.
    """

    stack: Stack
    asked: Gaussian
    plan: Plan
    prior: Prior
    scaled: ScaledStarts
    unlike: tuple[int, ...] = ()

    @cached_property
    def deviation(self) -> Array:
        """Deviations (D,) of values within the median site: free of offsets, and of scales of a minority."""
        within = np.nan_to_num(middle(np.square(totals_of(self.stack)[1])))
        raw = total_variance(self.stack, self.asked.scalar)[1]
        return np.sqrt(np.where(within > np.finfo(float).eps * raw, within, raw))

    @cached_property
    def family(self) -> Gaussian:
        """The family with a hyperprior, and noise to begin with, by which all effects are judged alike."""
        centred = self.stack.values - site_means(self.stack)[group_of_values(self.stack.offsets)]
        total = np.square(self.deviation)
        total = total.mean(keepdims=True) if self.asked.scalar else total
        origin = total_variance(self.stack, self.asked.scalar)[0]
        look = self.asked.first_look(replace(self.stack, values=centred))._replace(origin=origin, total=total)
        scaled, share = self.asked.with_scale(look.origin, total).with_prior_of(look), look.shares[0]
        noise = np.maximum(share * total * look.typical, np.asarray(scaled.floor))
        return with_fields(scaled, mean=look.origin, noise=noise, spread=(1 - share) * total)

    def propose(self, effects: SiteEffects) -> Index:
        """Labels that a fit of corrected values finds."""
        stack, rng = effects.correct(self.stack), np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelweldWarning)  # of values that may not be the right ones
            board, _, order = run([stack], [self.asked], self.prior, self.plan, rng)
        labels = np.empty(len(order), dtype=np.int64)
        labels[order] = board.labels
        return labels

    @cached_property
    def allowed(self) -> Flags:
        """Which effects (D, 2 J) a site has values enough to show; a unit shows in its mean and its deviation."""
        sizes, unit = self.stack.sizes.copy(), self.scaled.unit.log_scale.T != 0
        sizes[list(self.unlike)], unit[:, list(self.unlike)] = 0, False
        offset = np.broadcast_to(sizes >= FEWEST_SHIFTED, unit.shape)
        return np.concatenate([offset, (sizes >= FEWEST_SCALED) | unit], axis=1) & self._is_spread_out()[:, None]

    def _is_spread_out(self) -> Flags:
        """Features (D,) in which most values of most sites differ; of those that are mostly zero nothing is told."""
        ratios = [
            np.median(np.abs(own - np.median(own, axis=0)), axis=0) / np.maximum(own.std(axis=0), np.finfo(float).tiny)
            for own in np.split(self.stack.values, self.stack.offsets[1:-1])
            if len(own) >= FEWEST_SHIFTED
        ]
        return np.asarray(np.median(ratios, axis=0) > LEAST_SPREAD)

    def name_unlike(self, found: Fitted) -> tuple[int, ...]:
        """Sites that have effects, and share too few values with others even then."""
        shared = count_shared(self.board(found.effects, found.labels))
        differ = (found.effects.coefficients != 0).any(0).reshape(2, -1).any(0)
        return tuple(np.flatnonzero(differ & (shared < FEWEST_SHIFTED)).tolist())

    def is_evident(self, found: Fitted, without: Fitted) -> bool:
        """Whether effects raise the objective by enough: by more where the features concerned repeat each other."""
        some = (found.effects.coefficients != 0).any(1)
        values = (self.stack.values - site_means(self.stack)[group_of_values(self.stack.offsets)])[:, some]
        together = np.nan_to_num(np.corrcoef(values.T)).reshape(some.sum(), some.sum())
        repeated = float((together**2).sum()) / max(len(together), 1)
        return bool(some.any()) and found.value > without.value + EVIDENT * repeated

    def board(self, effects: SiteEffects, labels: Index) -> Board:
        """The corrected values at these labels, with what is learned from them."""
        fragments = Fragments() if self.plan.splits_of([self.stack]) else None
        board = Board([effects.correct(self.stack)], [self.family], self.prior, fragments, labels)
        board.learn()
        return board

    def solve(self, labels: Index, start: SiteEffects, scaled: bool) -> Fitted:
        """Effects given labels, in turn with hyperparameters, as long as the objective rises."""
        best, design = self.judge(start, labels)
        for _ in range(MOST_ROUNDS):
            tried = [self.judge(design.select(e, scaled), labels) for e in design.proposals(best.effects, scaled)]
            found, design = max(tried, key=lambda x: x[0].value)
            if found.value <= best.value + SMALLEST_RISE:
                break
            best = found
        return best

    def judge(self, effects: SiteEffects, labels: Index) -> tuple[Fitted, Design]:
        """The objective of effects and labels, and the equations there."""
        board = self.board(effects, labels)
        design = Design(board, effects, self.deviation, self.allowed, self.scaled.widths)
        return Fitted(board.objective() + design.log_prior(effects), effects, labels), design

    def propose_and_solve(self, start: SiteEffects, scaled: bool) -> Fitted:
        """Effects given the labels that a fit of corrected values finds."""
        return self.solve(self.propose(start), start, scaled)

    def climb(self, best: Fitted, without: Fitted) -> Fitted:
        """Labels and effects in turn as long as the objective rises, if it is above that without effects at all."""
        for _ in range(MOST_ROUNDS):
            if not best.value > without.value:
                break
            found = self.propose_and_solve(best.effects, bool(best.effects.log_scale.any()))
            if found.value <= best.value + SMALLEST_RISE:
                break
            best = found
        return best


def search(problem: Problem, labels: Index) -> tuple[SiteEffects | None, bool]:
    """The best effects from all starts, if they are evident beside the fit without any, whose labels are given.

    Effects must show in what a site shares: those of sites that share too little even then are zero, and whether there
    are such sites is told.
    """
    zero = np.zeros_like(problem.scaled.unit.offset)
    none = SiteEffects(zero, zero)
    without, design = problem.judge(none, labels)
    unit, standardised, _ = problem.scaled
    if not unit.any() and all_share(design.board) and not design.is_worth(none):
        return None, False
    best = problem.climb(problem.solve(labels, none, scaled=False), without)
    for start in shifted_starts(problem.stack, problem.deviation):
        best = max(best, problem.climb(problem.propose_and_solve(start, scaled=False), without), key=_value)
    for start in [x for x in (best.effects, unit) if x.any()] + [standardised]:
        best = max(best, problem.climb(problem.propose_and_solve(start, scaled=True), without), key=_value)
    unlike = problem.name_unlike(best)
    if unlike:
        problem = replace(problem, unlike=unlike)
        best.effects.offset[list(unlike)], best.effects.log_scale[list(unlike)] = 0.0, 0.0
        best = problem.climb(problem.propose_and_solve(best.effects, bool(best.effects.log_scale.any())), without)
    asked = problem.plan.site_effects is True and best.effects.any()
    return (best.effects if asked or problem.is_evident(best, without) else None), bool(unlike)


def _value(fitted: Fitted) -> float:
    return fitted.value


def count_shared(board: Board) -> Index:
    """Number of each site's values that others share (J,)."""
    return np.bincount(board.group[board.counts[board.labels] > 1], minlength=len(board.sizes))


def all_share(board: Board) -> bool:
    """Whether every site shares half of its values, and sites that share a quarter with each other hang together."""
    J, K = len(board.sizes), len(board.counts)
    held = np.zeros((J, K))
    held[board.group, board.labels] = 1.0
    common, size = held @ held.T, board.sizes
    linked = 4 * common >= np.maximum(np.minimum(size[:, None], size), 1)
    pieces = scipy.sparse.csgraph.connected_components(linked[size > 0][:, size > 0])[0]
    return bool((2 * count_shared(board) >= size).all() and pieces <= 1)
