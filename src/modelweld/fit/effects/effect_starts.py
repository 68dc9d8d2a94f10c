"""Effects to start from: sites centred, moved to where they agree with others, standardised, or in another unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from modelweld.core.family import sum_by_atom
from modelweld.core.matching import SiteEffects
from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.families.math.start import evenly
from modelweld.fit.effects.equations import lower_medians
from modelweld.fit.screening.distances import middle


def shifted_starts(stack: Stack, deviation: Array) -> Iterator[SiteEffects]:
    """Sites centred; and each moved to where most of its values lie near others'."""
    means = site_means(stack)
    yield SiteEffects(means - lower_medians(means.T), np.zeros_like(means))
    yield SiteEffects(vote(stack, deviation), np.zeros_like(means))


class ScaledStarts(NamedTuple):
    """Effects to start from: features in another unit corrected; sites standardised; and what widths say of scales.

    `widths` (J, D) are log deviations beside the median site's, where components say how wide they are; else None.
    """

    unit: SiteEffects
    standardised: SiteEffects
    widths: Array | None = None

    def of(self, sites: Index) -> ScaledStarts:
        """Those of some sites, in this order."""
        widths = None if self.widths is None else self.widths[sites]
        return ScaledStarts(self.unit.of(sites), self.standardised.of(sites), widths)


def scaled_starts(mean: Array, deviation: Array, *, known: bool = False) -> ScaledStarts:
    """Starts from means and deviations (J, D) of sites, which are `known` beside the values or come from them.

    What is missing (NaN) is as at the median site.
    """
    unknown = ~(np.isfinite(mean) & np.isfinite(deviation))
    mean, deviation = (np.where(unknown, np.nan, x) for x in (mean, deviation))
    mean, deviation = (np.where(unknown, np.nan_to_num(middle(x), nan=1.0), x) for x in (mean, deviation))
    log_scale = np.log(deviation / lower_medians(deviation.T))
    at = np.exp(-log_scale) * mean
    standardised = SiteEffects(at - lower_medians(at.T), log_scale)
    return ScaledStarts(unit_start(mean, deviation), standardised, log_scale if known else None)


def unit_start(mean: Array, deviation: Array) -> SiteEffects:
    """Features of sites in another unit: one factor explains the mean and the deviation beside those of most sites."""
    M, S = lower_medians(mean.T), lower_medians(deviation.T)
    log_scale, g = np.log(deviation / S), LOG_FACTORS[:, None, None]
    misfit = ((log_scale - g) ** 2 + ((np.exp(-g) * mean - M) / S) ** 2) / NATURAL
    here = misfit[len(g) // 2]
    enough = ANOTHER_UNIT + 2 * np.log(max(mean.size, 1))  # the best of so many gains as much by chance
    unit = np.where(here - misfit.min(0) > enough, LOG_FACTORS[misfit.argmin(0)], 0.0)
    return SiteEffects(np.zeros_like(unit), unit)


LOG_FACTORS = np.linspace(-12.0, 12.0, 481)
"""Logarithms of factors that are tried; the one in the middle is none."""

NATURAL, ANOTHER_UNIT = 0.1, 9.0
"""Variance of sites' log deviations, and of their means in deviations; and what another unit must explain."""


def totals_of(stack: Stack) -> tuple[Array, Array]:
    """Means and deviations (J, D) of values; NaN where a site has no deviation."""
    means, number = site_means(stack), np.maximum(stack.sizes, 2)[:, None]
    squares = site_means(replace(stack, values=(stack.values - means[group_of_values(stack.offsets)]) ** 2))
    squares = squares * number / (number - 1)
    return means, np.sqrt(np.where((stack.sizes[:, None] > 1) & (squares > 0), squares, np.nan))


def site_means(stack: Stack) -> Array:
    """Means (J, D) of what each site has seen; that of all where it has seen nothing."""
    own, J, seen = group_of_values(stack.offsets), len(stack.sizes), stack.seen.astype(np.float64)
    total, number = sum_by_atom(seen * stack.values, own, J), sum_by_atom(seen, own, J)
    return np.where(number > 0, total / np.maximum(number, 1), total.sum(0) / np.maximum(number.sum(0), 1))


NEAR = 0.01
"""Squared distance, in units of the variance within a site, below which two values are taken for copies."""

MOST_PLACES, MOST_SHIFTS = 150, 300
"""Values of other sites, and differences between those and a site's own, that are looked at."""


def vote(stack: Stack, deviation: Array) -> Array:
    """Offsets (J, D) at which most values lie near values of other sites: site after site, then each among all."""
    x = stack.where_seen(site_means(stack)[group_of_values(stack.offsets)]) / deviation
    own = [x[a:b] for a, b in zip(stack.offsets[:-1], stack.offsets[1:], strict=True)]
    order = np.argsort(-stack.sizes, kind="stable")[: np.count_nonzero(stack.sizes)]
    offset = np.zeros((len(own), x.shape[1]))
    for rank, j in enumerate([*order, *order][1:], 1):
        others = order[:rank] if rank < len(order) else order[order != j]
        places = np.concatenate([own[i] - offset[i] for i in others])
        offset[j] = best_shift(own[j], places[evenly(len(places), MOST_PLACES)], offset[j])
    return (offset - lower_medians(offset.T)) * deviation


def best_shift(values: Array, places: Array, present: Array) -> Array:
    """The shift, among all differences, after which most values (L, D) lie near places (P, D)."""
    shifts = (values[:, None] - places).reshape(-1, values.shape[1])
    shifts = np.vstack([shifts[evenly(len(shifts), MOST_SHIFTS)], present, values.mean(0) - places.mean(0)])
    moved = (values - shifts[:, None]).reshape(-1, values.shape[1])
    products = np.hstack([-2 * places, (places**2).sum(1)[:, None]]) @ np.hstack([moved, np.ones((len(moved), 1))]).T
    squares = (moved**2).sum(1) + products.min(0)  # to the nearest place
    near = np.log(np.maximum(squares, 0.0) / values.shape[1] + NEAR).reshape(len(shifts), -1)
    shift = shifts[near.sum(1).argmin()]
    for _ in range(3):
        squares = (((values - shift)[:, None] - places) ** 2).mean(-1)
        weight = (squares.min(1) + NEAR) ** -2.0
        shift = weight @ (values - places[squares.argmin(1)]) / weight.sum()
    return np.asarray(shift)
