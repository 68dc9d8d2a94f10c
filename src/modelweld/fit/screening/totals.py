"""What means and deviations of sites tell, compared feature by feature: columns that misfit, and other units.

Taken for feature d, a site's column e, of mean m and deviation s, misfits what most others have there, M and S, by

    X(d, e) = (log s / S)^2 / v_s + (m - M)^2 / (S^2 v_m),

v_s and v_m being squared robust deviations of log s and of m / S among the others, and what sites differ by anyway.

Another unit is f times smaller and o off, and then fits:

    X(f, o) = (log s / S - log f)^2 / v_s + ((m - o) / f - M)^2 / (S^2 v_m).

Few factors are tried, so that one which explains both is no accident: a unit is a site effect of known size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Flags, Stack
from modelweld.errors import Finding, SiteEffectWarning
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.screening.distances import MAD_TO_DEVIATION, middle, sites_by_size
from modelweld.fit.screening.unit_table import FACTORS, OFFSETS

BY_THEMSELVES = 0.3
"""Deviation by which sites' log deviations, and means in deviations, differ where few sites happen to agree."""

PRICE, MOST_LEFT = 16.0, 6.0
"""By which each column that moves must fit better, beyond what the best of so many sites and columns does by chance,
and what may be left of its misfit. At 6 up to 5 % of few plain values of three clean sites were warned of, at 10 fewer
than 1 %, at 16 none, and hardly fewer were found (66 of 90 for 69)."""

FEWEST_SITES = 4
"""Sites from which on columns can be mixed up: two others do not say how far sites differ by themselves. Of 580
clean fusions of real tables, in units and standardised, none is warned of; at three sites penguins by island are."""

MOST_SITES, MOST_FEATURES, FEWEST_VALUES = 200, 60, 4
"""Sites and features up to which columns are compared, and plain values of a site from which on."""

TYPICAL_POINTS = 100.0
"""Points of a site that does not say how many it has: beyond, their number makes no difference here."""

OF_MEDIANS = 2.5
"""Values of which a median absolute difference says as much as one value does of a deviation."""

OF_LIFE = 60.0
"""Degrees Celsius, above and below zero, between which a mean may be a temperature."""

LEAST_GAIN = 10.0
"""By which another unit must explain a feature of a site better, beyond the best of so many by chance; of few sites
more, because it is not known how far these differ by themselves."""

LARGER_BY_NATURE = 0.35
"""A site whose values are all larger has a larger mean and a larger deviation, as in another unit: deviation of the
logarithm of such a factor, over the feature's deviation by its mean."""

LEFT_OUT = 20
"""Sites up to which each is compared with the others alone; of more, one does not move the median of all."""

NATURAL_FACTORS = np.exp(np.linspace(-3.0, 3.0, 25))
"""That are tried beside units."""


class Totals(NamedTuple):
    """Mean and deviation (D,) of all points of a site, NaN where a feature was not seen, and how many each rests on."""

    mean: Array
    deviation: Array
    points: float
    parts: float


def total_components(means: Array, variances: Array, weight: Array, points: float | None) -> Totals | None:
    """Of components with these means, variances and counts (K, D), zero where not seen; None if there are none.

    Variances that are the same in all features are those of k-means and of spherical components: in units of none of
    them, so that centres alone say how wide features are.

    Examples
    --------
    >>> total_components(np.array([[0.0], [4.0]]), np.ones((2, 1)), np.array([[3.0], [1.0]]), 4.0).deviation.tolist()
    [2.0]
    """
    seen, number = variances[:, weight.any(axis=0)], weight.sum(0)
    spherical = seen.shape[1] > 1 and bool((seen == seen[:, :1]).all())
    if not (number > 0).any():
        return None
    share = weight / np.where(number > 0, number, np.nan)
    mean = (share * means).sum(0)
    within = 0.0 if spherical else (share * variances).sum(0)
    points = TYPICAL_POINTS if points is None else points
    deviation = np.sqrt(within + (share * (means - mean) ** 2).sum(0))
    return Totals(mean, deviation, points, len(means) if spherical else points)


