"""A site that is off by a constant: its values' offset from the atoms as the others see them.

Only for families that know the `variances` of values about their atom and of atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.board import Board
from modelweld.core.family import Family, sum_by_atom
from modelweld.core.matching import Matching
from modelweld.core.plan import MOST_SWEEPS
from modelweld.core.prior import BetaBernoulli
from modelweld.core.values import Array, Flags, Index, SetValues, Stack, blocks, group_of_values
from modelweld.errors import Finding, OutlierWarning
from modelweld.families.capabilities import variances_of
from modelweld.families.fading import Moving
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE
from modelweld.fit.search.leave_one_out import Without, leave_out
from modelweld.fit.search.parts import Parts
from modelweld.progress import report_progress

FEWEST_SHIFTED = 3
"""Values that must agree on a shift before it explains a site: two always agree about something."""


def describe_shifted(site: str, matched: int, size: int) -> Finding:
    """That a site was excluded, and how many of its values a shift would match."""
    return Finding(
        f": moved by one constant shift, {matched} of its {size} values would match atoms of the others; as they are, "
        "hardly any does. The whole site is excluded: ask its owner about units, calibration or preprocessing "
        "(fusion.diagnose() says how far it is off).",
        OutlierWarning,
        [site],
    )


def find_shifted(matching: Matching, values: SetValues) -> dict[int, int]:
    """Sites that a common shift explains, and how many of their values it would match; none if they are many.

    Atoms that move do so from one time to another: at one and the same time all sites see an atom in one place, so
    sites of one time are compared with each other, as sites without times are.
    """
    if values.times is not None:
        moments, number = np.unique(values.times, return_counts=True)
        each = (np.flatnonzero(values.times == t) for t in moments[number >= FEWEST_SITES_TO_COMPARE])
        return {
            int(at[j]): matched
            for at in each
            for j, matched in find_shifted(_at_standstill(matching, at), replace(values.of(at), times=None)).items()
        }
    shared = matching.counts[matching.stacked_labels] > 1
    kept: Flags = np.ones(len(shared), dtype=bool) if matching.kept is None else matching.kept
    sizes, number = values.number(kept), values.number(shared & kept)
    suspects, filled = np.flatnonzero(2 * number < sizes), np.count_nonzero(sizes)
    if matching.prior is None or filled < FEWEST_SITES_TO_COMPARE or not 0 < 2 * len(suspects) < filled:
        return {}
    families = list(matching.families.values())
    parts = Parts(values.stacks, families, matching.prior, matching.splits, matching.stacked_labels)
    places = shiftable_arrays(parts)
    if len(places) < len(families):
        return {}
    found = {}
    report_progress("looking for shifted sites", 0)
    for first, last, board in parts:
        for j in suspects[(suspects >= first) & (suspects < last)].tolist():
            shift = explaining_shift(board, places, leave_out(board, j - first))
            if shift is not None:
                found[j] = shift.matched
    return found


def _at_standstill(matching: Matching, at: Index) -> Matching:
    """What a matching of moving atoms says of sites of one time, where no atom has moved."""
    own = np.isin(group_of_values(matching.offsets), at)
    labels = np.unique(matching.stacked_labels[own], return_inverse=True)[1].ravel()
    still = {key: f.still() if isinstance(f, Moving) else f for key, f in matching.families.items()}
    kept = None if matching.kept is None else matching.kept[own]
    return replace(
        matching, stacked_labels=labels, counts=np.bincount(labels), families=still, prior=BetaBernoulli(), kept=kept
    )


class Shiftable(NamedTuple):
    """One array: its number, family, atoms' weights in units of 1 / noise, variances, and factor on standard errors.

    `deviation` is that of a typical value about its atom: of the noise, and of standard errors where they are sent.
    """

    number: int
    family: Family
    total: Array
    noise: Array
    spread: Array
    inflation: float
    deviation: Array

    def weight(self, board: Board, values: Index) -> Array:
        """Of values on a board, as in the fit; zero where not seen."""
        stack = board.stacks[self.number]
        return _weight(stack.take(values, stack.offsets), self.noise, self.inflation)


class Shift(NamedTuple):
    """Offset (D,) in deviations and over its standard error, NaN if unknown; number of values `matched` by shifting."""

    mean: Array
    z: Array
    matched: int = 0


def shiftable_arrays(fit: Board | Parts) -> list[Shiftable]:
    """The arrays in which an offset has a meaning."""
    result = []
    for i, (family, stack) in enumerate(zip(fit.families, fit.stacks, strict=True)):
        variances = variances_of(family)
        if variances is None:
            continue
        K, D = len(fit.counts), stack.values.shape[1]
        noise, spread = np.zeros(D) + variances.noise, np.zeros(D) + variances.spread
        total = np.zeros((K, D))
        if stack.plain:
            total += np.bincount(fit.labels[fit.labels >= 0], minlength=K)[:, None]
        else:
            for part in blocks(len(fit.labels), D):
                total += sum_by_atom(
                    _weight(stack.take(part, stack.offsets), noise, variances.inflation), fit.labels[part], K
                )
        deviation = np.sqrt(noise * _typical_inverse(stack, noise, variances.inflation))
        result.append(Shiftable(i, family, total, noise, spread, variances.inflation, deviation))
    return result


def shifts_of(
    board: Board, places: list[Shiftable], out: Without, left: Sequence[Array], fitted: Flags | None = None
) -> list[Shift]:
    """The shift of every site of a board: one that explains it if it shares little, else the offset of what it shares.

    `out` is what is left without each of them, and `left` where their atoms are then, one array per family; `fitted`
    are the atoms to shift to, by default all.
    """
    J = len(board.sizes)
    means, zs = [np.zeros((J, 0))], [np.zeros((J, 0))]
    for x in places:
        own = x.weight(board, out.values)
        mine = sum_by_atom(own, out.where, len(out.atoms)) if out.in_fragments else own[np.argsort(out.where)]
        total = x.total[out.atoms]
        others = np.where(total - mine > np.sqrt(np.finfo(float).eps) * total, total - mine, 0.0)
        about = (x.spread / (1 + x.spread / x.noise * others))[out.where]
        known = (own > 0) & ((others > 0) & (out.holders > 0)[:, None])[out.where]
        variance = x.noise / np.where(own > 0, own, 1.0) + about
        off = board.stacks[x.number].values[out.values] - left[x.number][out.where]
        mean, z = _average_offset(off, np.where(known, 1 / variance, 0.0), x.deviation, out.site, J)
        means.append(mean)
        zs.append(z)
    found = [Shift(mean, z) for mean, z in zip(np.hstack(means), np.hstack(zs), strict=True)]
    if len(places) == len(board.families):
        n, held = np.bincount(out.site, minlength=J), np.bincount(out.site[out.shared], minlength=J)
        for j in np.flatnonzero(shares_little(n, held)).tolist():
            found[j] = explaining_shift(board, places, out.of(j), fitted) or found[j]
    return found


def shares_little(values: Index, shared: Index) -> Flags:
    """Which sites may be off as a whole, by the number of their values and of those that others hold too."""
    return np.asarray((values >= FEWEST_SHIFTED) & (2 * shared < values))


def explaining_shift(board: Board, places: list[Shiftable], out: Without, fitted: Flags | None = None) -> Shift | None:
    """A shift of all values that would match most of a site that now shares little, if there is one.

    Values are assigned to the others' atoms, the median difference is taken off, and so on in turn (this finds shifts
    that are small against the distances between atoms). The shift is believed if after it most values fit an atom
    better than being new, and all together so much better than unshifted that it pays for a shift of unknown size up to
    the spread: 1/2 log(1 + L spread / deviation^2) for each dimension. Of atoms those count that are `fitted`, by
    default all; fewer than half as many as the site has values cannot match most of these.
    """
    L = len(out.values)
    left = np.ones(len(board.counts), dtype=bool) if fitted is None else fitted.copy()
    left[out.atoms[out.holders == 0]] = False
    if not shares_little(np.array(L), out.shared.sum()) or 2 * left.sum() <= L:
        return None
    site = _Site.of(board, places, out, left)
    unshifted = site.fit(np.zeros(site.y.shape[1]))
    shift, pairs = np.zeros(site.y.shape[1]), unshifted.pairs
    for _ in range(MOST_SWEEPS):
        shift = np.median(site.y[pairs[0]] - site.atoms[pairs[1]], axis=0)
        fit = site.fit(shift)
        if np.array_equal(fit.pairs, pairs):
            break
        pairs = fit.pairs
    fits = fit.gain > 0
    price = 0.5 * np.log1p(L * site.spread / np.square(site.deviation)).sum()
    rise = fit.gain[fits].sum() - np.maximum(unshifted.gain, 0.0).sum()
    if 2 * fits.sum() <= L or fits.sum() < FEWEST_SHIFTED or rise <= price:
        return None
    off = site.y[fit.pairs[0]] - site.atoms[fit.pairs[1]]
    inverse = np.where(fits[:, None], 1 / site.matched[fit.pairs[0]], 0.0)
    [mean], [z] = _average_offset(off, inverse, site.deviation, np.zeros(len(off), dtype=np.int64), 1)
    return Shift(mean, z, int(fits.sum()))


class _Fit(NamedTuple):
    """An assignment of shifted values to atoms, and what each gains over being new."""

    pairs: tuple[Index, Index]
    gain: Array


class _Site(NamedTuple):
    """A site's values with all arrays side by side; variances if matched and if new, infinite where not seen."""

    y: Array
    atoms: Array
    home: Array
    matched: Array
    new: Array
    spread: Array
    deviation: Array

    @classmethod
    def of(cls, board: Board, places: list[Shiftable], out: Without, left: Flags) -> _Site:
        """Against the atoms that are `left` without it."""
        atoms, home = [], []
        for x in places:
            sums = board.sums[x.number].copy()
            sums[out.atoms] = out.rest[x.number]
            atoms.append(x.family.estimate(sums[left]))
            home.append(x.family.estimate(np.zeros((1, sums.shape[1]))))
        weights = [x.weight(board, out.values) for x in places]
        own = [np.where(w > 0, x.noise / np.where(w > 0, w, 1.0), np.inf) for x, w in zip(places, weights, strict=True)]
        spread = np.concatenate([x.spread for x in places])
        deviation = np.concatenate([x.deviation for x in places])
        return cls(
            y=np.hstack([board.stacks[x.number].values[out.values] for x in places]),
            atoms=np.hstack(atoms),
            home=np.hstack(home),
            matched=np.hstack(own) + np.square(deviation),  # an atom is known at worst from one other value
            new=np.hstack(own) + spread,
            spread=spread,
            deviation=deviation,
        )

    def fit(self, shift: Array) -> _Fit:
        """Assign the values, moved back by `shift`, to the atoms nearest."""
        y, inverse, centre = self.y - shift, 1 / self.matched, self.atoms.mean(0)
        a, b = y - centre, self.atoms - centre
        squares = (inverse * a * a).sum(1)[:, None] - 2 * (inverse * a) @ b.T + inverse @ (b * b).T
        rows, columns = scipy.optimize.linear_sum_assignment(squares)
        seen = np.isfinite(self.new[rows])
        matched, new = np.where(seen, self.matched[rows], 1.0), np.where(seen, self.new[rows], 1.0)
        terms = np.log(new / matched)
        terms += np.square(y[rows] - self.home) / new - np.square(y[rows] - self.atoms[columns]) / matched
        return _Fit((rows, columns), 0.5 * np.where(seen, terms, 0.0).sum(1))


