"""A site that measures a feature in another unit than the others: found by what travels anyway, and named.

A site's mean m and deviation s of all its points in a feature follow from its components. In a unit f times smaller,
and o off, they are f m + o and f s. Sites differ by themselves as well, some in deviation, some in mean; but other
units move both together. So the middle of all sites, (M, S), is compared with the site in their unit and in another,

    X(f, o) = (log s / S - log f)^2 / v_s + ((m - o) / f - M)^2 / (S^2 v_m),

v_s and v_m being squared robust deviations of log s and m / S among sites, and what sites differ by anyway. Another
unit is named where X(1, 0) - X(f, o) is large and X(f, o) is small: for the best pure factor, and for degrees
Fahrenheit and Celsius where no factor suits as well. Medians over sites need an honest majority. Nothing is converted:
that is for the owner of the data to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from modelweld.errors import UnitsWarning, warn_user
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.screening.outliers import MAD_TO_DEVIATION

FEWEST_SITES = 3
"""Of two sites in different units nobody knows which is right."""

BY_THEMSELVES = 0.3
"""Deviation by which sites' log deviations, and means in deviations, differ where few sites happen to agree."""

LEAST_FACTOR = 5.0
"""Factors below are not told from sites that differ: of 20 parts of a table that differ in what they hold, one has a
mean and a deviation three times those of others now and then."""

LEAST_GAIN = 20.0
"""By which another unit must explain a site better than the others' unit. Clean tables in 3 to 20 parts gain up to 9 if
dealt at random; a factor of 7 gains 20 to 120."""

MOST_LEFT, MOST_SHARE_LEFT = 6.0, 0.1
"""What another unit may leave unexplained, or as a share of what there was: a site that differs by other things than
its unit is no case of it."""

BETWEEN = np.linspace(0.0, 1.0, 11)
"""Factors that are tried: between the one that suits deviations and the one that suits means."""

COLDEST, WARMEST = -60.0, 60.0
"""Means in degrees Celsius between which a feature may be a temperature."""

NAMES = {
    7.0: ("days", "weeks"),
    10.0: ("millimetres", "centimetres"),
    12.0: ("months", "years"),
    18.0: ("mg/dl", "mmol/l of glucose"),
    24.0: ("hours", "days"),
    25.4: ("millimetres", "inches"),
    30.4: ("days", "months"),
    38.67: ("mg/dl", "mmol/l of cholesterol"),
    60.0: ("minutes", "hours"),
    88.4: ("µmol/l", "mg/dl of creatinine"),
    100.0: ("centimetres", "metres"),
    365.0: ("days", "years"),
    1000.0: ("grams", "kilograms"),
}
"""Factors that people meet, and an example of each: small unit, large unit."""

TYPICAL_POINTS = 100.0
"""Points of a site that does not say how many it has: beyond, their number makes no difference here."""

NEAR = 1.1
"""Factor within which a factor is one of those."""

FAHRENHEIT = 1.8, 32.0
"""Factor and offset that make degrees Fahrenheit of degrees Celsius."""


class Totals(NamedTuple):
    """Mean and deviation (D,) of all points of a site, NaN where a feature was not seen, and how many each rests on."""

    mean: Array
    deviation: Array
    points: float
    parts: float


class OtherUnit(NamedTuple):
    """A site, a feature, and by which factor (and offset) its values are those of others."""

    site: int
    feature: int
    factor: float
    offset: float

    def sentence(self, site: str, feature: str) -> str:
        """In plain words."""
        if self.offset:
            pair = ("Fahrenheit", "Celsius") if self.factor > 1 else ("Celsius", "Fahrenheit")
            what, why = "is off as temperatures are", f"degrees {pair[0]} for {pair[1]}"
        else:
            times = float(f"{max(self.factor, 1 / self.factor):.2g}")
            what = f"is about {times:,.10g} times {'larger' if self.factor > 1 else 'smaller'} than elsewhere"
            why = _example(self.factor)
        return (
            f"site {site!r}: {feature} {what}, mean and deviation alike: {why}? Convert it there and fuse again; if "
            "it is right, let sites state their units (export(..., units=...))."
        )


def _example(factor: float) -> str:
    times = max(factor, 1 / factor)
    nearest = min(NAMES, key=lambda known: abs(np.log(times / known)))
    if abs(np.log(times / nearest)) > np.log(NEAR):
        return "another unit"
    small, large = NAMES[nearest]
    return f"{small} for {large}" if factor > 1 else f"{large} for {small}"


def totals_of(model: LocalModel, means: Array, variances: Array, counts: Array) -> Totals | None:
    """Of components with these means and variances (K, D) and counts (K,); None if there are none.

    Variances that are the same in all features are those of k-means and of spherical components: in units of none of
    them, so that centres alone say how wide features are.

    Examples
    --------
    >>> model = LocalModel({}, {}, facts={"counted": True})
    >>> totals_of(model, np.array([[0.0], [4.0]]), np.ones((2, 1)), np.array([3.0, 1.0])).deviation.tolist()
    [2.0]
    """
    weight = counts[:, None] * (np.asarray(model.weight.get("means", np.ones(means.shape))) > 0)
    seen = variances[:, weight.any(axis=0)]
    spherical = seen.shape[1] > 1 and bool((seen == seen[:, :1]).all())
    number = weight.sum(0)
    if not (number > 0).any():
        return None
    share = weight / np.where(number > 0, number, np.nan)
    mean = (share * means).sum(0)
    within = 0.0 if spherical else (share * variances).sum(0)
    points = float(counts.sum()) if model.facts.get("counted") else TYPICAL_POINTS
    deviation = np.sqrt(within + (share * (means - mean) ** 2).sum(0))
    return Totals(mean, deviation, points, len(means) if spherical else points)


