"""Site effects: sites that differ from the others by an offset or a scale in some features (batch, scanner, unit).

A value of site j is v = exp(g_j) (y + s_j) in each feature, and y is what the family describes: a noisy copy of an
atom. Most effects are exactly zero (spike); the others are normal about zero (slab), with the variance of the atoms or
their own mean square, whichever is larger. Given labels, the log density of all values is quadratic in the offsets s
and nearly so in the log scales g: both follow from linear equations (`Design`). An effect e adds to the objective

    - e^2 / (2 t) - 1/2 log(1 + t A),    t: variance of the slab, A: curvature of the log density in e,

and which of them are not zero has a Beta-binomial prior. Labels are proposed by fits of corrected values, from several
starts. No site is the reference: the median one has no effect.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Family, with_fields
from modelweld.core.match import Plan
from modelweld.core.matching import Matching
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
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.effect_starts import log_deviations, site_means, starts_by_totals, starts_by_votes, totals_of
from modelweld.fit.effects.equations import Design
from modelweld.fit.effects.slopes import FEWEST_SHIFTED, allow, count_shared, is_spread_out
from modelweld.fit.screening.distances import middle
from modelweld.fit.screening.totals import Totals
from modelweld.fit.search.starts import run

EVIDENT = 10.0
"""Nats by which site effects must raise the objective over that without any, if features are independent."""

MOST_ROUNDS = 12
"""Of effects and hyperparameters in turn, and of labels and effects in turn."""

SMALLEST_RISE = 1e-3
"""Nats below which a round is the last."""

BY_CHANCE = 1.0
"""Nats that effects gain by chance at labels of sites that share most values; few clean draws gain more."""


def search_effects(
    stack: Stack,
    family: Family,
    matching: Matching,
    plan: Plan,
    totals: Sequence[Totals | None] | None,
    units: SiteEffects | None,
    tried: Sequence[Index],
    slight: bool,
    together: bool,
) -> SiteEffects | None:
    """Site effects that explain values much better than the matching without any, and those of units; None: neither.

    `totals` are means and deviations of all points of sites, if known; `tried` are values to fit, of which the first
    may have whole sites that are outliers. By the labels of the matching, effects may be `slight`: gain little; and
    sites may hang `together`: share most of their values.
    """
    J, prior = len(stack.sizes), matching.prior
    if not isinstance(family, Gaussian) or prior is None:
        return units
    none = SiteEffects(*np.zeros((2, J, stack.values.shape[1])))
    known = units or none
    corrected = known.correct(stack)
    mean, deviation = totals_of(corrected)
    if totals is not None:
        mean, deviation = (np.exp(-known.log_scale) * [getattr(t, x) for t in totals] for x in ("mean", "deviation"))
        mean = mean - known.offset
    kept_sites = np.bincount(group_of_values(stack.offsets), matching.kept, J) > 0
    for rows in tried:
        some = corrected.take(rows, offsets_of(np.bincount(group_of_values(stack.offsets)[rows], minlength=J)))
        sites, order = canonical_order([some])
        some = some.take(order, offsets_of(some.sizes[sites]))
        problem = Problem(some, family, plan, prior, (mean[sites], deviation[sites]), totals is not None)
        with np.errstate(all="ignore"):
            as_fitted = units is None and not matching.common_splits  # effects are judged before such are joined
            labels = matching.stacked_labels[rows][order] if as_fitted else problem.propose(none)
            found, unlike = search(problem, labels, slight, together)
        scaled_far = found is not None and ((found.log_scale != 0).sum(1) > 1)[~kept_sites[sites]].any()
        if not unlike and not scaled_far:  # of a site that was excluded whole, an offset or one unit is accepted
            break
    if found is None or not all(np.isfinite(x).all() for x in found):
        return units
    effects = found.of(np.argsort(sites)).after(known)
    for copy, first in (matching.duplicates or {}).items():
        effects.offset[copy], effects.log_scale[copy] = effects.offset[first], effects.log_scale[first]
    return effects


class Fitted(NamedTuple):
    """Effects, the labels they go with, and the objective."""

    value: float
    effects: SiteEffects
    labels: Index


@dataclass(frozen=True, eq=False)
class Problem:
    """Values of all sites in canonical order, what they are judged by, and effects with scales to start from.

    Means and deviations (J, D) are those of all points of sites, if these are `known`, else of values. Sites that are
    `unlike` all others have no effects.
    """

    stack: Stack
    asked: Gaussian
    plan: Plan
    prior: Prior
    totals: tuple[Array, Array]
    known: bool = False
    unlike: tuple[int, ...] = ()
    proposed: dict[bytes, Index] = field(default_factory=dict)

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
        """Labels that a fit of corrected values finds: looked for once for the same effects."""
        key = effects.coefficients.tobytes()
        if key in self.proposed:
            return self.proposed[key]
        stack, rng = effects.correct(self.stack), np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelweldWarning)  # of values that may not be the right ones
            board, _, order = run([stack], [self.asked], self.prior, self.plan, rng)
        labels = self.proposed[key] = np.empty(len(order), dtype=np.int64)
        labels[order] = board.labels
        return labels

    @cached_property
    def allowed(self) -> Flags:
        """Which effects (D, 2 J) may differ from zero."""
        return allow(self.stack, is_spread_out(self.stack), self.unlike)

    @cached_property
    def widths(self) -> Array | None:
        """What components' widths say of scales."""
        return log_deviations(*self.totals) if self.known else None

    def find_unlike(self, effects: SiteEffects, labels: Index) -> tuple[tuple[int, ...], bool]:
        """Sites that have effects, and share too few values with others even then; and whether all of them do."""
        shared = count_shared(self.board(effects, labels))
        differ = (effects.coefficients != 0).any(0).reshape(2, -1).any(0)
        unlike = differ & (shared < FEWEST_SHIFTED)
        return tuple(np.flatnonzero(unlike).tolist()), bool((unlike == differ).all())

    def is_evident(self, found: Fitted, without: Fitted) -> bool:
        """Whether effects raise the objective by enough: by more where the features concerned repeat each other."""
        some = (found.effects.coefficients != 0).any(1)
        values = (self.stack.values - site_means(self.stack)[group_of_values(self.stack.offsets)])[:, some]
        square = np.square(np.nan_to_num(np.corrcoef(values.T)).reshape(some.sum(), some.sum()))
        by_chance = (1 - square) / max(found.labels.max() - 1, 1)  # values repeat atoms, of which there are few
        repeated = float(np.maximum(square - by_chance, 0.0).sum()) / max(len(square), 1)
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
            proposed = [design.select(e, scaled) for e in design.proposals(best.effects, scaled)]
            different = {e.coefficients.tobytes(): e for e in proposed if not np.array_equal(e, best.effects)}
            tried = [self.judge(e, labels) for e in different.values()]
            found, design = max(tried, key=lambda x: x[0].value, default=(best, design))
            if found.value <= best.value + SMALLEST_RISE:
                break
            best = found
        return best

    def judge(self, effects: SiteEffects, labels: Index) -> tuple[Fitted, Design]:
        """The objective of effects and labels, and the equations there."""
        board = self.board(effects, labels)
        design = Design(board, effects, self.deviation**2, self.allowed, self.widths)
        return Fitted(board.objective() + design.log_prior(effects), effects, labels), design

    def prune(self, best: Fitted) -> Fitted:
        """Without effects that gain too little each, if all of them together gain less than a nat each."""
        _, design = self.judge(best.effects, best.labels)
        e = best.effects.coefficients
        fewer = self.judge(design.select(e, bool(e[:, design.J :].any()), strictly=True), best.labels)[0]
        gone = np.count_nonzero(e) - np.count_nonzero(fewer.effects.coefficients)
        return fewer if fewer.value > best.value - gone else best

    def vote(self) -> list[Fitted]:
        """Effects that sites vote for, if enough values are shared given them."""
        starts = [(start, self.propose(start)) for start in starts_by_votes(self.stack, self.deviation)]
        return [
            self.solve(labels, start, bool(start.log_scale.any()))
            for start, labels in starts
            if not self.find_unlike(start, labels)[1]
        ]

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


