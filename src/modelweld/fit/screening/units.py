"""Means and deviations of sites, compared: a cheap look at whether units or the order of columns may differ.

A site's mean m and deviation s in a feature follow from its components. They are compared with what the *others* have,
M and S, in their unit and in another that is f times smaller and o off:

    X(f, o) = (log s / S - log f)^2 / v_s + ((m - o) / f - M)^2 / (S^2 v_m),

v_s and v_m being squared robust deviations of log s and of m / S among the others, and what sites differ by anyway. M
is the others' median, or what they predict from the site's *other features*: a station that is warm by day is so by
night. Where no other unit can explain a site there is nothing to say; else `fit.screening.unit_fit` looks closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import SMALLEST_RANGE, Array, Index, Stack, blocks
from modelweld.fit.screening.distances import FEWEST_SITES, MAD_TO_DEVIATION, Flags, middle
from modelweld.inputs.local_model import LocalModel

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

LEAST_GAIN_OF_ORDER = 16.0
"""By which each column that moves must fit better, beyond what the best of so many sites and columns does by chance. At
6 up to 5 % of few plain values of three clean sites were warned of, at 10 fewer than 1 %, at 16 none, and hardly fewer
were found (66 of 90 for 69)."""

FEWEST_FOR_ORDER = 4
"""Sites from which on columns can be mixed up: of two others nobody knows how far sites differ by themselves. Of 580
clean fusions of real tables, in units and standardised, none is warned of; at three sites penguins by island are."""

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

FAHRENHEIT = 1.8, 32.0
"""Factor and offset that make degrees Fahrenheit of degrees Celsius."""

TYPICAL_POINTS = 100.0
"""Points of a site that does not say how many it has: beyond, their number makes no difference here."""

FEWEST_VALUES, MOST_SITES = 4, 200
"""Plain values of a site from which a deviation follows that one of them does not make (of three, medians of clean
sites were warned of in 3 %), and sites up to which plain values are compared: medians of more take longer than fusing
them."""

OF_MEDIANS = 2.5
"""Values of which a median absolute difference says as much as one value does of a deviation."""

LEAST_OF_PLAIN = 3.0
"""Factor between deviations of plain values from which they are looked at: few values blur one of six to that."""


class Totals(NamedTuple):
    """Mean and deviation (D,) of all points of a site, NaN where a feature was not seen, and how many each rests on.

    `places` (K, D) are means of components, and `share` (K,) how many of the site's points each has.
    """

    mean: Array
    deviation: Array
    points: float
    parts: float
    places: Array | None = None
    share: Array | None = None


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
    places = np.where(weight > 0, means, np.nan)
    return Totals(mean, deviation, points, len(means) if spherical else points, places, counts / counts.sum())


def totals_of_values(values: Array, seen: NDArray[np.bool_] | None = None) -> Totals | None:
    """Of plain values (L, D), where `seen`, by medians: one of them may be anything.

    Examples
    --------
    >>> totals_of_values(np.array([[1.0], [2.0], [4.0], [900.0], [3.0]])).mean.tolist()
    [3.0]
    """
    if len(values) < FEWEST_VALUES or values.ndim != 2:
        return None
    known = values if seen is None or seen.all() else np.where(seen, values, np.nan)
    mean = middle(known)
    deviation = MAD_TO_DEVIATION * middle(np.abs(known - mean))
    worth = len(values) / OF_MEDIANS
    return Totals(mean, deviation, worth, worth, known, np.full(len(values), 1 / len(values)))


def totals_of_stack(stack: Stack) -> list[Totals | None]:
    """Of plain values, site by site, by medians; of too many sites none. Sites of one size are sorted together."""
    found: list[Totals | None] = [None] * len(stack.sizes)
    if len(stack.sizes) > MOST_SITES:
        return found
    for L in np.unique(stack.sizes[stack.sizes >= FEWEST_VALUES]).tolist():
        of_size, number = np.flatnonzero(stack.sizes == L), L / OF_MEDIANS
        for part in blocks(len(of_size), L * stack.values.shape[1]):
            own = of_size[part]
            values = np.sort(stack.values[stack.offsets[own, None] + np.arange(L)], axis=1)
            mean = (values[:, (L - 1) // 2] + values[:, L // 2]) / 2
            off = np.sort(np.abs(values - mean[:, None]), axis=1)
            deviation = MAD_TO_DEVIATION * ((off[:, (L - 1) // 2] + off[:, L // 2]) / 2)
            for j, m, s in zip(own.tolist(), mean, deviation, strict=True):
                found[j] = Totals(m, s, number, number)
    return found


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
        return self.misfit_of(self.medians, *self.allow(self.medians))

    def allow(self, at: Expected) -> tuple[Array, Array]:
        """v_m and v_s with what sites differ by anyway, the site's own and the others' middle's, and by chance."""
        anyway = BY_THEMSELVES**2 * (1 + 1 / max(len(self.mean) - 1, 1))
        return at.of_mean + anyway + self.chance[:, :1], at.of_deviation + anyway + self.chance[:, 1:]

    def misfit_of(self, at: Expected, v_m: Array, v_s: Array) -> Array:
        """X(1, 0) by what is expected (J, D)."""
        log_s = np.log(self.deviation / at.deviation)
        return np.asarray(log_s**2 / v_s + ((self.mean - at.mean) / at.deviation) ** 2 / v_m)