def _weight(stack: Stack, noise: Array | float, inflation: float) -> Array:
    """1 / (1 / weight + trust variance / noise), as in the fit; zero where not seen."""
    seen = np.ones(stack.values.shape) if stack.weight is None else stack.weight
    inverse = 1 / np.where(seen > 0, seen, 1.0)
    if stack.variance is not None:
        inverse = inverse + inflation * stack.variance / noise
    return np.asarray(np.where(seen > 0, 1 / inverse, 0.0))


def _typical_inverse(stack: Stack, noise: Array, inflation: float) -> Array:
    """Median over seen values of 1 / weight, per dimension; one where nothing is seen."""
    typical = np.ones(len(noise))
    for d in range(0 if stack.plain else len(noise)):
        variance, weight = (None if x is None else x[:, d : d + 1] for x in (stack.variance, stack.weight))
        column = _weight(
            Stack(stack.values[:, d : d + 1], stack.offsets, variance, weight), noise[d], inflation
        ).ravel()
        seen = column[column > 0]
        typical[d] = 1 / float(np.median(seen)) if len(seen) else 1.0
    return typical


def _average_offset(off: Array, inverse: Array, deviation: Array, site: Index, J: int) -> tuple[Array, Array]:
    """Means (J, D) over each site's values of offsets with these inverse variances, in deviations, and over their
    standard errors.
    """
    total = sum_by_atom(inverse, site, J)
    total = np.where(total > 0, total, np.nan)
    mean = sum_by_atom(off * inverse, site, J) / total
    return mean / deviation, mean * np.sqrt(total)