def search(problem: Problem, labels: Index, slight: bool, together: bool) -> tuple[SiteEffects | None, bool]:
    """The best effects from all starts, if they are evident beside the fit without any, whose labels are given.

    Effects must show in what a site shares: those of sites that share too little even then are zero, and whether there
    are such sites is returned. Where effects are `slight` at these labels, those that sites vote for must be evident
    before others are tried; where sites hang `together`, those at these labels must gain more than by chance, and they
    or those voted for be evident.
    """
    none = SiteEffects(*np.zeros_like(problem.totals))
    found, (without, _) = [] if together else problem.vote(), problem.judge(none, labels)
    if slight and max(map(_value, found), default=without.value) <= without.value + EVIDENT:
        return None, False
    found += (problem.solve(labels, none, scaled) for scaled in (False, True))
    if together and max(map(_value, found)) > without.value + BY_CHANCE:
        found += problem.vote()
    if together and max(map(_value, found)) <= without.value + EVIDENT:
        return None, False
    best = max([without, *(problem.climb(one, without) for one in found)], key=_value)

    def try_start(best: Fitted, start: SiteEffects, scaled: bool) -> Fitted:
        return max(best, problem.climb(problem.propose_and_solve(start, scaled), without), key=_value)

    for start in starts_by_totals(problem.stack, *problem.totals):
        best = try_start(best, start, bool(start.log_scale.any()))
    if best.effects.any():
        best = try_start(best, best.effects, scaled=True)
    unlike, _ = problem.find_unlike(best.effects, best.labels)
    if unlike:
        problem = replace(problem, unlike=unlike)
        best.effects.offset[list(unlike)], best.effects.log_scale[list(unlike)] = 0.0, 0.0
        best = problem.climb(problem.propose_and_solve(best.effects, bool(best.effects.log_scale.any())), without)
    best = problem.prune(best)
    asked = problem.plan.site_effects is True and best.effects.any()
    return (best.effects if asked or problem.is_evident(best, without) else None), bool(unlike)


def _value(fitted: Fitted) -> float:
    return fitted.value