class Expected(NamedTuple):
    """M, S, v_m and v_s for every site and feature: (J, D) each; and how far factors near one are natural."""

    mean: Array
    deviation: Array
    of_mean: Array
    of_deviation: Array
    by_nature: float


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
    found = (M, S, _square_deviation(m - M) / S**2, _square_deviation(log_s - log_S))
    mean, deviation, of_mean, of_deviation = (np.broadcast_to(x, sites.mean.shape) for x in found)
    return Expected(mean, deviation, of_mean, of_deviation, LARGER_BY_NATURE)


def _square_deviation(off: Array) -> Array:
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
        rows.append([own, _square_deviation((sites.mean - predicted)[others]) / S**2])
    mean, of_mean = (x[0] if len(rows) == 1 else x for x in map(np.stack, zip(*rows, strict=True)))
    return plain._replace(mean=mean, of_mean=of_mean, by_nature=LARGER_THAN_PREDICTED)


def _slopes(sites: Sites, others: Index, M: Array, S: Array) -> Array:
    """Of each feature in all others (D, D), diagonal zero, all in deviations from the middle."""
    off = np.nan_to_num(np.clip(np.concatenate([(sites.places[i] - M) / S for i in others]), -FAR, FAR))
    share = np.concatenate([sites.share[i] for i in others])
    together = (off * share[:, None]).T @ off / share.sum() + RIDGE * np.eye(len(M))
    precision = np.linalg.inv(together)
    return np.asarray(np.eye(len(M)) - precision / np.diag(precision)[:, None])


def side_by_side(totals: Sequence[Totals]) -> Sites | None:
    """Means and deviations of sites, NaN where they cannot be compared; None if nothing can."""
    if len({t.mean.shape for t in totals}) != 1:
        return None
    m, s = np.array([t.mean for t in totals]), np.array([t.deviation for t in totals])
    return _comparable(m, s, np.array([(t.points, t.parts) for t in totals]))


def _comparable(mean: Array, deviation: Array, worth: Array) -> Sites | None:
    """Sites of which means and deviations (J, D) rest on so many points, and parts (J, 2); None: nothing to compare."""
    if not len(mean) or ((deviation > 0) & (deviation < SMALLEST_RANGE)).any():
        return None  # squares that are none: such values are refused soon
    usable = np.isfinite(mean) & (deviation > np.finfo(float).eps * np.abs(mean))
    chance = 1 / np.maximum(worth - (0, 1), 1.0)  # variances of means, in deviations, and of log deviations
    return Sites(np.where(usable, mean, np.nan), np.where(usable, deviation, np.nan), chance)


