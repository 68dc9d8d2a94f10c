"""By how much a site's values are off from the atoms as the others see them.

Only for families that know the `variances` of values about their atom and of atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Family, sum_by_atom
from modelweld.core.values import Array, Index, Stack, blocks
from modelweld.families.capabilities import variances_of
from modelweld.fit.search.leave_one_out import Without
from modelweld.fit.search.parts import Parts


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
    """Offset (D,) in deviations and over its standard error, NaN if unknown."""

    mean: Array
    z: Array


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


def shifts_of(board: Board, places: list[Shiftable], out: Without, left: Sequence[Array]) -> list[Shift]:
    """The offset of what every site of a board shares from where its atoms are without it.

    `out` is what is left without each of them, and `left` where their atoms are then, one array per family.
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
    return [Shift(mean, z) for mean, z in zip(np.hstack(means), np.hstack(zs), strict=True)]


def _weight(stack: Stack, noise: Array | float, inflation: float) -> Array:
    """1 / (1 / weight + trust variance / noise), as in the fit; zero where not seen."""
    seen = np.ones(stack.values.shape) if stack.weight is None else stack.weight
    inverse = 1 / np.where(seen > 0, seen, 1.0)
    if stack.variance is not None:
        inverse = inverse + inflation * stack.variance / noise
    return np.asarray(np.where(seen > 0, 1 / inverse, 0.0))


def _typical_inverse(stack: Stack, noise: Array, inflation: float) -> Array:
    """Median over seen values of 1 / weight, per dimension; one where nothing is seen."""
    if stack.plain:
        return np.ones(len(noise))
    columns = _weight(stack, noise, inflation).T
    return np.array([1 / np.median(w[w > 0]) if (w > 0).any() else 1.0 for w in columns])


def _average_offset(off: Array, inverse: Array, deviation: Array, site: Index, J: int) -> tuple[Array, Array]:
    """Means (J, D) over each site's values of offsets with these inverse variances, in deviations, and over their
    standard errors.
    """
    total = sum_by_atom(inverse, site, J)
    total = np.where(total > 0, total, np.nan)
    mean = sum_by_atom(off * inverse, site, J) / total
    return mean / deviation, mean * np.sqrt(total)
