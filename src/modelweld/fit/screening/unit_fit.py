"""What other sites let one expect of a site's feature, and by how much another unit explains better what it has.

A site's mean m and deviation s in a feature are compared with what the *others* have, M and S, in their unit and in
another that is f times smaller and o off:

    X(f, o) = (log s / S - log f)^2 / v_s + ((m - o) / f - M)^2 / (S^2 v_m),

v_s and v_m being squared robust deviations of log s and of m / S among the others, and what sites differ by anyway. M
is the others' median, or what they predict from the site's *other features*: a station that is warm by day is so by
night.

Units that people mix up, and how to say that a site seems to have done so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.fit.screening.outliers import MAD_TO_DEVIATION, Flags
from modelweld.fit.screening.site_medians import middle

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

MOST_LISTED = 4
"""Features of a site that are spelt out where many are off by the same factor."""

FAHRENHEIT = 1.8, 32.0
"""Factor and offset that make degrees Fahrenheit of degrees Celsius."""


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
            return f"degrees {' for '.join(_turned('Fahrenheit', 'Celsius', self.factor))}"
        times = max(self.factor, 1 / self.factor)
        near = sorted(
            (abs(np.log(times / factor)), " for ".join(_turned(small, large, self.factor)))
            for factor, small, large in NAMES
        )
        return ", or ".join(name for off, name in near if off < np.log(NEAR)) or "another unit"


def _turned(small: str, large: str, factor: float) -> tuple[str, str]:
    return (small, large) if factor > 1 else (large, small)


def describe(found: Sequence[OtherUnit], features: Sequence[str], site: str, other: str = "") -> str:
    """In plain words: features of a site that are off alike; where nobody knows which of two is right, both are named.

    Examples
    --------
    >>> print(describe([OtherUnit(0, 0, 1000.0, 0.0)], ["'mass'"], "a", "b"))  # doctest: +ELLIPSIS
    site 'a' or 'b': 'mass' is about 1,000 times larger at 'a' than at 'b', mean and deviation alike: grams for ...
    """
    one, more = found[0], len(features) - MOST_LISTED
    named = ", ".join(features[:MOST_LISTED]) + (f" and {more} more features" if more > 0 else "")
    verb = "is" if len(features) == 1 else "are"
    who, what, without = f"site {site!r}", one.what, f", or leave it out, fusion.remove({site!r}, from_scratch=True)"
    if other:
        who, without = f"{who} or {other!r}", ""
        what = what.replace("than elsewhere", f"at {site!r} than at {other!r}") if not one.offset else what
    return (
        f"{who}: {named} {verb} {what}, mean and deviation alike: {one.why}? Nothing is converted: convert it "
        f"there and fuse again{without}; if it is right, let sites state their units: read(model, units=...)."
    )


BY_THEMSELVES = 0.3
"""Deviation by which sites' log deviations, and means in deviations, differ where few sites happen to agree."""

LEAST_FACTOR = 6.0
"""Factors below are not told from sites that differ: of 20 parts of a table that differ in what they hold, one has a
mean and a deviation three times those of others now and then."""

LEAST_GAIN, LEAST_GAIN_OF_DEGREES = 12.0, 8.0
"""By which another unit must explain a site better than the others' unit, beyond what the best of so many sites and
features gains by chance. Degrees are one hypothesis, factors many."""

MOST_LEFT = 6.0
"""What another unit may leave unexplained: a site that differs by other things than its unit is no case of it. Also
what degrees may leave more than any factor does, of units or not."""

COLDEST, WARMEST = -60.0, 60.0
"""Means in degrees Celsius between which a feature may be a temperature."""

LARGER_BY_NATURE, LARGER_THAN_PREDICTED = 0.35, 0.1
"""A site whose values are all larger has a larger mean and a larger deviation, as degrees Fahrenheit have. The
deviation of the log of such a factor, over the feature's deviation by its mean; and where other features predict it.
Of larger factors, deviations of the other sites say how natural they are."""

EACH_MORE = 3.0
"""Gain beyond which a further feature in the same degrees speaks for those of the site's others."""

LEFT_OUT = 20
"""Sites up to which each is compared with the others alone; of more, one does not move the median of all."""

MOST_PLACES, MOST_FEATURES = 5_000, 60
"""Components and features up to which features are predicted from each other: milliseconds."""

RIDGE, FAR = 0.1, 4.0
"""Of that prediction: variance added to every feature, and where components are cut, in deviations of a feature."""