def in_known_features(compared: Sites, totals: Sequence[Totals], plain: bool) -> tuple[Sites, Index] | None:
    """Sites in the features that enough of them have, and which these are; None: no unit can be told.

    `plain` values need not be in units at all (weights, embeddings), and are not predicted from each other.
    """
    at = np.flatnonzero(np.isfinite(compared.mean).sum(0) >= min(FEWEST_SITES, len(totals)))
    if not len(at) or len(totals) < (FEWEST_SITES if plain else 2):
        return None
    log_s = np.log(compared.deviation[:, at])
    if plain and not (np.abs(log_s - middle(log_s)) > np.log(LEAST_OF_PLAIN)).any():
        return None
    asked = () if plain else totals
    places = [t.mean[None, at] if t.places is None else t.places[:, at] for t in asked]
    share = [np.ones(1) if t.share is None else t.share for t in asked]
    return Sites(compared.mean[:, at], compared.deviation[:, at], compared.chance, places, share), at


def may_be_swapped(sites: Sites) -> Index:
    """Sites of which two columns misfit by more than it costs to move them: no others are ever named."""
    J, D = sites.mean.shape
    if J < FEWEST_FOR_ORDER or not 2 <= D <= MOST_FEATURES:
        return np.arange(0)
    here = np.where(np.isfinite(sites.misfit), sites.misfit, 0.0)
    return np.flatnonzero(np.partition(here, D - 2, axis=1)[:, -2:].mean(1) > LEAST_GAIN_OF_ORDER + np.log(J * D))


def may_be_other_units(misfit: Array) -> Flags:
    """Sites and features (J, D) that misfit by more than is asked for: no others are ever named.

    Nothing gains more than it misfits, and of degrees a site's features gain together what each misfits beyond
    `EACH_MORE`.
    """
    more = np.fmax(misfit - EACH_MORE, 0.0)
    enough = more.sum(1, keepdims=True) > LEAST_GAIN_OF_DEGREES + by_chance(misfit) - EACH_MORE
    return np.asarray(enough & (more > 0))


def by_chance(misfit: Array) -> float:
    """What the best of so many sites and features gains by chance."""
    return 2 * float(np.log(max(misfit.size, 1)))


def may_differ(totals: Sequence[Totals | None], *, plain: bool) -> bool:
    """Whether a site may have columns in another order or another unit: where this says no, none is ever named."""
    known = [t for t in totals if t is not None]
    compared = side_by_side(known)
    if compared is None:
        return False
    if len(may_be_swapped(compared)):
        return True
    found = in_known_features(compared, known, plain)
    return found is not None and any(
        _may_be_explained(found[0], at) for at in expectations(found[0], predict=not plain)
    )


def expectations(sites: Sites, *, predict: bool) -> list[Expected]:
    """What others have, and, where asked for and possible, what they predict."""
    predicted = expect_predictions(sites, sites.medians) if predict else None
    return [sites.medians] if predicted is None else [sites.medians, predicted]


def _may_be_explained(sites: Sites, at: Expected) -> bool:
    """Whether some feature misfits by enough, and a factor that is large enough, or degrees, could fit it."""
    v_m, v_s = sites.allow(at)
    null, log_s = sites.misfit_of(at, v_m, v_s), np.log(sites.deviation / at.deviation)
    (f, o), off = FAHRENHEIT, np.maximum(np.log(LEAST_FACTOR) - np.abs(log_s), 0.0)
    may = (null > LEAST_GAIN + by_chance(null)) & (off**2 / v_s < MOST_LEFT)
    for times, offset in ((f, o), (1 / f, -o / f)):
        off = ((sites.mean - offset) / times - at.mean) / at.deviation
        may |= (log_s - np.log(times)) ** 2 / v_s + off**2 / v_m < MOST_LEFT
    return bool((may & may_be_other_units(null)).any())
