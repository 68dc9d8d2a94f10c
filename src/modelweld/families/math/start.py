"""First hyperparameters and their prior, free of units: no guess of variances is needed.

From a bad start nothing is ever matched and it stays so. The total variance is read off the pooled values; the
share of it that is noise, off values that are most likely copies of each other: the closest pairs in optimal
matchings between the largest groups, and, where that is something else, by a vote of many groups. The largest may be
two that coincide, or be split more finely than all others.

The hyperprior of noise and spread before anything is matched: weak, and free of units.

The likelihood of one-way random effects is unbounded where two sites coincide (noise to zero), and its spread can fall
to zero, so that every atom is the grand mean. Neither is ever what a user means. So noise has the conjugate prior,
which is what nu values more, of squares s in all, would add to the likelihood:

    log p(noise) = -nu/2 log(noise) - s / (2 noise).

Of plain values nothing is known but that noise is not zero: nu = 0, flat in the logarithm but for an end below s. Where
sites say how wide their components are, means of one differ by about that: nu = DEGREES. And the ratio
r = spread / noise has a prior that keeps off zero like the deviation of the atoms and is flat beyond (Chung et al., *A
nondegenerate penalized likelihood estimator for variance parameters*, Psychometrika 2013):

    log p(r) = -1/2 log(1 + near / r).

The first only adds to values and squares, the second is a function of the ratio alone, so the profile of the likelihood
stays one-dimensional.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index, Stack, blocks, group_of_values, offsets_of, total_variance

GROUPS_COMPARED = 3
"""How many of the largest groups are matched pairwise, at most: three pairs."""

ENOUGH_DISTANCES = 32
"""Matched pairs of values after which no more groups are compared."""

CLOSEST, CLOSER = 0.25, 0.1
"""Quantiles of the matched squared distances that are taken for differences of two copies."""

FEW_DIMENSIONS = 8
"""Below this, close pairs say little about the noise (a quarter of all differences in one dimension are below a
tenth of their variance), and two starts are tried: one taking the closest tenth as it is, for values of which few are
shared, and one correcting the closest quarter by its expected share, for values of which most are. The better
objective wins. Above, the two would hardly differ."""

NOISE_SHARES = (1e-6, 0.5)
"""Bounds of the first noise as a share of the total variance."""

LOUD_SHARE = 0.85
"""One more start where even the closest pairs differ by the largest share above: noise may then be most of what there
is (shares of .3 to .95 were tried on unit vectors, seeds 100 and 101)."""

VOTERS, VOTES = 16, 16
"""Groups that vote, and values of each: a table of distances of at most 256 values to each other, a third of a
millisecond."""

FEWEST_VOTERS = 3
"""With two groups a vote says what their matching says."""

ANOTHER_VIEW, FAR_APART = 4.0, 1000.0
"""Factor by which the vote must differ from all other starts to be one more, and that from which on what lies between
them is one more, too: sites of one value each, many of them, meet neighbours and vote with unrelated ones."""

LEAP, FEWEST_COPIES = 4.0, 3
"""Factor between squared distances, next to each other among the closest quarter of matched pairs, that parts copies
from unrelated values where even that quarter looks unrelated; and how many copies there must be at least."""

UNKNOWN_SHARE = 0.1
"""The share when there are no two groups to compare: the likelihood will not move it (nothing is matched)."""

LARGEST_MATCHED = 1000
"""Groups with more rows are compared by nearest neighbours, because an optimal matching is cubic in the rows."""


class Look(NamedTuple):
    """What values tell before anything is matched.

    origin (D,), total (D,) or (1,): their mean and variance; typical: the weight of most; shares: guesses of noise /
    (noise + spread) worth trying.
    """

    origin: Array
    total: Array
    typical: float
    shares: list[float]


def look(stack: Stack, pooled: bool, noise: ArrayLike | None = None, spread: ArrayLike | None = None) -> Look:
    """A first look at values; where noise and spread are given there is one share, theirs."""
    origin, total = total_variance(stack, pooled)
    if noise is None or spread is None:
        shares = noise_shares(stack, total)
    else:
        shares = [float(np.mean(np.asarray(noise) / np.add(noise, spread)))]
    return Look(origin, total, typical_weight(stack), shares)


def noise_shares(stack: Stack, total: Array) -> list[float]:
    """First guesses of noise / (noise + spread) worth trying, between NOISE_SHARES."""
    largest = stack.largest(GROUPS_COMPARED)
    groups = [_standardise(stack, stack.group(int(j)), total) for j in largest if stack.sizes[j] > 0]
    found = [np.zeros(0)]
    for a, b in combinations(groups, 2):
        if sum(map(len, found)) < ENOUGH_DISTANCES:
            found.append(_match_distances(a, b))
    ranked = np.sort(np.concatenate(found)) / 2  # a difference of two copies has twice the noise
    if not len(ranked):
        return [UNKNOWN_SHARE]
    quarter, tenth = (float(ranked[int(q * (len(ranked) - 1))]) for q in (CLOSEST, CLOSER))
    leapt = below_leap(ranked)
    if quarter >= NOISE_SHARES[1] and leapt is not None:
        return [float(np.clip(leapt, *NOISE_SHARES))]
    D = stack.values.shape[1]
    if D >= FEW_DIMENSIONS:
        return _with_vote(_with_loud([quarter]), len(ranked), stack, total)
    expected = 2 * scipy.special.gammaincinv(D / 2, CLOSEST) / D  # the quantile of a mean of D squared standard normals
    return _with_vote(_with_loud([tenth, quarter / expected]), len(ranked), stack, total)


def pair_distances(stack: Stack, total: Array, pairs: Iterable[tuple[int, int]]) -> Array:
    """Mean squared differences, in units of the total variance, in the best matchings of these pairs of groups."""
    found = [_match_distances(*(_standardise(stack, stack.group(j), total) for j in pair)) for pair in pairs]
    return np.concatenate([np.zeros(0), *found])


def _match_distances(a: tuple[Array, Array | None], b: tuple[Array, Array | None]) -> Array:
    """Of two groups; by nearest neighbours where they are large."""
    if max(len(a[0]), len(b[0])) > LARGEST_MATCHED:
        return _nearest(a, b)
    squared = _square_distances(a, b)
    return np.asarray(squared[scipy.optimize.linear_sum_assignment(squared)])


def below_leap(ranked: Array) -> float | None:
    """Median of the distances below the largest leap in the closest quarter; None where there is no such leap.

    Where groups share few of their atoms, the closest quarter is mostly unrelated. Copies are then far closer.

    Examples
    --------
    >>> below_leap(np.array([0.1, 0.1, 0.2, 0.2, *np.linspace(2, 3, 20)]))
    0.15000000000000002
    >>> below_leap(np.linspace(1, 2, 24))
    """
    closest = ranked[: int(CLOSEST * len(ranked)) + 1]
    closest = closest[np.searchsorted(closest, 0.0, side="right") :]  # what coincides says nothing of noise
    if len(closest) <= FEWEST_COPIES:
        return None
    leaps = closest[FEWEST_COPIES:] / closest[FEWEST_COPIES - 1 : -1]
    at = int(leaps.argmax())
    return float(np.median(closest[: at + FEWEST_COPIES])) if leaps[at] > LEAP else None


def prefer_given(given: ArrayLike | None, otherwise: Array) -> Array:
    """What was given, or else what was found: one number per dimension (D,)."""
    return np.zeros(len(otherwise)) + np.asarray(otherwise if given is None else given, dtype=np.float64)


def _with_loud(found: list[float]) -> list[float]:
    """Shares within their bounds, and a further one if one of them is at the upper bound."""
    shares = [float(np.clip(share, *NOISE_SHARES)) for share in found]
    return [*shares, LOUD_SHARE] if max(shares) == NOISE_SHARES[1] else shares


def _with_vote(shares: list[float], pairs: int, stack: Stack, total: Array) -> list[float]:
    """One more share, if most groups say something else than the largest, where those have few pairs or look alike."""
    if pairs >= ENOUGH_DISTANCES and min(shares) >= EXPECTED_SHARE:
        return shares
    voted = vote_share(stack, total)
    if voted is None:
        return shares
    share = float(np.clip(voted, *NOISE_SHARES))
    nearest = min(shares, key=lambda known: max(share / known, known / share))
    apart = max(share / nearest, nearest / share)
    if apart < ANOTHER_VIEW:
        return shares
    return [*shares, share] if apart < FAR_APART else [*shares, share, float(np.sqrt(share * nearest))]


def vote_share(stack: Stack, total: Array, groups: float = 0.5) -> float | None:
    """Share of noise by a vote: how far values are from the nearest of a group that probably has a copy.

    Each value votes for the quarter quantile, over the other groups, of its squared distance to their nearest value;
    a group for the median of its values' votes, all for the median of the groups' (or another quantile, `groups`). None
    where too few groups vote.
    """
    order = np.arange(len(stack.sizes)) if stack.group_order is None else stack.group_order
    filled = order[stack.sizes[order] > 0]
    if len(filled) < FEWEST_VOTERS:
        return None
    voters = filled[evenly(len(filled), VOTERS)].tolist()
    rows = [stack.group(j)[evenly(int(stack.sizes[j]), VOTES)] for j in voters]
    offsets, own = offsets_of([len(x) for x in rows]), group_of_values(offsets_of([len(x) for x in rows]))
    given = _standardise(stack, np.concatenate(rows), total)
    nearest = np.minimum.reduceat(_square_distances(given, given), offsets[:-1], axis=1)
    others = nearest[np.arange(len(voters)) != own[:, None]].reshape(len(own), len(voters) - 1)
    votes = np.quantile(others, CLOSEST, axis=1)
    votes = votes[np.lexsort((votes, own))]
    low, high = ((offsets[:-1] + offsets[1:] - 1) // 2, (offsets[:-1] + offsets[1:]) // 2)
    return float(np.quantile((votes[low] + votes[high]) / 2, groups) / 2)


@lru_cache(maxsize=1024)
def evenly(n: int, most: int) -> Index:
    """At most so many of n positions, evenly spaced."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(np.int64))


