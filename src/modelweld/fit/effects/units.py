"""Other units: a feature of a site whose mean and deviation are those of most sites times a factor that people meet.

A site's mean m and deviation s in a feature are compared with what the others have, M and S, in their unit and in one
that is f times smaller and o off:

    X(f, o) = (log s / S - log f)^2 / v_s + ((m - o) / f - M)^2 / (S^2 v_m),

v_s and v_m being squared robust deviations of log s and of m / S among the others, and what sites differ by anyway.
Few factors are tried, so that one which explains both is no accident: a unit is a site effect of known size. Plain
values of a site that is unlike the others in more than half of its features are left to the search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.core.matching import SiteEffects
from modelweld.core.values import Array, Flags
from modelweld.fit.screening.distances import MAD_TO_DEVIATION, middle
from modelweld.fit.screening.swapped_columns import BY_THEMSELVES, MOST_LEFT, Totals

UNITS = (
    (2.205, "pounds", "kilograms"),
    (2.54, "centimetres", "inches"),
    (7.0, "days", "weeks"),
    (7.5, "mmHg", "kPa"),
    (10.0, "millimetres", "centimetres"),
    (12.0, "months", "years"),
    (17.1, "µmol/l", "mg/dl of bilirubin"),
    (18.0, "mg/dl", "mmol/l of glucose"),
    (24.0, "hours", "days"),
    (25.4, "millimetres", "inches"),
    (30.4, "days", "months"),
    (38.67, "mg/dl", "mmol/l of cholesterol"),
    (60.0, "minutes", "hours"),
    (88.4, "µmol/l", "mg/dl of creatinine"),
    (100.0, "centimetres", "metres"),
    (365.0, "days", "years"),
    (1000.0, "grams", "kilograms"),
)
"""Factors that people meet, and an example of each: small unit, large unit."""

FAHRENHEIT = 1.8, 32.0
"""Factor and offset that make degrees Fahrenheit of degrees Celsius."""

FACTORS = np.array([f for factor, *_ in UNITS for f in (factor, 1 / factor)] + [FAHRENHEIT[0], 1 / FAHRENHEIT[0]])
OFFSETS = np.array([0.0] * 2 * len(UNITS) + [FAHRENHEIT[1], -FAHRENHEIT[1] / FAHRENHEIT[0]])
"""Of all units that are tried: v = factor y + offset."""

OF_LIFE = 60.0
"""Degrees Celsius, above and below zero, between which a mean may be a temperature."""

LEAST_GAIN = 10.0
"""By which another unit must explain a feature of a site better, beyond the best of so many by chance; of few sites
more, because nobody knows how far these differ by themselves."""

LARGER_BY_NATURE = 0.35
"""A site whose values are all larger has a larger mean and a larger deviation, as in another unit: deviation of the
logarithm of such a factor, over the feature's deviation by its mean."""

LEFT_OUT = 20
"""Sites up to which each is compared with the others alone; of more, one does not move the median of all."""

NATURAL_FACTORS = np.exp(np.linspace(-3.0, 3.0, 25))
"""That are tried beside units."""


def find_units(
    totals: Sequence[Totals | None], compared: Flags | bool = True, *, plain: bool = False
) -> SiteEffects | None:
    """Features of sites that are in another unit, the most evident first; None: none, or at more than a third of sites.

    Features that are not `compared` are in none; nor, of `plain` values, sites that are unlike the others in most.

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
        gain = _gains(m, s, chance, plain)
        u, j, d = np.unravel_index(gain.argmax(), gain.shape)
        if not gain[u, j, d] > 0:
            break
        m[j, d], s[j, d] = (m[j, d] - OFFSETS[u]) / FACTORS[u], s[j, d] / FACTORS[u]
        found.log_scale[j, d] += np.log(FACTORS[u])
        found.offset[j, d] = found.offset[j, d] + OFFSETS[u] / FACTORS[u]
    number = np.count_nonzero(found.log_scale.any(1))
    return found if 0 < 3 * number <= max(len(m), 3) else None


def _gains(m: Array, s: Array, chance: Array, plain: bool) -> Array:
    """By how much more than enough each unit explains each feature of each site (U, J, D)."""
    J, everybody = len(m), np.arange(len(m))
    others = [everybody] * J if J > LEFT_OUT else [np.delete(everybody, j) for j in everybody]
    own_m, own_s = (x[np.stack(others, axis=1)] for x in (m, np.log(s)))
    M, log_S = middle(own_m), middle(own_s)
    v_m, v_s = ((MAD_TO_DEVIATION * middle(np.abs(x - y))) ** 2 for x, y in ((own_m, M), (own_s, log_S)))
    few, S = 1 + 1 / (J - 1), np.exp(log_S)
    by_nature = (LARGER_BY_NATURE / np.maximum(np.abs(M / S), 1.0)) ** 2 + v_s / 2
    v_m = v_m / S**2 + BY_THEMSELVES**2 * few + chance[:, :1]
    v_s = v_s + BY_THEMSELVES**2 * few + chance[:, 1:]

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
    unlike = (as_it_is[len(NATURAL_FACTORS) // 2] > MOST_LEFT).sum(1) > max(m.shape[1] // 2, 1)
    return np.where(plain & unlike[:, None], -np.inf, np.nan_to_num(gain, nan=-np.inf))