def total_values(values: Array, seen: Flags | None = None) -> Totals | None:
    """Of plain values (L, D), where `seen`, by medians: one of them may be anything.

    Examples
    --------
    >>> total_values(np.array([[1.0], [2.0], [4.0], [900.0], [3.0]])).mean.tolist()
    [3.0]
    """
    if len(values) < FEWEST_VALUES or values.ndim != 2:
        return None
    worth, known = len(values) / OF_MEDIANS, values if seen is None or seen.all() else np.where(seen, values, np.nan)
    return Totals(*_medians(known), worth, worth)


def total_stack(stack: Stack) -> list[Totals | None]:
    """Of plain values, site by site; of too many sites none."""
    if len(stack.sizes) > MOST_SITES or stack.values.shape[1] < 2:
        return []
    found: list[Totals | None] = [None] * len(stack.sizes)
    for sites, own in sites_by_size(stack.where_seen(np.nan), stack.offsets):
        if len(own) >= FEWEST_VALUES:
            for j, mean, deviation in zip(sites, *_medians(own), strict=True):
                found[j] = Totals(mean, deviation, len(own) / OF_MEDIANS, len(own) / OF_MEDIANS)
    return found


def _medians(x: Array) -> tuple[Array, Array]:
    """Median over the first axis, and the robust deviation from it."""
    mean = middle(x)
    return mean, MAD_TO_DEVIATION * middle(np.abs(x - mean))


def _medians_of_others(x: Array) -> tuple[Array, Array]:
    """Median and squared deviation of the others of each site (J, D); where sites are many, of all."""
    J = np.arange(len(x))
    mean, deviation = _medians(x[:, None] if len(x) > LEFT_OUT else x[[np.delete(J, j) for j in J]].swapaxes(0, 1))
    return np.broadcast_to(mean, x.shape), np.broadcast_to(deviation**2, x.shape)


def find_misfits(totals: Sequence[Totals]) -> tuple[dict[int, Array], float]:
    """Sites of which two columns misfit what others have, with the misfit (J, D, D) of all, and what is a misfit."""
    shapes = {t.mean.shape for t in totals}
    if len(shapes) != 1 or len(totals) < FEWEST_SITES or not 2 <= len(totals[0].mean) <= MOST_FEATURES:
        return {}, 0.0
    m, s = np.array([t.mean for t in totals]), np.array([t.deviation for t in totals])
    J, D = m.shape
    usable = np.isfinite(m) & (s > np.finfo(float).eps * np.abs(m))
    m, log_s = np.where(usable, m, np.nan), np.log(np.where(usable, s, np.nan))
    chance = 1 / np.maximum(np.array([(t.points, t.parts) for t in totals]) - (0, 1), 1.0)
    anyway, price = BY_THEMSELVES**2 * (1 + 1 / (J - 1)), PRICE + float(np.log(J * D))
    (M, v_m), (log_S, v_s) = _medians_of_others(m), _medians_of_others(log_s)
    v_m, v_s = v_m + np.exp(2 * log_S) * (anyway + chance[:, :1]), v_s + anyway + chance[:, 1:]
    own = (m - M) ** 2 / v_m + (log_s - log_S) ** 2 / v_s

    def misfit(j: int) -> Array:
        off = (m[:, None] - M[j][:, None]) ** 2 / v_m[j][:, None]
        return np.asarray(off + (log_s[:, None] - log_S[j][:, None]) ** 2 / v_s[j][:, None])

    suspects = np.flatnonzero(np.sort(np.nan_to_num(own))[:, -2:].mean(1) > price)
    return {j: misfit(j) for j in suspects.tolist()}, price


