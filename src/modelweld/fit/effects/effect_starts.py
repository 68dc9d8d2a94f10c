"""Effects to start from: sites centred, moved to where they agree with others, standardised, or scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelweld.core.family import sum_by_atom
from modelweld.core.values import Array, Stack, group_of_values
from modelweld.families.math.start import evenly
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.equations import lower_medians
from modelweld.fit.screening.distances import middle


def starts_by_votes(stack: Stack, deviation: Array) -> Iterator[SiteEffects]:
    """Each site moved to where most of its values lie near others'; and scaled, in features of one sign."""
    zero = np.zeros((len(stack.sizes), stack.values.shape[1]))
    yield SiteEffects(vote(stack, deviation), zero)
    one_sign = (stack.where_seen(1.0) > 0).all(0) | (stack.where_seen(-1.0) < 0).all(0)
    if one_sign.any():
        with np.errstate(all="ignore"):
            logs = replace(stack, values=np.where(one_sign & stack.seen, np.log(np.abs(stack.values)), stack.values))
        off = vote(logs, np.nan_to_num(middle(totals_of(logs)[1]), nan=1.0))
        yield SiteEffects(np.where(one_sign, 0.0, off), np.where(one_sign, off, 0.0))


def starts_by_totals(stack: Stack, mean: Array, deviation: Array) -> Iterator[SiteEffects]:
    """Sites centred; and scaled, or both, by means and deviations (J, D) of all their points."""
    means, log_scale = site_means(stack), log_deviations(mean, deviation)
    yield SiteEffects(means - lower_medians(means.T), np.zeros_like(means))
    yield SiteEffects(np.zeros_like(means), log_scale)
    at = np.exp(-log_scale) * np.where(np.isfinite(mean), mean, middle(mean))
    yield SiteEffects(at - lower_medians(at.T), log_scale)


def log_deviations(mean: Array, deviation: Array) -> Array:
    """Of sites (J, D), beside the median site's; what is missing (NaN) or constant is as there."""
    known = np.where(np.isfinite(mean) & np.isfinite(deviation) & (deviation > 0), deviation, np.nan)
    known = np.where(np.isnan(known), np.nan_to_num(middle(known), nan=1.0), known)
    return np.asarray(np.log(known / lower_medians(known.T)))


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
    """The shift, among all differences, after which most values (L, D) lie near places (P, D).

    Squared distances are those of three points to each other, by products: no difference is made twice.
    """
    (L, D), P, centre = values.shape, len(places), values.mean(0) - places.mean(0)
    values, places = values - values.mean(0), places - places.mean(0)
    own, there = np.divmod(evenly(L * P, MOST_SHIFTS), P)
    shifts = np.vstack([values[own] - places[there], present - centre, np.zeros(D)])
    lengths = (places**2).sum(1)
    beside = lengths[:, None] - 2 * places @ values.T
    nearest = np.array([(beside + shifted[:, None]).min(0) for shifted in 2 * shifts @ places.T])
    squares = (values**2).sum(1) - 2 * shifts @ values.T + (shifts**2).sum(1)[:, None] + nearest
    shift = shifts[np.log(np.maximum(squares, 0.0) / D + NEAR).sum(1).argmin()]
    for _ in range(3):
        moved = values - shift
        squares = np.maximum((moved**2).sum(1)[:, None] - 2 * moved @ places.T + lengths, 0.0) / D
        weight = (squares.min(1) + NEAR) ** -2.0
        shift = weight @ (values - places[squares.argmin(1)]) / weight.sum()
    return np.asarray(shift + centre)