TRIED, PARTS = np.linspace(0.0, 1.0, 6), (0.33, 0.67, 1.0)
"""Factors that are tried: between the one that suits deviations and the one that suits means; and parts of these."""


@dataclass(frozen=True, eq=False)
class Sites:
    """Means and deviations (J, D), NaN where a feature cannot be compared, and their variances by chance (J, 2).

    `places` are means (K_j, D) of each site's components and `share` (K_j,) how much of it each is; none: not asked.
    """

    mean: Array
    deviation: Array
    chance: Array
    places: Sequence[Array] = ()
    share: Sequence[Array] = ()

    @cached_property
    def medians(self) -> Expected:
        """What most others have."""
        return expect_medians(self)

    @cached_property
    def misfit(self) -> Array:
        """X(1, 0) by what most others have (J, D)."""
        return self.misfit_of(self.medians, *self.allowed(self.medians))

    def allowed(self, at: Expected) -> tuple[Array, Array]:
        """v_m and v_s with what sites differ by anyway, the site's own and the others' middle's, and by chance."""
        anyway = BY_THEMSELVES**2 * (1 + 1 / max(len(self.mean) - 1, 1))
        return at.of_mean + anyway + self.chance[:, :1], at.of_deviation + anyway + self.chance[:, 1:]

    def misfit_of(self, at: Expected, v_m: Array, v_s: Array) -> Array:
        """X(1, 0) by what is expected (J, D)."""
        log_s = np.log(self.deviation / at.deviation)
        return np.asarray(log_s**2 / v_s + ((self.mean - at.mean) / at.deviation) ** 2 / v_m)

    def converted(self, named: Sequence[OtherUnit]) -> Sites:
        """As if these sites' features were in the others' unit."""
        mean, deviation, places = self.mean.copy(), self.deviation.copy(), [p.copy() for p in self.places]
        for j, d, factor, offset in named:
            mean[j, d] = (mean[j, d] - offset) / factor
            deviation[j, d] /= factor
            if places:
                places[j][:, d] = (places[j][:, d] - offset) / factor
        return replace(self, mean=mean, deviation=deviation, places=places)


class Expected(NamedTuple):
    """M, S, v_m and v_s for every site and feature: (J, D) each; and how far factors near one are natural."""

    mean: Array
    deviation: Array
    of_mean: Array
    of_deviation: Array
    by_nature: float


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
    plain = sites.medians
    first = _explain(sites, plain)
    predicted = expect_predictions(sites, plain) if predict else None
    return first, first if predicted is None else first.better(_explain(sites, predicted))


def _others(J: int) -> list[Index]:
    """Numbers of the sites with which each is compared; one list for all where leaving one out makes no difference."""
    everybody = np.arange(J)
    return [everybody] if J > LEFT_OUT else [np.delete(everybody, j) for j in range(J)]


def expect_medians(sites: Sites) -> Expected:
    """What most others have."""
    others = np.stack(_others(len(sites.mean)), axis=1)  # a column for each site, or one for all
    m, log_s = sites.mean[others], np.log(sites.deviation)[others]
    M, log_S = middle(m), middle(log_s)
    S = np.exp(log_S)
    found = (M, S, _squared(m - M) / S**2, _squared(log_s - log_S))
    mean, deviation, of_mean, of_deviation = (np.broadcast_to(x, sites.mean.shape) for x in found)
    return Expected(mean, deviation, of_mean, of_deviation, LARGER_BY_NATURE)


def _squared(off: Array) -> Array:
    return (MAD_TO_DEVIATION * middle(np.abs(off))) ** 2


def expect_predictions(sites: Sites, plain: Expected) -> Expected | None:
    """What the others let expect given the site's other features, by ridge regression over components."""
    J, D = sites.mean.shape
    if not 2 <= D <= MOST_FEATURES or not sum(map(len, sites.places)) <= MOST_PLACES:
        return None
    rows = []
    for j, others in enumerate(_others(J)):
        M, S = plain.mean[j], plain.deviation[j]
        slopes = _slopes(sites, others, M, S)
        off = np.clip((sites.mean - M) / S, 1 - FAR, FAR - 1)
        predicted = M + S * (np.nan_to_num(off) @ slopes.T)
        own = predicted[j] if len(others) < J else predicted
        rows.append([own, _squared((sites.mean - predicted)[others]) / S**2])
    mean, of_mean = (x[0] if len(rows) == 1 else x for x in map(np.stack, zip(*rows, strict=True)))
    return plain._replace(mean=mean, of_mean=of_mean, by_nature=LARGER_THAN_PREDICTED)