def typical_weight(stack: Stack) -> float:
    """Median weight of what was seen; one where no weights are sent."""
    if stack.weight is None:
        return 1.0
    seen = stack.weight[stack.weight > 0]
    return float(np.median(seen)) if len(seen) else 1.0


def _standardise(stack: Stack, rows: Index, total: Array) -> tuple[Array, Array | None]:
    """Some values in units of the total deviation, and which of them are seen (None: all)."""
    return stack.values[rows] / np.sqrt(total), None if stack.weight is None else (stack.weight[rows] > 0).astype(float)


def _nearest(a: tuple[Array, Array | None], b: tuple[Array, Array | None]) -> Array:
    """Squared distance of each row of a to the nearest of b."""
    some = ((a[0][part], None if a[1] is None else a[1][part]) for part in blocks(len(a[0]), len(b[0])))
    return np.concatenate([_square_distances(x, b).min(1) for x in some])


def _square_distances(a: tuple[Array, Array | None], b: tuple[Array, Array | None]) -> Array:
    """Mean over the dimensions both rows have of squared differences: (rows of a, rows of b)."""
    (x, x_seen), (y, y_seen) = a, b
    centre = x.mean(0)
    x, y = x - centre, y - centre
    if x_seen is None or y_seen is None:
        squared = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T)
        return np.asarray(np.maximum(squared, 0.0) / x.shape[1])
    x, y = x * x_seen, y * y_seen
    squared = (x * x) @ y_seen.T + x_seen @ (y * y).T - 2 * (x @ y.T)
    return np.asarray(np.maximum(squared, 0.0) / np.maximum(x_seen @ y_seen.T, 1.0))


