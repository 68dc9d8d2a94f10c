"""A site that measures a feature in another unit than the others: found by what travels anyway, and named.

A site's mean and deviation of all its points in a feature follow from its components. Sites differ by themselves as
well, some in deviation, some in mean; but other units move both together (`fit.screening.unit_fit`). The site and
feature that another unit explains best are named, converted, and all is compared again, so that nobody is named for
what another did. Nothing is converted for good: that is for the owner of the data to do.

A site whose columns are in another order than the others': found by what travels anyway, and named.

Taken for feature d, a site's column e has the misfit

    X(d, e) = (log s_e / S_d)^2 / v_s + (m_e - M_d)^2 / (S_d^2 v_m)

of `fit.screening.unit_fit`, without any factor. The order of columns that fits best is an assignment; a column may move
only for a price, so that sites which merely differ stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array, Index, Stack
from modelweld.errors import Finding, NamesWarning, UnitsWarning
from modelweld.families.math.start import SMALLEST_RANGE
from modelweld.fit.screening.outliers import MAD_TO_DEVIATION
from modelweld.fit.screening.site_medians import FEWEST_SITES, middle
from modelweld.fit.screening.unit_fit import (
    MOST_FEATURES,
    MOST_LEFT,
    OtherUnit,
    Sites,
    describe,
    explain,
    may_be_other_units,
)
from modelweld.fit.search.starts import is_large
from modelweld.inputs.local_model import LocalModel

LEAST_GAIN = 16.0
"""By which each column that moves must fit better, beyond what the best of so many sites and columns does by chance. At
6 up to 5 % of few plain values of three clean sites were warned of, at 10 fewer than 1 %, at 16 none, and hardly fewer
were found (66 of 90 for 69)."""

NOWHERE = 1e12
"""Misfit of a column that was not seen, anywhere but where it is."""


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
    from scipy.optimize import linear_sum_assignment  # a third of a second at its first import

    price = LEAST_GAIN + np.log(J * D)
    m, log_s, at, (v_m, v_s) = sites.mean, np.log(sites.deviation), sites.medians, sites.allowed(sites.medians)
    expected = (at.mean, at.deviation**2 * v_m, np.log(at.deviation), v_s)
    found = []
    for j in suspects:
        misfit = _misfit(m[j], log_s[j], *(x[j][:, None] for x in expected))
        nowhere = np.where(np.eye(D, dtype=bool), 0.0, NOWHERE)  # also for moving from or to what was not seen
        misfit = np.where(np.isfinite(misfit), np.minimum(misfit, NOWHERE), nowhere)
        _, order = linear_sum_assignment(misfit + price * (1 - np.eye(D)))
        one = Swapped(j, tuple(order.tolist()))
        if one.moved and all(misfit[d, one.order[d]] < MOST_LEFT for d in one.moved):
            found.append(one)
    return found


def may_be_swapped(sites: Sites) -> Index:
    """Sites of which two columns misfit by more than it costs to move them: no others are ever named."""
    J, D = sites.mean.shape
    if J < FEWEST_SITES or not 2 <= D <= MOST_FEATURES:
        return np.arange(0)
    here = np.where(np.isfinite(sites.misfit), np.minimum(sites.misfit, NOWHERE), 0.0)
    return np.flatnonzero(np.partition(here, D - 2, axis=1)[:, -2:].mean(1) > LEAST_GAIN + np.log(J * D))


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
        f"again, or leave the site out, fusion.remove({site!r}, from_scratch=True). Columns with names, "
        "read(model, features=[...]), are put in order by themselves."
    )


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
    """Of plain values, site by site; of too many sites none."""
    if len(stack.sizes) > MOST_SITES:
        return [None] * len(stack.sizes)
    if is_large(stack):
        each = zip(stack.sizes.tolist(), *_compiled_medians(stack), strict=True)
        return [None if n < FEWEST_VALUES else _of_medians(m, s, n) for n, m, s in each]
    return [
        _of_plain(stack.values[start:end].T)
        for start, end in zip(stack.offsets[:-1].tolist(), stack.offsets[1:].tolist(), strict=True)
    ]


def _compiled_medians(stack: Stack) -> tuple[Array, Array]:
    """Medians of each site's values, and deviations by medians (J, D)."""
    from modelweld.fit.screening.screening_kernels import medians_and_deviations

    middles, spreads = medians_and_deviations(stack.values, stack.offsets)
    return middles, MAD_TO_DEVIATION * spreads


