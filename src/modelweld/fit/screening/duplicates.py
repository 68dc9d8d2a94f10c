"""What was sent more than once: sites that repeat another, exactly or nearly, and models of nearly the same rows.

Two independent sites never agree to a millionth of their own range. Taken for independent, two that do say that the
noise is next to nothing, and then nobody else's values match. So a site whose values are those of another, in whatever
order, is *counted once*: one of them is fitted, the others are labelled like it and are in the result as it is. Every
value gets a number, the same for those that coincide; sites with the same numbers coincide.

What *nearly* coincides (rounded or slightly retrained parameters, noise on a copy) is found after a fit, because nearly
is a matter of how far sites lie from each other that are not copies. Copies with more noise agree with each other far
better than with anybody else, which two sites that know their values well do not: those agree with all the others'
mean. Many copies could bring the noise down to their own, and nothing else would match, so `number_likely` counts
suspects once in a first fit, by which they are then judged.

Standard errors say how far apart sites lie that hold *other rows* of one population; a model that was trained again on
a few rows fewer lies closer. Such sites are named and counted all the same, for nothing says how many rows they share.
Standard errors may be overstated, by all sites alike: what is typical of a column, if it is less, is taken in their
place. Atoms that most sites hold alike say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelweld.core.family import sum_by_atom
from modelweld.core.match import Fit
from modelweld.core.matching import Matching, ranks
from modelweld.core.values import Array, Flags, Index, SetValues, Stack, group_of_values
from modelweld.errors import DuplicateWarning, Finding
from modelweld.families import Drift, Family
from modelweld.families.capabilities import has_places
from modelweld.families.math.start import voted_share
from modelweld.fit.screening.distances import FEWEST_SITES, means_by_site

COINCIDE = 1e-6
"""Share of a site's own range, in each column, within which two values are the same: far below any noise with which
people estimate parameters, far above what writing numbers with eight digits loses."""

FEWEST_OWN = 2
"""Values that coinciding sites, and nobody else, must have in common: two sites may well send the same single value,
and small sites of counts or codes coincide by themselves."""

NEIGHBOURS = 4
"""How many values or sites each is compared with, those next to it on a random line: what coincides is hardly ever
parted there by one other value, let alone by this many."""

NEARLY = 0.02
"""Of the deviation between sites within which a copy lies, whatever the others say. A site of 20,000 points lies within
.055 of that of one of 60 points, and two such agree by that much without being copies."""

SIMILAR, ASTRAY = 0.12, 5.0
"""Of that deviation within which copies lie that have gone astray together: the mean square of their distance from the
others' mean is that many times what two independent sites as close would have. Branches of one house may be a third of
the deviation apart, and each says something of its own."""

BY_CHANCE, ROWS_BY_CHANCE = 1e-4, 1e-3
"""Probability that any two sites of a fusion come as close by chance as copies, or as models of the same rows."""

FEWEST_NUMBERS = 6
"""Numbers that must agree: fewer agree that well by chance once in 10,000 pairs of sites."""

MOST_OF_SITES = 0.75
"""Quantile over sites of what they say noise is, from which suspects are told: three quarters may be copies."""

INDEPENDENT = 0.5
"""Share of columns that is taken for independent of the others, where rows may be shared."""

MEDIAN_SQUARE = 0.455
"""Of a standard Gaussian's square: chi-square with one degree of freedom."""

FLAT, LAGS = 0.05, 3
"""Share of what standard errors allow below which a column typically lies where everybody holds the same value, up to a
ridge that was added to its variance: it says nothing. Each value is compared with so many to tell what is typical."""

SAME_ERRORS = 4.0
"""Times by which squared standard errors may differ where rows are nearly the same: half of the rows have twice the
square. A site that claims to know next to nothing agrees with everybody better than it allows."""

MOST_PAIRS = 500_000
"""Pairs of matched values beyond which shared rows are not looked for: tenths of a second."""

COINCIDED = (
    " sent the same values, or nearly: they are counted once. If one was sent twice, or two share a model, leave one "
    "out; if they are independent and coincide all the same, say so with screens=['outliers']."
)

SHARED = (
    " agree better than sites with rows of their own do: where they are closest, they differ by {} of what their "
    "standard errors allow. Was one model trained again on nearly the same rows? All are counted. If so, leave one "
    "out; if they are independent, say so with screens=['outliers']."
)