EXPECTED_SHARE = 0.01
"""Of the total variance that is expected to be noise, at most. A thousandth lets two sites that nearly coincide still
collapse in twenty dimensions (three draws of four); a hundredth and three hundredths never did. Noise
below it is looked at twice: two sites that coincide say so, and so do honest ones."""

NEAR = 0.1
"""Ratio of spread to noise below which atoms hardly differ, at most. At one, overlapping atoms are split too
often (the hardest golden case has eight atoms too many instead of four)."""

DEGREES, SHARE_OF_WIDTH = 2.0, 0.1
"""Values that what is known of components' widths is worth, and the share of the width that noise is expected to be."""


class NoisePrior(NamedTuple):
    """The prior of noise and spread.

    Attributes
    ----------
    squares : array (D,) or (1,)
        s above, in each dimension; zero without a hyperprior.
    near : float
        near above; zero without a hyperprior.
    degrees : float
        nu above.

    Examples
    --------
    >>> prior = NoisePrior(np.array([1.0]), 0.1)
    >>> noise = np.array([1e-3, 1.0, 1e6])
    >>> [round(float(x), 2) for x in prior.log_density(noise, noise, noise)]
    [-500.05, -0.55, -0.05]
    """

    squares: Array
    near: float = 0.0
    degrees: float = 0.0

    def log_density(self, mean: Array, noise: Array, spread: Array) -> Array:
        """Log density at these hyperparameters, up to a constant: (D,), or (1,) for one noise in all D dimensions."""
        each = len(mean) // len(noise)
        of_noise = -0.5 * each * (self.squares / noise + self.degrees * np.log(noise))
        return np.asarray(of_noise + self.of_ratio(spread / noise))

    def slopes(self, mean: Array, noise: Array, spread: Array) -> tuple[Array, Array]:
        """Slopes of `log_density` in log noise and log spread."""
        each, by_ratio = len(mean) // len(noise), self.slope_of_ratio(spread / noise)
        return np.asarray(0.5 * each * (self.squares / noise - self.degrees) - by_ratio), by_ratio

    def of_ratio(self, ratio: Array) -> Array:
        """Log density of spread / noise."""
        return np.asarray(-0.5 * np.log1p(self.near / ratio))

    def slope_of_ratio(self, ratio: Array) -> Array:
        """Its slope in the logarithm of the ratio."""
        return np.asarray(0.5 * self.near / (self.near + ratio))


FLAT = NoisePrior(np.zeros(1))


def noise_prior_of(first: Look, width: Array) -> NoisePrior:
    """The hyperprior of values after a first look.

    Noise may be far below EXPECTED_SHARE where most groups say so, and atoms as hard to tell apart as they look. Where
    components have a `width`, noise is expected to be about a share of that.
    """
    share = max(first.shares)
    near = NEAR * min(1.0, 1 / share - 1) / first.typical
    if np.any(width > 0):
        return NoisePrior(DEGREES * SHARE_OF_WIDTH * width, near, DEGREES)
    return NoisePrior(min(share, EXPECTED_SHARE) * first.total * first.typical, near)