def find_units(totals: Sequence[Totals | None], compared: Flags | bool = True) -> SiteEffects | None:
    """Features of sites that are in another unit, the most evident first; None: none, or at more than a third of sites.

    Features that are not `compared` are in none. A site that differs from the others in most features may in each.

    Examples
    --------
    >>> sites = [Totals(np.array([70.0 + j]), np.array([12.0]), 50, 50) for j in range(4)]
    >>> sites.append(Totals(np.array([71_500.0]), np.array([12_000.0]), 50, 50))
    >>> np.exp(find_units(sites).log_scale).round().ravel().tolist()
    [1.0, 1.0, 1.0, 1.0, 1000.0]
    """
    shapes = {t.mean.shape for t in totals if t is not None}
    if len(shapes) != 1 or sum(t is not None for t in totals) < 2:
        return None
    nothing = np.full(shapes.pop(), np.nan)
    m, s, points, parts = map(np.array, zip(*(t or (nothing, nothing, 1.0, 1.0) for t in totals), strict=True))
    usable = compared & np.isfinite(m) & (s > np.finfo(float).eps * np.abs(m))
    m, s = np.where(usable, m, np.nan), np.where(usable, s, np.nan)
    chance = 1 / np.maximum(np.stack([points, parts - 1], axis=1), 1.0)
    found = SiteEffects(np.zeros(m.shape), np.zeros(m.shape))
    for _ in range(m.size):
        gain = _gains(m, s, chance)
        u, j, d = np.unravel_index(gain.argmax(), gain.shape)
        if not gain[u, j, d] > 0:
            break
        m[j, d], s[j, d] = (m[j, d] - OFFSETS[u]) / FACTORS[u], s[j, d] / FACTORS[u]
        found.log_scale[j, d] += np.log(FACTORS[u])
        found.offset[j, d] = found.offset[j, d] + OFFSETS[u] / FACTORS[u]
    number = np.count_nonzero(found.log_scale.any(1))
    return found if 0 < 3 * number <= max(len(m), 3) else None


def _gains(m: Array, s: Array, chance: Array) -> Array:
    """By how much more than enough each unit explains each feature of each site (U, J, D)."""
    (M, v_m), (log_S, v_s) = _medians_of_others(m), _medians_of_others(np.log(s))
    few, S = 1 + 1 / (len(m) - 1), np.exp(log_S)
    by_nature = (LARGER_BY_NATURE / np.maximum(np.abs(M / S), 1.0)) ** 2 + v_s / 2
    v_m = v_m / S**2 + BY_THEMSELVES**2 * few + chance[:, :1]
    v_s = v_s + BY_THEMSELVES**2 * few + chance[:, 1:]
    own = np.sort(np.log(s / S) ** 2 / v_s + ((m - M) / S) ** 2 / v_m)  # what was not seen comes last
    most = own[:, [m.shape[1] // 2 - 1]] if m.shape[1] > 1 else np.ones((len(m), 1))
    anyway = np.fmax(most, 1.0)  # how far the site differs in most features
    v_m, v_s, by_nature = anyway * v_m, anyway * v_s, anyway * by_nature

    def misfit(factor: Array, offset: Array) -> Array:
        f, o = factor[:, None, None], offset[:, None, None]
        return np.asarray((np.log(s / S) - np.log(f)) ** 2 / v_s + (((m - o) / f - M) / S) ** 2 / v_m)

    least, zero = LEAST_GAIN * few + 2 * np.log(m.size), np.zeros(len(NATURAL_FACTORS))
    as_it_is = misfit(NATURAL_FACTORS, zero) + np.log(NATURAL_FACTORS)[:, None, None] ** 2 / by_nature
    there = misfit(FACTORS, OFFSETS)
    warm = np.abs([M, m]) < OF_LIFE  # degrees Celsius of the others, or of the site
    there[-2:] = np.where(warm, there[-2:], np.inf)
    closer = np.abs(np.log(s / S / FACTORS[:, None, None])) < np.abs(np.log(s / S))  # an offset explains the mean alone
    gain = np.where(closer & (there < MOST_LEFT), as_it_is.min(0) - there - least, -np.inf)
    return np.nan_to_num(gain, nan=-np.inf)


STANDARDISED = 0.2
"""Of the standard error that a mean and a deviation would have by chance, within which they are 0 and 1 by design."""


def name_standardised(totals: Sequence[Totals | None]) -> list[Finding]:
    """A finding if all rows were standardised at their own sites: means are 0 and deviations 1 everywhere."""
    known = [t for t in totals if t is not None]
    if len(known) < max(len(totals), 2) or not all(
        (np.abs(t.mean) < STANDARDISED * t.points**-0.5).all()
        and (np.abs(t.deviation - 1) < STANDARDISED * t.points**-0.5 + 1 / t.points).all()
        for t in known
    ):
        return []
    text = (
        "rows were standardised at every site by its own means and deviations, so that sites have no scale in common. "
        "Put the scaler into what is sent, as make_pipeline(StandardScaler(), GaussianMixture()): then it is undone."
    )
    return [Finding(text, SiteEffectWarning)]
