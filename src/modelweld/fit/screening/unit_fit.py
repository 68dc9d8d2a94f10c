"""Sites in other units, or with columns in another order: which, by how much, and how to say so.

Sites differ by themselves, some in deviation, some in mean; but other units move both together. The site and feature
that another unit explains best (X of `fit.screening.units`) are named, converted, and all is compared again, so that no
site is named for what another did. Nothing is converted for good: that is for the owner of the data to do.

Taken for feature d, a site's column e has the misfit X(d, e) without any factor. The order of columns that fits best is
an assignment; a column may move only for a price, so that sites which merely differ stay as they are, and only between
features that are unlike at every other site: columns in standard units could be any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.values import Array, Index
from modelweld.errors import SHOWN, Finding, NamesWarning, UnitsWarning
from modelweld.fit.screening.units import (
    EACH_MORE,
    FAHRENHEIT,
    LEAST_FACTOR,
    LEAST_GAIN,
    LEAST_GAIN_OF_DEGREES,
    LEAST_GAIN_OF_ORDER,
    MOST_LEFT,
    Expected,
    Sites,
    Totals,
    by_chance,
    expectations,
    in_known_features,
    may_be_other_units,
    may_be_swapped,
    side_by_side,
)
from modelweld.inputs.local_model import LocalModel

NAMES = (
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

NEAR = 1.15
"""Factor within which a factor is one of those: sites that differ by themselves blur it by about so much."""

COLDEST, WARMEST = -60.0, 60.0
"""Means in degrees Celsius between which a feature may be a temperature."""

TRIED, PARTS = np.linspace(0.0, 1.0, 6), (0.33, 0.67, 1.0)
"""Factors that are tried: between the one that suits deviations and the one that suits means; and parts of these."""

NOWHERE = 1e12
"""Misfit of a column that was not seen, anywhere but where it is."""


class OtherUnit(NamedTuple):
    """A site, a feature, and by which factor (and offset) its values are those of others."""

    site: int
    feature: int
    factor: float
    offset: float

    @property
    def what(self) -> str:
        """How the site differs."""
        if self.offset:
            return "off as temperatures are"
        times = float(f"{max(self.factor, 1 / self.factor):.2g}")
        return f"about {times:,.10g} times {'larger' if self.factor > 1 else 'smaller'} than elsewhere"

    @property
    def why(self) -> str:
        """Which units that would be: all that are about as likely."""
        if self.offset:
            return f"degrees {' for '.join(_order_units('Fahrenheit', 'Celsius', self.factor))}"
        times = max(self.factor, 1 / self.factor)
        near = sorted(
            (abs(np.log(times / factor)), " for ".join(_order_units(small, large, self.factor)))
            for factor, small, large in NAMES
        )
        return ", or ".join(name for off, name in near if off < np.log(NEAR)) or "another unit"


def _order_units(small: str, large: str, factor: float) -> tuple[str, str]:
    return (small, large) if factor > 1 else (large, small)


def describe(found: Sequence[OtherUnit], features: Sequence[str], site: str, other: str = "") -> str:
    """In plain words: features of a site that are off alike; where nobody knows which of two is right, both are named.

    Examples
    --------
    >>> print(describe([OtherUnit(0, 0, 1000.0, 0.0)], ["'mass'"], "a", "b"))  # doctest: +ELLIPSIS
    site 'a' or 'b': 'mass' is about 1,000 times larger at 'a' than at 'b', mean and deviation alike: grams for ...
    """
    one, more = found[0], len(features) - SHOWN
    named = ", ".join(features[:SHOWN]) + (f" and {more} more features" if more > 0 else "")
    verb = "is" if len(features) == 1 else "are"
    who, what, without = f"site {site!r}", one.what, f", or leave it out, fusion.remove({site!r}, from_scratch=True)"
    if other:
        who, without = f"{who} or {other!r}", ""
        what = what.replace("than elsewhere", f"at {site!r} than at {other!r}") if not one.offset else what
    return (
        f"{who}: {named} {verb} {what}, mean and deviation alike: {one.why}? Nothing is converted: convert it "
        f"there and fuse again{without}; if it is right, let sites state their units: read(model, units=...)."
    )


class Swapped(NamedTuple):
    """A site, and in which order its columns would be those of the others: `order[d]` is its column for feature d."""

    site: int
    order: tuple[int, ...]

    @property
    def moved(self) -> list[int]:
        """Features that are elsewhere."""
        return [d for d, e in enumerate(self.order) if d != e]


def find_swapped(sites: Sites) -> list[Swapped]:
    """Sites whose columns fit the others' much better in another order.

    Examples
    --------
    >>> mean = np.array([[50.0, 130.0], [52.0, 128.0], [49.0, 131.0], [131.0, 51.0]])
    >>> deviation = np.array([[8.0, 15.0], [9.0, 14.0], [8.0, 16.0], [15.0, 8.0]])
    >>> [(found.site, found.order) for found in find_swapped(Sites(mean, deviation, np.zeros((4, 2))))]
    [(3, (1, 0))]
    """
    suspects, (J, D) = may_be_swapped(sites).tolist(), sites.mean.shape
    if not suspects:
        return []
    price = LEAST_GAIN_OF_ORDER + np.log(J * D)
    m, log_s, at, (v_m, v_s) = sites.mean, np.log(sites.deviation), sites.medians, sites.allow(sites.medians)
    expected = (at.mean, at.deviation**2 * v_m, np.log(at.deviation), v_s)
    found = []
    for j in suspects:
        every = _misfit(m[:, None], log_s[:, None], *(x[j][:, None] for x in expected))  # (J, D, D)
        alike = np.fmin.reduce(np.delete(every, j, axis=0)) < MOST_LEFT
        nowhere = np.where(np.eye(D, dtype=bool), 0.0, NOWHERE)  # also for moving from or to what was not seen
        usable = np.isfinite(every[j]) & (np.eye(D, dtype=bool) | ~(alike | alike.T))
        misfit = np.where(usable, np.minimum(every[j], NOWHERE), nowhere)
        _, order = scipy.optimize.linear_sum_assignment(misfit + price * (1 - np.eye(D)))
        one = Swapped(j, tuple(order.tolist()))
        if one.moved and all(misfit[d, one.order[d]] < MOST_LEFT for d in one.moved):
            found.append(one)
    return found


def _misfit(m: Array, log_s: Array, mean: Array, of_mean: Array, log_deviation: Array, of_deviation: Array) -> Array:
    """X of means and log deviations, taken for features of which these and their variances are expected."""
    return np.asarray((m - mean) ** 2 / of_mean + (log_s - log_deviation) ** 2 / of_deviation)


def describe_swapped(features: Sequence[str], site: str) -> str:
    """In plain words.

    Examples
    --------
    >>> describe_swapped(["'age'", "'pressure'"], "west")[:74]
    "site 'west': its columns for 'age', 'pressure' seem to be mixed up: in ano"
    """
    return (
        f"site {site!r}: its columns for {', '.join(features)} seem to be mixed up: in another order they are like the "
        "other sites', and as they are they are not. Nothing is moved: look at their order and names there and fuse "
        f"again, or leave it out, fusion.remove({site!r}, from_scratch=True). Columns with names, "
        "read(model, features=[...]), are put in order by themselves."
    )


def name_other_units(
    totals: Sequence[Totals | None],
    models: Sequence[LocalModel] | None,
    sites: Sequence[str],
    only: int | None = None,
) -> tuple[Finding, ...]:
    """Sites (or `only` one) with columns in another order or, unless stated, another unit."""
    known = [(j, t) for j, t in enumerate(totals) if t is not None]
    compared = side_by_side([t for _, t in known])
    if compared is None:
        return ()
    names = models[0].coordinates.get("feature") if models else None
    mixed = find_swapped(compared)
    if mixed:
        known = _in_order(known, mixed)
        compared = None
    reasons = []

    def name_feature(feature: int) -> str:
        return f"dimension {feature}" if names is None else repr(names[feature])

    for one in mixed:
        site = known[one.site][0]
        if only is None or site == only:
            reasons.append(Finding(describe_swapped([name_feature(d) for d in one.moved], sites[site]), NamesWarning))
    alike: dict[tuple[int, str], list[OtherUnit]] = defaultdict(list)
    for found in find_other_units([t for _, t in known], compared, plain=not (models and models[0].kind)):
        site = known[found.site][0]
        name = None if names is None else names[found.feature]
        said = [name in model.facts.get("units", {}) for model in models or ()]
        if (only is None or site == only or len(known) == 2) and not (any(said) and said[site] and sum(said) > 1):
            alike[site, found.why].append(found)
    for (site, _), together in alike.items():
        features = [name_feature(one.feature) for one in together]
        other = next(sites[j] for j, _ in known if j != site) if len(known) == 2 else ""
        reasons.append(Finding(describe(together, features, sites[site], other), UnitsWarning))
    return tuple(reasons)


def _in_order(known: list[tuple[int, Totals]], mixed: Sequence[Swapped]) -> list[tuple[int, Totals]]:
    """Totals with the columns of all sites in one order."""
    for one in mixed:
        (j, t), order = known[one.site], list(one.order)
        places = None if t.places is None else t.places[:, order]
        known[one.site] = j, t._replace(mean=t.mean[order], deviation=t.deviation[order], places=places)
    return known


def find_other_units(
    totals: Sequence[Totals], compared: Sites | None = None, *, plain: bool = False
) -> list[OtherUnit]:
    """Sites and features in other units than most sites'; `compared` are these totals `side_by_side`, where known.

    Of `plain` values only sites that are like the others in at least half of their dimensions are compared. One that
    is not is for `fit.screening.outliers`.

    Examples
    --------
    >>> sites = [Totals(np.array([70.0 + j]), np.array([12.0]), 50, 50) for j in range(4)]
    >>> sites.append(Totals(np.array([71_500.0]), np.array([12_000.0]), 50, 50))
    >>> [(found.site, round(found.factor)) for found in find_other_units(sites)]
    [(4, 1000)]
    """
    compared = compared or side_by_side(totals)
    known = None if compared is None else in_known_features(compared, totals, plain)
    if known is None:
        return []
    (sites, at), found = known, list[OtherUnit]()
    for _ in totals:
        named = _worst(sites, plain)
        if not named:
            break
        found += [OtherUnit(one.site, int(at[one.feature]), one.factor, one.offset) for one in named]
        sites = _convert(sites, named)
    return sorted(set(found))


def _convert(sites: Sites, named: Sequence[OtherUnit]) -> Sites:
    """As if these sites' features were in the others' unit."""
    mean, deviation, places = sites.mean.copy(), sites.deviation.copy(), [p.copy() for p in sites.places]
    for j, d, factor, offset in named:
        mean[j, d] = (mean[j, d] - offset) / factor
        deviation[j, d] /= factor
        if places:
            places[j][:, d] = (places[j][:, d] - offset) / factor
    return replace(sites, mean=mean, deviation=deviation, places=places)


def _worst(sites: Sites, plain: bool) -> list[OtherUnit]:
    """The site and feature that another unit explains best, and what others alone say of that site's features."""
    by_others, best = explain(sites, predict=not plain)
    if not (best.gain > 0).any():
        return []
    if plain:
        misfit = np.nan_to_num(np.sort(by_others.misfit, axis=1), nan=np.inf)
        strange = misfit[:, (misfit.shape[1] - 1) // 2] > MOST_LEFT
        best.gain[strange], by_others.gain[strange] = -np.inf, -np.inf
    j, d = np.unravel_index(np.nanargmax(np.nan_to_num(best.gain, nan=-np.inf)), best.gain.shape)
    if not best.gain[j, d] > 0:
        return []
    found = {int(d): OtherUnit(int(j), int(d), float(best.factor[j, d]), float(best.offset[j, d]))}
    for e in np.flatnonzero(by_others.gain[j] > 0).tolist():
        found.setdefault(e, OtherUnit(int(j), e, float(by_others.factor[j, e]), float(by_others.offset[j, e])))
    return list(found.values())


class Explained(NamedTuple):
    """By how much more than enough the best other unit explains each site and feature, its factor and its offset.

    `misfit` is X(1, 0): how badly it fits in the others' unit.
    """

    gain: Array
    factor: Array
    offset: Array
    misfit: Array

    def better(self, other: Explained) -> Explained:
        """The better of two, site by site and feature by feature."""
        mine = self.gain >= other.gain
        return Explained(*(np.where(mine, a, b) for a, b in zip(self, other, strict=True)))


def explain(sites: Sites, *, predict: bool = True) -> tuple[Explained, Explained]:
    """By what others have, and by that or (`predict`) by what they predict, whichever says more."""
    first, *others = (_explain(sites, at) for at in expectations(sites, predict=predict))
    return first, first.better(others[0]) if others else first


def _explain(sites: Sites, at: Expected) -> Explained:
    """X(1, 0) - X(f, o) of the best f and o, less what is asked of it; of what fits as it is, not even asked."""
    m = sites.mean
    v_m, v_s = sites.allow(at)
    null = sites.misfit if at is sites.medians else sites.misfit_of(at, v_m, v_s)
    gain, factor, offset = np.full(m.shape, -np.inf), np.ones(m.shape), np.zeros(m.shape)
    site, feature = np.nonzero(may_be_other_units(null))
    if len(site):
        by_nature = at.by_nature / np.maximum(np.abs(at.mean / at.deviation), 1.0)
        by_others = np.maximum(at.of_deviation - sites.chance[:, 1:], 0.0) / 2
        log_s = np.log(sites.deviation / at.deviation)
        asked = (m, at.mean, at.deviation, log_s, v_m, v_s, null, by_nature, by_others)
        found = _explain_each([np.asarray(x)[site, feature] for x in asked], site, by_chance(m))
        for whole, part in zip((gain, factor, offset), found, strict=True):
            whole[site, feature] = part
    return Explained(gain, factor, offset, null)


def _explain_each(each: list[Array], site: Index, chance: float) -> tuple[Array, Array, Array]:
    """Gain, factor and offset (n,) of the best other unit of each of n features of some sites."""
    m, M, S, log_s, v_m, v_s, null, by_nature, by_others = each

    def measure_misfit(log_f: Array, offset: float) -> Array:
        off = ((m - offset) * np.exp(-log_f) - M) / S
        return np.asarray((log_s - log_f) ** 2 / v_s + off**2 / v_m)

    best, least, factor = np.full(m.shape, np.inf), null, np.ones(m.shape)
    natural, as_others, zero = null, null, np.finfo(float).eps
    for log_f in _factors(m, M, log_s):
        for part in PARTS:
            rest, squared = measure_misfit(part * log_f, 0.0), (part * log_f) ** 2
            natural = np.fmin(natural, rest + squared / np.maximum(by_nature**2, zero))
            as_others = np.fmin(as_others, rest + squared / np.maximum(by_others, zero))
            least = np.fmin(least, rest)
        rest = np.where(np.abs(log_f) >= np.log(LEAST_FACTOR), rest, np.inf)
        factor = np.where(rest < best, np.exp(log_f), factor)
        best = np.fmin(best, rest)
    gain, offset = as_others - best - LEAST_GAIN, np.zeros(m.shape)
    f, o = FAHRENHEIT
    for times, off, celsius in ((f, o, M), (1 / f, -o / f, m)):
        warm = (celsius > COLDEST) & (celsius < WARMEST)
        rest = np.where(warm, measure_misfit(np.full(m.shape, np.log(times)), off), np.inf)
        closer = (rest < best) & (rest < least + MOST_LEFT)
        own = np.where(closer, natural - rest, 0.0)
        further = np.maximum(own - EACH_MORE, 0.0)
        own = own + np.where(own > EACH_MORE, np.bincount(site, further)[site] - further, 0.0)
        gain = np.where(closer, own - LEAST_GAIN_OF_DEGREES, gain)
        factor, offset, best = np.where(closer, times, factor), np.where(closer, off, offset), np.fmin(best, rest)
    return np.where(best < MOST_LEFT, gain - chance, -np.inf), factor, offset


def _factors(m: Array, M: Array, by_deviations: Array) -> Iterator[Array]:
    """Log factors (J, D) that are tried."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = m / M
        by_means = np.where((ratio > 0) & np.isfinite(ratio), np.log(np.abs(ratio)), by_deviations)
    for share in TRIED:
        yield np.asarray(share * by_means + (1 - share) * by_deviations)