def _slopes(sites: Sites, others: Index, M: Array, S: Array) -> Array:
    """Of each feature in all others (D, D), diagonal zero, all in deviations from the middle."""
    off = np.nan_to_num(np.clip(np.concatenate([(sites.places[i] - M) / S for i in others]), -FAR, FAR))
    share = np.concatenate([sites.share[i] for i in others])
    together = (off * share[:, None]).T @ off / share.sum() + RIDGE * np.eye(len(M))
    precision = np.linalg.inv(together)
    return np.asarray(np.eye(len(M)) - precision / np.diag(precision)[:, None])


def _explain(sites: Sites, at: Expected) -> Explained:
    """X(1, 0) - X(f, o) of the best f and o, less what is asked of it; of what fits as it is, not even asked."""
    m = sites.mean
    v_m, v_s = sites.allowed(at)
    null = sites.misfit if at is sites.medians else sites.misfit_of(at, v_m, v_s)
    gain, factor, offset = np.full(m.shape, -np.inf), np.ones(m.shape), np.zeros(m.shape)
    site, feature = np.nonzero(may_be_other_units(null))
    if len(site):
        by_nature = at.by_nature / np.maximum(np.abs(at.mean / at.deviation), 1.0)
        by_others = np.maximum(at.of_deviation - sites.chance[:, 1:], 0.0) / 2
        log_s = np.log(sites.deviation / at.deviation)
        asked = (m, at.mean, at.deviation, log_s, v_m, v_s, null, by_nature, by_others)
        found = _explain_each([np.asarray(x)[site, feature] for x in asked], site, _by_chance(m))
        for whole, part in zip((gain, factor, offset), found, strict=True):
            whole[site, feature] = part
    return Explained(gain, factor, offset, null)


def may_be_other_units(misfit: Array) -> Flags:
    """Sites and features (J, D) that misfit by more than is asked for: no others are ever named.

    Nothing gains more than it misfits, and of degrees a site's features gain together what each misfits beyond
    `EACH_MORE`.
    """
    more = np.fmax(misfit - EACH_MORE, 0.0)
    enough = more.sum(1, keepdims=True) > LEAST_GAIN_OF_DEGREES + _by_chance(misfit) - EACH_MORE
    return np.asarray(enough & (more > 0))


def _by_chance(misfit: Array) -> float:
    """What the best of so many sites and features gains by chance."""
    return 2 * float(np.log(max(misfit.size, 1)))


def _explain_each(each: list[Array], site: Index, by_chance: float) -> tuple[Array, Array, Array]:
    """Gain, factor and offset (n,) of the best other unit of each of n features of some sites."""
    m, M, S, log_s, v_m, v_s, null, by_nature, by_others = each

    def left(log_f: Array, offset: float) -> Array:
        off = ((m - offset) * np.exp(-log_f) - M) / S
        return np.asarray((log_s - log_f) ** 2 / v_s + off**2 / v_m)

    best, least, factor = np.full(m.shape, np.inf), null, np.ones(m.shape)
    natural, as_others, zero = null, null, np.finfo(float).eps
    for log_f in _factors(m, M, log_s):
        for part in PARTS:
            rest, squared = left(part * log_f, 0.0), (part * log_f) ** 2
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
        rest = np.where(warm, left(np.full(m.shape, np.log(times)), off), np.inf)
        closer = (rest < best) & (rest < least + MOST_LEFT)
        own = np.where(closer, natural - rest, 0.0)
        further = np.maximum(own - EACH_MORE, 0.0)
        own = own + np.where(own > EACH_MORE, np.bincount(site, further)[site] - further, 0.0)
        gain = np.where(closer, own - LEAST_GAIN_OF_DEGREES, gain)
        factor, offset, best = np.where(closer, times, factor), np.where(closer, off, offset), np.fmin(best, rest)
    return np.where(best < MOST_LEFT, gain - by_chance, -np.inf), factor, offset


def _factors(m: Array, M: Array, by_deviations: Array) -> Iterator[Array]:
    """Log factors (J, D) that are tried."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = m / M
        by_means = np.where((ratio > 0) & np.isfinite(ratio), np.log(np.abs(ratio)), by_deviations)
    for share in TRIED:
        yield np.asarray(share * by_means + (1 - share) * by_deviations)