def _of_plain(features: Array) -> Totals | None:
    """Of a site's values, a row per feature (D, L), all of them seen."""
    number = features.shape[1]
    if number < FEWEST_VALUES:
        return None
    mean = _medians(features)
    return _of_medians(mean, MAD_TO_DEVIATION * _medians(np.abs(features - mean[:, None])), number)


def _of_medians(mean: Array, deviation: Array, number: int) -> Totals:
    """Of a site with so many plain values."""
    return Totals(mean, deviation, number / OF_MEDIANS, number / OF_MEDIANS)


def _medians(features: Array) -> Array:
    """Of each row (D,)."""
    ordered, number = np.sort(features, axis=1), features.shape[1]
    return np.asarray((ordered[:, (number - 1) // 2] + ordered[:, number // 2]) / 2)


def name_units_of_stack(stack: Stack, sites: Sequence[str], only: int | None = None) -> tuple[Finding, ...]:
    """As `name_other_units`, of plain values; most often a bound says at once that nobody is named."""
    if len(stack.sizes) <= MOST_SITES and is_large(stack):
        known = stack.sizes >= FEWEST_VALUES
        worth = stack.sizes[known, None] / OF_MEDIANS
        mean, deviation = _compiled_medians(stack)
        compared = _comparable(mean[known], deviation[known], np.hstack([worth, worth]))
        if compared is None or not (len(may_be_swapped(compared)) or may_be_other_units(compared.misfit).any()):
            return ()
    return name_other_units(totals_of_stack(stack), None, sites, only)


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

    def called(feature: int) -> str:
        return f"dimension {feature}" if names is None else repr(names[feature])

    for one in mixed:
        site = known[one.site][0]
        if only is None or site == only:
            reasons.append(Finding(describe_swapped([called(d) for d in one.moved], sites[site]), NamesWarning))
    alike: dict[tuple[int, str], list[OtherUnit]] = defaultdict(list)
    for found in find_other_units([t for _, t in known], compared, plain=not (models and models[0].kind)):
        site = known[found.site][0]
        name = None if names is None else names[found.feature]
        said = [name in model.facts.get("units", {}) for model in models or ()]
        if (only is None or site == only or len(known) == 2) and not (any(said) and said[site] and sum(said) > 1):
            alike[site, found.why].append(found)
    for (site, _), together in alike.items():
        features = [called(one.feature) for one in together]
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


def find_other_units(
    totals: Sequence[Totals], compared: Sites | None = None, *, plain: bool = False
) -> list[OtherUnit]:
    """Sites and features in other units than most sites'; `compared` are these totals `side_by_side`, where known.

    `plain` values need not be in units at all (weights, embeddings): only sites that are like the others in at least
    half of their dimensions are compared. One that is not is another kind of stranger, for `fit.screening.outliers`.

    Examples
    --------
    >>> sites = [Totals(np.array([70.0 + j]), np.array([12.0]), 50, 50) for j in range(4)]
    >>> sites.append(Totals(np.array([71_500.0]), np.array([12_000.0]), 50, 50))
    >>> [(found.site, round(found.factor)) for found in find_other_units(sites)]
    [(4, 1000)]
    """
    compared = compared or side_by_side(totals)
    if compared is None or len(totals) < (FEWEST_SITES if plain else 2):
        return []
    at = np.flatnonzero(np.isfinite(compared.mean).sum(0) >= min(FEWEST_SITES, len(totals)))
    if not len(at):
        return []
    log_s = np.log(compared.deviation[:, at])
    if plain and not (np.abs(log_s - middle(log_s)) > np.log(LEAST_OF_PLAIN)).any():
        return []
    if plain and len(at) == compared.mean.shape[1]:
        sites = compared
    else:
        asked = () if plain else totals  # plain values are not predicted from each other
        places = [t.mean[None, at] if t.places is None else t.places[:, at] for t in asked]
        share = [np.ones(1) if t.share is None else t.share for t in asked]
        sites = Sites(compared.mean[:, at], compared.deviation[:, at], compared.chance, places, share)
    found: list[OtherUnit] = []
    for _ in totals:
        named = _worst(sites, plain)
        if not named:
            break
        found += [OtherUnit(one.site, int(at[one.feature]), one.factor, one.offset) for one in named]
        sites = sites.converted(named)
    return sorted(set(found))


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