def name_other_units(
    totals: Sequence[Totals | None], models: Sequence[LocalModel], sites: Sequence[str]
) -> tuple[str, ...]:
    """Warn of sites that measure a feature in another unit, unless they and others say in which; the reasons."""
    known = [(j, t) for j, t in enumerate(totals) if t is not None]
    names = models[0].coordinates.get("feature")
    reasons = []
    for found in find_other_units([t for _, t in known]):
        site = known[found.site][0]
        name = None if names is None else names[found.feature]
        said = [name in model.facts.get("units", {}) for model in models]
        if not (said[site] and sum(said) > 1):
            reasons.append(found.sentence(sites[site], f"dimension {found.feature}" if name is None else repr(name)))
            warn_user(reasons[-1], UnitsWarning)
    return tuple(reasons)


def find_other_units(totals: Sequence[Totals]) -> list[OtherUnit]:
    """Sites and features in other units than most sites'.

    Examples
    --------
    >>> sites = [Totals(np.array([70.0 + j]), np.array([12.0]), 50, 50) for j in range(4)]
    >>> sites.append(Totals(np.array([72_000.0]), np.array([12_000.0]), 50, 50))
    >>> [(found.site, round(found.factor)) for found in find_other_units(sites)]
    [(4, 1000)]
    """
    if len(totals) < FEWEST_SITES:
        return []
    m, s = (np.stack(x) for x in zip(*((t.mean, t.deviation) for t in totals), strict=True))
    usable = np.isfinite(m) & (s > np.finfo(float).eps * np.abs(m))
    compared = usable.sum(0) >= FEWEST_SITES
    usable &= compared
    if not usable.any():
        return []
    chance = np.array([[1 / max(t.points, 1.0), 1 / max(t.parts - 1, 1.0)] for t in totals])
    at = np.flatnonzero(compared)
    m, s = (np.where(usable, x, np.nan)[:, at] for x in (m, s))
    gain, factor, offset = _compare(m, s, chance)
    return [
        OtherUnit(j, int(at[d]), float(factor[j, d]), float(offset[j, d]))
        for j, d in np.argwhere(gain > LEAST_GAIN).tolist()
    ]


def _compare(m: Array, s: Array, chance: Array) -> tuple[Array, Array, Array]:
    """By how much the best other unit explains each site and feature better, its factor and its offset: (J, D) each."""
    M, S = np.nanmedian(m, axis=0), np.exp(np.nanmedian(np.log(s), axis=0))
    v_s = _robust_variance(np.log(s)) + BY_THEMSELVES**2 + chance[:, 1:]
    v_m = _robust_variance(m) / S**2 + BY_THEMSELVES**2 + chance[:, :1]

    def left(log_f: Array, offset: float) -> Array:
        off = ((m - offset) * np.exp(-log_f) - M) / S
        return np.asarray((np.log(s / S) - log_f) ** 2 / v_s + off**2 / v_m)

    null = left(np.zeros(m.shape), 0.0)
    gain, least_left = np.full(m.shape, -np.inf), np.full(m.shape, np.inf)
    factor, shift = np.ones(m.shape), np.zeros(m.shape)
    for log_f, offset, least in _tried(m, s, M, S):
        rest = left(log_f, offset)
        good = (rest < least_left) & (rest < np.maximum(MOST_LEFT, MOST_SHARE_LEFT * null))
        least_left = np.fmin(least_left, rest)
        gain = np.where(good, np.where(np.abs(log_f) >= np.log(least), null - rest, -np.inf), gain)
        factor, shift = np.where(good, np.exp(log_f), factor), np.where(good, offset, shift)
    return gain, factor, shift


def _tried(m: Array, s: Array, M: Array, S: Array) -> Iterator[tuple[Array, float, float]]:
    """Log factors (J, D; NaN: not tried), offset, and the least factor that is named: pure factors, then degrees."""
    by_deviations = np.log(s / S)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = m / M
        by_means = np.where((ratio > 0) & np.isfinite(ratio), np.log(np.abs(ratio)), by_deviations)
    for share in BETWEEN:
        yield np.asarray(share * by_means + (1 - share) * by_deviations), 0.0, LEAST_FACTOR
    f, o = FAHRENHEIT
    for log_f, offset, celsius in ((np.log(f), o, M), (-np.log(f), -o / f, m)):
        warm = (celsius > COLDEST) & (celsius < WARMEST)
        yield np.broadcast_to(np.where(warm, log_f, np.nan), m.shape), offset, 1.0


def _robust_variance(x: Array) -> Array:
    """Squared deviation over sites by the median of absolute differences from the median."""
    return np.asarray((MAD_TO_DEVIATION * np.nanmedian(np.abs(x - np.nanmedian(x, axis=0)), axis=0)) ** 2)