ALL_ALIKE = Finding(
    "all sites sent the same values: they are fused as if they were independent, but say nothing about noise, nor "
    "about what sites have in common.",
    DuplicateWarning,
)


def duplicates(values: SetValues, fit: Fit) -> Matching:
    """Count sites once that coincide, or nearly do: one of them is fitted, the others are labelled like it."""
    numbers, likely = values.numbers, number_likely(values)
    if likely is not numbers:
        judged = fit_distinct(replace(values, numbers=likely), fit)
        numbers = number_near(judged, values, numbers, likely)
    matching = fit_distinct(replace(values, numbers=numbers), fit)
    near = number_near(matching, values, numbers)
    return matching if near is numbers else fit_distinct(replace(values, numbers=near), fit)


def number_values(stacks: Sequence[Stack], families: Sequence[Family]) -> Index:
    """A number for every value, the same for those that coincide: nearly, in arrays of families that have places.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.inputs.plain_tables import stack_arrays
    >>> number_values([stack_arrays([[[0.0, 0.1], [9.0, 9.1]], [[9.0, 9.1 + 1e-9], [5.0, 4.0]]])], [Gaussian()])
    array([0, 1, 1, 2])
    """
    columns, weighed = _side_by_side([s.filled() for s in stacks]), [s.seen for s in stacks if s.weight is not None]
    table = np.hstack([columns, *weighed]) if weighed else columns
    (N, D), near = table.shape, [has_places(f) for s, f in zip(stacks, families, strict=True) for _ in s.values.T]
    if not N:
        return np.arange(0)
    filled = stacks[0].sizes > 0
    begin, site = stacks[0].offsets[:-1][filled], np.repeat(np.arange(filled.sum()), stacks[0].sizes[filled])
    may_differ = COINCIDE * np.append(near, np.zeros(D - len(near)))
    high, low = table.max(0), table.min(0)
    line = any_direction(D) / np.where(high > low, high - low, 1.0)
    rounding = D * np.finfo(float).eps * float(np.maximum(np.abs(high), np.abs(low)) @ np.abs(line))
    key, limit = table @ line, may_differ * (high - low)  # of the widest site that could be
    order = np.argsort(key)
    key, pairs = key[order], [np.zeros((2, 0), dtype=np.int64)]
    for lag in range(1, min(NEIGHBOURS + 1, N)):
        close = np.flatnonzero(key[lag:] - key[:-lag] <= limit @ np.abs(line) + rounding)
        if not len(close):
            break  # what is further on is further off
        pair = np.stack([order[close], order[close + lag]])
        pairs.append(pair[:, (np.abs(table[pair[0]] - table[pair[1]]) <= limit).all(1)])
    a, b = np.hstack(pairs)
    if len(a):
        limits = may_differ * (np.maximum.reduceat(table, begin) - np.minimum.reduceat(table, begin))
        own = (np.abs(table[a] - table[b]) <= np.minimum(limits[site[a]], limits[site[b]])).all(1)
        a, b = a[own], b[own]
    return components(np.stack([a, b]), N)


def any_direction(D: int) -> Array:
    """A direction (D,) that nobody chose, always the same: what coincides does so along it, and little else does."""
    return np.random.default_rng(0).normal(size=D)


def components(pairs: Index, N: int) -> Index:
    """The connected parts of a graph, numbered."""
    if not pairs.size:
        return np.arange(N)
    from scipy.sparse import coo_matrix  # of arrays older SciPy (1.11) wants other numbers
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(pairs.shape[1], dtype=bool), (pairs[0], pairs[1])), shape=(N, N))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _joined(numbers: Index, pairs: Sequence[Index]) -> Index:
    """The numbers with those of each pair made the same; the very same if there is none."""
    return components(np.hstack(pairs), int(numbers.max()) + 1)[numbers] if pairs else numbers


