"""Sites that agree better than sites with rows of their own can: a model trained again on nearly the same rows.

Standard errors say how far apart two sites lie that hold other rows of one population; none can be expected to lie
closer, however alike their populations are. A model that was trained again on a few rows fewer does: components that
lost no row hardly move. Such sites are named and counted all the same, for nothing says how many rows they share.

Standard errors may be overstated, by all sites alike: what is typical of a column, if it is less than they say, is
taken in their place. Columns may say the same: half of them are taken for independent. Atoms that most sites hold alike
say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import Finding, TwinWarning
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index, Key, Stack, arrays_of, group_of_values, spans
from modelweld.matching.result import Matching
from modelweld.screening.twins import components

BY_CHANCE = 1e-3
"""Probability that any two sites of a fusion come as close by chance."""

INDEPENDENT = 0.5
"""Share of columns that is taken for independent of the others."""

MEDIAN_SQUARE = 0.455
"""Of a standard Gaussian's square: chi-square with one degree of freedom."""

FLAT = 0.05
"""Share of what standard errors allow below which a column typically lies where everybody holds the same value, up to a
ridge that was added to its variance: it says nothing."""

FEWEST_SITES = 3
"""Two sites alone do not say what is typical."""

SAME_ERRORS = 4.0
"""Times by which squared standard errors may differ where rows are nearly the same: half of the rows have twice the
square. A site that claims to know next to nothing agrees with everybody better than it allows."""

MOST_VALUES = 20_000
"""Values beyond which nothing is looked for: seconds."""

NEIGHBOURS = 2
"""How many values a value is compared with, the nearest ones of its atom."""

LAGS = 3
"""How many values a value is compared with to tell what is typical."""


def name_shared_rows(stacks: Sequence[Stack], matching: Matching, sites: Sequence[str]) -> tuple[Finding, ...]:
    """Which sites may share rows, in plain words; of arrays with standard errors alone."""
    found = sharing(stacks, matching.stacked_labels, matching.twins or {})
    reasons = list[Finding]()
    if found:
        pairs = np.array(list(found)).T
        part = components(pairs, len(sites))
        for p in np.unique(part[pairs[0]]).tolist():
            closest = min(share for (i, _), share in found.items() if part[i] == p)
            reasons.append(_describe([sites[j] for j in np.flatnonzero(part == p).tolist()], closest))
    return tuple(reasons)


def _describe(names: Sequence[str], closest: float) -> Finding:
    share = f"{closest:.0%}" if closest >= 0.01 else "less than 1%"
    return Finding(
        f" agree better than sites with rows of their own do: where they are closest, they differ by {share} of what "
        "their standard errors allow. Was one model trained again on nearly the same rows? All are counted. If so, "
        "leave one out; if they are independent, say so with twins='independent'.",
        TwinWarning,
        names,
    )


def has_errors(models: Sequence[LocalModel], key: Key) -> bool:
    """Whether all models came with standard errors of these arrays."""
    return all(name in model.variance for model in models for name in arrays_of(key))


def sharing(stacks: Sequence[Stack], labels: Index, twins: Mapping[int, int]) -> dict[tuple[int, int], float]:
    """Pairs of sites that are closer than chance allows -> by how much of their standard errors they differ at best.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(5, 20))
    >>> values[4] = values[0] + 0.01
    >>> list(sharing([Stack(values, np.arange(6), variance=np.ones((5, 20)))], np.zeros(5, dtype=int), {}))
    [(0, 4)]
    """
    offsets = stacks[0].offsets
    N, site = len(labels), group_of_values(offsets)
    if not 0 < N <= MOST_VALUES or np.count_nonzero(stacks[0].sizes) < FEWEST_SITES:
        return {}
    values, variance, seen = _known(stacks)
    one, shares = _shares(values, variance, seen, labels)
    alike = np.isin(labels, _atoms_held_alike(labels, one, shares))
    labels = np.where(alike, labels.max() + 1 + np.arange(N), labels)  # each an atom of its own
    typical = _typical(shares[~alike[one]])
    columns = typical >= FLAT
    if not columns.any():
        return {}
    values, variance, seen = values[:, columns], (variance * typical)[:, columns], seen[:, columns]
    middle = np.median(variance, axis=0)  # zero where most values are known beyond doubt: told apart by the others
    pairs = _nearest(values / np.sqrt(np.where(middle > 0, middle, np.inf)), labels)
    pairs = pairs[:, site[pairs[0]] != site[pairs[1]]]

    def square(one: Index, other: Index) -> tuple[Array, Array]:
        """Sums of squares over what standard errors allow, value by value, and how many numbers they are sums of."""
        v, w = variance[one], variance[other]
        both = seen[one] & seen[other] & (v <= SAME_ERRORS * w) & (w <= SAME_ERRORS * v)
        off = np.square(values[one] - values[other]) / np.where(both, v + w, np.inf)
        return off.sum(axis=1), both.sum(axis=1)

    number = np.bincount(labels)
    among, J = float((number * (number - 1)).sum()) / 2, len(offsets) - 1
    sums, numbers = square(*pairs)
    of = np.sort(site[pairs], axis=0)
    likely = _chance(sums, numbers) * among < BY_CHANCE / 2
    often, times = np.unique(of, axis=1, return_counts=True)
    candidates = np.unique(np.hstack([of[:, likely], often[:, times > 1]]), axis=1)
    single = np.array([twins.get(j, j) for j in range(J)])
    candidates = candidates[:, single[candidates[0]] != single[candidates[1]]]
    if not candidates.size:
        return {}
    pair, one, other = _atom_by_atom(candidates, site, labels)
    sums, numbers = square(one, other)
    total, count = np.zeros((2, candidates.shape[1]))
    np.add.at(total, pair, sums)
    np.add.at(count, pair, numbers)
    suspect = _chance(total, count) * J * (J - 1) / 2 < BY_CHANCE / 2
    suspect |= np.isin(J * candidates[0] + candidates[1], (J * of[0] + of[1])[likely])
    closest = np.full(candidates.shape[1], np.inf)
    np.minimum.at(closest, pair, np.where(numbers > 0, np.sqrt(sums / np.maximum(numbers, 1)), np.inf))
    return {(i, j): float(x) for (i, j), x in zip(candidates.T[suspect].tolist(), closest[suspect], strict=True)}


