"""Sites whose models were trained on nearly the same rows: named, and counted all the same.

Standard errors say how far apart sites lie that hold *other rows* of one population; a model that was trained again on
a few rows fewer lies closer. Such sites are named and counted all the same, for nothing says how many rows they share.
Standard errors may be overstated, by all sites alike: what is typical of a column, if it is less, is taken in their
place. Atoms that most sites hold alike say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.matching import Matching
from modelweld.core.values import Array, Flags, Index, Stack, group_of_values
from modelweld.errors import DuplicateWarning, Finding
from modelweld.fit.screening.distances import FEWEST_SITES, MAD_TO_DEVIATION
from modelweld.fit.screening.near_duplicates import components

ROWS_BY_CHANCE = 1e-3
"""Probability that any two sites of a fusion come as close by chance as models of the same rows do."""

INDEPENDENT = 0.5
"""Share of columns that is taken for independent of the others, where rows may be shared."""

FLAT, LAGS = 0.05, 3
"""Share of what standard errors allow below which a column typically lies where all sites hold the same value, up to a
ridge that was added to its variance: it says nothing. Each value is compared with so many to tell what is typical."""

SAME_ERRORS = 4.0
"""Times by which squared standard errors may differ where rows are nearly the same: half of the rows have twice the
square. A site that claims to know next to nothing agrees with all others better than it allows."""

MOST_PAIRS = 500_000
"""Pairs of matched values beyond which shared rows are not looked for: tenths of a second."""

SHARED = (
    " agree better than sites with rows of their own do: where they are closest, they differ by {} of what their "
    "standard errors allow. Was one model trained again on nearly the same rows? All are counted. If so, leave one "
    "out; if they are independent, say so with screens=['outliers']."
)


def name_shared_rows(stacks: Sequence[Stack], matching: Matching, sites: Sequence[str]) -> Iterator[Finding]:
    """Which sites may share rows; of arrays with standard errors alone."""
    found = sharing(stacks, matching.stacked_labels, matching.duplicates or {})
    part = components(np.array([*found], dtype=np.int64).reshape(-1, 2).T, len(sites))
    for p in dict.fromkeys(part[i] for i, _ in sorted(found)):
        closest = min(share for (i, _), share in found.items() if part[i] == p)
        share = f"{closest:.0%}" if closest >= 0.01 else "less than 1%"
        yield Finding(SHARED.format(share), DuplicateWarning, [sites[j] for j in np.flatnonzero(part == p).tolist()])


def sharing(stacks: Sequence[Stack], labels: Index, duplicates: Mapping[int, int]) -> dict[tuple[int, int], float]:
    """Pairs of sites that are closer than chance allows -> by how much of their standard errors they differ at best.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(5, 20))
    >>> values[4] = values[0] + 0.01
    >>> list(sharing([Stack(values, np.arange(6), variance=np.ones((5, 20)))], np.zeros(5, dtype=int), {}))
    [(0, 4)]
    """
    site, size, J = group_of_values(stacks[0].offsets), np.bincount(labels), len(stacks[0].sizes)
    among = int((size * (size - 1)).sum()) // 2
    if not 0 < among <= MOST_PAIRS or np.count_nonzero(stacks[0].sizes) < FEWEST_SITES:
        return {}
    values = np.hstack([stack.filled() for stack in stacks])
    variance = np.hstack([np.zeros(s.values.shape) if s.variance is None else s.variance for s in stacks])
    seen = np.hstack([stack.seen for stack in stacks]) & (variance > 0)  # else known beyond all doubt

    def squares(one: Index, other: Index) -> tuple[Array, Flags]:
        """Over what standard errors allow (n, D), and which can be compared."""
        v, w = variance[one], variance[other]
        both = seen[one] & seen[other] & (v <= SAME_ERRORS * w) & (w <= SAME_ERRORS * v)
        return np.square(values[one] - values[other]) / np.where(both, v + w, np.inf), both

    one, other = (np.concatenate(rows) for rows in zip(*_pairs(labels, LAGS), strict=True))
    off, both = squares(one, other)
    shares = np.where(both, off, np.nan)
    alike = np.isin(labels, _atoms_held_alike(labels[one], shares, size))
    typical = _typical(shares[~alike[one]])
    columns = typical >= FLAT
    values, variance, seen = values[:, columns], (variance * typical)[:, columns], seen[:, columns] & ~alike[:, None]
    each = []
    for one, other in _pairs(labels, int(size.max()) - 1):
        off, both = squares(one, other)
        each.append((J * site[one] + site[other], off.sum(axis=1), both.sum(axis=1)))
    at, sums, numbers = (np.concatenate(x) for x in zip(*each, strict=True))
    keys, pair = np.unique(at, return_inverse=True)  # of sites
    suspect = _chance(np.bincount(pair, sums), np.bincount(pair, numbers)) * J * (J - 1) < ROWS_BY_CHANCE
    suspect[pair[_chance(sums, numbers) * among < ROWS_BY_CHANCE / 2]] = True
    closest = np.full(len(keys), np.inf)
    np.minimum.at(closest, pair, np.where(numbers > 0, np.sqrt(sums / np.maximum(numbers, 1)), np.inf))
    found = zip(*(x[suspect].tolist() for x in (keys // J, keys % J, closest)), strict=True)
    return {(i, j): share for i, j, share in found if duplicates.get(i, i) != duplicates.get(j, j)}


def _pairs(labels: Index, lags: int) -> Iterator[tuple[Index, Index]]:
    """Pairs of values of one atom, each once: those next to each other by site, then next but one, ..."""
    order = np.argsort(labels, kind="stable")
    for lag in range(1, min(lags, len(labels) - 1) + 1):
        same = labels[order[lag:]] == labels[order[:-lag]]
        yield order[:-lag][same], order[lag:][same]


def _atoms_held_alike(atoms: Index, shares: Array, size: Index) -> Index:
    """Atoms that most of their sites hold alike: units that never learned, a default that all sites kept.

    `shares` are of two values of each of `atoms`. Two sites alone are no majority.
    """
    known = ~np.isnan(shares).all(axis=1)
    mean, atoms = np.nanmean(shares[known], axis=1), atoms[known]
    order = np.lexsort((mean, atoms))
    atom, first, pairs = np.unique(atoms[order], return_index=True, return_counts=True)
    flat = mean[order][first + pairs // 2] * MAD_TO_DEVIATION**2 < FLAT
    return np.asarray(atom[(size[atom] >= FEWEST_SITES) & flat])


def _typical(shares: Array) -> Array:
    """Squares between values of an atom as a share of what standard errors allow, column by column; at most one.

    The median over pairs: neither one site that lies elsewhere nor one that comes twice decides.
    """
    known, typical = ~np.isnan(shares).all(axis=0), np.zeros(shares.shape[1])
    typical[known] = np.nanmedian(shares[:, known], axis=0) * MAD_TO_DEVIATION**2
    return np.minimum(typical, 1.0)


def _chance(sums: NDArray[Any], numbers: NDArray[Any]) -> Array:
    """Probability that sums of squares of so many numbers, some of which say the same, are as small."""
    independent = np.maximum(INDEPENDENT * numbers, 1.0)
    return np.where(numbers > 0, scipy.special.chdtr(independent, sums * independent / np.maximum(numbers, 1)), 1.0)