def _side_by_side(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.hstack(arrays)


def find_duplicates(stacks: Sequence[Stack], numbers: Index) -> tuple[list[list[int]], Index]:
    """Groups of sites that coincide, by the numbers of their values, none of which a site has twice.

    Of each group the one that is fitted comes first: it is the first by content. And of every value the one that is
    fitted for it.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.inputs.plain_tables import stack_arrays
    >>> a, b = np.random.default_rng(0).normal(size=(2, 4, 3))
    >>> stack = stack_arrays([a, b, a[::-1]])
    >>> find_duplicates([stack], number_values([stack], [Gaussian()]))[0]
    [[0, 2]]
    """
    held, stand_in, groups = np.bincount(numbers), np.arange(len(numbers)), list[list[int]]()
    if held.max(initial=0) <= 1:
        return groups, stand_in
    content = _side_by_side([a for s in stacks for a in (s.where_seen(-np.inf), s.variance, s.weight) if a is not None])
    spans = [np.arange(a, b) for a, b in pairwise(stacks[0].offsets.tolist())]
    by_content: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(stacks[0].sizes).tolist():
        spans[j] = spans[j][np.argsort(numbers[spans[j]])]
        by_content.setdefault(numbers[spans[j]].tobytes(), []).append(j)
    for group in by_content.values():
        if (held[numbers[spans[group[0]]]] == len(group)).sum() >= FEWEST_OWN and len(group) > 1:
            first = min(group, key=lambda j: sorted(content[spans[j]].tolist()))
            groups.append([first, *(j for j in group if j != first)])
            stand_in[np.concatenate([spans[j] for j in group])] = np.tile(spans[first], len(group))
    return groups, stand_in


def fit_distinct(values: SetValues, fit: Fit) -> Matching:
    """The matching of all sites, of which `fit` sees those once that coincide, by their `numbers`.

    Where all coincide there is nobody whose answer they could spoil: all are fitted, and copies give back the model.
    """
    groups, stand_in = find_duplicates(values.stacks, values.numbers)
    if not groups:
        return replace(fit(values), duplicates={})
    if len(groups[0]) == np.count_nonzero(values.sizes):
        return replace(fit(values), duplicates={}).say(ALL_ALIKE)
    stay = np.setdiff1d(np.arange(len(values.sites)), [j for group in groups for j in group[1:]])
    fitted = np.flatnonzero(np.isin(group_of_values(values.offsets), stay))
    matching = restore_duplicates(fit(values.of(stay)), np.searchsorted(fitted, stand_in), values.offsets)
    matching = replace(matching, duplicates={j: min(group) for group in groups for j in sorted(group)[1:]})
    return matching.say(*(Finding(COINCIDED, DuplicateWarning, [values.sites[j] for j in sorted(g)]) for g in groups))


def restore_duplicates(matching: Matching, source: Index, offsets: Index) -> Matching:
    """The matching of all sites: every value labelled like the fitted one that is its `source`.

    What was excluded of the one is excluded of the others, each value an atom of its own; which atoms are atoms is
    decided by the sites fitted.
    """
    kept = np.ones(len(source), dtype=bool) if matching.kept is None else matching.kept[source]
    fitted = matching.stacked_labels[source]
    own = np.where(kept, fitted, len(matching.counts) + np.arange(len(source)))
    _, first, labels = np.unique(own, return_index=True, return_inverse=True)
    atom = fitted[first]
    counts = np.bincount(np.unique(np.stack([labels, group_of_values(offsets)]), axis=1)[0])
    artefact = np.isin(atom, [one.atom for one in matching.artefacts])
    block = np.where(~kept[first], 3, np.where(artefact, 2, atom >= matching.K))
    number = np.lexsort((*next(iter(matching.values.values()))[atom].T[::-1], -counts, block))
    rank, now = ranks(number), np.empty(len(matching.counts), dtype=np.int64)
    now[atom] = rank
    return replace(
        matching,
        stacked_labels=rank[labels],
        offsets=offsets,
        counts=counts[number],
        values={name: values[atom[number]] for name, values in matching.values.items()},
        artefacts=tuple(artefact.renumbered(now) for artefact in matching.artefacts),
        kept=None if matching.kept is None else kept,
    )


def number_likely(given: SetValues) -> Index:
    """Numbers of values, before any fit: a minority of sites of one time that may be copies has the same ones."""
    sizes, offsets, numbers = given.sizes, given.offsets, given.numbers
    filled = np.flatnonzero(sizes)
    if len(filled) <= FEWEST_SITES or not all(has_places(family) for family in given.families):
        return numbers
    values = _side_by_side([stack.filled() for stack in given.stacks])
    share = sizes[filled, None] / len(values)
    means, means_about = means_by_site(Stack(values, offsets))
    total = (share * means_about((share * means).sum(0))).sum(0)
    total = np.where(total > 0, total, np.inf)
    means, times = means / np.sqrt(total), np.zeros(len(sizes)) if given.times is None else given.times
    order, limit = np.argsort(means @ any_direction(len(total)), kind="stable"), 4 * SIMILAR**2
    rank = np.cumsum(sizes > 0) - 1
    near = list[tuple[int, int, float]]()
    for i, j in ((filled[order[:-lag]], filled[order[lag:]]) for lag in range(1, NEIGHBOURS + 1)):
        apart = np.square(means[rank[i]] - means[rank[j]]).mean(axis=1) * sizes[i] / 2
        close = (apart < limit) & (sizes[i] == sizes[j]) & (times[i] == times[j])
        near += zip(i[close].tolist(), j[close].tolist(), apart[close].tolist(), strict=True)
    if not near:
        return numbers  # noise is at most all there is
    limit *= min(voted_share(Stack(values, offsets, group_order=filled[order]), total, MOST_OF_SITES) or 0.0, 1.0)
    pairs, suspects = list[Index](), set[int]()
    for one, other in ((one, other) for one, other, apart in near if apart < limit):
        a, b = (slice(offsets[k], offsets[k + 1]) for k in (one, other))
        squares = np.square((values[a, None] - values[b]) / np.sqrt(total)).mean(axis=2)
        nearest = squares.argmin(axis=1)
        pair = np.stack([numbers[a], numbers[b][nearest]])
        once = len(np.unique(nearest)) == len(nearest) and not np.array_equal(*pair)
        if once and squares.min(axis=1).mean() < limit:
            pairs.append(pair)
            suspects |= {one, other}
    return _joined(numbers, pairs) if 2 * len(suspects) < len(filled) else numbers  # a majority is no copy


def number_near(matching: Matching, given: SetValues, numbers: Index, fitted: Index | None = None) -> Index:
    """Numbers of values, those of near copies made the same, if any; `matching` is of them.

    Or of others, `fitted` (`number_likely`): what was counted once there and is no copy has numbers of its own.
    """
    stacks, site, J = given.stacks, group_of_values(given.offsets), len(given.sizes)
    if J < FEWEST_SITES or not all(has_places(family) for family in given.families):
        return numbers
    labels = matching.stacked_labels
    if fitted is not None and matching.kept is not None:  # what was excluded of one was of its copies
        labels = np.where(matching.kept, labels, len(matching.counts) + fitted)
    labels = given.at_one_time(labels)
    if not (together := _holding_the_same(labels, given.offsets)):
        return numbers
    values, seen = _side_by_side([s.filled() for s in stacks]), _side_by_side([s.seen for s in stacks])
    once = ~np.isin(site, list(matching.duplicates or ()))
    deviation = _deviation(values, seen, labels, once) if given.times is None else _noise(matching, values)
    line = values @ (any_direction(len(deviation)) / deviation)
    alike, similar = list[Index](), list[Index]()
    for sites in together:
        order = np.argsort([line[own].mean() for own in sites], kind="stable").tolist()
        for a, b in ((a, a + lag) for lag in range(1, NEIGHBOURS + 1) for a in range(len(order) - lag)):
            one, other = sites[order[a]], sites[order[b]]
            both = seen[one]
            off = ((values[one] - values[other]) / deviation)[both]
            apart = float(np.mean(off * off)) / 2 if off.size >= FEWEST_NUMBERS else np.inf
            if apart < SIMILAR**2 and np.array_equal(both, seen[other]) and (numbers[one] != numbers[other]).any():
                (alike if apart < NEARLY**2 else similar).append(np.stack([one, other]))
    if similar:
        part = components(np.array([site[pair[:, 0]] for pair in [*similar, *alike]]).T, J)[site]
        own = {p: _astray(part == p, values / deviation, labels, J) for p in {int(part[x[0, 0]]) for x in similar}}
        alike += [pair for pair in similar if own[int(part[pair[0, 0]])]]
    return _joined(numbers, [numbers[pair] for pair in alike])


def _holding_the_same(labels: Index, offsets: Index) -> list[list[Index]]:
    """Values of several sites that hold the same atoms, once each: site by site, in the order of the atoms."""
    found: dict[bytes, list[Index]] = {}
    marks = np.random.default_rng(0).integers(2**40, size=2 * len(labels))
    summed = np.bincount(group_of_values(offsets), marks[labels], len(offsets) - 1)  # whole numbers: no rounding
    _, mark, number = np.unique(summed, return_inverse=True, return_counts=True)
    for j in np.flatnonzero((number[mark] > 1) & (np.diff(offsets) > 0)).tolist():  # sites that may hold the same
        own = np.arange(offsets[j], offsets[j + 1])[np.argsort(labels[offsets[j] : offsets[j + 1]])]
        if (np.diff(labels[own]) > 0).all():
            found.setdefault(labels[own].tobytes(), []).append(own)
    return [sites for sites in found.values() if len(sites) > 1]


def _astray(members: Flags, values: Array, labels: Index, J: int) -> bool:
    """Whether sites agree better than chance allows, and with each other only; `values` in deviations between sites."""
    from scipy.special import chdtr

    number, others = (np.bincount(labels[which], minlength=int(labels.max()) + 1) for which in (members, ~members))
    held, shared = number > 1, (number > 1) & (others > 0)
    centre, elsewhere = (
        sum_by_atom(np.where(which[:, None], values, 0.0), labels) / np.maximum(n, 1)[:, None]
        for which, n in ((members, number), (~members, others))
    )
    free = number[held].sum() - held.sum()
    apart = np.square(values - centre[labels])[members & held[labels]].mean(axis=1).sum() / free
    # columns may all say the same: no more numbers are taken for independent than there are columns, or atoms
    independent = free * max(values.shape[1] / held.sum(), 1.0)
    if chdtr(independent, independent * apart) > BY_CHANCE / J**2:
        return False
    if shared.sum() < held.sum() / 2:
        return True
    off = np.square(centre - elsewhere)[shared].mean()
    return bool(off > ASTRAY * (apart * np.mean(1 / number[shared]) + np.mean(1 / others[shared])))


def _noise(matching: Matching, values: Array) -> Array:
    """Deviation of values about atoms that move: few of one atom are of one time."""
    [family] = matching.families.values()
    assert isinstance(family, Drift)
    return np.sqrt(np.broadcast_to(np.asarray(family.noise, dtype=np.float64), values.shape[1:]))


def _deviation(values: Array, seen: Flags, labels: Index, once: Flags) -> Array:
    """Of values that were seen, and count `once`, about their atom's mean (D,); infinite where they do not differ."""
    deviation = np.full(values.shape[1], np.inf)
    for d, column in enumerate(values.T):
        rows = np.flatnonzero(once & seen[:, d])
        own, x = labels[rows], column[rows]
        number = np.bincount(own)
        off = x - (np.bincount(own, x) / np.maximum(number, 1))[own]
        if off.any():
            deviation[d] = np.sqrt(off @ off / max((number - (number > 0)).sum(), 1))
    return deviation


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
    """Atoms that most of their sites hold alike: units that never learned, a default that everybody kept.

    `shares` are of two values of each of `atoms`. Two sites alone are no majority.
    """
    known = ~np.isnan(shares).all(axis=1)
    mean, atoms = np.nanmean(shares[known], axis=1), atoms[known]
    order = np.lexsort((mean, atoms))
    atom, first, pairs = np.unique(atoms[order], return_index=True, return_counts=True)
    flat = mean[order][first + pairs // 2] / MEDIAN_SQUARE < FLAT
    return np.asarray(atom[(size[atom] >= FEWEST_SITES) & flat])


def _typical(shares: Array) -> Array:
    """Squares between values of an atom as a share of what standard errors allow, column by column; at most one.

    The median over pairs: neither one site that lies elsewhere nor one that comes twice decides.
    """
    known, typical = ~np.isnan(shares).all(axis=0), np.zeros(shares.shape[1])
    typical[known] = np.nanmedian(shares[:, known], axis=0) / MEDIAN_SQUARE
    return np.minimum(typical, 1.0)


def _chance(sums: NDArray[Any], numbers: NDArray[Any]) -> Array:
    """Probability that sums of squares of so many numbers, some of which say the same, are as small."""
    from scipy.special import chdtr

    independent = np.maximum(INDEPENDENT * numbers, 1.0)
    return np.where(numbers > 0, chdtr(independent, sums * independent / np.maximum(numbers, 1)), 1.0)