def _atom_by_atom(pairs: Index, site: Index, labels: Index) -> tuple[Index, Index, Index]:
    """All atoms that both sites of each pair hold: which pair, the first one's value there, the other's."""
    key = site * (int(labels.max()) + 1) + labels
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(site, pairs[0])
    size = np.searchsorted(site, pairs[0], side="right") - begin
    pair = np.repeat(np.arange(pairs.shape[1]), size)
    one = spans(begin, size)
    wanted = pairs[1][pair] * (int(labels.max()) + 1) + labels[one]
    there = np.minimum(np.searchsorted(key[order], wanted), len(order) - 1)
    both = key[order[there]] == wanted
    return pair[both], one[both], order[there[both]]


def _chance(sums: Array, numbers: Array) -> Array:
    """Probability that sums of squares of so many numbers, some of which say the same, are as small."""
    from scipy.special import chdtr

    independent = np.maximum(INDEPENDENT * numbers, 1.0)
    return np.where(numbers > 0, chdtr(independent, sums * independent / np.maximum(numbers, 1)), 1.0)


def _known(stacks: Sequence[Stack]) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Values, their squared standard errors, and which of them were seen and are not known beyond all doubt."""
    values = np.hstack([stack.filled() for stack in stacks])
    variance = np.hstack([np.zeros(s.values.shape) if s.variance is None else s.variance for s in stacks])
    return values, variance, np.hstack([stack.seen for stack in stacks]) & (variance > 0)


def _atoms_held_alike(labels: Index, one: Index, shares: Array) -> Index:
    """Atoms that most of their sites hold alike: units that never learned, a default that everybody kept.

    Two sites alone are no majority.
    """
    number = (~np.isnan(shares)).sum(axis=1)
    one, shares, number = one[number > 0], shares[number > 0], number[number > 0]
    mean = np.nansum(shares, axis=1) / number
    order = np.lexsort((mean, labels[one]))
    atom, first, pairs = np.unique(labels[one][order], return_index=True, return_counts=True)
    size = np.bincount(labels)[atom]
    return np.asarray(atom[(size >= FEWEST_SITES) & (mean[order][first + pairs // 2] / MEDIAN_SQUARE < FLAT)])


def _typical(shares: Array) -> Array:
    """Column by column, squares between values of an atom as a share of what standard errors allow; at most one.

    The median over pairs: neither one site that lies elsewhere nor one that comes twice decides.
    """
    known = ~np.isnan(shares).all(axis=0)
    typical = np.zeros(shares.shape[1])
    typical[known] = np.nanmedian(shares[:, known], axis=0) / MEDIAN_SQUARE
    return np.minimum(typical, 1.0)


def _shares(values: Array, variance: Array, seen: NDArray[np.bool_], labels: Index) -> tuple[Index, Array]:
    """Squares between two values of an atom as a share of what standard errors allow (n, D), and the first of the two.

    Each value with those next to it by site, round and round; NaN where they cannot be compared.
    """
    order = np.argsort(labels, kind="stable")
    begin = np.searchsorted(labels[order], labels[order])
    size = np.bincount(labels)[labels[order]]
    firsts, shares = [np.zeros(0, dtype=np.int64)], [np.zeros((0, values.shape[1]))]
    for lag in range(1, LAGS + 1):
        with_another = size > lag
        one = order[with_another]
        other = order[(begin + (np.arange(len(order)) - begin + lag) % size)[with_another]]
        both = seen[one] & seen[other]
        off = np.square(values[one] - values[other]) / np.where(both, variance[one] + variance[other], 1.0)
        firsts.append(one)
        shares.append(np.where(both, off, np.nan))
    return np.concatenate(firsts), np.vstack(shares)


def _nearest(places: Array, labels: Index) -> Index:
    """Pairs of values of one atom (2, n), each value with those nearest to it."""
    from scipy.spatial import cKDTree

    pairs = [np.zeros((2, 0), dtype=np.int64)]
    order = np.argsort(labels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if len(rows) > 1:
            k = min(NEIGHBOURS + 1, len(rows))
            near = cKDTree(places[rows]).query(places[rows], k=k)[1]
            pair = np.stack([np.repeat(rows, k), rows[near.ravel()]])
            pairs.append(np.sort(pair[:, pair[0] != pair[1]], axis=0))
    return np.unique(np.hstack(pairs), axis=1)
